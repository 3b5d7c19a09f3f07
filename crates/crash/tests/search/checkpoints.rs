//! Walks that begin at a checkpoint are those that began at the beginning.

use std::sync::Arc;

use crash::assignment::Assignment;
use crash::assumed::{AssumedRepairs, Durable};
use crash::changes::ChangeCursor;
use crash::checkpoints::{Checkpoints, PlainWalks};
use crash::walk::{Rules, Walk};
use persistency::line::LineId;
use persistency::model::{Fences, ModelKind};
use persistency::point::LineView;
use trace::*;

use crate::traces::{Recorded, Rng, place, random, record};

/// All that is pending on a line. Places of stores in it are counted anew in a copy.
fn pending(line: &LineView<'_>) -> impl PartialEq + std::fmt::Debug + use<> {
    let stores = line.stores().iter();
    let store = |store: &persistency::domain::PendingStore| {
        (store.event, store.thread, store.route, store.start, line.bytes(store).unwrap().to_vec())
    };
    let unasked: Vec<EventId> = line.unasked().map(|store| store.event).collect();
    let threads: Vec<ThreadId> = line.asking_threads().collect();
    (line.id(), stores.map(store).collect::<Vec<_>>(), unasked, threads, line.pending())
}

fn asked(walk: &Walk<'_>, thread: u32) -> Vec<impl PartialEq + std::fmt::Debug + use<>> {
    let flushes = walk.tracker().flush_pending(ThreadId(thread));
    let events = |flush: persistency::point::PendingFlush<'_>| {
        let [flushed, streamed]: [Vec<EventId>; 2] =
            [flush.flushed().map(|store| store.event).collect(), flush.streamed().map(|store| store.event).collect()];
        (flush.line.id(), flushed, streamed)
    };
    flushes.into_iter().map(events).collect()
}

fn assert_same(walk: &Walk<'_>, whole: &Walk<'_>, rng: &mut Rng) {
    assert_eq!((walk.at(), walk.fresh_from()), (whole.at(), whole.fresh_from()));
    let (view, expected) = (walk.view(), whole.view());
    let lines = |view: &crash::view::PointView<'_>| view.lines().iter().map(pending).collect::<Vec<_>>();
    assert_eq!(lines(&view), lines(&expected), "at {}", walk.at().0);
    for thread in 0..2 {
        assert_eq!(asked(walk, thread), asked(whole, thread));
    }
    assert_eq!(walk.tracker().dirty_line_count(), whole.tracker().dirty_line_count());
    assert_eq!(walk.guaranteed().at(), whole.guaranteed().at());
    assert_eq!(walk.guaranteed().files().identity(), whole.guaranteed().files().identity());
    for pool in 0..2 {
        let id = PoolId(pool);
        assert_eq!(walk.guaranteed().len(id), whole.guaranteed().len(id));
        assert_eq!(walk.guaranteed().has_appeared(id), whole.guaranteed().has_appeared(id));
        let pages = |walk: &Walk<'_>| {
            let bytes = |(number, page): (u64, &[u8; 4096])| (number, page.to_vec());
            walk.guaranteed().pages(id).map(bytes).filter(|(_, page)| page.iter().any(|byte| *byte != 0)).collect()
        };
        let (own, others): (Vec<_>, Vec<_>) = (pages(walk), pages(whole));
        assert!(own == others, "pool {pool} at {}", walk.at().0);
    }
    // Some state, and what all its lines hold.
    let mut everything = Assignment::everything(&view);
    for (content, line) in everything.0.iter_mut().zip(view.lines()) {
        content.kept = rng.below(line.stores().len() as u64 + 1) as u32;
    }
    let state = everything.state(&view);
    assert_eq!(view.key(&state), expected.key(&state));
    assert_eq!(view.image(&state).unwrap().lines(), expected.image(&state).unwrap().lines());
}

/// Repairs of some of the code.
fn some_repairs(recorded: &Recorded, rng: &mut Rng) -> AssumedRepairs {
    let mut repairs = AssumedRepairs::default();
    let mut events = recorded.reader.events();
    while let Some(event) = events.next().unwrap() {
        if matches!(event.kind, EventKind::Store { .. } | EventKind::Rmw { .. }) && rng.below(60) == 0 {
            repairs.assume(event.pc, event.context, [Durable::Flushed, Durable::Stored][rng.below(2) as usize]);
        }
        if repairs.len() == 2 {
            break;
        }
    }
    repairs
}

#[test]
fn walks_from_checkpoints_are_walks_from_the_beginning() {
    let mut repaired = 0;
    for seed in 0..8 {
        let (mut rng, length) = (Rng(seed ^ 0x5eed), [700, 5_000][seed as usize % 2]);
        let recorded = random(seed, length);
        let reader = &recorded.reader;
        let rules = Rules { model: ModelKind::ALL[seed as usize / 2 % 2], fences: Fences::All };
        // Repairs that are as good as others are the same, whoever holds them; others make all checkpoints void.
        let none: [Arc<AssumedRepairs>; 2] = [Arc::default(), Arc::default()];
        let some = Arc::new(some_repairs(&recorded, &mut rng));
        repaired += some.len();
        for mut checkpoints in [Checkpoints::dense(), Checkpoints::default()] {
            let mut cursor = ChangeCursor::default();
            let mut copy: std::collections::HashMap<LineId, [u8; 64]> = Default::default();
            let mut assumed = &none[0];
            for round in 0..60 {
                if round % 12 == 11 {
                    assumed = [&none[0], &none[1], &some][rng.below(3) as usize];
                }
                let at = EventId(rng.below(length + 20));
                let mut walk = checkpoints.walk_to(reader, rules, assumed, at).unwrap();
                let mut whole = Walk::new(reader, rules).unwrap();
                whole.assume(Arc::clone(assumed));
                whole.advance_to(at).unwrap();
                assert_same(&walk, &whole, &mut rng);
                // Whoever keeps a copy of the image may follow all these walks in turn.
                let changes = walk.guaranteed().changes(&mut cursor);
                let all =
                    (0..2).flat_map(|pool| (0..80).map(move |line| LineId { pool: PoolId(pool), line: LineNo(line) }));
                let changed: Vec<LineId> = if changes.all { all.clone().collect() } else { changes.lines };
                copy.extend(changed.into_iter().map(|id| (id, walk.guaranteed().line(id))));
                for id in all {
                    assert_eq!(copy.get(&id).copied().unwrap_or([0; 64]), whole.guaranteed().line(id), "{id:?}");
                }
                // On from there, and once more from the beginning.
                for further in [rng.below(40), 40 + rng.below(2_000)] {
                    let on = EventId(at.0 + further);
                    walk.advance_to(on).unwrap();
                    whole.advance_to(on).unwrap();
                    assert_same(&walk, &whole, &mut rng);
                }
                if round % 10 == 0 {
                    walk.rewind().unwrap();
                    whole.rewind().unwrap();
                    let on = EventId(rng.below(length));
                    walk.advance_to(on).unwrap();
                    whole.advance_to(on).unwrap();
                    assert_same(&walk, &whole, &mut rng);
                }
            }
        }
    }
    assert!(repaired > 8, "{repaired}");
}

#[test]
fn checkpoints_of_another_trace_or_of_other_rules_are_not_used() {
    let [one, other] = [random(1, 900), random(2, 900)];
    let mut checkpoints = Checkpoints::dense();
    let adr = Rules::default();
    let eadr = Rules { model: ModelKind::X86Eadr, ..adr };
    for (recorded, rules) in [(&one, adr), (&other, adr), (&other, eadr), (&one, adr)] {
        for at in [880, 400] {
            let walk = checkpoints.walk_to(&recorded.reader, rules, &Arc::default(), EventId(at)).unwrap();
            let mut whole = Walk::new(&recorded.reader, rules).unwrap();
            whole.advance_to(EventId(at)).unwrap();
            assert_same(&walk, &whole, &mut Rng(at));
        }
    }
}

/// What walks can be begun from is bounded, however long the trace, however many pages it changes and however much is pending.
#[test]
fn checkpoints_take_little_memory_and_little_walking() {
    let pages_of = |pool_pages: u64, flushed: bool| {
        record(|r| {
            r.push(0, 0, EventKind::Resize { pool: PoolId(0), len: pool_pages * 4096 });
            for n in 0..60_000_u64 {
                let at = place(0, n * 7 % pool_pages * 4096);
                r.push(0, 0, EventKind::Store { place: at, kind: StoreKind::Plain, bytes: &n.to_le_bytes() });
                if flushed {
                    r.push(0, 1, EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(at) });
                    r.push(0, 2, EventKind::Fence { kind: FenceKind::Sfence });
                }
            }
        })
    };
    // Each event another page; everything is pending; one line is, again and again.
    for (pages, flushed) in [(20_000, true), (20_000, false), (1, false)] {
        let recorded = pages_of(pages, flushed);
        let events = recorded.reader.event_count();
        let mut checkpoints = Checkpoints::default();
        let mut rng = Rng(pages);
        for round in 0..24 {
            let at = EventId(if round == 0 { events } else { rng.below(events) });
            let walk = checkpoints.walk_to(&recorded.reader, Rules::default(), &Arc::default(), at).unwrap();
            let held = checkpoints.held();
            assert!(held.places.len() <= 200 && held.bytes <= 48 << 20, "{held:?}");
            assert_eq!(walk.at(), at);
        }
        // Near the last place there is always one, unless to copy it would take longer than to walk there.
        let at = EventId(events - 100);
        drop(checkpoints.walk_to(&recorded.reader, Rules::default(), &Arc::default(), at).unwrap());
        if flushed {
            assert!(checkpoints.held().places.iter().any(|place| *place <= at && at.0 - place.0 <= 1024));
        }
        let walks = PlainWalks::new(&recorded.reader, Rules::default());
        let (first, second) = (walks.to(at).unwrap(), walks.to(at).unwrap());
        assert_same(&first, &second, &mut rng);
    }
}
