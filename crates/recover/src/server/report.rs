//! From the probe's notes to a report.

use std::sync::atomic::Ordering;
use std::time::Duration;

use persistency::line::LineId;
use supervise::fork_server::ForkServer;
use trace::event::{LineNo, PoolId};
use wire::recover::{CRASH_BYTES, flag, note};

use crate::report::RunReport;
use supervise::limits::Limits;
use verdict::end::{End, Frame, Limit};
use verdict::read::Read;

/// Notes of one run.
#[derive(Debug)]
pub(super) struct Noted {
    pub reads: Option<Vec<Read>>,
    pub dirtied: Vec<LineId>,
    /// The slot must be made anew.
    pub files_changed: bool,
    /// The files beside the pools must be put in place again.
    pub tree_changed: bool,
}

pub(super) fn noted(engine: &ForkServer) -> Noted {
    let flags = engine.recovery().flags.load(Ordering::Acquire);
    let (mut reads, mut dirtied) = (Vec::new(), Vec::new());
    for packed in engine.notes() {
        let (kind, pool, line) = note::unpack(packed);
        let line = LineId { pool: PoolId(pool), line: LineNo(line) };
        match kind {
            note::READ => reads.push(Read::Line(line)),
            note::DIRTY => dirtied.push(line),
            _ => {}
        }
    }
    // What a run reads may depend on the timing of its threads; what the notes could not tell was read as well; how far
    // daemons and floods got until they were ended depends on the machine. A run that hangs is taken to have read all that
    // it ever would: if it was only slow, the next run that reads on contradicts it, and nothing is concluded any more.
    let unsure = flag::THREADS | flag::INCOMPLETE | flag::FULL | flag::OUTPUT | flag::LEFT_RUNNING;
    let full = flags & flag::FULL != 0;
    Noted {
        reads: (flags & unsure == 0).then_some(reads),
        dirtied,
        files_changed: flags & flag::FILES_CHANGED != 0 || full,
        tree_changed: flags & (flag::TREE_CHANGED | flag::FILES_CHANGED) != 0,
    }
}

/// Processes of the run were there when its first one had ended, and were killed.
pub(super) fn left_running(engine: &ForkServer) -> bool {
    engine.recovery().flags.load(Ordering::Acquire) & flag::LEFT_RUNNING != 0
}

/// How a run with this `wait` status ended.
pub(super) fn end(engine: &ForkServer, status: i32, limits: &Limits) -> End {
    let recovery = engine.recovery();
    let flags = recovery.flags.load(Ordering::Acquire);
    let killed_by = recovery.killed_by.load(Ordering::Acquire);
    let cpu = Duration::from_micros(recovery.cpu_us.load(Ordering::Acquire));
    if flags & flag::HUNG != 0 {
        return End::Hung;
    }
    if flags & flag::OUTPUT != 0 {
        return End::OverLimit(Limit::Output);
    }
    let signal = if libc::WIFSIGNALED(status) { libc::WTERMSIG(status) } else { 0 };
    if matches!(signal, libc::SIGKILL | libc::SIGXCPU) && cpu + Duration::from_millis(100) >= limits.cpu {
        return End::OverLimit(Limit::Cpu);
    }
    // A recovery that was refused a process and failed for it did not fail by itself.
    if flags & flag::PROCESSES != 0 && status != 0 {
        return End::OverLimit(Limit::Processes);
    }
    if flags & flag::MEMORY != 0 && status != 0 {
        return End::OverLimit(Limit::Memory);
    }
    match (signal, killed_by) {
        (0, 0) => End::Exited(libc::WEXITSTATUS(status)),
        (0, other) => End::Signalled { signal: other, path: path(engine) },
        (own, _) => End::Signalled { signal: own, path: path(engine) },
    }
}

/// The call path that a dying process left: lines of `module+0xoffset`.
pub(super) fn path(engine: &ForkServer) -> Vec<Frame> {
    let recovery = engine.recovery();
    let len = (recovery.crash_len.load(Ordering::Acquire) as usize).min(CRASH_BYTES);
    let text = String::from_utf8_lossy(&recovery.crash[..len]).into_owned();
    let frame = |line: &str| {
        let (module, address) = line.rsplit_once("+0x")?;
        let module = if module == "?" { String::new() } else { module.to_owned() };
        Some(Frame { module, address: u64::from_str_radix(address, 16).ok()? })
    };
    text.lines().filter_map(frame).collect()
}

/// A report without the output.
pub(super) fn report(engine: &ForkServer, end: End, noted: &Noted, wall: Duration) -> RunReport {
    RunReport {
        end,
        stdout: Vec::new(),
        stderr: Vec::new(),
        boundaries: engine.answers(),
        output_cut: false,
        cpu: Duration::from_micros(engine.recovery().cpu_us.load(Ordering::Acquire)),
        wall,
        reads: noted.reads.clone(),
        dirtied: noted.dirtied.clone(),
        pools_replaced: noted.files_changed,
        tree_changed: noted.tree_changed,
        outside: engine.outside(),
    }
}
