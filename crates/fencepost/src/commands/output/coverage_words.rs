//! The coverage statement: what was tested, and what was left out.

use check::checked::Checked;
use runner::plan::JudgedBy;

use report::number::{counted, in_part, separated};

/// Sentences, for the terminal and for the report.
#[derive(Debug)]
pub struct CoverageWords {
    pub explored: Vec<String>,
    /// Crash points that are not judged unless that is asked for.
    creation: Option<String>,
    /// For lack of time, or at a limit.
    left: Vec<String>,
    not_compared: Option<String>,
}

impl CoverageWords {
    pub fn of(checked: &Checked) -> CoverageWords {
        let Checked { coverage, judged_creation, judged_by, .. } = checked;
        let mut explored = vec![format!(
            "tested {} of {}{} ({}): {}, {}, {}",
            separated(coverage.points_finished),
            counted(coverage.points_wanted, "crash point"),
            in_part(coverage.points_in_part),
            counted(coverage.failure_points, "failure point"),
            counted(coverage.states_decided, "state"),
            counted(coverage.recovery_runs, "recovery run"),
            counted(coverage.states_failing, "failure"),
        )];
        if coverage.points_distinguished > 0 {
            explored.push(format!(
                "exhaustive at {} of {}",
                separated(coverage.points_distinguished),
                counted(coverage.points_wanted, "crash point")
            ));
        }
        let creation = (coverage.creation_points > 0 && !*judged_creation).then(|| {
            let verb = if coverage.creation_points == 1 { "was" } else { "were" };
            format!(
                "{} inside pool creation {verb} not tested (--creation tests them)",
                counted(coverage.creation_points, "crash point")
            )
        });
        let mut left = Vec::new();
        let undecided = coverage.points_wanted.saturating_sub(coverage.points_finished + coverage.points_in_part);
        let further = (coverage.points_in_part > 0)
            .then(|| format!("further states at {}", counted(coverage.points_in_part, "crash point")));
        let untouched = (undecided > 0).then(|| counted(undecided, "crash point"));
        let unexplored: Vec<String> = untouched.into_iter().chain(further).collect();
        if !unexplored.is_empty() {
            let why = if checked.interrupted { "interrupted" } else { "time budget exhausted (--budget)" };
            left.push(format!("{}: {why}", unexplored.join(", ")));
        }
        if coverage.points_capped > 0 {
            left.push(format!(
                "further states at {}, where a strategy met its limit (--strategy)",
                counted(coverage.points_capped, "crash point")
            ));
        }
        CoverageWords { explored, creation, left, not_compared: not_compared(*judged_by) }
    }

    pub fn not_explored(&self) -> impl Iterator<Item = String> + use<> {
        self.left.clone().into_iter().chain(self.creation.clone()).chain(self.not_compared.clone())
    }

    /// A few lines for the terminal.
    pub fn text(&self) -> String {
        let left = self.left.iter().map(|what| format!("not explored: {what}"));
        let lines = self.explored.iter().cloned().chain(self.creation.clone()).chain(left);
        lines.chain(self.not_compared.clone()).collect::<Vec<String>>().join("\n")
    }
}

/// Many bugs leave a pool that recovery takes for good and that answers wrongly. Nobody shall think that this was looked at.
pub fn not_compared(judged_by: JudgedBy) -> Option<String> {
    let looked_at = match judged_by {
        JudgedBy { answers: true, .. } => return None,
        JudgedBy { checker: true, .. } => "only the verdicts of recovery and checker were checked",
        JudgedBy { checker: false, .. } => "only the recovery's verdict was checked",
    };
    Some(format!("answers to operations were not compared, {looked_at} (--ops compares them: docs/operations.md)"))
}

#[cfg(test)]
mod tests {
    use crash::outcome::Coverage;

    use super::*;

    #[test]
    fn points_that_were_tested_in_part_are_told() {
        let coverage =
            Coverage { points_wanted: 1009, points_in_part: 985, states_decided: 2040, ..Coverage::default() };
        let checked = Checked {
            findings: Vec::new(),
            coverage,
            evidence: Vec::new(),
            notes: Vec::new(),
            points: Vec::new(),
            judged_creation: false,
            judged_by: JudgedBy { checker: false, answers: true },
            interrupted: false,
            events: 0,
        };
        let words = CoverageWords::of(&checked);
        assert!(words.explored[0].starts_with("tested 0 of 1,009 crash points, 985 more in part ("), "{words:?}");
        assert_eq!(
            words.left,
            ["24 crash points, further states at 985 crash points: time budget exhausted (--budget)"]
        );
    }
}
