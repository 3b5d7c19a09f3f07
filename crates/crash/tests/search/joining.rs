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
