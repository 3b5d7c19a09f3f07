//! Limits of a run, set by the process that runs it.

use core::sync::atomic::{AtomicU64, Ordering};

use wire::recover::NOWHERE;

use super::undo;
use crate::layout;
use crate::load::maps;
use crate::ring::control;
use crate::sys::{nr, sys};

/// Address space of the server at its fork point, in bytes; 0: not looked up.
static SPACE: AtomicU64 = AtomicU64::new(0);

/// At the fork point.
pub fn measure() {
    let text = maps::read_file(c"/proc/self/statm");
    let digits = text.iter().take_while(|b| b.is_ascii_digit());
    let pages = digits.fold(0u64, |n, b| n * 10 + u64::from(b - b'0'));
    SPACE.store(pages * 4096, Ordering::Relaxed);
}

/// In the process of the run.
pub fn set() {
    const RLIMIT_CPU: u64 = 0;
    const RLIMIT_CORE: u64 = 4;
    const RLIMIT_AS: u64 = 9;
    let recovery = &control().recovery;
    let limit = |which: u64, value: u64| {
        let both = [value, value];
        sys!(nr::SETRLIMIT, which, both.as_ptr());
    };
    let (cpu, memory) = (recovery.cpu_s.load(Ordering::Relaxed), recovery.memory.load(Ordering::Relaxed));
    limit(RLIMIT_CORE, 0);
    // One that stops to serve would pay for all the forks.
    let serves = recovery.stop_at.load(Ordering::Relaxed) != NOWHERE && recovery.stopped.load(Ordering::Relaxed) == 0;
    if cpu != 0
        && !serves
        && let Some(cpu) = undo::cpu_limit(cpu)
    {
        limit(RLIMIT_CPU, cpu);
    }
    if memory != 0 {
        // A pool is mapped twice, perhaps at several places, and has a shadow of a seventh of its size.
        let count = recovery.substitute_count as usize;
        let pools: u64 = control().pools[..count].iter().map(|pool| pool.len.load(Ordering::Relaxed)).sum();
        let space = (SPACE.load(Ordering::Relaxed) + layout::UNDO_BYTES).saturating_add(memory);
        limit(RLIMIT_AS, space.saturating_add(pools.saturating_mul(6)));
    }
}

/// May one more process start?
pub fn allow_process() -> bool {
    let recovery = &control().recovery;
    let most = recovery.processes.load(Ordering::Relaxed);
    let allowed = most == 0 || control().live_processes.load(Ordering::Relaxed) < most;
    if !allowed {
        super::notes::raise(wire::recover::flag::PROCESSES);
    }
    allowed
}
