//! Altered messages between the machines of a search: they are refused, or do no harm.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crash::chosen::Chosen;
use crash::elsewhere::{PointsDone, PointsUnit, Station, StationWorker};
use crash::journal::JournalError;
use crash::read_tree::{KnownRuns, ReadTree, ReadTreeLimits};
use crash::search::{Search, SearchOptions};
use crash::survey::{Pick, Survey};
use fleet::dispatch::{Dispatch, Fate, Watch};
use parser_tests::hammer::hammer;
use serde::Serialize;

use crate::equivalence::{options, survey};
use crate::recoveries::Fake;
use crate::traces::{Recorded, random};

/// A search with few states: there are many messages to try.
struct Small {
    recorded: Recorded,
    options: SearchOptions,
    survey: Survey,
    fake: Fake,
}

impl Small {
    fn new() -> Small {
        let recorded = random(7200, 30);
        let options = options("program-order,guaranteed-only,few-lines:1:8");
        let survey = survey(&recorded, &options);
        Small { recorded, options, survey, fake: Fake::random(2) }
    }

    fn search(&self) -> Search<'_> {
        Search::new(&self.recorded.reader, &self.survey, &self.options)
    }

    fn worker(&self) -> StationWorker<'_, Fake> {
        let chosen = Arc::new(Chosen::default());
        StationWorker::new(&self.search(), &chosen, self.fake.clone()).expect("the trace can be read")
    }

    /// Everything that is sent if nothing goes wrong.
    fn messages(&self) -> Messages {
        let mut machine = Machine { small: self, messages: Messages::default() };
        self.search().run_elsewhere(&mut machine, None).expect("all points are judged");
        let Messages { units, results, runs } = &machine.messages;
        assert!(!units.is_empty() && !results.is_empty() && !runs.is_empty());
        machine.messages
    }
}

#[derive(Default)]
struct Messages {
    units: Vec<Vec<u8>>,
    results: Vec<Vec<u8>>,
    runs: Vec<Vec<u8>>,
}

fn sent(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data has a form in JSON")
}

/// Performs units, and keeps what was sent.
struct Machine<'s> {
    small: &'s Small,
    messages: Messages,
}

impl Dispatch<PointsUnit, PointsDone> for Machine<'_> {
    type Error = JournalError;

    fn dispatch(
        &mut self,
        units: &[PointsUnit],
        watch: &Watch<'_, PointsDone, JournalError>,
    ) -> Result<(), JournalError> {
        let (station, mut worker) = (Station::new(true), self.small.worker());
        for (number, unit) in units.iter().enumerate() {
            let performed = worker.perform(&self.small.search(), &station, unit, &AtomicBool::new(false));
            let (done, runs, _) = performed.expect("a right unit");
            self.messages.units.push(sent(unit));
            self.messages.results.push(sent(&done));
            self.messages.runs.extend(runs.map(|runs| sent(&runs)));
            (watch.take)(number, Fate::Done(done))?;
        }
        Ok(())
    }
}

/// Sends this result for every unit.
struct Answer(PointsDone);

impl Dispatch<PointsUnit, PointsDone> for Answer {
    type Error = JournalError;

    fn dispatch(
        &mut self,
        units: &[PointsUnit],
        watch: &Watch<'_, PointsDone, JournalError>,
    ) -> Result<(), JournalError> {
        (0..units.len()).try_for_each(|number| (watch.take)(number, Fate::Done(self.0.clone())))
    }
}

#[test]
fn altered_units() {
    let small = Small::new();
    let (station, worker) = (Station::new(true), RefCell::new(small.worker()));
    hammer("points-unit", &small.messages().units, &|input| {
        let Ok(unit) = serde_json::from_slice::<PointsUnit>(input) else { return };
        // Others are right as well, but may take long.
        let is_known = |strategy| small.options.strategies.contains(strategy);
        if unit.strategies.iter().chain(&unit.earlier).all(is_known) {
            let _ = worker.borrow_mut().perform(&small.search(), &station, &unit, &AtomicBool::new(false));
        }
    });
}

/// Only outcomes of the points that were asked for are taken.
#[test]
fn altered_results() {
    let small = Small::new();
    let is_right = |index, occurrence, point| {
        index < small.survey.len() && small.survey.point(Pick { index, occurrence }) == point
    };
    hammer("points-done", &small.messages().results, &|input| {
        let Ok(done) = serde_json::from_slice::<PointsDone>(input) else { return };
        let (found, _) = small.search().run_elsewhere(&mut Answer(done), None).expect("nothing is written");
        for outcome in &found.points {
            assert!(is_right(outcome.point.index, outcome.point.occurrence, outcome.point), "{outcome:?}");
        }
    });
}

#[test]
fn altered_runs() {
    let small = Small::new();
    let messages = small.messages();
    let unit: PointsUnit = serde_json::from_slice(&messages.units[0]).expect("a unit");
    hammer("known-runs", &messages.runs, &|input| {
        let Ok(runs) = serde_json::from_slice::<KnownRuns>(input) else { return };
        let _ = ReadTree::sharing(ReadTreeLimits::default()).learn(&runs);
        let station = Station::new(true);
        station.learn(&runs);
        let _ = small.worker().perform(&small.search(), &station, &unit, &AtomicBool::new(false));
    });
}
