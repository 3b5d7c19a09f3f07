//! The coverage statement: what was looked at, and what was left out.

use crash::outcome::Coverage;

use crate::render;

/// Sentences, for the terminal and for the report.
#[derive(Debug)]
pub struct CoverageWords {
    pub explored: Vec<String>,
    /// Crash points that are not judged unless that is asked for.
    creation: Option<String>,
    /// For lack of time, or at a limit.
    left: Vec<String>,
}

impl CoverageWords {
    pub fn of(coverage: &Coverage, judged_creation: bool) -> CoverageWords {
        let count = render::count;
        let mut explored = vec![format!(
            "{} of {} crash points decided ({} different call paths in the trace); {} states decided by {} recoveries, {} failed",
            count(coverage.points_finished),
            count(coverage.points_wanted),
            count(coverage.failure_points),
            count(coverage.states_decided),
            count(coverage.recovery_runs),
            count(coverage.states_failing),
        )];
        if coverage.points_distinguished > 0 {
            explored.push(format!(
                "at {} of them all states that recovery can tell apart were decided",
                count(coverage.points_distinguished)
            ));
        }
        let creation = (coverage.creation_points > 0 && !judged_creation).then(|| {
            format!(
                "{} crash points inside pool creation were not judged (--creation judges them)",
                count(coverage.creation_points)
            )
        });
        let mut left = Vec::new();
        let undecided = coverage.points_wanted.saturating_sub(coverage.points_finished);
        if undecided > 0 {
            left.push(format!("{} crash points, for which the budget did not suffice (--budget)", count(undecided)));
        }
        if coverage.points_capped > 0 {
            left.push(format!(
                "further states at {} crash points, where a strategy met its limit (--strategy)",
                count(coverage.points_capped)
            ));
        }
        CoverageWords { explored, creation, left }
    }

    pub fn not_explored(&self) -> impl Iterator<Item = String> + use<> {
        self.left.clone().into_iter().chain(self.creation.clone())
    }

    /// A few lines for the terminal.
    pub fn text(&self) -> String {
        let left = self.left.iter().map(|what| format!("not explored: {what}"));
        let lines = self.explored.iter().cloned().chain(self.creation.clone()).chain(left);
        lines.collect::<Vec<String>>().join("\n")
    }
}
