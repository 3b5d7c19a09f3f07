//! How much of the machine a check gets beside other work.
//!
//! A budget is time by the clock. On a machine with other work that says little, so each check can get as much more as makes up for it.

use std::mem::MaybeUninit;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};

/// How long the machine is looked at.
const LOOK: Duration = Duration::from_secs(2);

/// Of the processors' time, the part that as many busy threads got just now: 1 on a quiet machine.
pub fn share() -> anyhow::Result<f64> {
    let threads = thread::available_parallelism().context("how many processors are there?")?.get();
    let got: Vec<Duration> = thread::scope(|scope| {
        let spun: Vec<_> = (0..threads).map(|_| scope.spawn(spin)).collect();
        spun.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    let share = got.iter().sum::<Duration>().as_secs_f64() / (LOOK.as_secs_f64() * threads as f64);
    ensure!(share > 0.0, "no time of any processor can be had");
    Ok(share.min(1.0))
}

/// The processor time that one thread gets which does nothing but ask for it.
fn spin() -> Duration {
    let (begun, before) = (Instant::now(), own_time());
    while begun.elapsed() < LOOK {
        std::hint::spin_loop();
    }
    own_time().saturating_sub(before)
}

fn own_time() -> Duration {
    let mut time = MaybeUninit::<libc::timespec>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type, and zeroed is a valid value of it.
    let time = unsafe {
        libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, time.as_mut_ptr());
        time.assume_init()
    };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The budget that is worth so many seconds of a quiet machine, as an option's value.
pub fn stretched(seconds: u32, share: f64) -> String {
    format!("{}s", (f64::from(seconds) / share).ceil())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_machine_takes_twice_the_time() {
        assert_eq!(
            (stretched(60, 1.0), stretched(60, 0.5), stretched(1, 0.3)),
            ("60s".into(), "120s".into(), "4s".into())
        );
    }

    #[test]
    fn a_thread_that_spins_uses_its_time() {
        assert!(spin() > Duration::ZERO);
    }
}
