//! The maps of coverage mode are those that the single-step reference gives, counter by counter; the same case gives the same maps.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use fuzz::execute::{Delivery, Executor, Subject};
use fuzz::image::Image;
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use record::flow::{BlockId, FlowHandle, FlowSink, Part};
use record::recorder::{RecordOptions, Recorder};
use record::step::StepRecorder;
use record::target::Target;
use recover::command::{Command, Input};
use recover::limits::Limits;
use targets::{Cpu, Program, conformance_programs};
use trace::event::{CodeAddr, EventKind, FlushTarget, ProcessId, ThreadId};
use trace::{Meta, TraceReader, TraceWriter};
use verdict::end::End;
use wire::cover;

/// Programs with one thread and without signals, of several kinds. None whose code is in no file, none that writes several events with one instruction.
const PROGRAMS: &[&str] = &[
    "code/build_static",
    "flags/loops",
    "flags/registers_kept",
    "isa/locked",
    "isa/stack_in_pm",
    "syscalls/file_writes",
    "syscalls/syncs",
    "watch/arguments",
];

/// Every executed instruction, in order.
#[derive(Default)]
struct Steps {
    blocks: Vec<(CodeAddr, Instruction)>,
    executed: BTreeMap<ThreadId, Vec<usize>>,
}

impl FlowSink for Steps {
    fn define(&mut self, _: BlockId, _: ProcessId, pc: u64, code: CodeAddr, bytes: &[u8]) {
        self.blocks.push((code, Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).decode()));
    }
    fn executed(&mut self, thread: ThreadId, block: BlockId, _: &[u64]) {
        self.executed.entry(thread).or_default().push(block.0 as usize);
    }
    fn part(&mut self, _: ThreadId, _: BlockId, _: Part, _: &[u64]) {}
}

fn count(map: &mut [u8], at: usize) {
    map[at] = cover::counted(map[at]);
}

/// What the reference says of a run.
fn reference(executable: &Path, arguments: &[OsString], pool: &Path, space: &Path) -> Vec<u8> {
    let environment = environment();
    let target = Target::of(executable, arguments, &environment).unwrap();
    let sink = Arc::new(Mutex::new(Steps::default()));
    let options = RecordOptions {
        flow: Some(FlowHandle::new(Arc::clone(&sink))),
        pm: vec![pool.display().to_string()],
        ..RecordOptions::default()
    };
    let trace = space.join("reference.fptrace");
    let _ = fs::remove_file(&trace);
    let meta = Meta { command: Vec::new(), cwd: String::new(), recorder: String::new(), options: Vec::new() };
    StepRecorder.record(&target, &options, TraceWriter::create(&trace, meta).unwrap()).unwrap();
    let reader = TraceReader::open(&trace).unwrap();
    let tables = reader.tables();
    let location =
        |code: CodeAddr| cover::location(cover::module(tables.module(code.module).path.as_bytes()), code.addr);
    let mut maps = vec![0; cover::COVER_BYTES];
    let steps = sink.lock().unwrap();
    for executed in steps.executed.values() {
        for pair in executed.windows(2) {
            let ((code, instruction), (next_code, next)) = (&steps.blocks[pair[0]], &steps.blocks[pair[1]]);
            match instruction.flow_control() {
                FlowControl::ConditionalBranch => {
                    let taken = next.ip() != instruction.next_ip();
                    count(&mut maps, cover::branch(location(*code), taken));
                }
                FlowControl::IndirectBranch | FlowControl::IndirectCall | FlowControl::Return => {
                    count(&mut maps, cover::arrival(location(*next_code)));
                }
                _ => {}
            }
        }
    }
    let mut before: BTreeMap<ThreadId, u32> = BTreeMap::new();
    let mut events = reader.events();
    while let Some(event) = events.next().unwrap() {
        let is_operation = match event.kind {
            EventKind::Store { .. }
            | EventKind::Rmw { .. }
            | EventKind::Fence { .. }
            | EventKind::Msync { .. }
            | EventKind::Fsync { .. }
            | EventKind::KernelWrite { .. }
            | EventKind::FileWrite { .. }
            | EventKind::FileZero { .. }
            | EventKind::Resize { .. } => true,
            EventKind::Flush { target, .. } => matches!(target, FlushTarget::Pool(_)),
            _ => false,
        };
        if is_operation {
            let last = before.entry(event.thread).or_default();
            let (index, next) = cover::transition(*last, cover::operation(location(event.pc)));
            *last = next;
            count(&mut maps, cover::EDGES + index);
        }
    }
    maps
}

fn environment() -> Vec<(OsString, OsString)> {
    // The engine has no rseq: without it libc goes the same way under both.
    let environment = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];
    environment.map(|(name, value)| (name.into(), value.into())).to_vec()
}

fn compare(program: &Program, space: &Path) -> Result<(), String> {
    let built: PathBuf = space.join("built");
    let executable = program.build(&built).map_err(|error| error.to_string())?;
    let folder = space.join("run").join(&program.name);
    let fresh = || {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
    };
    let pool = folder.join("test.pool");
    let arguments: Vec<OsString> = vec![executable.clone().into(), pool.clone().into(), built.into()];
    fresh();
    let expected = reference(&executable, &arguments, &pool, space);
    fresh();
    let command = Command {
        program: executable,
        args: arguments[1..].to_vec(),
        env: environment(),
        dir: space.to_owned(),
        stdin: Input::Empty,
    };
    let subject = Subject { command, delivery: Delivery::Stdin, pools: vec![pool], limits: Limits::default() };
    let mut executor = Executor::new(subject).map_err(|error| error.to_string())?;
    for round in 0..3 {
        let execution = executor.run(b"", &Image::none(1)).map_err(|error| error.to_string())?;
        if execution.report.end != End::Exited(0) {
            return Err(format!("round {round}: it ended with {:?}", execution.report.end));
        }
        let maps = executor.maps();
        let different: Vec<(usize, u8, u8)> = (0..cover::COVER_BYTES)
            .filter(|at| maps[*at] != expected[*at])
            .map(|at| (at, expected[at], maps[at]))
            .collect();
        if !different.is_empty() {
            let pm = different.iter().filter(|(at, ..)| *at >= cover::EDGES).count();
            let some = &different[..different.len().min(12)];
            return Err(format!(
                "round {round}: {} counters differ, {pm} of them in the PM map (of {}): {some:?}",
                different.len(),
                expected.iter().filter(|counter| **counter != 0).count()
            ));
        }
        let pm = expected[cover::EDGES..].iter().filter(|counter| **counter != 0).count();
        if pm == 0 {
            return Err("it has no PM operations: nothing was compared".into());
        }
    }
    Ok(())
}

#[test]
fn the_maps_are_those_of_the_reference() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("coverage");
    fs::create_dir_all(&space).unwrap();
    // The reference starts programs where this process is.
    std::env::set_current_dir(&space).unwrap();
    let cpu = Cpu::here();
    let wanted = |program: &&Program| match std::env::var("FENCEPOST_COVER") {
        Ok(prefix) => program.name.starts_with(&prefix),
        Err(_) => PROGRAMS.contains(&program.name.as_str()),
    };
    let programs = conformance_programs().unwrap();
    let mut compared = 0;
    let mut complaints = Vec::new();
    for program in programs.iter().filter(wanted).filter(|program| program.missing_feature(&cpu).is_none()) {
        compared += 1;
        complaints.extend(compare(program, &space).err().map(|why| format!("{}: {why}", program.name)));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    assert!(compared > 4, "only {compared} programs were compared");
}
