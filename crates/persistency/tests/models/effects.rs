//! What a step tells `lint` and the strategies: verdicts on flushes and fences, overwritten bytes, whose stores became
//! guaranteed, what a thread leaves behind.

use persistency::content::{Ahead, Content};
use persistency::domain::{Detail, Route};
use persistency::effect::{Effect, FenceEffect, FlushEffect, FlushVerdict};
use persistency::line::{ByteMask, LineId};
use persistency::model::{Fences, ModelKind};
use persistency::point::PointError;
use persistency::states::Base;
use persistency::tracker::{Applied, Tracker};
use trace::event::{
    CodeAddr, ContextId, Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, LineNo, Place, PoolId,
    PoolOffset, StoreKind, ThreadId,
};

const POOL: PoolId = PoolId(7);
const A: ThreadId = ThreadId(0);
const B: ThreadId = ThreadId(1);

struct Run {
    tracker: Tracker,
    next: u64,
}

fn place(offset: u64) -> Place {
    Place { pool: POOL, offset: PoolOffset(offset) }
}

fn line(number: u64) -> LineId {
    LineId { pool: POOL, line: LineNo(number) }
}

impl Run {
    fn new(kind: ModelKind, detail: Detail) -> Self {
        Run { tracker: Tracker::new(kind.build(Fences::All), detail), next: 0 }
    }

    fn adr() -> Self {
        Self::new(ModelKind::X86Adr, Detail::Bytes)
    }

    fn step(&mut self, thread: ThreadId, kind: EventKind<'_>) -> Applied<'_> {
        let event = Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind };
        self.next += 1;
        self.tracker.apply(EventId(self.next - 1), &event)
    }

    fn store(&mut self, thread: ThreadId, offset: u64, bytes: &[u8]) -> Applied<'_> {
        self.step(thread, EventKind::Store { place: place(offset), kind: StoreKind::Plain, bytes })
    }

    fn stream(&mut self, thread: ThreadId, offset: u64, bytes: &[u8]) -> Applied<'_> {
        self.step(thread, EventKind::Store { place: place(offset), kind: StoreKind::NonTemporal, bytes })
    }

    fn flush(&mut self, thread: ThreadId, kind: FlushKind, offset: u64) -> FlushEffect {
        let step = self.step(thread, EventKind::Flush { kind, target: FlushTarget::Pool(place(offset)) });
        let Effect::Flush(effect) = step.effect else { panic!("a flush was taken for {:?}", step.effect) };
        effect
    }

    fn clwb(&mut self, thread: ThreadId, offset: u64) -> FlushVerdict {
        self.flush(thread, FlushKind::Clwb, offset).verdict
    }

    fn fence(&mut self, thread: ThreadId) -> FenceEffect {
        let step = self.step(thread, EventKind::Fence { kind: FenceKind::Sfence });
        let Effect::Fence(effect) = step.effect else { panic!("a fence was taken for {:?}", step.effect) };
        effect
    }

    fn pending(&self, number: u64) -> u64 {
        self.tracker.line(line(number)).map_or(0, |line| line.pending())
    }
}

#[test]
fn each_useless_flush_is_told_apart() {
    let mut run = Run::adr();
    assert_eq!(run.clwb(A, 0), FlushVerdict::Clean);
    run.store(A, 0, &[1; 8]);
    assert_eq!(run.flush(A, FlushKind::Cldemote, 0).verdict, FlushVerdict::Hint);
    assert_eq!(run.clwb(A, 8), FlushVerdict::Useful);
    assert_eq!(run.clwb(A, 63), FlushVerdict::AlreadyFlushed);
    let by_other = run.flush(B, FlushKind::Clwb, 0);
    assert_eq!((by_other.verdict, by_other.flushed_elsewhere), (FlushVerdict::Useful, true));
    run.store(A, 0, &[2; 8]);
    assert_eq!(run.clwb(A, 0), FlushVerdict::Useful);
    run.fence(A);
    assert_eq!(run.clwb(A, 0), FlushVerdict::Clean);
    run.stream(A, 0, &[3; 8]);
    assert_eq!(run.clwb(A, 0), FlushVerdict::OnlyNonTemporal);
    let volatile = EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Volatile(0x1000) };
    let Effect::Flush(effect) = run.step(A, volatile).effect else { panic!("not a flush") };
    assert_eq!((effect.verdict, effect.line), (FlushVerdict::Volatile, None));
}

#[test]
fn a_clflush_after_a_clwb_guarantees_but_asks_for_nothing_new() {
    let mut run = Run::adr();
    run.store(A, 0, &[1; 8]);
    run.clwb(A, 0);
    let effect = run.flush(A, FlushKind::Clflush, 0);
    assert_eq!((effect.verdict, effect.stores), (FlushVerdict::Useful, 0));
    assert_eq!(run.pending(0), 0);
    assert_eq!(run.fence(A).lines_settled, 0);
}

#[test]
fn a_fence_says_what_it_waited_for() {
    let mut run = Run::adr();
    assert_eq!(run.fence(A), FenceEffect { counts: true, ..FenceEffect::default() });
    run.store(A, 0, &[1; 8]);
    run.store(B, 8, &[2; 8]);
    run.store(A, 64, &[3; 8]);
    run.clwb(A, 0);
    run.clwb(A, 0);
    run.stream(A, 128, &[4; 8]);
    let effect = run.fence(A);
    let expected = FenceEffect { counts: true, flushes: 2, streamed: 1, lines_asked: 2, lines_settled: 2, stores: 3 };
    assert_eq!(effect, expected);
    assert_eq!((run.pending(0), run.pending(1), run.pending(2)), (0, 1, 0));
    assert_eq!(run.fence(A).lines_asked, 0);
}

#[test]
fn a_fence_that_a_strict_model_passes_over_says_so() {
    let mut run = Run::adr();
    run.tracker = Tracker::new(ModelKind::X86Adr.build(Fences::Strict), Detail::Bytes);
    run.store(A, 0, &[1; 8]);
    run.clwb(A, 0);
    let step = run.step(A, EventKind::Fence { kind: FenceKind::Locked });
    assert_eq!(step.effect, Effect::Fence(FenceEffect::default()));
    // What the thread waits for is still there for the fence that counts.
    assert_eq!(run.fence(A).flushes, 1);
}

#[test]
fn guaranteed_stores_come_with_their_events_and_bytes() {
    let mut run = Run::adr();
    run.store(A, 60, &[1, 2, 3, 4, 5, 6, 7, 8]);
    run.store(B, 0, &[9; 4]);
    run.clwb(A, 0);
    let step = run.step(A, EventKind::Fence { kind: FenceKind::Sfence });
    let list: Vec<_> =
        step.guaranteed().iter().map(|s| (s.line, s.store.event, s.store.thread, step.bytes(s))).collect();
    assert_eq!(
        list,
        [(line(0), EventId(0), A, Some(&[1, 2, 3, 4][..])), (line(0), EventId(1), B, Some(&[9, 9, 9, 9][..])),]
    );
    assert_eq!(run.tracker.dirty_line_count(), 1);
}

#[test]
fn a_store_says_which_bytes_were_never_durable() {
    let mut run = Run::adr();
    run.store(A, 0, &[1; 4]);
    let step = run.store(A, 4, &[2; 4]);
    assert_eq!(step.stored()[0].overwritten, ByteMask::EMPTY, "neighbours in one granule do not overwrite each other");
    let step = run.store(A, 2, &[3; 4]);
    assert_eq!(step.stored()[0].overwritten, ByteMask::range(2, 4));
    assert!(!step.stored()[0].flush_in_flight);
    run.clwb(A, 0);
    assert!(run.store(B, 32, &[4; 4]).stored()[0].flush_in_flight);
    run.fence(A);
    let step = run.store(A, 0, &[5; 64]);
    assert_eq!(step.stored()[0].overwritten, ByteMask::range(32, 4));
    assert!(!step.stored()[0].flush_in_flight);
}

#[test]
fn a_thread_leaves_behind_what_it_did_not_fence() {
    let mut run = Run::adr();
    run.store(A, 64, &[1; 8]);
    run.store(A, 0, &[1; 8]);
    run.clwb(A, 64);
    run.store(A, 64, &[2; 8]);
    run.stream(A, 128, &[3; 8]);
    let asked = run.tracker.flush_pending(A);
    let flushed: Vec<_> = asked.iter().flat_map(|asked| asked.flushed().map(|store| store.event.0)).collect();
    let streamed: Vec<_> = asked.iter().flat_map(|asked| asked.streamed().map(|store| store.event.0)).collect();
    assert_eq!((flushed, streamed), (vec![0], vec![4]));
    assert_eq!(run.tracker.flush_pending(B).len(), 0);
    let unasked: Vec<_> = run.tracker.line(line(1)).unwrap().unasked().map(|store| store.event.0).collect();
    assert_eq!(unasked, [3]);
    assert_eq!(run.tracker.line(line(1)).unwrap().asking_threads().collect::<Vec<_>>(), [A]);

    assert_eq!(run.step(A, EventKind::ThreadEnd).effect, Effect::ThreadEnded);
    assert_eq!(run.tracker.flush_pending(A).len(), 0);
    assert_eq!(run.tracker.line(line(1)).unwrap().asking_threads().count(), 0);
    assert_eq!(run.fence(A).stores, 0);
    assert_eq!(run.tracker.dirty_line_count(), 3);
}

#[test]
fn eadr_needs_no_flush() {
    let mut run = Run::new(ModelKind::X86Eadr, Detail::Bytes);
    let step = run.store(A, 0, &[1; 8]);
    assert_eq!(step.guaranteed().len(), 1);
    assert!(!step.after().model().needs_flushes());
    assert_eq!(run.clwb(A, 0), FlushVerdict::NotNeeded);
    assert_eq!(run.tracker.dirty_line_count(), 0);
}

#[test]
fn cutting_a_file_discards_what_lay_behind() {
    let mut run = Run::adr();
    run.store(A, 40, &[1; 8]);
    run.store(A, 60, &[2; 8]);
    run.store(A, 4096, &[3; 8]);
    // Growing and cutting where nothing is dirty does nothing.
    assert_eq!(run.step(A, EventKind::Resize { pool: POOL, len: 8192 }).discarded(), []);
    assert_eq!(run.step(A, EventKind::Resize { pool: PoolId(8), len: 0 }).discarded(), []);
    let step = run.step(A, EventKind::Resize { pool: POOL, len: 44 });
    let discarded: Vec<_> = step.discarded().iter().map(|s| (s.line, s.store.event.0)).collect();
    assert_eq!(discarded, [(line(1), 1), (line(64), 2)]);
    // The rest of the cut line is zeroed by a store of its own.
    let cut = step.after().line(line(0)).unwrap();
    let last = cut.stores().last().unwrap();
    assert_eq!((last.route, last.start, last.len, last.event), (Route::Zeroed, 44, 20, EventId(5)));
    assert_eq!(cut.bytes(last), Ok(&[0; 20][..]));
}

#[test]
fn zeroing_replaces_whole_lines_and_stores_to_the_boundaries() {
    let mut run = Run::adr();
    for offset in [0, 64, 128, 192] {
        run.store(A, offset, &[1; 64]);
    }
    let step = run.step(A, EventKind::FileZero { place: place(32), len: 150 });
    assert_eq!(step.effect, Effect::Zeroed { place: place(64), len: 64 });
    assert_eq!(step.discarded().iter().map(|s| s.line).collect::<Vec<_>>(), [line(1)]);
    let boundaries: Vec<_> = step.stored().iter().map(|s| (s.line, s.written)).collect();
    assert_eq!(boundaries, [(line(0), ByteMask::range(32, 32)), (line(2), ByteMask::range(0, 54))]);
    // Inside one line.
    let step = run.step(A, EventKind::FileZero { place: place(200), len: 8 });
    assert_eq!(
        step.stored().iter().map(|s| (s.line, s.written)).collect::<Vec<_>>(),
        [(line(3), ByteMask::range(8, 8))]
    );
    assert_eq!(step.discarded(), []);
}

#[test]
fn overwriting_a_line_for_ever_takes_no_memory_and_counts_right() {
    let mut run = Run::new(ModelKind::X86Adr, Detail::LastWriters);
    let count = 100_000;
    for n in 0..count {
        run.store(A, n % 8 * 8, &[1; 8]);
        if n == 1000 {
            run.clwb(A, 0);
        }
    }
    let view = run.tracker.line(line(0)).unwrap();
    assert_eq!(view.pending(), count);
    assert!(view.stores().len() <= 64, "{} stores are kept", view.stores().len());
    // The newest store to each byte is kept, and the newest before the flush, too.
    let newest: Vec<u64> = view.stores().iter().rev().take(8).map(|store| store.event.0).collect();
    // Event `count` is the last store: the flush is an event, too.
    assert_eq!(newest, (count - 7..=count).rev().collect::<Vec<_>>());
    assert!(view.stores().iter().any(|store| store.event.0 == 1000), "what the flush asked for is forgotten");
    assert_eq!(run.fence(A).stores, 1001);
    assert_eq!(run.pending(0), count - 1001);
}

#[test]
fn a_thread_that_never_fences_takes_no_memory_for_lines_that_others_settle() {
    let mut run = Run::new(ModelKind::X86Adr, Detail::LastWriters);
    for n in 0..10_000 {
        run.store(A, n * 64, &[1; 8]);
        run.clwb(B, n * 64);
        run.flush(A, FlushKind::Clflush, n * 64);
    }
    assert_eq!(run.tracker.dirty_line_count(), 0);
    assert_eq!(run.tracker.flush_pending(B).len(), 0);
    assert_eq!(run.fence(B).lines_asked, 0);
}

#[test]
fn a_state_that_cannot_be_is_refused() {
    let mut run = Run::adr();
    run.store(A, 0, &[1; 16]);
    let point = run.tracker.crash_point();
    let mut bytes = [0; 64];
    let too_many = Content::whole(2);
    let refused = point.lines()[0].overlay(too_many, &mut bytes);
    assert_eq!(refused, Err(PointError::Impossible { line: line(0), pending: 1, content: too_many }));
    assert_eq!(bytes, [0; 64]);
    // A tear is some granules of the next store, not all, and none of another's.
    let cut = |kept, ahead: [u16; 3]| {
        let mut counts = [0; 8];
        counts[..3].copy_from_slice(&ahead);
        Content { kept, ahead: Ahead(counts) }
    };
    for (ahead, possible) in
        [([1, 0, 0], true), ([0, 1, 0], true), ([1, 1, 0], false), ([0, 0, 1], false), ([2, 0, 0], false)]
    {
        assert_eq!(point.lines()[0].check(cut(0, ahead)).is_ok(), possible, "{ahead:?}");
    }
    assert!(point.lines()[0].check(cut(1, [1, 0, 0])).is_err());
    let state = point.states(Base::Everything).next().unwrap();
    assert_eq!(state.content(&point.lines()[0]), Content::whole(1));
    run.clwb(A, 0);
    run.fence(A);
    assert_eq!(run.tracker.crash_point().check(&state), Ok(()), "a state that names no line is possible anywhere");
}

#[test]
fn too_little_detail_is_said_not_guessed() {
    let mut run = Run::new(ModelKind::X86Adr, Detail::Stores);
    run.store(A, 0, &[1; 16]);
    let view = run.tracker.line(line(0)).unwrap();
    assert_eq!(view.content_count(), Ok(4u32.into()));
    let error = view.overlay(Content::whole(1), &mut [0; 64]).unwrap_err();
    assert_eq!(error, PointError::TooLittleDetail { have: Detail::Stores, need: Detail::Bytes });
    assert!(error.to_string().contains("make it with Detail::Bytes"), "{error}");
    let mut run = Run::new(ModelKind::X86Adr, Detail::LastWriters);
    run.store(A, 0, &[1; 16]);
    assert!(run.tracker.line(line(0)).unwrap().contents().is_err());
}

#[test]
fn a_point_with_many_lines_counts_exactly() {
    let mut run = Run::adr();
    for n in 0..300 {
        run.store(A, n * 64, &[1; 8]);
    }
    run.store(A, 0, &[2; 8]);
    let count = run.tracker.crash_point().state_count();
    assert_eq!(count, num_bigint::BigUint::from(3u32) * num_bigint::BigUint::from(2u32).pow(299));
    // The nearest states come at once, however many there are.
    let near = run.tracker.crash_point().states(Base::Guaranteed).take(301).collect::<Vec<_>>();
    assert!(near[0].lines.is_empty());
    assert!(near[1..].iter().all(|state| state.lines.len() == 1 && state.lines[0].1 == Content::whole(1)));
}

#[test]
fn the_dirty_lines_of_a_range_are_those_it_touches() {
    let mut run = Run::adr();
    for number in [0, 1, 2, 100] {
        run.store(A, number * 64, &[1; 8]);
    }
    let found =
        |offset, len| run.tracker.lines_in(place(offset), len).iter().map(|l| l.id().line.0).collect::<Vec<_>>();
    assert_eq!(found(64, 65), [1, 2]);
    assert_eq!(found(65, 1), [1]);
    assert_eq!(found(65, 0), [] as [u64; 0]);
    assert_eq!(found(0, u64::MAX), [0, 1, 2, 100]);
    assert_eq!(run.tracker.lines_in(Place { pool: PoolId(0), offset: PoolOffset(0) }, u64::MAX).len(), 0);
}

#[test]
fn a_fence_completes_however_many_lines_were_flushed() {
    let mut run = Run::adr();
    let count = 1000;
    for number in 0..count {
        run.store(A, number * 64, &[1; 8]);
        run.clwb(A, number * 64);
        // Others settle every third line meanwhile.
        if number % 3 == 0 {
            run.flush(B, FlushKind::Clflush, number * 64);
        }
    }
    let settled_by_others = count.div_ceil(3);
    assert_eq!(run.tracker.flush_pending(A).len() as u64, count - settled_by_others);
    let effect = run.fence(A);
    assert_eq!((effect.flushes, effect.stores), (count, count - settled_by_others));
    assert_eq!(run.tracker.dirty_line_count(), 0);
}

#[test]
fn of_forgotten_stores_one_of_each_kind_is_kept() {
    let tracker = Tracker::new(ModelKind::X86Adr.build(Fences::All), Detail::LastWriters);
    let mut tracker = tracker.keep_one_of_each(|one, other| one.0 % 3 == other.0 % 3);
    let event = |bytes: &'static [u8]| Event {
        thread: A,
        context: ContextId(0),
        pc: CodeAddr::default(),
        kind: EventKind::Store { place: place(0), kind: StoreKind::Plain, bytes },
    };
    // Two kinds, then many stores of the third over them.
    tracker.apply(EventId(1), &event(&[1; 8]));
    tracker.apply(EventId(2), &event(&[1; 8]));
    for number in 1..1000 {
        tracker.apply(EventId(number * 3), &event(&[1; 8]));
    }
    let line_view = tracker.line(line(0)).unwrap();
    assert!(line_view.stores().len() < 100, "memory stays bounded");
    let mut kinds: Vec<u64> = line_view.forgotten().map(|store| store.event.0 % 3).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, [0, 1, 2]);
    // With the line, they are gone.
    let flush = EventKind::Flush { kind: FlushKind::Clflush, target: FlushTarget::Pool(place(0)) };
    tracker.apply(EventId(5000), &Event { kind: flush, ..event(&[]) });
    assert!(tracker.line(line(0)).is_none());
    tracker.apply(EventId(5001), &event(&[1; 8]));
    assert_eq!(tracker.line(line(0)).unwrap().forgotten().count(), 0);
}
