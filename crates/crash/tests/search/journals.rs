//! A search that was stopped goes on where it was; a journal of something else is refused.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

use crash::journal::{Journal, JournalError};
use crash::outcome::merge;
use crash::search::{Budget, Found, Search, SearchOptions};
use crash::survey::Survey;

use crate::equivalence::{options, survey};
use crate::joining::assert_same;
use crate::recoveries::Fake;
use crate::traces::{Recorded, random};

const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:2:40,visible:20";

struct Run<'a> {
    recorded: &'a Recorded,
    options: &'a SearchOptions,
    survey: &'a Survey,
    fake: Fake,
}

impl Run<'_> {
    fn with(&self, journal: Option<&Journal>, budget: Budget<'_>) -> Found {
        let search = Search { journal, budget, ..Search::new(&self.recorded.reader, self.survey, self.options) };
        search.run(&mut [self.fake.clone()]).unwrap()
    }

    fn journal(&self, name: &str) -> Journal {
        Journal::open(&self.recorded.path(name), &self.recorded.reader, self.options).unwrap()
    }
}

#[test]
fn a_search_stopped_again_and_again_finds_what_one_finds_that_was_not() {
    for seed in 0..10 {
        let recorded = random(5000 + seed, 60);
        let options = options(STRATEGIES);
        let survey = survey(&recorded, &options);
        let run = Run { recorded: &recorded, options: &options, survey: &survey, fake: Fake::random(seed) };
        let whole = run.with(None, Budget::default());
        let mut stops = 0;
        let resumed = loop {
            let journal = run.journal("journal");
            // More each time: a point must be finished in one go.
            let states = 20 + 40 * stops;
            let found = run.with(Some(&journal), Budget { states: Some(states), ..Budget::default() });
            if found.coverage.points_finished == found.coverage.points_wanted {
                break found;
            }
            assert!(!found.coverage.complete);
            stops += 1;
            if stops % 2 == 0 {
                // As a kill would leave it.
                let path = recorded.path("journal");
                let bytes = fs::read(&path).unwrap();
                fs::write(&path, &bytes[..bytes.len() - 7]).unwrap();
            }
        };
        assert!(stops > 2, "it was never stopped");
        assert_same(&whole.points, &resumed.points, &format!("trace {seed}"));
        let mut coverage = resumed.coverage;
        (coverage.recovery_runs, coverage.runs_saved) = (whole.coverage.recovery_runs, whole.coverage.runs_saved);
        assert_eq!(coverage, whole.coverage);
        // Nothing is left to do.
        let again = run.with(Some(&run.journal("journal")), Budget { states: Some(0), ..Budget::default() });
        assert_same(&whole.points, &again.points, "read back");
        let read = Journal::read_all(&[recorded.path("journal")], &recorded.reader, &options).unwrap();
        assert_same(&whole.points, &merge(read), "read back from the file alone");
    }
}

#[test]
fn stopped_from_outside_and_by_runs() {
    let recorded = random(6000, 60);
    let options = options(STRATEGIES);
    let survey = survey(&recorded, &options);
    let run = Run { recorded: &recorded, options: &options, survey: &survey, fake: Fake::random(5) };
    let stop = AtomicBool::new(true);
    let found = run.with(None, Budget { stop: Some(&stop), ..Budget::default() });
    assert_eq!((found.points.len(), found.coverage.complete), (0, false));
    assert!(found.coverage.points_wanted > 10);
    let found = run.with(None, Budget { runs: Some(3), ..Budget::default() });
    assert_eq!(found.coverage.recovery_runs, 3);
    // Set while it runs: the point that is being judged is begun, not finished.
    let stop = AtomicBool::new(false);
    let search = Search {
        budget: Budget { stop: Some(&stop), ..Budget::default() },
        on_progress: &|progress| stop.store(progress.recovery_runs >= 5, Ordering::Relaxed),
        ..Search::new(&recorded.reader, &survey, &options)
    };
    let found = search.run(&mut [run.fake.clone()]).unwrap();
    assert_eq!(found.coverage.recovery_runs, 5);
    assert!(found.coverage.points_finished < found.coverage.points_wanted);
}

#[test]
fn a_journal_of_something_else_is_refused() {
    let (recorded, other) = (random(6001, 40), random(6002, 40));
    let options = options("program-order");
    let survey = survey(&recorded, &options);
    let run = Run { recorded: &recorded, options: &options, survey: &survey, fake: Fake::random(1) };
    let path = recorded.path("journal");
    run.with(Some(&run.journal("journal")), Budget::default());
    let before = fs::read(&path).unwrap();

    let open = |reader, options: &SearchOptions| Journal::open(&path, reader, options).unwrap_err();
    assert!(matches!(open(&other.reader, &options), JournalError::OtherTrace { .. }));
    let mut changed = [(); 4].map(|()| options.clone());
    changed[0].rules.fences = persistency::model::Fences::Strict;
    changed[1].selection.occurrences = Some(7);
    changed[2].strategies = crash::strategy::StrategySpec::list("visible").unwrap();
    changed[3].recovery = "sh -c true".into();
    for (options, what) in changed.iter().zip(["model or fences", "crash points", "strategies", "recovery or oracles"])
    {
        let error = open(&recorded.reader, options).to_string();
        assert!(error.contains(&format!("its {what} differ")), "{error}");
    }
    // It was not touched, and can still be used.
    assert_eq!(fs::read(&path).unwrap(), before);

    for content in ["my notes", "my notes\n", "{\"fencepost_journal\":1}\n"] {
        fs::write(&path, content).unwrap();
        let error = open(&recorded.reader, &options);
        assert!(matches!(error, JournalError::NotAJournal { .. }), "{error}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    let mut damaged = before.clone();
    let second = before.iter().position(|&byte| byte == b'\n').unwrap() + 2;
    damaged[second] = b'}';
    fs::write(&path, damaged).unwrap();
    assert!(matches!(open(&recorded.reader, &options), JournalError::Damaged { line: 2, .. }));
    // A kill may leave half a header.
    fs::write(&path, &before[..20]).unwrap();
    assert_eq!(run.journal("journal").outcomes(), []);
    assert_eq!(fs::read(&path).unwrap()[..20], before[..20]);
}
