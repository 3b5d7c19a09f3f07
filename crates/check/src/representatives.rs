//! Which of very many failing states are analysed first.
//!
//! Most of them have one cause, and what is found is assumed to be repaired before the rest is looked at. So a few of each kind come
//! first: of a failure point the first crash points, and there a few states of each symptom.

use std::collections::BTreeMap;

use crash::outcome::PointOutcome;

/// So many failing states are analysed at once.
const FEW: u64 = 200;
/// Crash points of one failure point that fail in the same way.
const POINTS: usize = 2;
/// States of a crash point with one symptom.
const STATES: usize = 2;

/// Some of these; none if that would be all of them.
pub(crate) fn representatives(failing: &[PointOutcome]) -> Option<Vec<PointOutcome>> {
    if failing.iter().map(|outcome| outcome.failing.len() as u64).sum::<u64>() <= FEW {
        return None;
    }
    let mut points: BTreeMap<_, usize> = BTreeMap::new();
    let mut some = Vec::new();
    for outcome in failing {
        let mut states: BTreeMap<_, usize> = BTreeMap::new();
        let mut few = outcome.clone();
        few.failing.retain(|state| {
            let symptom = state.verdict.symptom().map(|symptom| symptom.key());
            let seen = states.entry((state.strategy, symptom)).or_default();
            *seen += 1;
            *seen <= STATES
        });
        let ways: Vec<_> = states.into_keys().collect();
        let seen = points.entry((outcome.point.key, ways)).or_default();
        *seen += 1;
        if *seen <= POINTS {
            some.push(few);
        }
    }
    Some(some)
}

#[cfg(test)]
mod tests {
    use crash::outcome::FailingState;
    use crash::points::{FailurePoint, Point, PointKind};
    use crash::strategy::StrategySpec;
    use persistency::states::{Base, CrashState};
    use trace::event::{CodeAddr, ContextId, EventId};
    use verdict::symptom::{Failure, Party, Symptom};
    use verdict::verdict::Verdict;

    use super::*;

    fn outcome(index: u64, states: usize, code: i32) -> PointOutcome {
        let how = Failure::Exit { code, complaint: None };
        let failing = FailingState {
            strategy: StrategySpec::GuaranteedOnly,
            state: CrashState { base: Base::Guaranteed, lines: Vec::new() },
            verdict: Verdict::fail(Symptom::Failed { by: Party::Recovery, how }),
        };
        let key = FailurePoint { context: ContextId(0), pc: CodeAddr::default(), kind: PointKind::Flush };
        PointOutcome {
            point: Point { index, at: EventId(index), key, occurrence: index + 1 },
            finished: true,
            dirty_lines: 1,
            states_possible: 2u32.into(),
            strategies: Vec::new(),
            failing: vec![failing; states],
            passing: Vec::new(),
            runs: 0,
            saved: 0,
            still_failing: None,
        }
    }

    #[test]
    fn a_few_of_each_kind_come_first() {
        let many: Vec<PointOutcome> = (0..50).map(|index| outcome(index, 10, i32::from(index > 40))).collect();
        let some = representatives(&many).expect("very many");
        let shown: Vec<(u64, usize)> = some.iter().map(|one| (one.point.index, one.failing.len())).collect();
        assert_eq!(shown, [(0, 2), (1, 2), (41, 2), (42, 2)]);
        assert_eq!(representatives(&many[..10]), None);
    }
}
