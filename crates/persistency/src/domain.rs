//! What all models share: the dirty lines, their pending stores, and what each thread still waits for.
//!
//! A [`Model`](crate::model::Model) works on a [`Domain`] through four verbs: it lets a flush or a non-temporal
//! store *ask* for the stores before it, lets a fence *complete* what its thread asked for, and *guarantees* a
//! line or a range directly. A line leaves the table when nothing on it is pending.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use trace::event::{LineNo, PoolId, ThreadId};

use crate::effect::{FenceEffect, SettledStore};
use crate::line::LineId;
pub use crate::pending::{Alike, PendingStore, Route, Seq};
use crate::pending::{DirtyLine, Mark, Origin};
use crate::threads::Threads;

/// How much the tracker remembers of each pending store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// Per line, the stores whose bytes are still the newest (and those that separate flushes asked for). Counts
    /// stay exact. Memory is bounded by the dirty lines however often they are overwritten: for `lint`.
    LastWriters,
    /// Every pending store, without its bytes.
    Stores,
    /// Every pending store with its bytes: for crash images.
    Bytes,
}

/// A table of lines with less room is never shrunk.
const LARGE_TABLE: usize = 4096;

/// How many lines are found without the table.
const RECENT: usize = 64;

fn recent_at(line: LineId) -> usize {
    line.line.0 as usize % RECENT
}

/// Index of a dirty line in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DirtyIndex(u32);

/// The dirty lines and what threads wait for.
#[derive(Debug)]
pub struct Domain {
    detail: Detail,
    pub(crate) alike: Alike,
    table: FxHashMap<LineId, DirtyIndex>,
    lines: Vec<DirtyLine>,
    free: Vec<DirtyIndex>,
    /// Lines used lately, each at its [place](recent_at): most stores and flushes find theirs without the table.
    recent: Box<[Option<(LineId, DirtyIndex)>; RECENT]>,
    threads: Threads,
    /// Lines whose newest store may be half done.
    unfinished: Vec<DirtyIndex>,
    /// Per pool number, the highest line that was ever dirty: growing a file need not look for lines past its end.
    highest: Vec<Option<LineNo>>,
    pub(crate) guaranteed: Vec<SettledStore>,
    pub(crate) discarded: Vec<SettledStore>,
    pub(crate) settled_bytes: Vec<u8>,
}

impl Domain {
    pub(crate) fn new(detail: Detail) -> Self {
        Domain {
            detail,
            alike: |_, _| true,
            table: FxHashMap::default(),
            lines: Vec::new(),
            free: Vec::new(),
            recent: Box::new([None; RECENT]),
            threads: Threads::default(),
            unfinished: Vec::new(),
            highest: Vec::new(),
            guaranteed: Vec::new(),
            discarded: Vec::new(),
            settled_bytes: Vec::new(),
        }
    }

    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The same state, in which the same events do the same. Only lines that are dirty are copied: the table of one that once had very many has
    /// as many slots for ever.
    pub(crate) fn copy(&self) -> Domain {
        let mut slots: Vec<DirtyIndex> = self.table.values().copied().collect();
        slots.sort_unstable();
        let place = |slot: DirtyIndex| slots.binary_search(&slot).ok().map(|at| DirtyIndex(at as u32));
        let mut new = Domain::new(self.detail);
        new.alike = self.alike;
        new.lines = slots.iter().map(|&slot| self.line(slot).clone()).collect();
        new.table = new.lines.iter().enumerate().map(|(at, line)| (line.id, DirtyIndex(at as u32))).collect();
        new.threads = self.threads.with_slots(place);
        new.unfinished = self.unfinished.iter().filter_map(|&slot| place(slot)).collect();
        new.highest.clone_from(&self.highest);
        new
    }

    /// About how many bytes a [`copy`](Self::copy) takes.
    pub(crate) fn copy_bytes(&self) -> usize {
        self.lines().map(DirtyLine::bytes_held).sum::<usize>() + self.threads.bytes_held()
    }

    /// How many lines have a store that is not guaranteed.
    pub fn dirty_line_count(&self) -> usize {
        self.table.len()
    }

    /// The slot of a dirty line; none if nothing on it is pending.
    pub fn find(&self, line: LineId) -> Option<DirtyIndex> {
        match self.recent[recent_at(line)] {
            Some((recent, slot)) if recent == line => Some(slot),
            _ => self.table.get(&line).copied(),
        }
    }

    /// As [`find`](Self::find); who asks for the line again soon finds it sooner.
    #[inline]
    pub(crate) fn find_for_use(&mut self, line: LineId) -> Option<DirtyIndex> {
        let slot = self.find(line)?;
        self.recent[recent_at(line)] = Some((line, slot));
        Some(slot)
    }

    /// The place after the newest store of the line.
    pub fn newest(&self, slot: DirtyIndex) -> Seq {
        self.line(slot).next
    }

    /// The place after the newest store of the line that lies in the cache: what a flush writes back.
    pub fn newest_cached(&self, slot: DirtyIndex) -> Seq {
        self.line(slot).cached
    }

    /// The place of the oldest store of the line that is not guaranteed.
    pub fn oldest_pending(&self, slot: DirtyIndex) -> Seq {
        self.line(slot).guaranteed
    }

    /// What this thread's flushes since its last fence have asked for on this line.
    pub fn flushed_by(&self, slot: DirtyIndex, thread: ThreadId) -> Seq {
        let line = self.line(slot);
        line.mark_of(thread).map_or(line.guaranteed, |mark| mark.flushed.max(line.guaranteed))
    }

    /// What flushes of all threads, not yet fenced, have asked for on this line.
    pub fn flushed_by_any(&self, slot: DirtyIndex) -> Seq {
        self.line(slot).flushed_by_any()
    }

    /// A flush of the thread asks for the stores of the line before `upto`.
    pub fn ask_by_flush(&mut self, thread: ThreadId, slot: DirtyIndex, upto: Seq) {
        let mark = self.mark(thread, slot);
        mark.flushed = mark.flushed.max(upto);
    }

    /// A non-temporal store of the thread asks for itself and, by line order, for the stores before it.
    pub fn ask_by_streaming(&mut self, thread: ThreadId, slot: DirtyIndex, upto: Seq) {
        let mark = self.mark(thread, slot);
        mark.streamed = mark.streamed.max(upto);
        self.threads.find_or_insert(thread).streamed += 1;
    }

    /// A fence of the thread: everything that it asked for is guaranteed.
    pub fn complete(&mut self, thread: ThreadId) -> FenceEffect {
        let Some(state) = self.threads.find(thread) else {
            return FenceEffect { counts: true, ..FenceEffect::default() };
        };
        let mut effect = FenceEffect {
            counts: true,
            flushes: std::mem::take(&mut state.flushes),
            streamed: std::mem::take(&mut state.streamed),
            ..FenceEffect::default()
        };
        let mut asked = std::mem::take(&mut state.asked);
        for slot in asked.drain(..) {
            let line = &mut self.lines[slot.0 as usize];
            let Some(at) = line.marks.iter().position(|mark| mark.thread == thread) else { continue };
            let mark = line.marks.swap_remove(at);
            effect.lines_asked += 1;
            let settled = self.guarantee(slot, mark.flushed.max(mark.streamed));
            effect.stores += settled;
            effect.lines_settled += u64::from(settled > 0);
        }
        // Hand the emptied vector back, for its room.
        if let Some(state) = self.threads.find(thread) {
            state.asked = asked;
        }
        effect
    }

    /// The stores of the line before `upto` are guaranteed; says how many newly are.
    pub fn guarantee(&mut self, slot: DirtyIndex, upto: Seq) -> u64 {
        let keep_bytes = self.detail == Detail::Bytes;
        let line = &mut self.lines[slot.0 as usize];
        if upto <= line.guaranteed {
            return 0;
        }
        let settled = upto.0 - line.guaranteed.0;
        let (into, bytes) = (&mut self.guaranteed, &mut self.settled_bytes);
        line.settle(upto, |store, line| push_settled(into, bytes, line, store, keep_bytes));
        if line.guaranteed == line.next {
            self.release(slot);
        }
        settled
    }

    /// The newest store of the line may be half done, until [`finish`](Self::finish).
    pub fn leave_unfinished(&mut self, slot: DirtyIndex) {
        self.unfinished.push(slot);
    }

    pub(crate) fn has_unfinished(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// What was half done is done, and guaranteed.
    pub fn finish(&mut self) {
        while let Some(slot) = self.unfinished.pop() {
            self.guarantee(slot, self.newest(slot));
        }
    }

    /// Everything pending on these lines of the pool is guaranteed; says how many lines and stores newly are.
    pub fn guarantee_lines(&mut self, pool: PoolId, lines: std::ops::Range<LineNo>) -> (u64, u64) {
        let mut stores = 0;
        let slots = self.dirty_in(pool, lines);
        for &slot in &slots {
            stores += self.guarantee(slot, self.newest(slot));
        }
        (slots.len() as u64, stores)
    }

    pub(crate) fn line(&self, slot: DirtyIndex) -> &DirtyLine {
        &self.lines[slot.0 as usize]
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = &DirtyLine> {
        self.table.values().map(|&slot| self.line(slot))
    }

    /// Lines on which the thread has asked for stores that are still pending.
    pub(crate) fn flush_pending(&self, thread: ThreadId) -> Vec<(DirtyIndex, Mark)> {
        let mut slots = self.threads.asked(thread).to_vec();
        slots.sort_unstable();
        slots.dedup();
        let live = |&slot: &DirtyIndex| {
            let line = self.line(slot);
            let mark = line.mark_of(thread).filter(|mark| mark.flushed.max(mark.streamed) > line.guaranteed);
            mark.map(|mark| (slot, *mark))
        };
        let mut found: Vec<(DirtyIndex, Mark)> = slots.iter().filter_map(live).collect();
        found.sort_unstable_by_key(|(slot, _)| self.line(*slot).id);
        found
    }

    pub(crate) fn count_flush(&mut self, thread: ThreadId) {
        self.threads.find_or_insert(thread).flushes += 1;
    }

    /// The thread is gone: nobody will complete what it asked for.
    pub(crate) fn forget_thread(&mut self, thread: ThreadId) {
        if let Some(state) = self.threads.remove(thread) {
            for slot in state.asked {
                self.lines[slot.0 as usize].marks.retain(|mark| mark.thread != thread);
            }
        }
    }

    #[inline]
    pub(crate) fn find_or_insert(&mut self, id: LineId) -> DirtyIndex {
        let slot = match self.recent[recent_at(id)] {
            Some((recent, slot)) if recent == id => return slot,
            _ => match self.table.entry(id) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    *entry.insert(take_slot(&mut self.lines, &mut self.free, &mut self.highest, id))
                }
            },
        };
        self.recent[recent_at(id)] = Some((id, slot));
        slot
    }

    #[inline]
    pub(crate) fn append(&mut self, slot: DirtyIndex, origin: &Origin, start: u8, bytes: &[u8]) {
        self.lines[slot.0 as usize].append(self.detail, self.alike, origin, start, bytes);
    }

    /// The dirty lines of a range, ascending.
    pub(crate) fn dirty_in(&self, pool: PoolId, lines: std::ops::Range<LineNo>) -> Vec<DirtyIndex> {
        let end = match self.highest.get(pool.0 as usize).copied().flatten() {
            Some(highest) => lines.end.0.min(highest.0 + 1),
            None => return Vec::new(),
        };
        let span = end.saturating_sub(lines.start.0);
        if span <= self.table.len() as u64 {
            (lines.start.0..end).filter_map(|line| self.find(LineId { pool, line: LineNo(line) })).collect()
        } else {
            let inside = |id: &LineId| id.pool == pool && (lines.start.0..end).contains(&id.line.0);
            let mut found: Vec<_> = self.table.iter().filter(|(id, _)| inside(id)).collect();
            found.sort_unstable_by_key(|(id, _)| **id);
            found.into_iter().map(|(_, slot)| *slot).collect()
        }
    }

    /// The line's pending stores are gone: something else has replaced its content for certain.
    pub(crate) fn discard(&mut self, slot: DirtyIndex) {
        let keep_bytes = self.detail == Detail::Bytes;
        let line = &mut self.lines[slot.0 as usize];
        let (into, bytes) = (&mut self.discarded, &mut self.settled_bytes);
        line.settle(line.next, |store, line| push_settled(into, bytes, line, store, keep_bytes));
        self.release(slot);
    }

    fn release(&mut self, slot: DirtyIndex) {
        let line = &mut self.lines[slot.0 as usize];
        line.clear();
        let id = line.id;
        self.table.remove(&id);
        // A table that one large transaction has blown up would else stay too large for the caches.
        if self.table.capacity() >= LARGE_TABLE && self.table.len() < self.table.capacity() / 16 {
            self.table.shrink_to(self.table.len() * 4);
        }
        self.free.push(slot);
        let recent = &mut self.recent[recent_at(id)];
        if recent.is_some_and(|(recent, _)| recent == id) {
            *recent = None;
        }
    }

    fn mark(&mut self, thread: ThreadId, slot: DirtyIndex) -> &mut Mark {
        let line = &mut self.lines[slot.0 as usize];
        if let Some(at) = line.marks.iter().position(|mark| mark.thread == thread) {
            return &mut self.lines[slot.0 as usize].marks[at];
        }
        let floor = line.guaranteed;
        line.marks.push(Mark { thread, flushed: floor, streamed: floor });
        let state = self.threads.find_or_insert(thread);
        if state.asked.len() >= state.thin_at.max(64) {
            // A thread that never fences would else grow this list with every line that others settle.
            let lines = &self.lines;
            state.asked.retain(|slot| lines[slot.0 as usize].mark_of(thread).is_some());
            state.asked.sort_unstable();
            state.asked.dedup();
            state.thin_at = state.asked.len() * 2;
        }
        state.asked.push(slot);
        let marks = &mut self.lines[slot.0 as usize].marks;
        let newest = marks.len() - 1;
        &mut marks[newest]
    }
}

/// A slot for a line that was clean.
fn take_slot(
    lines: &mut Vec<DirtyLine>,
    free: &mut Vec<DirtyIndex>,
    highest: &mut Vec<Option<LineNo>>,
    id: LineId,
) -> DirtyIndex {
    let pool = id.pool.0 as usize;
    if highest.len() <= pool {
        highest.resize(pool + 1, None);
    }
    highest[pool] = highest[pool].max(Some(id.line));
    match free.pop() {
        Some(slot) => {
            lines[slot.0 as usize].reuse(id);
            slot
        }
        None => {
            let slot = DirtyIndex(u32::try_from(lines.len()).expect("fewer than 2³² lines are dirty at once"));
            lines.push(DirtyLine::new(id));
            slot
        }
    }
}

fn push_settled(
    into: &mut Vec<SettledStore>,
    bytes: &mut Vec<u8>,
    line: &DirtyLine,
    store: &PendingStore,
    keep_bytes: bool,
) {
    let at = bytes.len();
    if keep_bytes {
        bytes.extend_from_slice(line.bytes_of(store));
    }
    into.push(SettledStore { line: line.id, store: *store, at });
}
