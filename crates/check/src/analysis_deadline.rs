//! How long failing states are analysed: until the deadline, somewhat shorter if there is a hang to confirm, and only briefly once the user
//! asks for a result.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Enough for the causes of most searches.
const AFTER_STOP: Duration = Duration::from_millis(700);

#[derive(Debug, Default)]
pub(crate) struct AnalysisDeadline {
    deadline: Option<Instant>,
    /// The same where a cause hangs: its confirmation takes all the time that a run may take.
    with_hangs: Option<Instant>,
    hangs: AtomicBool,
    /// When it was noticed that the user wants to stop.
    stopped: OnceLock<Instant>,
}

impl AnalysisDeadline {
    pub fn until(deadline: Option<Instant>, with_hangs: Option<Instant>) -> AnalysisDeadline {
        AnalysisDeadline { deadline, with_hangs, ..AnalysisDeadline::default() }
    }

    /// A cause hangs.
    pub fn hangs(&self) {
        self.hangs.store(true, Ordering::Relaxed);
    }

    /// When it is over, if the user does not stop it.
    pub fn end(&self) -> Option<Instant> {
        let hangs = self.with_hangs.filter(|_| self.hangs.load(Ordering::Relaxed));
        [self.deadline, hangs].into_iter().flatten().min()
    }

    pub fn is_over(&self, now: Instant, is_stopped: bool) -> bool {
        if is_stopped {
            self.stopped.get_or_init(|| now);
        }
        let stopped = self.stopped.get().map(|&stopped| stopped + AFTER_STOP);
        [self.end(), stopped].into_iter().flatten().any(|end| now >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_leaves_some_time() {
        let now = Instant::now();
        let late = now + Duration::from_secs(1000);
        let deadline = AnalysisDeadline::until(Some(late), None);
        assert!(!deadline.is_over(now, false) && deadline.is_over(late, false));
        assert!(!deadline.is_over(now, true));
        assert!(!deadline.is_over(now + AFTER_STOP / 2, true));
        assert!(deadline.is_over(now + AFTER_STOP, true));
        assert!(!AnalysisDeadline::until(None, None).is_over(late, false));
    }

    #[test]
    fn a_hang_leaves_time_to_confirm_it() {
        let now = Instant::now();
        let [early, late] = [10, 20].map(|seconds| now + Duration::from_secs(seconds));
        let deadline = AnalysisDeadline::until(Some(late), Some(early));
        assert!(!deadline.is_over(early, false) && deadline.is_over(late, false));
        deadline.hangs();
        assert!(!deadline.is_over(now, false) && deadline.is_over(early, false));
        let alone = AnalysisDeadline::until(Some(early), Some(late));
        alone.hangs();
        assert_eq!(alone.end(), Some(early), "it never comes later");
    }
}
