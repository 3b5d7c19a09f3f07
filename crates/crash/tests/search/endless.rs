//! Runs that hang take as long as many others, so few of them are tried.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crash::strategy::Reach;
use verdict::symptom::{Failure, Party, Symptom};
use verdict::verdict::Verdict;

use crate::equivalence::{options, search};
use crate::recoveries::{Fake, exits};
use crate::traces::random;

const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:2:40,visible:20";

#[test]
fn of_a_point_where_all_runs_hang_only_a_few_are_tried() {
    let how = Failure::Hang { after_ms: 1 };
    let hangs = Verdict::fail(Symptom::Failed { by: Party::Recovery, how });
    let (mut capped, mut others) = (0, 0);
    for seed in 0..20 {
        let recorded = random(8000 + seed, 60);
        let options = options(STRATEGIES);
        let runs = Arc::new(AtomicU64::new(0));
        let (counted, verdict) = (Arc::clone(&runs), hangs.clone());
        let endless = Fake::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            verdict.clone()
        });
        let found = search(&recorded, &options, false, &mut [endless]);
        // The stages are: quick states, those near them, the others.
        assert!(runs.load(Ordering::Relaxed) <= 3 * 4 * found.points.len() as u64);
        for point in &found.points {
            assert!(point.finished && !point.failing.is_empty() && point.runs <= 3 * 4, "{point:#?}");
            capped += point.strategies.iter().filter(|done| done.reach == Reach::Capped).count();
        }
        // What fails at once is tried as often as ever.
        let failing = search(&recorded, &options, false, &mut [Fake::new(|_| exits(1))]);
        others += failing.points.iter().filter(|point| point.runs > 3 * 4).count();
    }
    assert!(capped > 20 && others > 20, "{capped}, {others}: too tame");
}
