//! Walks a trace and keeps the state of every dirty line.

use std::sync::Arc;

use trace::event::{Event, EventId, EventKind, FlushTarget, LineNo, Place, PoolId, PoolOffset, StoreKind, ThreadId};

use crate::domain::{Alike, Detail, Domain, Route};
use crate::effect::{Effect, FenceEffect, FlushEffect, FlushVerdict, SettledStore, StoredLine};
use crate::line::{ByteMask, GRANULE_BYTES, LINE_BYTES, LineId};
use crate::model::{Barrier, Model, Stored};
use crate::pending::Origin;
use crate::point::{CrashPoint, LineView, PendingFlush};
use crate::range::{line_parts, page_lines, whole_lines};

/// The state of PM along a trace: feed it every event, in order; ask it in between.
#[derive(Debug)]
pub struct Tracker {
    model: Arc<dyn Model>,
    domain: Domain,
    stored: Vec<StoredLine>,
}

/// What one event did. The lists live until the next event.
#[derive(Clone, Copy, Debug)]
pub struct Applied<'t> {
    pub effect: Effect,
    tracker: &'t Tracker,
}

impl<'t> Applied<'t> {
    /// The lines that the event stored to, as they were before.
    pub fn stored(&self) -> &'t [StoredLine] {
        &self.tracker.stored
    }

    /// The stores that the event made guaranteed, oldest first within a line. With [`Detail::LastWriters`] those
    /// are left out whose bytes had all been stored again.
    pub fn guaranteed(&self) -> &'t [SettledStore] {
        &self.tracker.domain.guaranteed
    }

    /// Pending stores that lost their place: cut off or zeroed by the file system.
    pub fn discarded(&self) -> &'t [SettledStore] {
        &self.tracker.domain.discarded
    }

    /// The bytes of a store of this step's lists; none unless the tracker keeps [`Detail::Bytes`].
    pub fn bytes(&self, settled: &SettledStore) -> Option<&'t [u8]> {
        let domain = &self.tracker.domain;
        (domain.detail() == Detail::Bytes)
            .then(|| &domain.settled_bytes[settled.at..settled.at + settled.store.len as usize])
    }

    /// The state after the event.
    pub fn after(&self) -> &'t Tracker {
        self.tracker
    }
}

impl Tracker {
    pub fn new(model: Box<dyn Model>, detail: Detail) -> Self {
        Tracker { model: model.into(), domain: Domain::new(detail), stored: Vec::new() }
    }

    /// A tracker that is where this one is and goes its own way. Takes time for what is pending, not for what was.
    pub fn copy(&self) -> Tracker {
        Tracker { model: Arc::clone(&self.model), domain: self.domain.copy(), stored: Vec::new() }
    }

    /// About how many bytes a [`copy`](Self::copy) takes.
    pub fn copy_bytes(&self) -> usize {
        self.domain.copy_bytes()
    }

    /// Of the stores that [`Detail::LastWriters`] forgets, keeps the newest of each kind: see [`LineView::forgotten`].
    pub fn keep_one_of_each(mut self, alike: Alike) -> Self {
        self.domain.alike = alike;
        self
    }

    pub fn model(&self) -> &dyn Model {
        &*self.model
    }

    pub fn detail(&self) -> Detail {
        self.domain.detail()
    }

    /// How many lines have a store that is not guaranteed.
    pub fn dirty_line_count(&self) -> usize {
        self.domain.dirty_line_count()
    }

    /// A line's pending stores; none if everything stored to it is guaranteed.
    pub fn line(&self, line: LineId) -> Option<LineView<'_>> {
        self.domain.find(line).map(|slot| LineView::new(self.domain.line(slot), self.detail()))
    }

    /// The dirty lines of a range, ascending.
    pub fn lines_in(&self, place: Place, len: u64) -> Vec<LineView<'_>> {
        if len == 0 {
            return Vec::new();
        }
        let end = place.offset.0.saturating_add(len).div_ceil(LINE_BYTES as u64);
        let slots = self.domain.dirty_in(place.pool, place.offset.line()..LineNo(end));
        slots.into_iter().map(|slot| LineView::new(self.domain.line(slot), self.detail())).collect()
    }

    /// What the thread flushed or streamed and has not fenced, by ascending line. Ask before its `ThreadEnd`.
    pub fn flush_pending(&self, thread: ThreadId) -> Vec<PendingFlush<'_>> {
        let asked = self.domain.flush_pending(thread).into_iter();
        asked
            .map(|(slot, mark)| PendingFlush::new(LineView::new(self.domain.line(slot), self.detail()), mark))
            .collect()
    }

    /// What a power failure here could leave. Sorts the dirty lines: not for every event of a long trace.
    pub fn crash_point(&self) -> CrashPoint<'_> {
        CrashPoint::new(self.domain.lines().map(|line| LineView::new(line, self.detail())).collect())
    }

    /// Takes the next event of the trace.
    pub fn apply(&mut self, id: EventId, event: &Event<'_>) -> Applied<'_> {
        self.stored.clear();
        self.domain.guaranteed.clear();
        self.domain.discarded.clear();
        self.domain.settled_bytes.clear();
        if self.domain.has_unfinished() {
            self.model.proceed(&mut self.domain);
        }
        let effect = self.take(id, event);
        Applied { effect, tracker: self }
    }

    /// As if everything stored to this line so far had just been guaranteed: to ask what else is wrong where something is known to be.
    pub fn settle(&mut self, line: LineId) -> Applied<'_> {
        self.stored.clear();
        self.domain.guaranteed.clear();
        self.domain.discarded.clear();
        self.domain.settled_bytes.clear();
        let (lines, stores) = self.model.sync(&mut self.domain, line.pool, line.line..LineNo(line.line.0 + 1));
        Applied { effect: Effect::Sync { lines, stores }, tracker: self }
    }

    fn take(&mut self, id: EventId, event: &Event<'_>) -> Effect {
        let thread = event.thread;
        let by = |route| Origin { event: id, thread, route };
        match &event.kind {
            EventKind::Store { place, kind, bytes } => {
                let route = match kind {
                    StoreKind::Plain => Route::Cached,
                    StoreKind::NonTemporal => Route::NonTemporal,
                    StoreKind::Direct64 => Route::Direct64,
                };
                self.store(&by(route), *place, bytes)
            }
            EventKind::Rmw { place, new, .. } => {
                let fence = self.model.fence(&mut self.domain, thread, Barrier::Locked);
                self.store(&by(Route::Rmw), *place, new);
                Effect::Rmw(fence)
            }
            EventKind::KernelWrite { place, bytes } => self.store(&by(Route::Kernel), *place, bytes),
            EventKind::FileWrite { place, bytes } => self.store(&by(Route::File), *place, bytes),
            &EventKind::Flush { kind, target } => {
                self.domain.count_flush(thread);
                let FlushTarget::Pool(place) = target else {
                    let verdict = FlushVerdict::Volatile;
                    return Effect::Flush(FlushEffect { line: None, verdict, stores: 0, flushed_elsewhere: false });
                };
                let line = LineId::of(place);
                let slot = self.domain.find_for_use(line);
                let done = self.model.flush(&mut self.domain, thread, slot, kind);
                Effect::Flush(FlushEffect {
                    line: Some(line),
                    verdict: done.verdict,
                    stores: done.stores,
                    flushed_elsewhere: done.elsewhere,
                })
            }
            &EventKind::Fence { kind } => Effect::Fence(self.fence(thread, kind.into())),
            &EventKind::Msync { place, len } => {
                let (first, end) = page_lines(place, len);
                let (lines, stores) = self.model.sync(&mut self.domain, place.pool, first..end);
                Effect::Sync { lines, stores }
            }
            &EventKind::Fsync { pool, .. } => {
                let (lines, stores) = self.model.sync(&mut self.domain, pool, LineNo(0)..LineNo(u64::MAX));
                Effect::Sync { lines, stores }
            }
            &EventKind::FileZero { place, len } => self.zero(&by(Route::Zeroed), place, len),
            &EventKind::Resize { pool, len } => self.resize(&by(Route::Zeroed), pool, len),
            EventKind::ThreadEnd => {
                self.domain.forget_thread(thread);
                Effect::ThreadEnded
            }
            EventKind::Load { .. }
            | EventKind::Map { .. }
            | EventKind::Unmap { .. }
            | EventKind::ThreadStart
            | EventKind::ProcessStart { .. }
            | EventKind::ProcessExit { .. }
            | EventKind::Exec { .. }
            | EventKind::File(_)
            | EventKind::OperationBegin { .. }
            | EventKind::OperationEnd { .. }
            | EventKind::Call { .. }
            | EventKind::Return { .. } => Effect::None,
        }
    }

    fn fence(&mut self, thread: ThreadId, barrier: Barrier) -> FenceEffect {
        self.model.fence(&mut self.domain, thread, barrier)
    }

    fn store(&mut self, origin: &Origin, place: Place, bytes: &[u8]) -> Effect {
        let start = place.offset.0 as usize % LINE_BYTES;
        if !bytes.is_empty() && start + bytes.len() <= LINE_BYTES {
            self.store_part(origin, LineId::of(place), start as u8, bytes, false);
            return Effect::Store;
        }
        let mut parts = line_parts(place, bytes.len()).peekable();
        let mut several = false;
        while let Some(part) = parts.next() {
            several |= parts.peek().is_some();
            self.store_part(origin, part.line, part.start, &bytes[part.at..part.at + part.len as usize], several);
        }
        Effect::Store
    }

    #[inline(always)]
    fn store_part(&mut self, origin: &Origin, id: LineId, start: u8, bytes: &[u8], is_part: bool) {
        let slot = self.domain.find_or_insert(id);
        let line = self.domain.line(slot);
        let written = ByteMask::range(start, bytes.len() as u8);
        self.stored.push(StoredLine {
            line: id,
            written,
            overwritten: written.and(line.dirty),
            flush_in_flight: line.cached > line.guaranteed && line.flushed_by_any() >= line.cached,
        });
        self.domain.append(slot, origin, start, bytes);
        let last = start as usize + bytes.len() - 1;
        let can_tear = is_part || start as usize / GRANULE_BYTES != last / GRANULE_BYTES;
        let store = Stored { route: origin.route, can_tear };
        self.model.stored(&mut self.domain, origin.thread, slot, store);
    }

    fn zero(&mut self, origin: &Origin, place: Place, len: u64) -> Effect {
        let (first, end) = whole_lines(place, len);
        for slot in self.domain.dirty_in(place.pool, first..end) {
            self.domain.discard(slot);
        }
        // The parts of lines at either end; a range inside one line is only a head.
        let (start, stop) = (place.offset.0, place.offset.0.saturating_add(len));
        let head_end = first.0.saturating_mul(LINE_BYTES as u64).min(stop);
        let tail_start = end.0.saturating_mul(LINE_BYTES as u64).max(head_end).min(stop);
        for (from, to) in [(start, head_end), (tail_start, stop)] {
            let zeros = &[0; LINE_BYTES][..(to - from) as usize];
            self.store(origin, Place { pool: place.pool, offset: PoolOffset(from) }, zeros);
        }
        let zeroed = LineId { pool: place.pool, line: first }.start();
        Effect::Zeroed { place: zeroed, len: (end.0 - first.0) * LINE_BYTES as u64 }
    }

    fn resize(&mut self, origin: &Origin, pool: PoolId, len: u64) -> Effect {
        for slot in self.domain.dirty_in(pool, LineNo(len.div_ceil(LINE_BYTES as u64))..LineNo(u64::MAX)) {
            self.domain.discard(slot);
        }
        // The kernel zeroes the rest of the last line (`dax_truncate_page`): a file that grows again shows zeros there.
        let kept = (len % LINE_BYTES as u64) as u8;
        let cut = LineId { pool, line: PoolOffset(len).line() };
        let past_end = ByteMask::range(kept, LINE_BYTES as u8 - kept);
        let reaches_past = |slot| !self.domain.line(slot).dirty.and(past_end).is_empty();
        if kept != 0 && self.domain.find(cut).is_some_and(reaches_past) {
            let zeros = &[0; LINE_BYTES][kept as usize..];
            self.store(origin, Place { pool, offset: PoolOffset(len) }, zeros);
        }
        Effect::Resized { pool, len }
    }
}
