//! Timers of the program: `timerfd`, `timer_create`, `setitimer`, `alarm`. In the kernel they expire in real time; after that, the
//! virtual clock shows at least the time that the timer was set to.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use wire::virtual_time as vt;

use super::buffers;
use super::dispatch::Call;
use super::time::{ABSOLUTE, CLOCK_MONOTONIC, CLOCK_REALTIME, advance, in_real_time, now, real};
use crate::load::user;
use crate::lock::{LockName, Locked};
use crate::sys::{EFAULT, nr};
use crate::thread::Thread;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    /// `ITIMER_REAL`, which `alarm` sets too.
    Process,
    Posix(i32),
    Descriptor(i32),
}

/// A timer that will go off.
#[derive(Clone, Copy, Debug)]
struct Armed {
    which: Which,
    /// In nanoseconds of the virtual clock (`Control::virtual_ns`).
    at: u64,
    /// In nanoseconds of the kernel's `CLOCK_MONOTONIC`.
    real_at: u64,
    /// 0: once only.
    interval: u64,
}

static ARMED: Locked<Vec<Armed>> = Locked::new(LockName::Timers, Vec::new());
/// Set for good when the program first arms a timer.
static ANY: AtomicBool = AtomicBool::new(false);

/// Has the program ever armed a timer?
pub fn armed() -> bool {
    ANY.load(Ordering::Relaxed)
}

/// In a forked child, which has no timers but the descriptors.
pub fn after_fork() {
    ARMED.reset(Vec::new());
}

/// Moves the virtual clock to where timers have gone off; whether one has.
pub fn catch_up() -> bool {
    if !armed() {
        return false;
    }
    let real_now = real(CLOCK_MONOTONIC);
    let mut latest = 0;
    ARMED.lock().retain_mut(|timer| {
        if timer.real_at > real_now {
            return true;
        }
        latest = latest.max(timer.at);
        if timer.interval == 0 {
            return false;
        }
        // As often as it has gone off meanwhile.
        let times = (real_now - timer.real_at) / timer.interval;
        latest = latest.max(timer.at.saturating_add(times.saturating_mul(timer.interval)));
        timer.at = timer.at.saturating_add((times + 1).saturating_mul(timer.interval));
        timer.real_at = timer.real_at.saturating_add((times + 1).saturating_mul(timer.interval));
        true
    });
    if latest != 0 {
        advance(|ns| ns.max(latest));
        super::time::has_waited();
    }
    latest != 0
}

/// `alarm`, `setitimer`, `timer_settime`, `timerfd_settime`.
pub fn set(thread: &mut Thread, mut call: Call) -> i64 {
    const ITIMER_REAL: i32 = 0;
    catch_up();
    if call.nr == nr::ALARM {
        let result = buffers::pass(thread, call);
        arm(Which::Process, (call.args[0] & 0xffff_ffff) * vt::NS_PER_SECOND, 0);
        return result;
    }
    let (which, scale, value) = match call.nr {
        nr::SETITIMER => (Which::Process, 1000, call.args[1]),
        nr::TIMER_SETTIME => (Which::Posix(call.fd(0)), 1, call.args[2]),
        _ => (Which::Descriptor(call.fd(0)), 1, call.args[2]),
    };
    if value == 0 || (call.nr == nr::SETITIMER && call.fd(0) != ITIMER_REAL) {
        return buffers::pass(thread, call);
    }
    // Interval and value, each in seconds and parts of one.
    let Some([interval, interval_part, at, part]) = user::read::<[u64; 4]>(value) else { return -EFAULT };
    let ns =
        |seconds: u64, part: u64| seconds.saturating_mul(vt::NS_PER_SECOND).saturating_add(part.saturating_mul(scale));
    let mut left = ns(at, part);
    let mut moved = [interval, interval_part, at, part];
    if call.nr != nr::SETITIMER && call.args[1] & ABSOLUTE != 0 && left != 0 {
        // Which clock the time belongs to is seen from the value: the two differ by decades.
        let clock = if left >= vt::VIRTUAL_EPOCH_NS / 2 { CLOCK_REALTIME } else { CLOCK_MONOTONIC };
        left = left.saturating_sub(vt::clock_ns(clock, now()));
        let [seconds, part] = in_real_time(clock, left);
        moved = [interval, interval_part, seconds, part];
        call.args[2] = moved.as_ptr() as u64;
        // A time that has passed goes off at once.
        left = left.max(1);
    }
    let result = buffers::pass(thread, call);
    let _ = &mut moved;
    if result == 0 {
        arm(which, left, ns(interval, interval_part));
    }
    result
}

pub fn delete(thread: &mut Thread, call: Call) -> i64 {
    let result = buffers::pass(thread, call);
    if result == 0 {
        arm(Which::Posix(call.fd(0)), 0, 0);
    }
    result
}

/// The timer goes off `left` from now on; 0: never.
fn arm(which: Which, left: u64, interval: u64) {
    ANY.store(true, Ordering::Relaxed);
    let armed =
        Armed { which, at: now().saturating_add(left), real_at: real(CLOCK_MONOTONIC).saturating_add(left), interval };
    let mut list = ARMED.lock();
    list.retain(|timer| timer.which != which);
    if left != 0 {
        list.push(armed);
    }
}
