//! How long failing states are analysed: until the deadline, and only briefly once the user asks for a result.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Enough for the causes of most searches.
const AFTER_STOP: Duration = Duration::from_millis(700);

#[derive(Debug, Default)]
pub(crate) struct AnalysisDeadline {
    pub deadline: Option<Instant>,
    /// When it was noticed that the user wants to stop.
    stopped: OnceLock<Instant>,
}

impl AnalysisDeadline {
    pub fn until(deadline: Option<Instant>) -> AnalysisDeadline {
        AnalysisDeadline { deadline, stopped: OnceLock::new() }
    }

    pub fn is_over(&self, now: Instant, is_stopped: bool) -> bool {
        if is_stopped {
            self.stopped.get_or_init(|| now);
        }
        let end = self.stopped.get().map(|&stopped| stopped + AFTER_STOP);
        [self.deadline, end].into_iter().flatten().any(|end| now >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_leaves_some_time() {
        let now = Instant::now();
        let late = now + Duration::from_secs(1000);
        let deadline = AnalysisDeadline::until(Some(late));
        assert!(!deadline.is_over(now, false) && deadline.is_over(late, false));
        assert!(!deadline.is_over(now, true));
        assert!(!deadline.is_over(now + AFTER_STOP / 2, true));
        assert!(deadline.is_over(now + AFTER_STOP, true));
        assert!(!AnalysisDeadline::until(None).is_over(late, false));
    }
}
