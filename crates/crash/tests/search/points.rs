//! Where crash points are, which are alike, and which are left out.

use crash::points::{Density, PointKind};
use crash::rounds::{Round, Selection, Shard};
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use crash::view::everything_of;
use crash::walk::{Rules, Walk};
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use trace::EventKind::*;
use trace::*;

use crate::traces::{Recorded, Recording, place, record};

fn store(recording: &mut Recording) {
    recording.push(0, 0, Store { place: place(0, 0), kind: StoreKind::Plain, bytes: &[1; 8] });
}

fn flush(recording: &mut Recording, site: u64) {
    recording.push(0, site, Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(place(0, 0)) });
}

fn fence(recording: &mut Recording, site: u64) {
    recording.push(0, site, Fence { kind: FenceKind::Sfence });
}

fn points(recorded: &Recorded, density: Density) -> Vec<(u64, PointKind)> {
    let survey = Survey::of(&recorded.reader, density, &|_, _| false).unwrap();
    survey.points().map(|(point, _)| (point.at.0, point.key.kind)).collect()
}

#[test]
fn a_point_lies_before_what_could_settle_a_store() {
    let recorded = record(|r| {
        fence(r, 0); // 0: nothing stored yet
        store(r);
        r.push(0, 0, Flush { kind: FlushKind::Clwb, target: FlushTarget::Volatile(64) });
        r.push(0, 0, Flush { kind: FlushKind::Cldemote, target: FlushTarget::Pool(place(0, 0)) });
        flush(r, 0); // 4
        fence(r, 0); // 5: nothing new
        r.push(0, 0, OperationEnd { index: 0 }); // 6: but more is guaranteed
        r.push(0, 0, OperationBegin { index: 1 }); // 7: nothing happened in between
        r.push(0, 0, Rmw { place: place(0, 0), old: &[0; 8], new: &[1; 8] }); // 8: nothing before it
        r.push(0, 0, Rmw { place: place(0, 0), old: &[1; 8], new: &[2; 8] }); // 9: but itself
        r.push(0, 0, Fsync { pool: PoolId(0), data_only: true }); // 10
        r.push(0, 0, Resize { pool: PoolId(0), len: 8192 }); // 11
        r.push(0, 0, FileZero { place: place(0, 0), len: 64 }); // 12
        r.push(0, 0, KernelWrite { place: place(0, 0), bytes: &[1] });
        r.push(0, 0, ThreadEnd); // 14
        r.push(0, 0, FileWrite { place: place(0, 0), bytes: &[1] });
        r.push(0, 0, ProcessExit { status: ExitStatus::Code(0) }); // 16
        store(r);
    });
    use PointKind::{
        EndOfTrace, File, OperationEnd as End, ProcessExit as Exit, Rmw as Locked, Sync, ThreadEnd as Gone,
    };
    let expected = [
        (4, PointKind::Flush),
        (6, End),
        (9, Locked),
        (10, Sync),
        (12, File),
        (14, Gone),
        (16, Exit),
        (18, EndOfTrace),
    ];
    assert_eq!(points(&recorded, Density::Fences), expected);
}

#[test]
fn points_after_stores_replace_those_before_fences() {
    let recorded = record(|r| {
        store(r);
        store(r);
        flush(r, 0);
        store(r);
        fence(r, 0);
        r.push(0, 0, Fence { kind: FenceKind::Sfence });
    });
    let stores = points(&recorded, Density::Stores);
    let after = PointKind::AfterStore;
    assert_eq!(stores, [(0, PointKind::FirstStore), (1, after), (2, after), (4, after)]);
    assert_eq!(points(&recorded, Density::Fences), [(2, PointKind::Flush), (4, PointKind::Fence)]);
}

/// Twenty times at one site, five at another, once at a third.
fn repeated() -> Recorded {
    record(|r| {
        for (times, site) in [(20, 0), (5, 1), (1, 2)] {
            for _ in 0..times {
                store(r);
                flush(r, site);
            }
        }
    })
}

#[test]
fn rounds_take_the_first_occurrences_first() {
    let recorded = repeated();
    let survey = Survey::of(&recorded.reader, Density::Fences, &|_, _| false).unwrap();
    assert_eq!((survey.len(), survey.failure_points().len()), (26, 3));
    let sizes = |selection: Selection| -> Vec<(u32, u64)> {
        let rounds = selection.rounds(&survey, Shard::WHOLE);
        for &(round, count) in &rounds {
            let picks = selection.picks(&survey, Shard::WHOLE, &(round..=round));
            assert_eq!(picks.len() as u64, count);
            assert!(picks.is_sorted());
            assert!(picks.iter().all(|&pick| survey.points().any(|(point, _)| point == survey.point(pick))));
        }
        rounds.iter().map(|&(Round(round), count)| (round, count)).collect()
    };
    let all = Selection::default();
    assert_eq!(sizes(all), [(0, 3), (1, 6), (2, 13), (3, 4)]);
    assert_eq!(sizes(Selection { every: true, ..all }), [(0, 26)]);
    assert_eq!(sizes(Selection { occurrences: Some(1), ..all }), [(0, 3)]);
    assert_eq!(sizes(Selection { occurrences: Some(3), ..all }), [(0, 3), (1, 4)]);
    // The first flush is event 1.
    assert_eq!(sizes(Selection { to: Some(EventId(3)), ..all }), [(0, 1), (1, 1)]);
    assert_eq!(sizes(Selection { from: Some(EventId(51)), ..all }), [(0, 1)]);
    let picks = all.picks(&survey, Shard::WHOLE, &(Round(1)..=Round(1)));
    let mut occurrences: Vec<u64> = picks.iter().map(|pick| pick.occurrence).collect();
    occurrences.sort_unstable();
    assert_eq!(occurrences, [2, 2, 3, 3, 4, 4]);
}

#[test]
fn points_in_the_creation_of_a_pool_are_counted_apart() {
    let recorded = repeated();
    let creator = recorded.reader.tables().contexts.len() as u32 - 3;
    let asked = std::cell::Cell::new(0);
    let is_creation = |context: ContextId, _: CodeAddr| {
        asked.set(asked.get() + 1);
        context == ContextId(creator)
    };
    let survey = Survey::of(&recorded.reader, Density::Fences, &is_creation).unwrap();
    assert_eq!(asked.get(), 3, "once per failure point");
    assert_eq!(survey.creation_points(), 5);
    let count = |creation| {
        let selection = Selection { creation, every: true, ..Selection::default() };
        selection.rounds(&survey, Shard::WHOLE).iter().map(|(_, count)| count).sum::<u64>()
    };
    assert_eq!((count(false), count(true)), (21, 26));
}

#[test]
fn few_lines_begin_with_the_lines_that_were_stored_to_last() {
    let recorded = record(|r| {
        for line in [5u64, 1, 9] {
            r.push(0, 0, Store { place: place(0, 64 * line), kind: StoreKind::Plain, bytes: &[7; 8] });
        }
    });
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(EventId(3)).unwrap();
    let view = walk.view();
    let mut strategy = "few-lines:2".parse::<StrategySpec>().unwrap().start(&view, 0);
    let states: Vec<_> = std::iter::from_fn(|| strategy.next(&view)).collect();
    let lines = |state: &CrashState| -> Vec<u64> { state.lines.iter().map(|(id, _)| id.line.0).collect() };
    let chosen: Vec<(Base, Vec<u64>)> = states.iter().map(|state| (state.base, lines(state))).collect();
    use Base::{Everything, Guaranteed};
    let expected = [vec![], vec![9], vec![1], vec![5], vec![1, 9], vec![5, 9], vec![1, 5]];
    let (ones, twos) = (&expected[1..4], &expected[4..]);
    let both = |sets: &[Vec<u64>]| {
        [Guaranteed, Everything]
            .map(|base| sets.iter().map(move |set| (base, set.clone())).collect::<Vec<_>>())
            .concat()
    };
    assert_eq!(chosen, [both(&expected[..1]), both(ones), both(twos)].concat());
    let keys: std::collections::HashSet<_> = states.iter().map(|state| view.key(state)).collect();
    // One line more than nothing is two less than everything: eight subsets of three lines.
    assert_eq!((states.len(), keys.len()), (14, 8));
}

/// Eight lines of a sector are one: all of their stores, or none.
#[test]
fn few_sectors_are_whole() {
    let recorded = record(|r| {
        // Two lines of sector 0, one of them twice; one of sector 1; one of sector 3.
        for line in [1u64, 7, 1, 8, 24] {
            r.push(0, 0, Store { place: place(0, 64 * line), kind: StoreKind::NonTemporal, bytes: &[line as u8; 8] });
        }
    });
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(EventId(5)).unwrap();
    let view = walk.view();
    let mut strategy = "few-sectors:1".parse::<StrategySpec>().unwrap().start(&view, 0);
    let states: Vec<_> = std::iter::from_fn(|| strategy.next(&view)).collect();
    let is_whole = |state: &CrashState, sector: u64| {
        let of_sector = view.lines().iter().filter(|line| line.id().line.0 / 8 == sector);
        let there: Vec<bool> = of_sector
            .map(|line| match state.content(line) {
                content if content == everything_of(line) => true,
                content => {
                    assert_eq!(content, Content::default(), "a part of a line");
                    false
                }
            })
            .collect();
        there.windows(2).all(|two| two[0] == two[1])
    };
    assert!(states.iter().all(|state| [0, 1, 3].into_iter().all(|sector| is_whole(state, sector))));
    let keys: std::collections::HashSet<_> = states.iter().map(|state| view.key(state)).collect();
    // Nothing, everything, one sector more than nothing, one less than everything.
    assert_eq!((states.len(), keys.len()), (8, 8));
}
