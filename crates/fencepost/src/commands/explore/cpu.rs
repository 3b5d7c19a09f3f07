//! CPU time, which says more than wall time on a busy machine.

use std::mem::MaybeUninit;

/// User and system time of this process and of all its descendants that were waited for, in seconds.
pub fn cpu_seconds() -> f64 {
    [libc::RUSAGE_SELF, libc::RUSAGE_CHILDREN].map(of).iter().sum()
}

fn of(who: i32) -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: zeroed is a valid rusage, whether or not the call filled it.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time() {
        let before = cpu_seconds();
        while cpu_seconds() - before < 1e-3 {
            std::hint::black_box(0);
        }
        assert!(before > 0.0);
    }
}
