//! The flow of a run is the same under the engine and under the reference, instruction by instruction, with every address;
//! and the trace of the engine is the same with and without flow mode.
//!
//! `FENCEPOST_FLOW=all` (or a prefix, `FENCEPOST_FLOW=isa/`) tries other programs of the conformance suite than the usual few.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use iced_x86::{Decoder, DecoderOptions};
use isa::flow::{Layout, Logged};
use record::flow::{BlockId, FlowHandle, FlowSink, Part};
use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder};
use record::step::StepRecorder;
use record::stop::StopRequest;
use record::target::Target;
use targets::{Cpu, Program, conformance_programs};
use trace::event::{CodeAddr, Place, ProcessId, ThreadId};
use trace::{Meta, TraceWriter};

/// One executed instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    pc: u64,
    values: Vec<(Logged, u64)>,
}

struct Block {
    /// Per instruction: its pc.
    pcs: Vec<u64>,
    layout: Layout,
}

/// Keeps the whole flow, per thread.
#[derive(Default)]
struct Collect {
    blocks: Vec<Block>,
    threads: BTreeMap<ThreadId, Vec<Step>>,
    mapped: Vec<(ProcessId, u64, u64, Option<Place>)>,
    births: Vec<String>,
    operations: Vec<(bool, u64)>,
    kernel_writes: usize,
    finished: bool,
}

impl Collect {
    fn run(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        let Block { pcs, layout } = &self.blocks[block.0 as usize];
        assert_eq!(words.len(), layout.words_of(part.to), "words of block {block:?} up to {part:?}");
        let steps = self.threads.entry(thread).or_default();
        for number in part.from..part.to {
            let value = |v: &isa::flow::Value| (v.what, v.resolve(words).expect("logged before it ran"));
            steps.push(Step { pc: pcs[number], values: layout.values(number).iter().map(value).collect() });
        }
    }
}

impl FlowSink for Collect {
    fn define(&mut self, block: BlockId, _: ProcessId, pc: u64, _: CodeAddr, bytes: &[u8]) {
        assert_eq!(block.0 as usize, self.blocks.len(), "blocks are numbered in order");
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).into_iter().collect();
        assert!(!instructions.is_empty() && instructions.iter().all(|i| !i.is_invalid()));
        let pcs = instructions.iter().map(|i| i.ip()).collect();
        self.blocks.push(Block { pcs, layout: Layout::new(&instructions) });
    }
    fn executed(&mut self, thread: ThreadId, block: BlockId, words: &[u64]) {
        let to = self.blocks[block.0 as usize].pcs.len();
        self.run(thread, block, Part { from: 0, to }, words);
    }
    fn part(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        self.run(thread, block, part, words);
    }
    fn kernel_wrote(&mut self, _: ThreadId, _: u64, len: u64) {
        self.kernel_writes += usize::from(len > 0);
    }
    fn mapped(&mut self, process: ProcessId, address: u64, len: u64, place: Place) {
        self.mapped.push((process, address, len, Some(place)));
    }
    fn unmapped(&mut self, process: ProcessId, address: u64, len: u64) {
        self.mapped.push((process, address, len, None));
    }
    fn thread_started(&mut self, thread: ThreadId, process: ProcessId, parent: Option<ThreadId>) {
        self.births.push(format!("{thread:?} of {process:?} by {parent:?}"));
    }
    fn process_started(&mut self, process: ProcessId, thread: ThreadId, parent: Option<ProcessId>, shares: bool) {
        self.births.push(format!("{process:?} with {thread:?} of {parent:?}, shares memory: {shares}"));
    }
    fn process_exec(&mut self, process: ProcessId, thread: ThreadId) {
        self.births.push(format!("{process:?} executes in {thread:?}"));
    }
    fn operation_begin(&mut self, _: ThreadId, index: u64) {
        self.operations.push((true, index));
    }
    fn operation_end(&mut self, _: ThreadId, index: u64) {
        self.operations.push((false, index));
    }
    fn finished(&mut self) {
        self.finished = true;
    }
}

struct Run<'a> {
    executable: &'a Path,
    built: &'a Path,
    folder: &'a Path,
}

impl Run<'_> {
    fn target(&self) -> Target {
        let _ = fs::remove_dir_all(self.folder);
        fs::create_dir_all(self.folder).unwrap();
        let arguments: Vec<OsString> =
            vec![self.executable.into(), self.folder.join("test.pool").into(), self.built.into()];
        // The engine has no rseq: without it libc goes the same way under both.
        let environment = [("PATH", "/usr/bin:/bin"), ("LC_ALL", "C"), ("GLIBC_TUNABLES", "glibc.pthread.rseq=0")];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        Target::of(self.executable, &arguments, &environment).unwrap()
    }

    /// The flow, if it is wanted, and the trace.
    fn record<R: Recorder>(&self, recorder: &R, flow: bool) -> Result<(Collect, Vec<u8>), String> {
        let sink = Arc::new(Mutex::new(Collect::default()));
        let options =
            RecordOptions { flow: flow.then(|| FlowHandle::new(Arc::clone(&sink))), ..RecordOptions::default() };
        let path = self.folder.with_extension("fptrace");
        let _ = fs::remove_file(&path);
        let meta = Meta { command: Vec::new(), cwd: String::new(), recorder: String::new(), options: Vec::new() };
        let target = self.target();
        let recorded = recorder.record(&target, &options, TraceWriter::create(&path, meta).unwrap());
        let status = recorded.map_err(|error| format!("{} failed: {error}", recorder.name()))?.status;
        if status != trace::event::ExitStatus::Code(0) {
            return Err(format!("it ended with {status:?} under {}", recorder.name()));
        }
        drop(options);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        Ok((std::mem::take(&mut *sink.lock().unwrap()), bytes))
    }
}

/// Both flows, thread by thread. `Err`: the first difference.
fn compare(step: &Collect, probe: &Collect) -> Result<(), String> {
    if step.threads.len() != probe.threads.len() {
        return Err(format!("{} threads and {} threads", step.threads.len(), probe.threads.len()));
    }
    for ((thread, a), (_, b)) in step.threads.iter().zip(&probe.threads) {
        let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
        if same < a.len() || same < b.len() {
            let mut text =
                format!("{thread:?}: {} and {} instructions, the first {same} are the same\n", a.len(), b.len());
            for at in same.saturating_sub(4)..same + 4 {
                let _ = writeln!(text, "  step {:x?}\n probe {:x?}", a.get(at), b.get(at));
            }
            return Err(text);
        }
    }
    for (what, a, b) in [("mappings", &step.mapped, &probe.mapped)] {
        if a != b {
            return Err(format!("{what} differ:\n step {a:x?}\n probe {b:x?}"));
        }
    }
    if step.births != probe.births {
        return Err(format!("births differ:\n step {:?}\n probe {:?}", step.births, probe.births));
    }
    Ok(())
}

/// What is tried by default: quick ones of every kind.
const USUAL: &[&str] =
    &["isa/rep_movs", "isa/locked", "flags/loops", "code/build_static", "signals/segv", "process/fork"];

fn wanted(program: &Program) -> bool {
    match std::env::var("FENCEPOST_FLOW") {
        Ok(all) if all == "all" => true,
        Ok(prefix) => program.name.starts_with(&prefix),
        Err(_) => USUAL.contains(&program.name.as_str()),
    }
}

#[test]
fn the_engine_and_the_reference_see_the_same_flow() {
    if !record::probe_host::is_embedded() {
        return;
    }
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flow");
    let built: PathBuf = space.join("built");
    let cpu = Cpu::here();
    let mut complaints = Vec::new();
    for program in conformance_programs().unwrap().iter().filter(|program| wanted(program)) {
        if program.missing_feature(&cpu).is_some() || program.refusal().is_some() || !program.record_args().is_empty() {
            continue;
        }
        let executable = program.build(&built).unwrap();
        let run = Run { executable: &executable, built: &built, folder: &space.join("run").join(&program.name) };
        if let Err(why) = try_one(program, &run) {
            complaints.push(format!("{}: {why}", program.name));
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

fn try_one(program: &Program, run: &Run<'_>) -> Result<(), String> {
    let stop = StopRequest::new();
    let probe = ProbeRecorder::new(&stop);
    let (_, plain) = run.record(&probe, false)?;
    let (flow, with_flow) = run.record(&probe, true)?;
    assert!(flow.finished);
    let compared = program.compare();
    if plain != with_flow && !compared.unordered && !compared.thread_events_float {
        return Err("the trace is another one with flow mode".to_owned());
    }
    let (reference, _) = run.record(&StepRecorder, true)?;
    let instructions: usize = flow.threads.values().map(Vec::len).sum();
    let result = compare(&reference, &flow);
    eprintln!("{}: {instructions} instructions: {}", program.name, if result.is_ok() { "same" } else { "DIFFERENT" });
    result
}
