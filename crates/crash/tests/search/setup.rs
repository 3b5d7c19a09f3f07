//! Crashes in the set-up get a tenth of the time: where it has a bug, nearly everything fails for that one reason.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crash::search::{Budget, Search};
use trace::event::EventId;

use crate::equivalence::{options, search, survey};
use crate::recoveries::{Fake, exits};
use crate::traces::random;

const TIME: Duration = Duration::from_millis(1500);

#[test]
fn a_set_up_leaves_its_time_to_the_operations() {
    let recorded = random(7700, 200);
    let options = options("program-order,guaranteed-only,visible:12");
    let points = search(&recorded, &options, false, &mut [Fake::new(|_| exits(1))]).points;
    let setup_end = points[points.len() * 2 / 3].point.at;
    let all: u64 = points.iter().map(|outcome| outcome.runs).sum();
    let survey = survey(&recorded, &options);
    // Slow enough for the time to be over long before everything is decided.
    let each = TIME * 2 / all as u32;
    let runs = |known: Option<EventId>| {
        let slow = Fake::new(move |_| {
            sleep(each);
            exits(1)
        });
        let budget = Budget { deadline: Some(Instant::now() + TIME), ..Budget::default() };
        let whole = Search::new(&recorded.reader, &survey, &options);
        let found = Search { equivalence: false, setup_end: known, budget, ..whole }.run(&mut [slow]).unwrap();
        let (setup, operations): (Vec<_>, Vec<_>) =
            found.points.iter().partition(|outcome| outcome.point.at < setup_end);
        let sum =
            |outcomes: Vec<&crash::outcome::PointOutcome>| outcomes.iter().map(|outcome| outcome.runs).sum::<u64>();
        (sum(setup), sum(operations))
    };
    let (setup, operations) = runs(Some(setup_end));
    assert!(setup > 0 && setup * 2 < operations, "{setup} in the set-up, {operations} in the operations");
    // Where nobody knows that it is one, it has what its place in the trace gives it.
    let (first, last) = runs(None);
    assert!(first > last, "{first} in the first two thirds, {last} in the last");
}
