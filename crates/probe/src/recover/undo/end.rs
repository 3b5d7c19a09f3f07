//! From the checkpoint to the end of a run, and back.

use core::sync::atomic::{AtomicU32, Ordering};

use wire::recover::not_put_back;

use super::region::{self, Interval, Private, Region};
use super::{descriptors, pages, switch};
use crate::load::maps;
use crate::recover::{crash, limits};
use crate::ring::{self, control};
use crate::signal;
use crate::sys::{MAP_ANONYMOUS, MAP_FIXED, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, nr, raw, sys};

/// In a server: how many runs in a row could not be undone for a reason that is theirs.
static IN_VAIN: AtomicU32 = AtomicU32::new(0);
/// After so many, a checkpoint is made for every `SELDOM`th run.
const OFTEN_ENOUGH: u32 = 4;
/// The same for what the next process knows.
const LEARNING: u32 = 100;
const SELDOM: u32 = 32;
/// A process serves so much processor time longer than its runs may take.
const SPARE_US: u64 = 1_000_000;

/// In a server, before it forks a run: shall the run make a checkpoint? `switch::can_save` is asked here so that its forks know.
pub fn begin() -> bool {
    let recovery = &control().recovery;
    if recovery.in_place.load(Ordering::Relaxed) == 0 || !switch::can_save() {
        return false;
    }
    // What a process learns, the next one knows. Not so if that goes on and on.
    let most = match recovery.not_put_back.swap(not_put_back::NONE, Ordering::Relaxed) {
        not_put_back::NONE | not_put_back::OLD => {
            IN_VAIN.store(0, Ordering::Relaxed);
            return true;
        }
        not_put_back::LEARNED | not_put_back::NEW_PAGES => LEARNING,
        _ => OFTEN_ENOUGH,
    };
    let runs = IN_VAIN.load(Ordering::Relaxed) + 1;
    IN_VAIN.store(runs, Ordering::Relaxed);
    runs < most || runs.is_multiple_of(SELDOM)
}

/// In a run, right after the fork: true each time that the process is back here. All signals are blocked.
pub fn checkpoint(wanted: bool) -> bool {
    // It may be the fork of a run that has a region.
    region::leave();
    let Some(region) = wanted.then(region::create).flatten() else {
        limits::set();
        return false;
    };
    if !look(region) || region.added.iter().next().is_some() {
        region::leave();
        limits::set();
        return false;
    }
    pages::choose(region);
    // SAFETY: the region is complete.
    let again = unsafe { switch::undo_mark(region) } != 0;
    let recovery = &control().recovery;
    region.hints.set(control().fork_hint_count.load(Ordering::Relaxed));
    region.reason.set(not_put_back::NONE);
    limits::set();
    if !again {
        recovery.forked.fetch_add(1, Ordering::Relaxed);
    }
    again
}

/// On the region's stack, with the state of the process as it shall be found again.
pub extern "C" fn marked(region: &Region) {
    pages::keep(region);
}

/// Finds out what the process has.
fn look(region: &Region) -> bool {
    region.parent.set(sys!(nr::GETPPID) as u64);
    if !descriptors::look(region) {
        return false;
    }
    // SAFETY: an impossible break: the kernel only says where it is.
    region.brk.set(unsafe { raw!(nr::BRK, 0) } as u64);
    region.brk_moved.set(false);
    let text = maps::read_file(c"/proc/self/maps");
    let mut last = Interval::default();
    let mut known = !text.is_empty();
    for line in maps::lines(&text) {
        let here = Interval { start: line.start, end: line.end };
        if line.start == crate::layout::UNDO {
            continue;
        }
        if line.name == b"[stack]" {
            const MOST: u64 = 64 << 20;
            region.below_stack.set(Interval { start: last.end.max(here.start.saturating_sub(MOST)), end: here.start });
        }
        let [read, write, execute, private, ..] = *line.access else { continue };
        if private == b'p' {
            let right = |there: u8, letter: u8, bit: u64| if there == letter { bit } else { 0 };
            let prot = right(read, b'r', PROT_READ) | right(write, b'w', PROT_WRITE) | right(execute, b'x', PROT_EXEC);
            known &= region.private.push(Private { at: here, prot, is_anonymous: line.name.is_empty() });
            known &= write != b'w' || region.writable.push(here);
        }
        if last.end == here.start && last.end != 0 {
            last.end = here.end;
            if let Some(place) = region.mapped.items().last() {
                place.set(last);
            }
        } else {
            last = here;
            known &= region.mapped.push(here);
        }
    }
    known
}

/// A run is over, with this `wait` status. If all that it did can be undone, this does not come back.
pub fn end(status: i32) {
    let Some(region) = region::current() else { return };
    let recovery = &control().recovery;
    let reason = match why_not(region) {
        not_put_back::NONE => {
            signal::block_all();
            region.status.set(status);
            match pages::are_kept(region) {
                // SAFETY: the checkpoint was made by this process.
                Ok(()) => unsafe { switch::undo_back(region) },
                Err(reason) => reason,
            }
        }
        reason => reason,
    };
    recovery.not_put_back.store(reason, Ordering::Relaxed);
}

fn why_not(region: &Region) -> u32 {
    let control = control();
    let is_alone =
        control.many_tasks.load(Ordering::Relaxed) == 0 && control.live_processes.load(Ordering::Relaxed) == 1;
    let used = cpu_us();
    if region.reason.get() != not_put_back::NONE {
        region.reason.get()
    } else if !is_alone || crash::is_asked() {
        not_put_back::TASKS
    } else if control.fork_hint_count.load(Ordering::Relaxed) != region.hints.get() {
        // The pages that this run has changed are of use to the next one all the same.
        let _ = pages::are_kept(region);
        not_put_back::LEARNED
    } else if region.cpu_until.get() != 0 && used >= region.cpu_until.get() {
        not_put_back::OLD
    } else {
        not_put_back::NONE
    }
}

/// Processor time of the process.
pub fn cpu_us() -> u64 {
    const CLOCK_PROCESS_CPUTIME_ID: u64 = 2;
    let mut time = [0u64; 2];
    // SAFETY: the kernel fills `time`.
    unsafe { raw!(nr::CLOCK_GETTIME, CLOCK_PROCESS_CPUTIME_ID, time.as_mut_ptr()) };
    time[0] * 1_000_000 + time[1] / 1000
}

/// How much processor time the process may use, if its runs may use `limit` seconds each: a limit that is set stays.
pub fn cpu_limit(limit: u64) -> Option<u64> {
    let Some(region) = region::current() else { return Some(limit) };
    if region.cpu_until.get() != 0 {
        return None;
    }
    let used = cpu_us();
    region.cpu_until.set(used + SPARE_US);
    Some(used.div_ceil(1_000_000) + SPARE_US / 1_000_000 + limit)
}

/// On the region's stack: undoes the run, tells the server, and waits until it is to go on.
pub extern "C" fn put_back(region: &Region) {
    region.close_others();
    unmap(region);
    map_again(region);
    signal::put_back(region.actions.items());
    pages::put_back(region);
    region.actions.clear();
    wait(region);
}

fn unmap(region: &Region) {
    const MADV_DONTNEED: u64 = 4;
    for added in region.added.iter() {
        // SAFETY: mapped by the run, which is over, where nothing was.
        unsafe { crate::sys::call(nr::MUNMAP, [added.start, added.end - added.start, 0, 0, 0, 0]) };
    }
    region.added.clear();
    if region.brk_moved.get() {
        // SAFETY: gives back what the run has added to the heap.
        unsafe { crate::sys::call(nr::BRK, [region.brk.get(), 0, 0, 0, 0, 0]) };
        region.brk_moved.set(false);
    }
    let below = region.below_stack.get();
    if below.start < below.end {
        // SAFETY: where only the stack of the run can have grown. What is not mapped is left out.
        unsafe { crate::sys::call(nr::MADVISE, [below.start, below.end - below.start, MADV_DONTNEED, 0, 0, 0]) };
    }
}

/// What the run has unmapped is there again, empty, and what it has protected otherwise has its rights.
fn map_again(region: &Region) {
    const FLAGS: u64 = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    for Private { at, prot, .. } in region.gone.iter() {
        // SAFETY: where the run has unmapped this, and has mapped nothing since.
        unsafe { crate::sys::call(nr::MMAP, [at.start, at.end - at.start, prot, FLAGS, u64::MAX, 0]) };
    }
    for Private { at, prot, .. } in region.protected.iter() {
        // SAFETY: the rights that it had at the checkpoint.
        unsafe { crate::sys::call(nr::MPROTECT, [at.start, at.end - at.start, prot, 0, 0, 0]) };
    }
    region.gone.clear();
    region.dropped.clear();
    region.protected.clear();
}

/// The process is as it was forked. Until the server wants another run of it.
fn wait(region: &Region) {
    const SIGCHLD: u64 = 17;
    let recovery = &control().recovery;
    let before = recovery.resume.load(Ordering::Acquire);
    recovery.back_status.store(region.status.get(), Ordering::Relaxed);
    recovery.back_cpu_us.store(cpu_us(), Ordering::Relaxed);
    recovery.back.store(sys!(nr::GETPID) as u32, Ordering::SeqCst);
    sys!(nr::KILL, region.parent.get(), SIGCHLD);
    while recovery.resume.load(Ordering::Acquire) == before {
        if control().stop.load(Ordering::Relaxed) != 0 || sys!(nr::GETPPID) as u64 != region.parent.get() {
            crate::fail::host_gone();
        }
        ring::futex_wait(&recovery.resume, before, 1_000_000_000);
    }
}
