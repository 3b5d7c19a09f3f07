//! Time that is the same in every run (`wire::virtual_time`).
//!
//! The virtual clock advances when it is queried, when the program sleeps, when it waits ([`super::waits`]), when a timer expires
//! ([`super::timers`]), and when it computes for long between two queries. While there are other tasks, or a timer is armed,
//! sleeps also take their real time: something else is meant to happen meanwhile.

use core::sync::atomic::Ordering;

use wire::control::option;
use wire::virtual_time as vt;

use super::dispatch::Call;
use super::{buffers, event, timers, waits};
use crate::load::user;
use crate::pm;
use crate::ring;
use crate::signal;
use crate::sys::{self, EFAULT, nr, raw};
use crate::thread::Thread;

pub const ETIMEDOUT: i64 = 110;
pub const CLOCK_REALTIME: i32 = 0;
pub const CLOCK_MONOTONIC: i32 = 1;
pub const ABSOLUTE: u64 = 1;

/// `struct timespec`.
pub type TimeSpec = [u64; 2];

pub fn answer(thread: &mut Thread, call: Call) -> i64 {
    if ring::control().options & option::REAL_TIME != 0 {
        return if call.nr == nr::FUTEX { futex(thread, call, false) } else { buffers::pass(thread, call) };
    }
    let [a, b, c, ..] = call.args;
    match call.nr {
        nr::CLOCK_GETTIME if is_virtual(a) => {
            let (seconds, ns) = vt::split(query(thread, a as i32));
            give(thread, b, &[seconds, ns])
        }
        nr::GETTIMEOFDAY => {
            let (seconds, ns) = vt::split(query(thread, CLOCK_REALTIME));
            let result = if a == 0 { 0 } else { give(thread, a, &[seconds, ns / 1000]) };
            if result == 0 && b != 0 { give(thread, b, &0u64) } else { result }
        }
        nr::TIME => {
            let (seconds, _) = vt::split(query(thread, CLOCK_REALTIME));
            let result = if a == 0 { 0 } else { give(thread, a, &seconds) };
            if result == 0 { seconds as i64 } else { result }
        }
        nr::NANOSLEEP => sleep(thread, call, None, a),
        nr::CLOCK_NANOSLEEP if is_virtual(a) => sleep(thread, call, (b & ABSOLUTE != 0).then_some(a as i32), c),
        nr::FUTEX => futex(thread, call, true),
        nr::TIMERFD_SETTIME | nr::TIMER_SETTIME | nr::SETITIMER | nr::ALARM => timers::set(thread, call),
        nr::TIMER_DELETE => timers::delete(thread, call),
        _ => waits::answer(thread, call),
    }
}

/// The clocks of the kernel itself; others (of processes, threads, devices) have negative numbers.
fn is_virtual(clock: u64) -> bool {
    clock as u32 <= 11
}

fn give<T: Copy>(thread: &mut Thread, address: u64, value: &T) -> i64 {
    if user::give(thread, address, value) { 0 } else { -EFAULT }
}

pub fn now() -> u64 {
    ring::control().virtual_ns.load(Ordering::Relaxed)
}

/// What the clock shows; asking takes time.
fn query(thread: &mut Thread, clock: i32) -> u64 {
    timers::catch_up();
    let computed = vt::computed_ns(clock, computed(thread));
    if computed != 0 {
        advance(|ns| vt::after_sleep(ns, computed));
    }
    let control = ring::control();
    let queries = control.virtual_queries.fetch_add(1, Ordering::Relaxed);
    vt::clock_ns(clock, control.virtual_ns.fetch_add(vt::query_ns(queries), Ordering::Relaxed))
}

/// Processor time that the thread used since its last query.
fn computed(thread: &mut Thread) -> u64 {
    const CLOCK_THREAD_CPUTIME_ID: i32 = 3;
    /// About a millisecond: asking the kernel each time would cost more than the rest of a query.
    const TICKS: u64 = 1 << 21;
    // SAFETY: reads a counter.
    let ticks = unsafe { core::arch::x86_64::_rdtsc() };
    let Asked { ticks: last, cpu } = thread.asked;
    if ticks.wrapping_sub(last) < TICKS {
        return 0;
    }
    let used = real(CLOCK_THREAD_CPUTIME_ID);
    thread.asked = Asked { ticks, cpu: used };
    // The first query: what was before is not a computation between two.
    if last == 0 { 0 } else { used.saturating_sub(cpu) }
}

/// When a thread last asked for the time, in the processor's ticks and in its own processor time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    ticks: u64,
    cpu: u64,
}

/// Moves the virtual clock.
pub fn advance(next: impl Fn(u64) -> u64) {
    let _ = ring::control().virtual_ns.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |ns| Some(next(ns)));
}

/// The program has waited: it does not just ask for the time.
pub fn has_waited() {
    ring::control().virtual_queries.store(0, Ordering::Relaxed);
}

/// A wait that began when the virtual clock showed `begun` has taken `ns`. Others may have moved the clock meanwhile.
pub fn has_slept(begun: u64, ns: u64) {
    advance(|v| v.max(vt::after_sleep(begun, ns)));
}

/// A clock of the kernel's.
pub fn real(clock: i32) -> u64 {
    let mut time: TimeSpec = [0; 2];
    // SAFETY: the kernel fills `time`.
    unsafe { raw!(nr::CLOCK_GETTIME, clock, time.as_mut_ptr()) };
    time[0] * vt::NS_PER_SECOND + time[1]
}

pub fn time_at(address: u64) -> Result<u64, i64> {
    let [seconds, ns] = user::read::<TimeSpec>(address).ok_or(-EFAULT)?;
    if seconds as i64 >= 0 && ns < vt::NS_PER_SECOND {
        Ok(seconds.saturating_mul(vt::NS_PER_SECOND).saturating_add(ns))
    } else {
        Err(-sys::EINVAL)
    }
}

/// The point in real time that lies `left` ahead.
pub fn in_real_time(clock: i32, left: u64) -> TimeSpec {
    let (seconds, ns) = vt::split(real(clock).saturating_add(left));
    [seconds, ns]
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
    let begun = now();
    if ring::control().many_tasks.load(Ordering::Relaxed) != 0 || timers::armed() {
        let (seconds, part) = vt::split(left);
        let limit: TimeSpec = [seconds, part];
        let remaining = if call.nr == nr::NANOSLEEP { call.args[1] } else { call.args[3] };
        let remaining = if until.is_some() { 0 } else { remaining };
        let args = [limit.as_ptr() as u64, pm::alias_of(remaining), 0, 0, 0, 0];
        let result = signal::blocking_syscall(thread, nr::NANOSLEEP, args);
        timers::catch_up();
        if result != 0 {
            return result;
        }
    }
    has_waited();
    match until {
        Some(clock) => advance(|v| vt::after_sleep_until(v, clock, ns)),
        None => has_slept(begun, ns),
    }
    0
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
    let may_wait = matches!(command, WAIT | LOCK_PI | WAIT_BITSET | WAIT_REQUEUE_PI | LOCK_PI2);
    let words = [call.args[0], call.args[4]];
    if pm::any() {
        // Always the alias, as waiters and wakers must mean the same word.
        call.args[0] = pm::alias_of(call.args[0]);
        call.args[4] = pm::alias_of(call.args[4]);
    }
    let before = words.map(|word| pm::is_pm(word).then(|| user::read::<u32>(word)).flatten());
    let mut limit: TimeSpec = [0; 2];
    let mut end = None;
    if virtual_time && may_wait && call.args[3] != 0 {
        let asked = match time_at(call.args[3]) {
            Ok(ns) => ns,
            Err(error) => return error,
        };
        let wall = call.args[1] & CLOCK_REALTIME_FLAG != 0 || command == LOCK_PI;
        let clock = if wall { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
        end = Some((clock, asked));
        limit = if command == WAIT {
            vt::split(asked).into()
        } else {
            in_real_time(clock, asked.saturating_sub(vt::clock_ns(clock, now())))
        };
        call.args[3] = limit.as_ptr() as u64;
    }
    let begun = now();
    let result = if virtual_time && may_wait { waits::pass_measured(thread, call) } else { call.pass(thread) };
    if let (Some((clock, asked)), true) = (end, result == -ETIMEDOUT) {
        if command == WAIT {
            has_slept(begun, asked);
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
