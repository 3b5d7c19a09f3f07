//! However the work is shared out, the outcome is the same.

use crash::outcome::{PointOutcome, merge};
use crash::rounds::Shard;
use crash::search::{Search, coverage};

use crate::equivalence::{options, search, survey};
use crate::recoveries::Fake;
use crate::traces::random;

const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:2:40,visible:20";

pub fn assert_same(one: &[PointOutcome], other: &[PointOutcome], what: &str) {
    assert_eq!(one.len(), other.len(), "{what}");
    for (one, other) in one.iter().zip(other) {
        assert!(one.agrees(other), "{what}:\n{one:#?}\n{other:#?}");
    }
}

#[test]
fn two_workers_find_what_one_finds() {
    for seed in 0..20 {
        let recorded = random(3000 + seed, 60);
        let options = options(STRATEGIES);
        let fake = Fake::random(seed);
        let one = search(&recorded, &options, true, &mut [fake.clone()]);
        let two = search(&recorded, &options, true, &mut [fake.clone(), fake.clone(), fake]);
        assert_same(&one.points, &two.points, &format!("trace {seed}"));
        assert_eq!(one.coverage.states_decided, two.coverage.states_decided);
        assert!(one.coverage.complete == two.coverage.complete);
    }
}

#[test]
fn three_shards_make_a_whole() {
    for seed in 0..20 {
        let recorded = random(4000 + seed, 60);
        let mut options = options(STRATEGIES);
        options.selection.every = seed % 2 == 0;
        let fake = Fake::random(seed);
        let whole = search(&recorded, &options, true, &mut [fake.clone()]);
        let survey = survey(&recorded, &options);
        let mut parts = Vec::new();
        for number in 1..=3 {
            let shard = Shard { number, of: 3 };
            let found = Search { shard, ..Search::new(&recorded.reader, &survey, &options) }.run(&mut [fake.clone()]);
            let found = found.unwrap();
            assert_eq!(found.points.len() as u64, found.coverage.points_finished);
            assert_eq!(found.coverage.points_wanted, found.coverage.points_finished);
            parts.extend(found.points);
        }
        let merged = merge(parts);
        assert_same(&whole.points, &merged, &format!("trace {seed}"));
        let mut joined = coverage(&survey, &options, Shard::WHOLE, &merged);
        assert_eq!(joined.states_decided, whole.coverage.states_decided);
        (joined.recovery_runs, joined.runs_saved) = (whole.coverage.recovery_runs, whole.coverage.runs_saved);
        assert_eq!(joined, whole.coverage);
    }
}

#[test]
fn failing_states_come_with_passing_ones_whoever_found_them() {
    let (mut with, mut from_the_quick) = (0, 0);
    for seed in 0..20 {
        let recorded = random(4500 + seed, 40);
        let found = search(&recorded, &options(STRATEGIES), true, &mut [Fake::random(seed)]);
        for outcome in found.points.iter().filter(|outcome| !outcome.failing.is_empty()) {
            let quick = &outcome.strategies[..2];
            for done in quick.iter().filter(|done| done.failing == 0 && done.decided > 0) {
                let state = done.strategy.only_state().unwrap();
                assert!(outcome.passing.contains(&state), "{outcome:#?}");
                from_the_quick += u64::from(quick.iter().all(|done| done.failing == 0));
            }
            with += u64::from(outcome.passing.len() > 2);
            assert!(outcome.failing.iter().all(|failing| !outcome.passing.contains(&failing.state)));
        }
    }
    assert!(with > 10 && from_the_quick > 10, "{with}, {from_the_quick}: too tame");
}

/// A search that was stopped, and one of the same point that assumed that what it found is repaired.
#[test]
fn failures_stay_when_a_point_is_searched_again_as_if_repaired() {
    let recorded = random(4500, 40);
    let found = search(&recorded, &options(STRATEGIES), true, &mut [Fake::random(0)]);
    let failing = found.points.into_iter().filter(|outcome| !outcome.failing.is_empty());
    let mut tried = 0;
    for whole in failing {
        let begun = PointOutcome { finished: false, ..whole.clone() };
        let mut repaired = PointOutcome { failing: Vec::new(), ..whole.clone() };
        repaired.strategies.iter_mut().for_each(|strategy| strategy.failing = 0);
        for parts in [[begun.clone(), repaired.clone()], [repaired, begun]] {
            let merged = merge(parts);
            assert_eq!(merged.len(), 1);
            assert_eq!((merged[0].failing_states(), &merged[0].failing), (whole.failing_states(), &whole.failing));
            assert!(merged[0].finished && !merged[0].is_masked());
        }
        tried += 1;
    }
    assert!(tried > 3, "{tried}: too tame");
}
