//! Waits with or without a timeout. They take their real time and advance the virtual clock: by the whole timeout if it expired,
//! otherwise by the real time, if that was long and no timer of the program ended the wait. Threads that wait at the same time do not add up: when a wait
//! ends, the clock shows at least its value at the beginning plus the time waited.

use core::sync::atomic::Ordering;

use wire::virtual_time as vt;

use super::buffers;
use super::dispatch::Call;
use super::time::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, ETIMEDOUT, TimeSpec, advance, has_slept, has_waited, in_real_time, now, real,
    time_at,
};
use super::timers;
use crate::load::user;
use crate::ring;
use crate::sys::{nr, raw, sys};
use crate::thread::Thread;

const EAGAIN: i64 = 11;

/// When a wait ends by itself.
#[derive(Clone, Copy, Debug)]
enum Limit {
    None,
    /// After so many nanoseconds.
    After(u64),
    /// When this clock shows this, in nanoseconds.
    At(i32, u64),
}

pub fn answer(thread: &mut Thread, mut call: Call) -> i64 {
    let [_, _, c, d, e, _] = call.args;
    // What the kernel gets instead of a point in virtual time.
    let mut moved: TimeSpec = [0; 2];
    let mut absolute = |call: &mut Call, argument: usize, clock: i32| match time_at(call.args[argument]) {
        Ok(asked) if call.args[argument] != 0 => {
            moved = in_real_time(clock, asked.saturating_sub(vt::clock_ns(clock, now())));
            call.args[argument] = moved.as_ptr() as u64;
            Limit::At(clock, asked)
        }
        // The kernel says what is wrong with it.
        _ => Limit::None,
    };
    let limit = match call.nr {
        nr::POLL => milliseconds(c),
        nr::EPOLL_WAIT | nr::EPOLL_PWAIT => milliseconds(d),
        nr::EPOLL_PWAIT2 => after(d),
        nr::PPOLL | nr::RT_SIGTIMEDWAIT => after(c),
        nr::SEMTIMEDOP => after(d),
        nr::PSELECT6 | nr::IO_GETEVENTS | nr::IO_PGETEVENTS | nr::RECVMMSG => after(e),
        nr::SELECT => match user::read::<TimeSpec>(e) {
            Some([seconds, us]) if e != 0 => {
                Limit::After(seconds.saturating_mul(vt::NS_PER_SECOND).saturating_add(us.saturating_mul(1000)))
            }
            _ => Limit::None,
        },
        nr::MQ_TIMEDSEND | nr::MQ_TIMEDRECEIVE => absolute(&mut call, 4, CLOCK_REALTIME),
        nr::FUTEX_WAITV => absolute(&mut call, 3, e as i32),
        _ => Limit::None,
    };
    let begun = now();
    let result = pass_measured(thread, call);
    let ran_out = match call.nr {
        nr::POLL
        | nr::EPOLL_WAIT
        | nr::EPOLL_PWAIT
        | nr::EPOLL_PWAIT2
        | nr::PPOLL
        | nr::SELECT
        | nr::PSELECT6
        | nr::IO_GETEVENTS
        | nr::IO_PGETEVENTS => result == 0,
        nr::RT_SIGTIMEDWAIT | nr::SEMTIMEDOP | nr::RECVMMSG => result == -EAGAIN,
        nr::MQ_TIMEDSEND | nr::MQ_TIMEDRECEIVE | nr::FUTEX_WAITV => result == -ETIMEDOUT,
        _ => false,
    };
    match limit {
        Limit::After(ns) if ran_out => has_slept(begun, ns),
        Limit::At(clock, asked) if ran_out => advance(|v| vt::after_sleep_until(v, clock, asked)),
        _ => {}
    }
    let _ = &moved;
    result
}

/// A call on a socket (or anything else that may have a limit of its own) that came back with nothing.
pub fn on_socket(thread: &mut Thread, call: Call) -> i64 {
    let begun = now();
    let result = buffers::pass(thread, call);
    if result == -EAGAIN
        && let Some(ns) = socket_limit(call)
    {
        has_waited();
        has_slept(begun, ns);
    }
    result
}

/// The time after which a blocking call on a socket gives up.
fn socket_limit(call: Call) -> Option<u64> {
    const F_GETFL: u64 = 3;
    const O_NONBLOCK: i64 = 0o4000;
    const MSG_DONTWAIT: u64 = 0x40;
    const SOL_SOCKET: u64 = 1;
    const SO_RCVTIMEO: u64 = 20;
    const SO_SNDTIMEO: u64 = 21;
    let flags = match call.nr {
        nr::RECVFROM | nr::SENDTO => call.args[3],
        nr::RECVMSG | nr::SENDMSG => call.args[2],
        _ => 0,
    };
    if flags & MSG_DONTWAIT != 0 || sys!(nr::FCNTL, call.fd(0), F_GETFL) & O_NONBLOCK != 0 {
        return None;
    }
    let option =
        if matches!(call.nr, nr::SENDTO | nr::SENDMSG | nr::WRITE | nr::CONNECT) { SO_SNDTIMEO } else { SO_RCVTIMEO };
    let (mut time, mut len) = ([0u64; 2], 16u32);
    // SAFETY: the kernel writes at most `len` bytes into `time`, which has 16.
    let got = unsafe { raw!(nr::GETSOCKOPT, call.fd(0), SOL_SOCKET, option, time.as_mut_ptr(), &raw mut len) };
    (got == 0).then(|| time[0].saturating_mul(vt::NS_PER_SECOND).saturating_add(time[1].saturating_mul(1000)))
}

/// Makes a call that may wait. A long wait moves the virtual clock, in steps; one whose limit runs out does not, since the caller moves it by
/// the limit.
pub fn pass_measured(thread: &mut Thread, call: Call) -> i64 {
    let (start, begun) = (real(CLOCK_MONOTONIC), now());
    let result = if call.nr == nr::FUTEX { call.pass(thread) } else { buffers::pass(thread, call) };
    let waited = real(CLOCK_MONOTONIC).saturating_sub(start);
    let rang = timers::catch_up();
    let nothing = result == 0 && call.nr != nr::FUTEX;
    if rang || nothing || matches!(-result, EAGAIN | ETIMEDOUT) {
        has_waited();
    } else if waited >= vt::WAIT_COUNTS_NS {
        has_waited();
        let all = &ring::control().virtual_waited;
        let before = all.fetch_add(waited, Ordering::Relaxed);
        let steps = (before + waited) / vt::WAIT_STEP_NS - before / vt::WAIT_STEP_NS;
        has_slept(begun, steps * vt::WAIT_STEP_NS);
    }
    result
}

fn milliseconds(timeout: u64) -> Limit {
    let timeout = timeout as i32;
    if timeout < 0 { Limit::None } else { Limit::After(timeout as u64 * 1_000_000) }
}

/// A `timespec`, relative.
fn after(address: u64) -> Limit {
    match time_at(address) {
        Ok(ns) if address != 0 => Limit::After(ns),
        _ => Limit::None,
    }
}
