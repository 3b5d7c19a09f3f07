//! Work that ends when the user wants it to: after Ctrl-C with what is known so far; after a second one no run goes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use record::stop::StopRequest;
use supervise::cancel::Cancel;

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// What was found may be analysed and confirmed for so long after the first Ctrl-C.
const TO_FINISH: Duration = Duration::from_millis(1500);

/// Does the work. `stopped` is set when the user asks for the end; runs are cancelled a little later, and at `last` in any case.
pub(crate) fn until_stopped<T>(
    stop: &StopRequest,
    stopped: &AtomicBool,
    cancel: &Cancel,
    last: Option<Instant>,
    work: impl FnOnce() -> T,
) -> T {
    let before = stop.count();
    let (alive, ended) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut asked = Asked::default();
            while ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                let now = Instant::now();
                asked.look(stop.count().saturating_sub(before), now);
                if asked.first.is_some() {
                    stopped.store(true, Ordering::Relaxed);
                }
                if asked.ends_runs(now) || last.is_some_and(|last| now >= last) {
                    cancel.cancel();
                }
            }
        });
        let done = work();
        drop(alive);
        done
    })
}

/// When the user asked.
#[derive(Debug, Default)]
struct Asked {
    first: Option<Instant>,
    again: bool,
}

impl Asked {
    fn look(&mut self, times: u32, now: Instant) {
        if times > 0 {
            self.first.get_or_insert(now);
        }
        self.again |= times > 1;
    }

    fn ends_runs(&self, now: Instant) -> bool {
        self.again || self.first.is_some_and(|first| now >= first + TO_FINISH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_time_leaves_time_and_the_second_does_not() {
        let now = Instant::now();
        let mut asked = Asked::default();
        asked.look(0, now);
        assert!(!asked.ends_runs(now + TO_FINISH));
        asked.look(1, now);
        assert!(!asked.ends_runs(now) && asked.ends_runs(now + TO_FINISH));
        asked.look(2, now);
        assert!(asked.ends_runs(now));
    }

    #[test]
    fn runs_are_cancelled_when_their_last_moment_has_come() {
        let (stopped, cancel) = (AtomicBool::new(false), Cancel::default());
        until_stopped(&StopRequest::new(), &stopped, &cancel, Some(Instant::now()), || {
            while !cancel.is_cancelled() {
                thread::yield_now();
            }
        });
        assert!(!stopped.load(Ordering::Relaxed));
    }
}
