//! What is concluded from reads is what runs would have shown, and *visible* leaves nothing out.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crash::points::Density;
use crash::read_tree::{Inserted, ReadTree, ReadTreeCache};
use crash::rounds::Selection;
use crash::search::{Found, Search, SearchOptions};
use crash::strategy::{Reach, StrategySpec};
use crash::survey::Survey;
use crash::view::PointView;
use crash::walk::{Rules, Walk};
use persistency::line::LineId;
use persistency::states::{Base, CrashState};
use trace::{EventKind, LineNo, PoolId, StoreKind};
use verdict::contradiction::Contradiction;
use verdict::read::Read;
use verdict::verdict::Verdict;

use crate::recoveries::{Fake, Sight, exits};
use crate::traces::{Recorded, place, random, random_with, record, traces};

pub fn options(strategies: &str) -> SearchOptions {
    let selection = Selection { every: true, density: Density::Stores, ..Selection::default() };
    SearchOptions { selection, strategies: StrategySpec::list(strategies).unwrap(), ..SearchOptions::default() }
}

pub fn survey(recorded: &Recorded, options: &SearchOptions) -> Survey {
    Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap()
}

pub fn search(recorded: &Recorded, options: &SearchOptions, equivalence: bool, workers: &mut [Fake]) -> Found {
    let survey = survey(recorded, options);
    Search { equivalence, ..Search::new(&recorded.reader, &survey, options) }.run(workers).unwrap()
}

#[test]
fn concluded_verdicts_are_those_of_runs() {
    let (mut runs, mut saved, mut failing) = (0, 0, 0);
    for seed in traces(240) {
        let recorded = random(1000 + seed, 40);
        let options = options("program-order,guaranteed-only,few-lines:2:60,torn:20,random:3:10,visible:50");
        let fake = if seed % 8 == 0 { Fake::scanning(seed) } else { Fake::random(seed) };
        let all = search(&recorded, &options, false, &mut [fake.clone()]);
        let some = search(&recorded, &options, true, &mut [fake]);
        assert_eq!(some.contradiction, None);
        assert_eq!(all.points.len(), some.points.len());
        for (one, other) in all.points.iter().zip(&some.points) {
            assert!(one.agrees(other), "trace {seed}:\n{one:#?}\n{other:#?}");
            assert_eq!(one.saved, 0);
            assert!(one.finished && one.decided() <= one.runs);
        }
        assert!(some.coverage.recovery_runs <= all.coverage.recovery_runs);
        let coverage = &some.coverage;
        assert_eq!(coverage.recovery_runs + coverage.runs_saved, coverage.states_decided, "trace {seed}");
        runs += some.coverage.recovery_runs;
        saved += some.coverage.runs_saved;
        failing += some.coverage.states_failing;
    }
    assert!(saved > 5 * runs && failing > 300, "{runs} runs, {saved} saved, {failing} failing: too tame");
}

/// What recovery would see in each of the states of a point, tried one by one; none if there are too many.
fn all_sights(recorded: &Recorded, at: trace::EventId, fake: &Fake) -> Option<(BTreeSet<Sight>, u64)> {
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(at).unwrap();
    let view = walk.view();
    if view.crash_point().torn_state_count().unwrap() > 2000u32.into() {
        return None;
    }
    let states = all_states(&view);
    let looks: Vec<_> = states.iter().map(|state| fake.look(&view.image(state).unwrap())).collect();
    let mut read_tree = BTreeSet::new();
    let failing = looks.iter().filter(|(verdict, sight)| read_tree.insert(sight.clone()) && !verdict.is_pass()).count();
    Some((read_tree, failing as u64))
}

/// Every content of every line.
fn all_states(view: &PointView<'_>) -> Vec<CrashState> {
    let mut states = vec![Vec::new()];
    for line in view.lines() {
        let contents: Vec<_> = line.contents().unwrap().collect();
        let with = |state: &Vec<_>, content| [&state[..], &[(line.id(), content)]].concat();
        states = states.iter().flat_map(|state| contents.iter().map(move |&content| with(state, content))).collect();
    }
    states.into_iter().map(|lines| CrashState { base: Base::Guaranteed, lines }).collect()
}

#[test]
fn visible_tries_each_distinguishable_state_once() {
    let mut most = 0;
    for seed in traces(400) {
        let lens: &[u64] = if seed % 8 == 0 { &[8, 16, 24, 64, 72] } else { &[1, 4, 8, 8, 8, 16] };
        let recorded = random_with(2000 + seed, 25, lens);
        let options = options("torn:5000");
        let survey = survey(&recorded, &options);
        let sights: Arc<Mutex<BTreeSet<Sight>>> = Arc::default();
        let mut fake = Fake::random(seed);
        for (point, _) in survey.points() {
            let Some((expected, failing)) = all_sights(&recorded, point.at, &fake) else { continue };
            let mut one = options.clone();
            (one.selection.from, one.selection.to) = (Some(point.at), Some(point.at));
            sights.lock().unwrap().clear();
            fake.sights = Some(Arc::clone(&sights));
            let search = Search { equivalence: false, ..Search::new(&recorded.reader, &survey, &one) };
            let found = search.run(&mut [fake.clone()]).unwrap();
            let outcome = found.points.iter().find(|outcome| outcome.point == point).unwrap();
            let here = found.points.len() as u64;
            assert_eq!(*sights.lock().unwrap(), expected, "trace {seed}, {point:?}");
            assert_eq!(outcome.strategies[0].reach, Reach::Distinguishable);
            assert_eq!(outcome.decided(), expected.len() as u64, "trace {seed}, {point:?}, {here} points");
            assert_eq!(outcome.failing_states(), failing);
            most = most.max(expected.len());
        }
    }
    assert!(most > 20, "at most {most} states to tell apart: too tame");
}

#[test]
fn a_limit_is_kept_and_said() {
    let recorded = random(77, 60);
    let found = search(&recorded, &options("visible:3"), false, &mut [Fake::random(8)]);
    let capped: Vec<_> = found.points.iter().filter(|outcome| outcome.strategies[0].reach == Reach::Capped).collect();
    // A quarter of three is no state with a cut.
    assert!(!capped.is_empty() && capped.iter().all(|outcome| outcome.runs <= 3));
    assert!(capped.iter().any(|outcome| outcome.runs == 3));
    assert_eq!(found.coverage.points_capped, capped.len() as u64);
    assert!(!found.coverage.complete && !found.coverage.exhaustive);
    let recorded = random_with(77, 60, &[1, 4, 8]);
    let whole = search(&recorded, &options("visible"), true, &mut [Fake::random(8)]);
    assert!(whole.coverage.complete && !whole.coverage.exhaustive);
    assert!(whole.points.iter().all(|outcome| outcome.strategies[0].reach == Reach::Distinguishable));
    // Where a state fails, others may be hidden behind it.
    let masked = whole.points.iter().filter(|outcome| outcome.is_masked()).count() as u64;
    assert!(masked > 0 && whole.coverage.points_distinguished == whole.coverage.points_wanted - masked);
    let passing = search(
        &recorded,
        &options("visible"),
        true,
        &mut [Fake::new(|image| {
            image.line(0, 1);
            Verdict::Pass
        })],
    );
    assert!(passing.coverage.exhaustive);
    // Strategies that are through with what they stand for have not decided everything.
    let some = search(&recorded, &options("program-order,few-lines:2"), true, &mut [Fake::random(8)]);
    assert!(some.coverage.complete && !some.coverage.exhaustive);
}

#[test]
fn without_reads_all_states_are_tried() {
    let recorded = random_with(78, 20, &[1, 8, 8, 16]);
    let mut silent = [Fake::random(8).silent()];
    let found = search(&recorded, &options("visible"), true, &mut silent);
    assert_eq!(found.coverage.runs_saved, 0);
    for outcome in &found.points {
        assert_eq!(outcome.strategies[0].reach, Reach::Distinguishable);
        let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
        walk.advance_to(outcome.point.at).unwrap();
        let view = walk.view();
        // States with equal bytes are one.
        let different: HashSet<_> = all_states(&view).iter().map(|state| view.key(state)).collect();
        assert_eq!(outcome.decided(), different.len() as u64);
    }
    let capped = search(&recorded, &options("visible:3"), true, &mut silent);
    let reaches: Vec<_> = capped.points.iter().map(|outcome| outcome.strategies[0].reach).collect();
    assert!(reaches.contains(&Reach::CappedWithoutReads) && !reaches.contains(&Reach::Capped));
}

#[test]
fn recoveries_that_are_not_deterministic_are_noticed_and_all_run() {
    let recorded = random(79, 60);
    let options = options("few-lines:2:50");
    let turns = AtomicU64::new(0);
    let moody = Fake::new(move |image| {
        image.line(0, 0);
        image.line(0, 1 + turns.fetch_add(1, Ordering::Relaxed) % 2);
        Verdict::Pass
    });
    let found = search(&recorded, &options, true, &mut [moody]);
    let told = found.contradiction.expect("noticed");
    assert!(matches!(told, Contradiction::Reads { after: 3, one: Some(_), other: Some(_) }), "{told:?}");
    // The first runs agree by chance, or read what no later state has; from the contradiction on all are run.
    assert!(found.coverage.recovery_runs > 200, "{:?}", found.coverage);
    assert!(!found.coverage.exhaustive && found.coverage.points_distinguished == 0);

    let turns = AtomicU64::new(0);
    let fickle = Fake::new(move |image| {
        image.line(0, 63);
        let first = turns.fetch_add(1, Ordering::Relaxed) == 0;
        if first { Verdict::Pass } else { exits(1) }
    });
    let found = search(&recorded, &options, false, &mut [fickle]);
    let told = Contradiction::Verdicts { one: Verdict::Pass, other: exits(1) };
    assert_eq!(found.contradiction, Some(told), "equal images are run again");
}

/// Two workers at the same point, neither of which knows what the other has just inserted.
#[test]
fn what_one_worker_learns_serves_the_other() {
    let recorded = record(|r| {
        r.push(0, 0, EventKind::Store { place: place(0, 0), kind: StoreKind::Plain, bytes: &[1; 8] });
    });
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(trace::EventId(1)).unwrap();
    let view = walk.view();
    let state = |base| CrashState { base, lines: Vec::new() };
    let (with, without) = (state(Base::Everything), state(Base::Guaranteed));
    let read = |line| Read::Line(LineId { pool: PoolId(0), line: LineNo(line) });
    let mut read_tree = ReadTree::default();
    let (mut one, mut other) = (ReadTreeCache::default(), ReadTreeCache::default());
    one.arrive(&read_tree, &view);
    other.arrive(&read_tree, &view);
    let bad = exits(1);
    assert_eq!(read_tree.insert(&mut one, &view, &with, &[read(0), read(5), read(6)], &bad), Ok(Inserted::New));
    assert!(read_tree.insert(&mut other, &view, &without, &[read(7), read(0)], &Verdict::Pass).is_err());
    assert_eq!(read_tree.insert(&mut other, &view, &without, &[read(0), read(9)], &Verdict::Pass), Ok(Inserted::New));
    for cache in [&mut one, &mut other] {
        let decided = [&with, &without].map(|state| read_tree.lookup(cache, &view, state).unwrap());
        assert_eq!([&decided[0].verdict, &decided[1].verdict], [&bad, &Verdict::Pass]);
        let dirty = [LineId { pool: PoolId(0), line: LineNo(0) }];
        assert!(decided.iter().all(|decided| decided.dirty_reads == dirty));
    }
    assert_eq!(read_tree.insert(&mut one, &view, &without, &[read(0), read(9)], &Verdict::Pass), Ok(Inserted::Known));
    let again = read_tree.insert(&mut one, &view, &with, &[read(0), read(5), read(6)], &Verdict::Pass);
    assert!(matches!(again, Err(Contradiction::Verdicts { .. })));
    let shorter = read_tree.insert(&mut one, &view, &with, &[read(0), read(5)], &bad);
    assert!(matches!(shorter, Err(Contradiction::Reads { after: 4, .. })), "{shorter:?}");
    let longer = read_tree.insert(&mut one, &view, &without, &[read(0), read(9), read(3)], &Verdict::Pass);
    assert!(matches!(longer, Err(Contradiction::Reads { after: 4, .. })), "{longer:?}");
}
