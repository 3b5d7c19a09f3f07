//! Points that are judged elsewhere have the outcomes that they have here.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crash::chosen::Chosen;
use crash::elsewhere::{PointsDone, PointsUnit, Station, StationWorker};
use crash::journal::JournalError;
use crash::read_tree::KnownRuns;
use crash::search::Search;
use fleet::dispatch::{Dispatch, Fate, SetAside, Watch};

use crate::equivalence::{options, search, survey};
use crate::joining::assert_same;
use crate::recoveries::Fake;
use crate::traces::random;

const STRATEGIES: &str = "program-order,guaranteed-only,few-lines:2:40,visible:20";

/// Machines that take turns. Everything goes through the form in which it is sent.
struct Machines<'s> {
    search: Search<'s>,
    stations: Vec<(Station, StationWorker<'s, Fake>)>,
    exchange: bool,
    /// The number of a unit that nobody can perform.
    broken: Option<usize>,
}

impl<'s> Machines<'s> {
    fn new(search: &Search<'s>, fake: &Fake, count: usize, exchange: bool) -> Machines<'s> {
        let chosen = Arc::new(Chosen::default());
        let station =
            || (Station::new(true), StationWorker::new(search, &chosen, fake.clone()).expect("the trace can be read"));
        Machines { search: search.clone(), stations: (0..count).map(|_| station()).collect(), exchange, broken: None }
    }
}

fn sent<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T) -> T {
    serde_json::from_slice(&serde_json::to_vec(value).unwrap()).unwrap()
}

impl Dispatch<PointsUnit, PointsDone> for Machines<'_> {
    type Error = JournalError;

    fn dispatch(
        &mut self,
        units: &[PointsUnit],
        watch: &Watch<'_, PointsDone, JournalError>,
    ) -> Result<(), JournalError> {
        let count = self.stations.len();
        // The last ones first: results come in any order.
        for (number, unit) in units.iter().enumerate().rev() {
            if self.broken == Some(number) {
                (watch.take)(number, Fate::SetAside(SetAside { lost: 3, failures: Vec::new() }))?;
                continue;
            }
            let (station, worker) = &mut self.stations[number % count];
            let performed = worker.perform(&self.search, station, &sent(unit), &AtomicBool::new(false));
            let (done, exchanged, is_partial) = performed.unwrap();
            assert!(!is_partial);
            if let Some(runs) = exchanged.filter(|_| self.exchange) {
                let runs: KnownRuns = sent(&runs);
                self.stations.iter().for_each(|(station, _)| station.learn(&runs));
            }
            (watch.take)(number, Fate::Done(sent(&done)))?;
        }
        Ok(())
    }
}

#[test]
fn machines_find_what_one_finds_and_save_each_other_runs() {
    let (mut apart, mut together) = (0, 0);
    for seed in 0..20 {
        let recorded = random(7000 + seed, 60);
        let options = options(STRATEGIES);
        let fake = Fake::random(seed);
        let here = search(&recorded, &options, true, &mut [fake.clone()]);
        let survey = survey(&recorded, &options);
        let elsewhere = Search::new(&recorded.reader, &survey, &options);
        for (count, exchange) in [(1, false), (3, false), (3, true)] {
            let mut machines = Machines::new(&elsewhere, &fake, count, exchange);
            let (found, unjudged) = elsewhere.run_elsewhere(&mut machines, None).unwrap();
            assert_same(&here.points, &found.points, &format!("trace {seed}, {count} machines"));
            assert_eq!((unjudged.len(), found.contradiction), (0, None));
            let runs = found.coverage.recovery_runs;
            match (count, exchange) {
                (3, true) => together += runs,
                (3, false) => apart += runs,
                _ => {}
            }
        }
    }
    assert!(together < apart, "{together} runs with exchange, {apart} without");
}

#[test]
fn what_nobody_can_judge_is_told() {
    let recorded = random(7100, 60);
    let options = options(STRATEGIES);
    let survey = survey(&recorded, &options);
    let elsewhere = Search::new(&recorded.reader, &survey, &options);
    let mut machines = Machines::new(&elsewhere, &Fake::random(1), 2, true);
    machines.broken = Some(0);
    let (found, unjudged) = elsewhere.run_elsewhere(&mut machines, None).unwrap();
    assert_eq!(unjudged.len(), 1);
    assert!(unjudged[0].points > 0 && unjudged[0].why.lost == 3);
    assert!(!found.coverage.complete);
}
