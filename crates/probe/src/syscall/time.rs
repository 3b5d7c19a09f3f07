//! Time that is the same in every run (`wire::virtual_time`), and waits that end in it.
//!
//! The virtual clock moves when it is asked, when the program sleeps, and when a wait times out. Time limits that are given as
//! a point in virtual time are turned into one in real time. While there are other tasks, or an alarm is set, sleeps
//! also take their real time: something else is meant to happen meanwhile.

use core::sync::atomic::{AtomicBool, Ordering};

use wire::control::option;
use wire::virtual_time as vt;

use super::buffers;
use super::dispatch::Call;
use super::event;
use crate::load::user;
use crate::pm;
use crate::ring;
use crate::signal;
use crate::sys::{self, EFAULT, nr, sys};
use crate::thread::Thread;

const ETIMEDOUT: i64 = 110;
const CLOCK_REALTIME: i32 = 0;
const CLOCK_MONOTONIC: i32 = 1;
const ABSOLUTE: u64 = 1;

/// `struct timespec`.
type TimeSpec = [u64; 2];

/// Set for good when the program arms a timer.
static ALARMS: AtomicBool = AtomicBool::new(false);

pub fn answer(thread: &mut Thread, call: Call) -> i64 {
    if ring::control().options & option::REAL_TIME != 0 {
        return if call.nr == nr::FUTEX { futex(thread, call, false) } else { buffers::pass(thread, call) };
    }
    let [a, b, c, d, ..] = call.args;
    match call.nr {
        nr::CLOCK_GETTIME if is_virtual(a) => {
            let (seconds, ns) = vt::split(query(a as i32));
            give(thread, b, &[seconds, ns])
        }
        nr::GETTIMEOFDAY => {
            let (seconds, ns) = vt::split(query(CLOCK_REALTIME));
            let result = if a == 0 { 0 } else { give(thread, a, &[seconds, ns / 1000]) };
            if result == 0 && b != 0 { give(thread, b, &0u64) } else { result }
        }
        nr::TIME => {
            let (seconds, _) = vt::split(query(CLOCK_REALTIME));
            let result = if a == 0 { 0 } else { give(thread, a, &seconds) };
            if result == 0 { seconds as i64 } else { result }
        }
        nr::NANOSLEEP => sleep(thread, call, None, a),
        nr::CLOCK_NANOSLEEP if is_virtual(a) => sleep(thread, call, (b & ABSOLUTE != 0).then_some(a as i32), c),
        nr::FUTEX => futex(thread, call, true),
        nr::POLL => after_wait(thread, call, milliseconds(c)),
        nr::EPOLL_WAIT => after_wait(thread, call, milliseconds(d)),
        nr::SELECT => {
            // The kernel counts the time down in the program's own structure.
            let limit = user::read::<TimeSpec>(call.args[4]).filter(|_| call.args[4] != 0);
            after_wait(thread, call, limit.map(|[seconds, us]| seconds.saturating_mul(vt::NS_PER_SECOND) + us * 1000))
        }
        nr::TIMERFD_SETTIME | nr::TIMER_SETTIME => set_timer(thread, call),
        nr::ALARM | nr::SETITIMER => {
            ALARMS.store(true, Ordering::Relaxed);
            buffers::pass(thread, call)
        }
        _ => buffers::pass(thread, call),
    }
}

/// The clocks of the kernel itself; others (of processes, threads, devices) have negative numbers.
fn is_virtual(clock: u64) -> bool {
    clock as u32 <= 11
}

fn give<T: Copy>(thread: &mut Thread, address: u64, value: &T) -> i64 {
    if !user::write(address, value) {
        return -EFAULT;
    }
    event::kernel_write(thread, address, size_of::<T>() as u64);
    0
}

fn now() -> u64 {
    ring::control().virtual_ns.load(Ordering::Relaxed)
}

/// What the clock shows; asking takes time.
fn query(clock: i32) -> u64 {
    vt::clock_ns(clock, ring::control().virtual_ns.fetch_add(vt::NS_PER_QUERY, Ordering::Relaxed))
}

/// Moves the virtual clock.
fn advance(next: impl Fn(u64) -> u64) {
    let _ = ring::control().virtual_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ns| Some(next(ns)));
}

fn real(clock: i32) -> u64 {
    let mut time: TimeSpec = [0; 2];
    sys!(nr::CLOCK_GETTIME, clock, time.as_mut_ptr());
    time[0] * vt::NS_PER_SECOND + time[1]
}

fn time_at(address: u64) -> Result<u64, i64> {
    let [seconds, ns] = user::read::<TimeSpec>(address).ok_or(-EFAULT)?;
    if seconds as i64 >= 0 && ns < vt::NS_PER_SECOND {
        Ok(seconds.saturating_mul(vt::NS_PER_SECOND).saturating_add(ns))
    } else {
        Err(-sys::EINVAL)
    }
}

/// `until`: the time is a point of this clock.
fn sleep(thread: &mut Thread, call: Call, until: Option<i32>, time: u64) -> i64 {
    let ns = match time_at(time) {
        Ok(ns) => ns,
        Err(error) => return error,
    };
    let left = match until {
        Some(clock) => ns.saturating_sub(vt::clock_ns(clock, now())),
        None => ns,
    };
    if ring::control().many_tasks.load(Ordering::Relaxed) != 0 || ALARMS.load(Ordering::Relaxed) {
        let (seconds, part) = vt::split(left);
        let limit: TimeSpec = [seconds, part];
        let remaining = if call.nr == nr::NANOSLEEP { call.args[1] } else { call.args[3] };
        let remaining = if until.is_some() { 0 } else { remaining };
        let args = [limit.as_ptr() as u64, pm::alias_of(remaining), 0, 0, 0, 0];
        let result = signal::blocking_syscall(thread, nr::NANOSLEEP, args);
        if result != 0 {
            return result;
        }
    }
    match until {
        Some(clock) => advance(|v| vt::after_sleep_until(v, clock, ns)),
        None => advance(|v| vt::after_sleep(v, ns)),
    }
    0
}

fn milliseconds(timeout: u64) -> Option<u64> {
    let timeout = timeout as i32;
    (timeout >= 0).then_some(timeout as u64 * 1_000_000)
}

/// A wait with a time limit from now on: if it ran out, that time has passed.
fn after_wait(thread: &mut Thread, call: Call, limit: Option<u64>) -> i64 {
    let result = buffers::pass(thread, call);
    if let (0, Some(ns)) = (result, limit) {
        advance(|v| vt::after_sleep(v, ns));
    }
    result
}

fn futex(thread: &mut Thread, mut call: Call, virtual_time: bool) -> i64 {
    const CLOCK_REALTIME_FLAG: u64 = 256;
    const COMMAND: u64 = 0x7f;
    const WAIT: u64 = 0;
    const LOCK_PI: u64 = 6;
    const WAIT_BITSET: u64 = 9;
    const WAIT_REQUEUE_PI: u64 = 11;
    const LOCK_PI2: u64 = 13;
    let command = call.args[1] & COMMAND;
    let waits = matches!(command, WAIT | LOCK_PI | WAIT_BITSET | WAIT_REQUEUE_PI | LOCK_PI2);
    let words = [call.args[0], call.args[4]];
    if pm::any() {
        // Always the alias, as waiters and wakers must mean the same word.
        call.args[0] = pm::alias_of(call.args[0]);
        call.args[4] = pm::alias_of(call.args[4]);
    }
    let before = words.map(|word| pm::is_pm(word).then(|| user::read::<u32>(word)).flatten());
    let mut limit: TimeSpec = [0; 2];
    let mut end = None;
    if virtual_time && waits && call.args[3] != 0 {
        let asked = match time_at(call.args[3]) {
            Ok(ns) => ns,
            Err(error) => return error,
        };
        let wall = call.args[1] & CLOCK_REALTIME_FLAG != 0 || command == LOCK_PI;
        let clock = if wall { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
        end = Some((clock, asked));
        if command != WAIT {
            let left = asked.saturating_sub(vt::clock_ns(clock, now()));
            let (seconds, ns) = vt::split(real(clock).saturating_add(left));
            limit = [seconds, ns];
            call.args[3] = limit.as_ptr() as u64;
        }
    }
    let result = call.pass(thread);
    if let (Some((clock, asked)), true) = (end, result == -ETIMEDOUT) {
        if command == WAIT {
            advance(|v| vt::after_sleep(v, asked));
        } else {
            advance(|v| vt::after_sleep_until(v, clock, asked));
        }
    }
    let _ = &limit;
    for (word, old) in words.into_iter().zip(before) {
        if old.is_some() && user::read::<u32>(word) != old && !matches!(command, WAIT | WAIT_BITSET) {
            event::kernel_write(thread, word, 4);
        }
    }
    result
}

/// A timer that goes off at a point in virtual time. Which clock it belongs to is seen from the value: the two differ by
/// decades.
fn set_timer(thread: &mut Thread, mut call: Call) -> i64 {
    ALARMS.store(true, Ordering::Relaxed);
    if call.args[1] & ABSOLUTE == 0 {
        return buffers::pass(thread, call);
    }
    let Some([interval, interval_ns, at, at_ns]) = user::read::<[u64; 4]>(call.args[2]) else { return -EFAULT };
    if at == 0 && at_ns == 0 {
        return buffers::pass(thread, call);
    }
    let asked = at.saturating_mul(vt::NS_PER_SECOND).saturating_add(at_ns);
    let clock = if asked >= vt::VIRTUAL_EPOCH_NS / 2 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
    let left = asked.saturating_sub(vt::clock_ns(clock, now()));
    let (seconds, ns) = vt::split(real(clock).saturating_add(left));
    let new = [interval, interval_ns, seconds, ns];
    call.args[2] = new.as_ptr() as u64;
    buffers::pass(thread, call)
}
