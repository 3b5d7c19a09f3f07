//! Crash images against the naive way: per line all that was ever stored, cut where the state says.

use std::collections::HashMap;

use crash::changes::ChangeCursor;
use crash::image::{GuaranteedImage, LineBytes};
use crash::strategy::{Reach, StrategySpec};
use crash::view::PointView;
use crash::walk::{Rules, Walk};
use persistency::line::LineId;
use persistency::model::{Fences, ModelKind};
use persistency::states::{Base, CrashState};
use trace::{Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, LineNo, PoolId, StoreKind};

use crate::traces::{LENGTHS, initial, place, random, record, traces};

/// One line: what it was, and all stores since.
#[derive(Clone)]
struct History {
    initial: [u8; 64],
    stores: Vec<(usize, Vec<u8>)>,
}

impl Default for History {
    fn default() -> Self {
        History { initial: [0; 64], stores: Vec::new() }
    }
}

struct Naive {
    lines: HashMap<LineId, History>,
    lengths: [u64; 2],
}

fn line_id(pool: usize, line: u64) -> LineId {
    LineId { pool: PoolId(pool as u32), line: LineNo(line) }
}

/// Those that stores reach and their neighbours, to beyond the longest length.
fn all_lines() -> impl Iterator<Item = LineId> {
    (0..2).flat_map(|pool| (0..15).chain(60..80).map(move |line| line_id(pool, line)))
}

impl Naive {
    fn new() -> Naive {
        let mut lines: HashMap<LineId, History> = HashMap::new();
        for pool in 0..2 {
            for (line, bytes) in initial(pool).chunks(64).enumerate() {
                lines.entry(line_id(pool, line as u64)).or_default().initial[..bytes.len()].copy_from_slice(bytes);
            }
        }
        Naive { lines, lengths: LENGTHS }
    }

    fn store(&mut self, place: trace::Place, bytes: &[u8]) {
        let mut parts: Vec<(LineId, usize, Vec<u8>)> = Vec::new();
        for (at, &byte) in (place.offset.0..).zip(bytes) {
            let id = line_id(place.pool.0 as usize, at / 64);
            match parts.last_mut().filter(|part| part.0 == id) {
                Some(part) => part.2.push(byte),
                None => parts.push((id, at as usize % 64, vec![byte])),
            }
        }
        for (id, start, bytes) in parts {
            self.lines.entry(id).or_default().stores.push((start, bytes));
        }
    }

    fn step(&mut self, event: &Event<'_>, before: &PointView<'_>) {
        match event.kind {
            EventKind::Store { place, bytes, .. }
            | EventKind::Rmw { place, new: bytes, .. }
            | EventKind::KernelWrite { place, bytes }
            | EventKind::FileWrite { place, bytes } => self.store(place, bytes),
            EventKind::FileZero { place, len } => {
                let (start, end) = (place.offset.0, place.offset.0 + len);
                for line in start / 64..end.div_ceil(64) {
                    let (from, to) = (start.max(line * 64), end.min(line * 64 + 64));
                    let mut part = place;
                    part.offset.0 = from;
                    if to - from == 64 {
                        self.lines.insert(LineId::of(part), History::default());
                    } else {
                        self.store(part, &vec![0; (to - from) as usize]);
                    }
                }
            }
            EventKind::Resize { pool, len } => {
                assert_eq!(len % 64, 0, "the traces cut at lines");
                self.lines.retain(|id, _| id.pool != pool || id.line.0 < len / 64);
                // What was settled past the end is zero when the file grows.
                let old = self.lengths[pool.0 as usize].div_ceil(64);
                for (id, history) in self.lines.iter_mut().filter(|(id, _)| id.pool == pool && id.line.0 >= old) {
                    let pending = before.crash_point().line(*id).map_or(0, |line| line.pending() as usize);
                    history.initial = [0; 64];
                    history.stores.drain(..history.stores.len() - pending);
                }
                self.lengths[pool.0 as usize] = len;
            }
            _ => {}
        }
    }

    fn line(&self, view: &PointView<'_>, state: &CrashState, id: LineId) -> LineBytes {
        let clean = History::default();
        let history = self.lines.get(&id).unwrap_or(&clean);
        let mut bytes = history.initial;
        let (pending, content) = match view.crash_point().line(id) {
            Some(line) => (line.pending() as usize, state.content(line)),
            None => (0, Default::default()),
        };
        let kept = history.stores.len() - pending + content.kept as usize;
        for (start, stored) in &history.stores[..kept] {
            bytes[*start..start + stored.len()].copy_from_slice(stored);
        }
        for granule in 0..8 {
            let range = granule * 8..granule * 8 + 8;
            let touches =
                |(start, stored): &&(usize, Vec<u8>)| *start < range.end && range.start < start + stored.len();
            let later = history.stores[kept..].iter().filter(touches);
            for (start, stored) in later.take(content.ahead.0[granule].into()) {
                for (at, &byte) in (*start..).zip(stored).filter(|(at, _)| range.contains(at)) {
                    bytes[at] = byte;
                }
            }
        }
        for (at, byte) in (id.line.0 * 64..).zip(&mut bytes) {
            if at >= self.lengths[id.pool.0 as usize] {
                *byte = 0;
            }
        }
        bytes
    }
}

fn some_states(view: &PointView<'_>, index: u64) -> Vec<CrashState> {
    let mut states: Vec<CrashState> = [Base::Guaranteed, Base::Everything]
        .into_iter()
        .flat_map(|base| view.crash_point().states(base).take(8))
        .collect();
    for spec in StrategySpec::list("program-order,guaranteed-only,few-lines:2:10,random:5:4").unwrap() {
        let mut strategy = spec.start(view, index);
        states.extend(std::iter::from_fn(|| strategy.next(view)));
    }
    for (number, line) in view.lines().iter().enumerate() {
        let distinct = view.distinct_cuts(number);
        let cuts = line.cuts().unwrap().chain(distinct.contents.iter().map(|(content, _)| *content));
        let cut = |content| CrashState { base: Base::Everything, lines: vec![(line.id(), content)] };
        states.extend(cuts.step_by(1 + index as usize % 5).take(12).map(cut));
    }
    states
}

#[test]
fn images_are_what_the_stores_make() {
    let (mut states, mut dirty) = (0, 0);
    for seed in traces(48) {
        let recorded = random(seed, 60);
        let model = if seed % 3 == 0 { ModelKind::X86Eadr } else { ModelKind::X86Adr };
        let mut walk = Walk::new(&recorded.reader, Rules { model, fences: Fences::All }).unwrap();
        let mut naive = Naive::new();
        let mut events = recorded.reader.events();
        for at in 0..recorded.reader.event_count() {
            walk.advance_to(EventId(at)).unwrap();
            let view = walk.view();
            let mut bytes_of_key = HashMap::new();
            for state in some_states(&view, at) {
                let image = view.image(&state).unwrap();
                let bytes: Vec<LineBytes> = all_lines().map(|id| image.line(id)).collect();
                for (id, &bytes) in all_lines().zip(&bytes) {
                    let expected = naive.line(&view, &state, id);
                    assert_eq!(bytes, expected, "{id:?} of {state:?} before event {at} of trace {seed}");
                    assert_eq!(view.line_of(&state, id), expected);
                }
                let differing: Vec<LineId> = image.lines().iter().map(|(id, _)| *id).collect();
                let expected: Vec<LineId> =
                    all_lines().filter(|&id| image.line(id) != image.guaranteed().line(id)).collect();
                assert_eq!(differing, expected);
                // Equal keys, equal bytes; and the other way round.
                let known = bytes_of_key.entry(view.key(&state)).or_insert_with(|| bytes.clone());
                assert_eq!(*known, bytes);
                states += 1;
            }
            let mut different: Vec<_> = bytes_of_key.values().collect();
            different.sort_unstable();
            different.dedup();
            assert_eq!(different.len(), bytes_of_key.len());
            for (pool, &len) in naive.lengths.iter().enumerate() {
                assert_eq!(walk.guaranteed().len(PoolId(pool as u32)), len);
            }
            dirty += view.lines().len();
            naive.step(&events.next().unwrap().unwrap(), &view);
        }
    }
    assert!(states > 5_000 && dirty > 700, "{states} states, {dirty} dirty lines: too tame");
}

/// Keeps a copy the way a slot does.
#[derive(Default)]
struct Copy {
    cursor: ChangeCursor,
    lines: HashMap<LineId, LineBytes>,
}

impl Copy {
    fn follow(&mut self, guaranteed: &GuaranteedImage) -> usize {
        let changes = guaranteed.changes(&mut self.cursor);
        if changes.all {
            self.lines.clear();
            for pool in guaranteed.pools() {
                for (page, bytes) in guaranteed.pages(pool) {
                    for (line, bytes) in bytes.chunks(64).enumerate() {
                        let id = line_id(pool.0 as usize, page * 64 + line as u64);
                        self.lines.insert(id, bytes.try_into().unwrap());
                    }
                }
            }
        }
        let count = changes.lines.len();
        for id in changes.lines {
            self.lines.insert(id, guaranteed.line(id));
        }
        count
    }

    fn check(&self, guaranteed: &GuaranteedImage) {
        for id in all_lines() {
            let mut bytes = self.lines.get(&id).copied().unwrap_or([0; 64]);
            // A file ends where it ends.
            for (at, byte) in (id.line.0 * 64..).zip(&mut bytes) {
                if at >= guaranteed.len(id.pool) {
                    *byte = 0;
                }
            }
            assert_eq!(bytes, guaranteed.line(id), "{id:?}");
        }
    }
}

#[test]
fn a_copy_that_follows_the_changes_stays_equal() {
    for seed in 100..130 {
        let recorded = random(seed, 200);
        let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
        let (mut copy, mut changed) = (Copy::default(), 0);
        for round in 0..3 {
            for at in (0..recorded.reader.event_count()).step_by(1 + 3 * round) {
                walk.advance_to(EventId(at)).unwrap();
                changed += copy.follow(walk.guaranteed());
                copy.check(walk.guaranteed());
            }
            walk.rewind().unwrap();
        }
        assert!(changed > 20, "nothing happened in trace {seed}");
        assert!(walk.advance_to(EventId(50)).is_ok() && walk.advance_to(EventId(49)).is_err());
    }
}

#[test]
fn a_line_that_nobody_flushes_costs_no_more_with_every_store() {
    let recorded = record(|r| {
        for n in 0..9_000u64 {
            let place = place(0, 8 * (n % 3));
            r.push(0, 0, EventKind::Store { place, kind: StoreKind::Plain, bytes: &(n / 2).to_le_bytes() });
            if n % 500 == 499 {
                r.push(0, 1, EventKind::Fence { kind: FenceKind::Sfence });
            }
        }
    });
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    let mut naive = Naive::new();
    let mut events = recorded.reader.events();
    let program_order = CrashState { base: Base::Everything, lines: Vec::new() };
    for at in 0..recorded.reader.event_count() {
        walk.advance_to(EventId(at)).unwrap();
        let view = walk.view();
        if at % 97 == 0 && at > 0 {
            let id = line_id(0, 0);
            assert_eq!(view.line_of(&program_order, id), naive.line(&view, &program_order, id));
        }
        if at % 2500 == 2499 {
            let distinct = view.distinct_contents(0);
            assert_eq!(distinct.are_all, at < 4096);
            for (content, bytes) in &distinct.contents {
                let state = CrashState { base: Base::Guaranteed, lines: vec![(line_id(0, 0), *content)] };
                assert_eq!(*bytes, naive.line(&view, &state, line_id(0, 0)), "{content:?} at {at}");
            }
            let mut strategy = StrategySpec::list("few-lines:1:100000").unwrap()[0].start(&view, 0);
            let states = std::iter::from_fn(|| strategy.next(&view)).count();
            assert!(states >= distinct.contents.len());
            assert_eq!(strategy.reach() == Reach::Capped, !distinct.are_all);
        }
        naive.step(&events.next().unwrap().unwrap(), &view);
    }
}

/// What is remembered of such a line must go when its stores are settled, and when the file grows over them.
#[test]
fn a_hot_line_is_right_after_it_was_settled_or_resized() {
    let recorded = record(|r| {
        let mut store = |place, value: u64| {
            r.push(0, 0, EventKind::Store { place, kind: StoreKind::Plain, bytes: &value.to_le_bytes() });
        };
        // The second pool ends in the middle of what is stored there.
        (0..80).for_each(|n| store(place(1, 196), n << 40 | n));
        (0..80).for_each(|n| store(place(0, 0), n));
        r.push(0, 0, EventKind::Flush { kind: FlushKind::Clflush, target: FlushTarget::Pool(place(0, 0)) });
        let mut store = |place, value: u64| {
            r.push(0, 0, EventKind::Store { place, kind: StoreKind::Plain, bytes: &value.to_le_bytes() });
        };
        store(place(0, 8), 4711);
        (0..80).for_each(|n| store(place(0, 16), n));
        r.push(0, 0, EventKind::Resize { pool: PoolId(1), len: 256 });
    });
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    let mut naive = Naive::new();
    let mut events = recorded.reader.events();
    let program_order = CrashState { base: Base::Everything, lines: Vec::new() };
    for at in 0..=recorded.reader.event_count() {
        walk.advance_to(EventId(at)).unwrap();
        let view = walk.view();
        if [160, 242, 243].contains(&at) {
            for id in [line_id(0, 0), line_id(1, 3)] {
                let expected = naive.line(&view, &program_order, id);
                assert_eq!(view.line_of(&program_order, id), expected, "{id:?} before event {at}");
            }
        }
        if let Some(event) = events.next().unwrap() {
            naive.step(&event, &view);
        }
    }
}
