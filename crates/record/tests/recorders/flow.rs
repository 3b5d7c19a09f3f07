//! The flow of a run is the same under the engine and under the reference, instruction by instruction, with every address;
//! and the trace of the engine is the same with and without flow mode.
//!
//! `FENCEPOST_FLOW=all` (or a prefix, `FENCEPOST_FLOW=isa/`) tries other programs of the conformance suite than the usual few.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
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
    instructions: Vec<Instruction>,
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
    interruptions: BTreeMap<ThreadId, Interruptions>,
    /// Accesses to the array of [`LOCKED`], of all threads.
    in_slots: Vec<u64>,
    finished: bool,
}

impl Collect {
    fn run(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        let Block { instructions, layout } = &self.blocks[block.0 as usize];
        assert_eq!(words.len(), layout.words_of(part.to), "words of block {block:?} up to {part:?}");
        let steps = self.threads.entry(thread).or_default();
        let interruptions = self.interruptions.entry(thread).or_default();
        for (number, instruction) in instructions.iter().enumerate().take(part.to).skip(part.from) {
            interruptions.step(instruction);
            let value = |v: &isa::flow::Value| (v.what, v.resolve(words).expect("logged before it ran"));
            let values: Vec<_> = layout.values(number).iter().map(value).collect();
            self.in_slots.extend(values.iter().map(|(_, at)| *at).filter(|at| *at >> 16 == 0x6_0000_0000 >> 16));
            steps.push(Step { pc: instruction.ip(), values });
        }
    }
}

impl FlowSink for Collect {
    fn define(&mut self, block: BlockId, _: ProcessId, pc: u64, _: CodeAddr, bytes: &[u8]) {
        assert_eq!(block.0 as usize, self.blocks.len(), "blocks are numbered in order");
        let instructions: Vec<_> = Decoder::with_ip(64, bytes, pc, DecoderOptions::NONE).into_iter().collect();
        assert!(!instructions.is_empty() && instructions.iter().all(|i| !i.is_invalid()));
        let layout = Layout::new(&instructions);
        self.blocks.push(Block { instructions, layout });
    }
    fn executed(&mut self, thread: ThreadId, block: BlockId, words: &[u64]) {
        let to = self.blocks[block.0 as usize].instructions.len();
        self.run(thread, block, Part { from: 0, to }, words);
    }
    fn part(&mut self, thread: ThreadId, block: BlockId, part: Part, words: &[u64]) {
        self.run(thread, block, part, words);
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
        self.interruptions.remove(&thread);
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

/// Follows the control flow of a thread: where it does not go on as the instructions say, a signal came; where a handler
/// returns, the interrupted code must go on exactly where it was left.
#[derive(Default)]
struct Interruptions {
    /// Where the thread may go on; empty: anywhere.
    expected: Vec<u64>,
    handler: Option<u64>,
    /// What was expected where handlers came in between, outermost first.
    interrupted: Vec<Vec<u64>>,
    /// The instruction before was `mov eax, 15`: a `syscall` now is `rt_sigreturn`.
    number_of_return: bool,
    count: usize,
    errors: Vec<String>,
}

impl Interruptions {
    fn step(&mut self, i: &Instruction) {
        let (pc, next) = (i.ip(), i.next_ip());
        let unexpected = !self.expected.is_empty() && !self.expected.contains(&pc);
        if unexpected || self.handler == Some(pc) {
            self.count += 1;
            if *self.handler.get_or_insert(pc) != pc {
                self.errors.push(format!("went on at {pc:#x} instead of {:x?}", self.expected));
            }
            self.interrupted.push(std::mem::take(&mut self.expected));
        }
        let returns = i.mnemonic() == Mnemonic::Syscall && self.number_of_return;
        self.number_of_return =
            i.mnemonic() == Mnemonic::Mov && i.op1_kind() != OpKind::Memory && i.immediate32() == 15;
        self.expected = match i.flow_control() {
            _ if returns => self.interrupted.pop().unwrap_or_default(),
            FlowControl::Next => vec![next],
            FlowControl::UnconditionalBranch => vec![i.near_branch_target()],
            FlowControl::ConditionalBranch => vec![next, i.near_branch_target()],
            // `syscall`: it may be begun again.
            FlowControl::Call if i.mnemonic() == Mnemonic::Syscall => vec![next, pc],
            FlowControl::Call => vec![i.near_branch_target()],
            _ => Vec::new(),
        };
    }
}

struct Run<'a> {
    executable: &'a Path,
    built: &'a Path,
    folder: &'a Path,
    /// Of `fencepost record`.
    arguments: &'a [String],
}

impl Run<'_> {
    /// What was given for an option.
    fn given(&self, option: &str) -> Vec<String> {
        self.arguments.windows(2).filter(|pair| pair[0] == option).map(|pair| pair[1].clone()).collect()
    }

    fn probe<'s>(&self, stop: &'s StopRequest) -> ProbeRecorder<'s> {
        let mut probe = ProbeRecorder::new(stop);
        if let Some(bytes) = self.given("--cache-bytes").first() {
            probe.cache_bytes = bytes.parse().unwrap();
        }
        probe
    }

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
        let flow = flow.then(|| FlowHandle::new(Arc::clone(&sink)));
        let (watch, pm) = (self.given("--watch"), self.given("--pm"));
        // Patterns match absolute paths.
        let pm = pm.iter().map(|glob| self.folder.join(glob).display().to_string()).collect();
        let options = RecordOptions { flow, watch, pm, ..RecordOptions::default() };
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
    let joins = step.threads.len() > 1 && step.births.iter().any(|birth| birth.contains("by Some"));
    for ((thread, a), (_, b)) in step.threads.iter().zip(&probe.threads) {
        // Whether a thread that is joined has ended already is a matter of luck.
        if joins && *thread == ThreadId(0) {
            continue;
        }
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
const USUAL: &[&str] = &[
    "code/build_static",
    "code/many_blocks",
    "flags/loops",
    "flags/registers_kept",
    "isa/avx512",
    "isa/locked",
    "isa/rep_movs",
    "isa/scatter",
    "isa/stack_in_pm",
    "process/fork",
    "signals/fpe_ill_trap",
    "threads/atomics2",
    "threads/joined",
    "watch/arguments",
];

/// What they execute depends on time, on the scheduler, or on what the engine does not offer (rseq, in an image whose
/// environment says nothing about it; `/proc/self/maps`, which Rust's runtime reads). Their flow must be free of gaps all the same.
const RACES: &[&str] = &[
    "lang/atomics",
    "lang/panics",
    "lang/slices",
    "proc/self_maps",
    "process/exec_self",
    "process/spawn",
    "signals/interrupted",
    "signals/timer",
    "threads/atomics2",
    "threads/exit_under_way",
    "threads/in_turn",
    "threads/mutex4",
    "threads/one_line",
    "threads/scoped",
];

fn wanted(program: &Program) -> bool {
    match std::env::var("FENCEPOST_FLOW") {
        Ok(all) if all == "all" => true,
        Ok(prefix) => program.name.starts_with(&prefix),
        Err(_) => USUAL.contains(&program.name.as_str()),
    }
}

/// Builds a program and tries something with it, in a folder where it can do no harm.
fn with(program: &Program, attempt: impl FnOnce(&Program, &Run<'_>) -> Result<(), String>) -> Result<(), String> {
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flow");
    let built: PathBuf = space.join("built");
    let executable = program.build(&built).map_err(|error| error.to_string())?;
    let folder = space.join("run").join(&program.name);
    let run = Run { executable: &executable, built: &built, folder: &folder, arguments: program.record_args() };
    // The reference starts programs where this process is.
    std::env::set_current_dir(&space).map_err(|error| error.to_string())?;
    attempt(program, &run).map_err(|why| format!("{}: {why}", program.name))
}

#[test]
fn the_engine_and_the_reference_see_the_same_flow() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let cpu = Cpu::here();
    let mut complaints = Vec::new();
    for program in conformance_programs().unwrap().iter().filter(|program| wanted(program)) {
        let loads = program.record_args().iter().any(|argument| argument == "--loads");
        if program.missing_feature(&cpu).is_none() && program.refusal().is_none() && !loads {
            complaints.extend(with(program, try_one).err());
        }
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// Counts executed blocks.
struct Count(u64);

impl FlowSink for Count {
    fn define(&mut self, _: BlockId, _: ProcessId, _: u64, _: CodeAddr, _: &[u8]) {}
    fn executed(&mut self, _: ThreadId, _: BlockId, _: &[u64]) {
        self.0 += 1;
    }
    fn part(&mut self, _: ThreadId, _: BlockId, _: Part, _: &[u64]) {}
}

/// A libpmemobj map on a pool that is there already (a new one gets a random name inside).
#[test]
fn a_libpmemobj_map_gives_the_same_trace() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mapcli = match targets::pmdk::build_mapcli(folder.path()) {
        Err(error @ targets::TargetError::NoPmdk { .. }) => return targets::skip(error),
        built => built.expect("mapcli builds"),
    };
    fs::write(at("workload"), targets::pmdk::workload(120)).unwrap();
    let environment = [("PMEM_IS_PMEM_FORCE", "1")];
    let mut native = Command::new(&mapcli);
    native.arg("btree").arg(at("first")).arg("1").envs(environment).stdin(fs::File::open(at("workload")).unwrap());
    assert!(native.output().unwrap().status.success());
    let record = |flow: Option<FlowHandle>| {
        fs::copy(at("first"), at("pool")).unwrap();
        let arguments: [OsString; 4] = [(&mapcli).into(), "btree".into(), at("pool").into(), "1".into()];
        let environment = environment.map(|(name, value)| (name.into(), value.into()));
        let mut target = Target::of(&mapcli, &arguments, &environment).unwrap();
        let stop = StopRequest::new();
        let recorder = ProbeRecorder::new(&stop);
        let input = fs::File::open(at("workload")).unwrap();
        let output = fs::File::create(at("output")).unwrap();
        target.streams = Some([input.as_raw_fd(), output.as_raw_fd(), output.as_raw_fd()]);
        let meta = Meta { command: Vec::new(), cwd: String::new(), recorder: String::new(), options: Vec::new() };
        let options = RecordOptions { flow, ..RecordOptions::default() };
        let recorded = recorder.record(&target, &options, TraceWriter::create(&at("trace"), meta).unwrap()).unwrap();
        assert_eq!(recorded.status, trace::event::ExitStatus::Code(0));
        (fs::read(at("trace")).unwrap(), fs::read(at("output")).unwrap())
    };
    let sink = Arc::new(Mutex::new(Count(0)));
    let plain = record(None);
    let with_flow = record(Some(FlowHandle::new(Arc::clone(&sink))));
    assert!(plain == with_flow, "the trace or the output is another one with flow mode");
    assert!(sink.lock().unwrap().0 > 100_000);
}

/// Rust without its runtime's start.
const RUST: &str = r#"
#![no_main]
use std::collections::{BTreeMap, HashMap};
#[unsafe(no_mangle)]
extern "C" fn main(_: i32, _: *const *const u8) -> i32 {
    let mut words: Vec<String> = (0..40u32).map(|n| format!("word {}", n * 7919 % 41)).collect();
    words.sort();
    let tree: BTreeMap<&str, usize> = words.iter().enumerate().map(|(n, w)| (w.as_str(), n)).collect();
    let table: HashMap<&str, usize> = tree.iter().map(|(w, n)| (*w, n * 2)).collect();
    let sum: usize = tree.iter().map(|(w, n)| table[w] - n).sum();
    (sum != 40 * 39 / 2) as i32
}
"#;

#[test]
fn rust_code_has_the_same_flow() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let folder = tempfile::tempdir().unwrap();
    let (source, executable) = (folder.path().join("p.rs"), folder.path().join("p"));
    fs::write(&source, RUST).unwrap();
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let built = Command::new(rustc)
        .args(["--edition", "2024", "-O", "-Ctarget-feature=+crt-static", "-Crelocation-model=static", "-o"])
        .args([&executable, &source])
        .status()
        .unwrap();
    assert!(built.success());
    let runs = folder.path().join("run");
    let run = Run { executable: &executable, built: folder.path(), folder: &runs, arguments: &[] };
    let stop = StopRequest::new();
    let (flow, _) = run.record(&ProbeRecorder::new(&stop), true).unwrap();
    let (reference, _) = run.record(&StepRecorder, true).unwrap();
    compare(&reference, &flow).unwrap();
}

/// Two threads fill an array at a fixed place, one slot at a time, under a lock.
const LOCKED: &str = r#"
#include <pthread.h>
#include <sys/mman.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static volatile long *slots;
static int next;
static void *fill(void *who) {
    for (int i = 0; i < 3000; i++) {
        pthread_mutex_lock(&lock);
        slots[next] = (long)who;
        next++;
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
int main(void) {
    slots = mmap((void *)0x600000000, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    pthread_t a, b;
    pthread_create(&a, 0, fill, (void *)1);
    pthread_create(&b, 0, fill, (void *)2);
    pthread_join(a, 0);
    pthread_join(b, 0);
    return next != 6000;
}
"#;

#[test]
fn what_is_done_under_a_lock_is_told_in_its_order() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let folder = tempfile::tempdir().unwrap();
    let executable = compiled(folder.path(), LOCKED);
    let runs = folder.path().join("run");
    let run = Run { executable: &executable, built: folder.path(), folder: &runs, arguments: &[] };
    let stop = StopRequest::new();
    let (flow, _) = run.record(&ProbeRecorder::new(&stop), true).unwrap();
    let slots: Vec<u64> = (0..6000).map(|n| 0x6_0000_0000 + 8 * n).collect();
    assert_eq!(flow.in_slots, slots);
}

/// A C program, static.
fn compiled(folder: &Path, text: &str) -> PathBuf {
    let (source, executable) = (folder.join("p.c"), folder.join("p"));
    fs::write(&source, text).unwrap();
    let mut command = Command::new("cc");
    command.args(["-O1", "-w", "-static", "-pthread", "-o"]).args([&executable, &source]);
    assert!(command.status().unwrap().success());
    executable
}

/// Branches of all kinds, memory, flags that live across blocks; and a handler that comes at any moment.
const INTERRUPTED: &str = r#"
#include <signal.h>
#include <string.h>
#include <sys/time.h>
static volatile sig_atomic_t ticks;
static void tick(int sig) { ticks += sig == SIGALRM; }
static unsigned add(unsigned a, unsigned b) { return a + b; }
static unsigned mix(unsigned a, unsigned b) { return a * 31 ^ b; }
static __attribute__((noinline)) unsigned deep(unsigned n) { return n ? deep(n - 1) + n : 0; }
static unsigned count(unsigned long n) {
    unsigned sum = 0;
    __asm__ volatile("1: add %%ecx, %0; loop 1b" : "+r"(sum), "+c"(n));
    return sum;
}
static unsigned (*volatile how[2])(unsigned, unsigned) = { add, mix };
int main(void) {
    struct sigaction sa = { .sa_handler = tick, .sa_flags = SA_RESTART };
    sigaction(SIGALRM, &sa, 0);
    struct itimerval often = { { 0, 50 }, { 0, 50 } };
    setitimer(ITIMER_REAL, &often, 0);
    static unsigned table[256];
    while (ticks < 200) {
        unsigned first = 0;
        for (int round = 0; round < 2; round++) {
            unsigned sum = 0;
            unsigned char copy[64];
            for (unsigned i = 0; i < 256; i++) {
                table[i] = how[i & 1](i, sum);
                memset(copy, (int)i, sizeof copy);
                sum += count(40) + deep(5);
                sum += table[(i * 7) & 255] + copy[i & 63] + (table[i] > sum ? 1 : 2);
            }
            if (round == 0) first = sum; else if (sum == first + 1) return 2;
            memset(table, 0, sizeof table);
        }
    }
    return 0;
}
"#;

#[test]
fn a_block_that_a_signal_cuts_goes_on_where_it_was_left() {
    if !supervise::probe::is_embedded() {
        return targets::skip("this build has no probe");
    }
    let folder = tempfile::tempdir().unwrap();
    let executable = compiled(folder.path(), INTERRUPTED);
    let runs = folder.path().join("run");
    let run = Run { executable: &executable, built: folder.path(), folder: &runs, arguments: &[] };
    let stop = StopRequest::new();
    let (flow, _) = run.record(&ProbeRecorder::new(&stop), true).unwrap();
    let thread = &flow.interruptions[&ThreadId(0)];
    assert!(thread.count >= 200, "only {} signals came", thread.count);
    assert!(thread.errors.is_empty(), "{}", thread.errors.join("\n"));
}

fn try_one(program: &Program, run: &Run<'_>) -> Result<(), String> {
    let stop = StopRequest::new();
    let probe = run.probe(&stop);
    let (_, plain) = run.record(&probe, false)?;
    let (flow, with_flow) = run.record(&probe, true)?;
    assert!(flow.finished);
    let compared = program.compare();
    if plain != with_flow && !compared.unordered && !compared.thread_events_float {
        return Err("the trace is another one with flow mode".to_owned());
    }
    if RACES.contains(&program.name.as_str()) {
        let mut errors = flow.interruptions.iter().flat_map(|(thread, i)| i.errors.iter().map(move |e| (thread, e)));
        return errors.next().map_or(Ok(()), |(thread, error)| Err(format!("{thread:?} {error}")));
    }
    let (reference, _) = run.record(&StepRecorder, true)?;
    let instructions: usize = flow.threads.values().map(Vec::len).sum();
    let result = compare(&reference, &flow);
    eprintln!("{}: {instructions} instructions: {}", program.name, if result.is_ok() { "same" } else { "DIFFERENT" });
    result
}
