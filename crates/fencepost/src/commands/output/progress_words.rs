//! The messages about progress, and when the next plain line is due. The caller passes the time since the
//! work began.

use std::mem;
use std::time::Duration;

use check::session::Phase;

use report::number::separated;

/// Shorter work is silent.
const SILENCE: Duration = Duration::from_secs(10);
/// At least one line in so long a time, however long it takes.
const LONGEST: Duration = Duration::from_secs(60);

/// What is being done.
#[derive(Debug)]
pub struct Work {
    /// Of the search.
    budget: Option<Duration>,
    phase: Option<Phase>,
    /// When runs without a crash began: the budget does not count them.
    reference_runs: Option<Duration>,
    /// When the search began.
    searching: Option<Duration>,
}

impl Work {
    pub fn new(budget: Option<Duration>) -> Work {
        Work { budget, phase: None, reference_runs: None, searching: None }
    }

    /// Returns whether this is another phase than before.
    pub fn enter(&mut self, phase: Phase, now: Duration) -> bool {
        let is_new = self.phase.is_none_or(|last| mem::discriminant(&last) != mem::discriminant(&phase));
        self.phase = Some(phase);
        match phase {
            Phase::Reference { .. } => _ = self.reference_runs.get_or_insert(now),
            Phase::Search(_) => _ = self.searching.get_or_insert(now),
            _ => {}
        }
        is_new
    }

    /// None before the first phase.
    pub fn text(&self, now: Duration) -> Option<String> {
        Some(match self.phase? {
            Phase::Survey => "looking for crash points".to_owned(),
            Phase::Reference { next, operations } => {
                format!("running the operations without a crash: {next} of {operations}")
            }
            Phase::Infer => "looking at what recoveries depend on".to_owned(),
            Phase::Analyse(failing) => format!("finding the causes of {} failing states", separated(failing)),
            Phase::Again => "crashing recoveries".to_owned(),
            Phase::Confirm => "confirming findings on the uninstrumented program".to_owned(),
            Phase::Search(progress) => {
                let begun = self.searching.unwrap_or(now);
                let seconds = now.saturating_sub(begun).as_secs_f64().max(1.0);
                let reference = self.reference_runs.map_or(Duration::ZERO, |since| begun.saturating_sub(since));
                let left = self.budget.map_or_else(String::new, |budget| {
                    format!(", {} s left", (budget + reference).saturating_sub(now).as_secs())
                });
                format!(
                    "crash points {}/{} (stage {} of {}), {} states decided ({:.0}/s), {} failing{left}",
                    separated(progress.points_done),
                    separated(progress.points),
                    progress.stage,
                    progress.stages,
                    separated(progress.states_decided),
                    progress.states_decided as f64 / seconds,
                    separated(progress.states_failing),
                )
            }
        })
    }
}

/// Decides when a plain line is due: after ten seconds, then ever more seldom, up to once a minute; and, once there was one, at
/// the beginning of every phase.
#[derive(Debug)]
pub struct PlainLines {
    next: Duration,
    pause: Duration,
}

impl Default for PlainLines {
    fn default() -> PlainLines {
        PlainLines { next: SILENCE, pause: SILENCE }
    }
}

impl PlainLines {
    /// Is a line due? If so, it counts as printed.
    pub fn is_due(&mut self, now: Duration, new_phase: bool) -> bool {
        let due = now >= self.next;
        if due {
            self.pause = (self.pause * 2).min(LONGEST);
        }
        let is_due = due || (new_phase && now >= SILENCE);
        if is_due {
            self.next = now + self.pause;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use crash::rounds::Round;
    use crash::search::Progress;

    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn search(states_decided: u64) -> Phase {
        Phase::Search(Progress {
            stage: 1,
            stages: 2,
            round: Round(0),
            points_done: 3,
            points: 1_200,
            states_decided,
            states_failing: 2,
            recovery_runs: states_decided,
        })
    }

    #[test]
    fn short_work_is_silent() {
        let mut lines = PlainLines::default();
        assert!((0..10).all(|second| !lines.is_due(seconds(second), second % 3 == 0)));
    }

    #[test]
    fn lines_become_rarer_up_to_one_a_minute() {
        let mut lines = PlainLines::default();
        let printed: Vec<u64> = (0..300).filter(|&second| lines.is_due(seconds(second), false)).collect();
        assert_eq!(printed, [10, 30, 70, 130, 190, 250]);
    }

    #[test]
    fn a_phase_of_long_work_is_told_when_it_begins() {
        let mut lines = PlainLines::default();
        let printed: Vec<u64> = (0..40).filter(|&second| lines.is_due(seconds(second), second % 12 == 5)).collect();
        assert_eq!(printed, [10, 17, 29]);
    }

    #[test]
    fn rates_and_what_is_left_are_those_of_the_search() {
        let mut work = Work::new(Some(seconds(60)));
        assert_eq!(work.text(seconds(0)), None);
        assert!(work.enter(Phase::Survey, seconds(1)));
        assert!(work.enter(Phase::Reference { next: 0, operations: 7 }, seconds(2)));
        assert!(!work.enter(Phase::Reference { next: 5, operations: 7 }, seconds(12)));
        assert!(work.enter(search(0), seconds(22)));
        assert!(!work.enter(search(1_500), seconds(32)));
        assert_eq!(
            work.text(seconds(32)).as_deref(),
            Some("crash points 3/1,200 (stage 1 of 2), 1,500 states decided (150/s), 2 failing, 48 s left")
        );
        assert!(work.enter(Phase::Analyse(2), seconds(90)));
        assert_eq!(work.text(seconds(90)).as_deref(), Some("finding the causes of 2 failing states"));
    }
}
