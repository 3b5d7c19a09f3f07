//! Several workers look into failing states; what comes out is what one would have found.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use crate::recoveries::{Reads, Words, after_others, altered_units, by_workers};
use crate::traces::{Recorded, Step, fence, record, store};

/// Five pairs of stores in the wrong order, each by instructions of its own, among others that recovery does not look at.
fn five_bugs() -> Recorded {
    let mut steps: Vec<Step> = Vec::new();
    for bug in 0..5 {
        let (site, line) = (100 * bug, 20 * bug);
        steps.push(store(site + 1, line + 1, 7));
        steps.extend((0..8).map(|other| store(site + 10 + other, line + 3 + other, 1)));
        steps.extend([store(site + 2, line + 2, 1), fence(site + 3)]);
    }
    record(&steps)
}

fn promised(word: Words<'_>) -> Option<&'static str> {
    (0..5).any(|bug| word(20 * bug + 2) == 1 && word(20 * bug + 1) == 0).then_some("exit 1")
}

#[test]
fn causes_are_those_that_one_worker_finds_and_all_workers_look_for_them() {
    let recorded = five_bugs();
    for reads in [Reads::Known, Reads::Unknown] {
        let alone = by_workers(&recorded, vec![promised], reads, || {});
        let is_analysing = AtomicBool::new(false);
        let runs: [AtomicU32; 3] = Default::default();
        let others_ran = || runs[1..].iter().any(|runs| runs.load(Ordering::Relaxed) > 0);
        let worker = |number: usize| {
            let (is_analysing, runs) = (&is_analysing, &runs);
            move |word: Words<'_>| {
                if is_analysing.load(Ordering::Relaxed) {
                    runs[number].fetch_add(1, Ordering::Relaxed);
                    // The first one is slow: others are there before it.
                    let late = Instant::now() + Duration::from_secs(60);
                    while number == 0 && !others_ran() && Instant::now() < late {
                        std::thread::yield_now();
                    }
                }
                promised(word)
            }
        };
        let workers = (0..3).map(worker).collect();
        let together = by_workers(&recorded, workers, reads, || is_analysing.store(true, Ordering::Relaxed));
        assert!(others_ran(), "{reads:?}: only one worker looked for causes");
        assert!(alone.causes.len() > 1, "{reads:?}: {}", alone.causes.len());
        assert_eq!(format!("{:?}", together.causes), format!("{:?}", alone.causes), "{reads:?}");
    }
}

#[test]
fn states_that_other_machines_have_looked_into_need_no_runs() {
    let recorded = five_bugs();
    let alone = by_workers(&recorded, vec![promised], Reads::Known, || {});
    for machines in [1, 3] {
        let helped = after_others(&recorded, promised, machines);
        assert!(alone.runs > 0);
        assert_eq!(helped.runs, 0, "{machines} machines looked into them, {} runs alone", alone.runs);
        assert_eq!(format!("{:?}", helped.causes), format!("{:?}", alone.causes));
    }
}

/// They are refused, or looked into.
#[test]
fn altered_units_of_other_machines() {
    altered_units(&five_bugs(), promised);
}
