//! A crash point: the dirty lines at one place of the trace, and what a power failure there could leave on each.

use std::collections::BTreeMap;

use num_bigint::BigUint;
use trace::event::ThreadId;

use crate::content;
pub use crate::content::{Ahead, Content};
use crate::domain::{Detail, PendingStore};
use crate::line::{ByteMask, LINE_BYTES, LineId};
use crate::pending::{DirtyLine, Mark};
use crate::states::{Base, CrashState, States};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PointError {
    #[error("the tracker keeps {have:?} of pending stores, but this needs {need:?}; make it with Detail::{need:?}")]
    TooLittleDetail { have: Detail, need: Detail },
    #[error("{line:?} has {pending} pending stores here: it cannot have {content:?} in PM")]
    Impossible { line: LineId, pending: u64, content: Content },
}

/// A line with pending stores.
#[derive(Clone, Copy, Debug)]
pub struct LineView<'t> {
    line: &'t DirtyLine,
    detail: Detail,
}

impl<'t> LineView<'t> {
    pub(crate) fn new(line: &'t DirtyLine, detail: Detail) -> Self {
        LineView { line, detail }
    }

    pub fn id(&self) -> LineId {
        self.line.id
    }

    /// How many stores are not guaranteed; exact at every [`Detail`].
    pub fn pending(&self) -> u64 {
        self.line.pending()
    }

    /// The stores that are not guaranteed, oldest first; see [`crate::content`] for how they reach PM. With
    /// [`Detail::LastWriters`] those are missing whose bytes have all been stored again.
    pub fn stores(&self) -> &'t [PendingStore] {
        self.line.stores()
    }

    /// Of the stores that [`Detail::LastWriters`] has forgotten, the newest of each [kind](crate::tracker::Tracker::keep_one_of_each).
    pub fn forgotten(&self) -> impl Iterator<Item = &'t PendingStore> + use<'t> {
        self.line.forgotten()
    }

    /// The stores that no flush has asked for, and that did not ask for themselves.
    pub fn unasked(&self) -> impl Iterator<Item = &'t PendingStore> + use<'t> {
        let asked = self.line.marks.iter().map(|mark| mark.flushed.max(mark.streamed)).max();
        let asked = asked.unwrap_or(self.line.guaranteed);
        self.line.stores().iter().filter(move |store| store.seq >= asked)
    }

    /// The threads that have asked for stores of this line and not fenced since.
    pub fn asking_threads(&self) -> impl Iterator<Item = ThreadId> + use<'t> {
        let guaranteed = self.line.guaranteed;
        let live = self.line.marks.iter().filter(move |mark| mark.flushed.max(mark.streamed) > guaranteed);
        live.map(|mark| mark.thread)
    }

    /// The bytes of one of [`stores`](Self::stores).
    pub fn bytes(&self, store: &PendingStore) -> Result<&'t [u8], PointError> {
        self.needs(Detail::Bytes)?;
        Ok(self.line.bytes_of(store))
    }

    /// Everything that can be in PM of this line: first the stores in their order, whole, from nothing to all; then what is
    /// torn or out of order.
    pub fn contents(&self) -> Result<impl Iterator<Item = Content> + use<'t>, PointError> {
        let cuts = self.cuts()?;
        let whole = (0..=self.line.stores().len()).map(|kept| Content::whole(kept as u32));
        Ok(whole.chain(cuts))
    }

    /// The contents that are no prefix of the stores: wide stores cut at granules, non-temporal ones out of order. Those of the newest stores
    /// come first, and those without holes come before the others.
    pub fn cuts(&self) -> Result<impl Iterator<Item = Content> + use<'t>, PointError> {
        self.needs(Detail::Stores)?;
        Ok(content::cuts(self.line.stores()))
    }

    /// How many [`contents`](Self::contents) there are.
    pub fn content_count(&self) -> Result<BigUint, PointError> {
        self.needs(Detail::Stores)?;
        Ok(content::count(self.line.stores()))
    }

    /// Calls `each` with every store of a content, oldest first, and with the bytes of the line that it has of that store.
    pub fn for_each_store(&self, content: Content, each: impl FnMut(&PendingStore, ByteMask)) {
        content.for_each_store(self.line.stores(), each);
    }

    /// Puts the stores of `content` onto `bytes`, which hold what is guaranteed of this line.
    pub fn overlay(&self, content: Content, bytes: &mut [u8; LINE_BYTES]) -> Result<(), PointError> {
        self.needs(Detail::Bytes)?;
        self.check(content)?;
        content.for_each_store(self.line.stores(), |store, there| self.put(store, there, bytes));
        Ok(())
    }

    /// As [`overlay`](Self::overlay), where `bytes` hold the stores that are kept already.
    pub fn overlay_ahead(&self, content: Content, bytes: &mut [u8; LINE_BYTES]) -> Result<(), PointError> {
        self.needs(Detail::Bytes)?;
        self.check(content)?;
        let rest = &self.line.stores()[content.kept as usize..];
        Content { kept: 0, ..content }.for_each_store(rest, |store, there| self.put(store, there, bytes));
        Ok(())
    }

    fn put(&self, store: &PendingStore, there: ByteMask, bytes: &mut [u8; LINE_BYTES]) {
        let (at, stored) = (store.start as usize, self.line.bytes_of(store));
        if there == store.mask() {
            bytes[at..at + stored.len()].copy_from_slice(stored);
            return;
        }
        for (at, &byte) in (at..).zip(stored).filter(|(at, _)| there.0 >> at & 1 == 1) {
            bytes[at] = byte;
        }
    }

    /// Can this be in PM of the line?
    pub fn check(&self, content: Content) -> Result<(), PointError> {
        let pending = self.pending();
        let possible = if content.is_whole() {
            u64::from(content.kept) <= pending
        } else {
            self.needs(Detail::Stores)?;
            content.is_possible(self.line.stores())
        };
        if possible { Ok(()) } else { Err(PointError::Impossible { line: self.id(), pending, content }) }
    }

    fn needs(&self, need: Detail) -> Result<(), PointError> {
        let enough = self.detail == need || self.detail == Detail::Bytes;
        if enough { Ok(()) } else { Err(PointError::TooLittleDetail { have: self.detail, need }) }
    }
}

/// A line of which a thread has asked for stores that no fence has completed.
#[derive(Clone, Copy, Debug)]
pub struct PendingFlush<'t> {
    pub line: LineView<'t>,
    mark: Mark,
}

impl<'t> PendingFlush<'t> {
    pub(crate) fn new(line: LineView<'t>, mark: Mark) -> Self {
        PendingFlush { line, mark }
    }

    /// The pending stores that the thread's flushes asked for.
    pub fn flushed(&self) -> impl Iterator<Item = &'t PendingStore> + use<'t> {
        let upto = self.mark.flushed;
        self.line.line.stores().iter().take_while(move |store| store.seq < upto)
    }

    /// The thread's own pending non-temporal stores.
    pub fn streamed(&self) -> impl Iterator<Item = &'t PendingStore> + use<'t> {
        let mark = self.mark;
        let before = self.line.line.stores().iter().take_while(move |store| store.seq < mark.streamed);
        before.filter(move |store| store.thread == mark.thread && store.route.bypasses_cache())
    }
}

/// What a power failure at one place of the trace could leave: any [`Content`] of each of these lines.
#[derive(Clone, Debug)]
pub struct CrashPoint<'t> {
    lines: Vec<LineView<'t>>,
}

impl<'t> CrashPoint<'t> {
    pub(crate) fn new(mut lines: Vec<LineView<'t>>) -> Self {
        lines.sort_unstable_by_key(LineView::id);
        CrashPoint { lines }
    }

    /// The dirty lines, ascending. All other lines have what is guaranteed.
    pub fn lines(&self) -> &[LineView<'t>] {
        &self.lines
    }

    pub fn line(&self, id: LineId) -> Option<&LineView<'t>> {
        self.lines.binary_search_by_key(&id, LineView::id).ok().map(|at| &self.lines[at])
    }

    /// How many crash states there are with the stores of each line whole and in order: exact at every [`Detail`].
    pub fn state_count(&self) -> BigUint {
        product(self.lines.iter().map(|line| line.pending() + 1))
    }

    /// How many crash states there are.
    pub fn torn_state_count(&self) -> Result<BigUint, PointError> {
        let counts: Result<Vec<BigUint>, PointError> = self.lines.iter().map(LineView::content_count).collect();
        Ok(counts?.into_iter().product())
    }

    /// All crash states with the stores of each line whole and in order, those nearest to `base` first: by the number of stores
    /// that they have more (or fewer), then by line.
    pub fn states(&self, base: Base) -> States {
        States::new(base, self.lines.iter().map(|line| (line.id(), line.pending())).collect())
    }

    /// Is this one of the states of this point?
    pub fn check(&self, state: &CrashState) -> Result<(), PointError> {
        let mut rest = &self.lines[..];
        state.lines.iter().try_for_each(|&(id, content)| {
            rest = from(rest, id);
            match rest.first().filter(|line| line.id() == id) {
                Some(line) => line.check(content),
                None if content == Content::default() => Ok(()),
                None => Err(PointError::Impossible { line: id, pending: 0, content }),
            }
        })
    }
}

/// The lines from `id` on. Looks near the beginning first: states of a program that never flushes name ten thousands of lines, one after the other.
fn from<'a, 't>(lines: &'a [LineView<'t>], id: LineId) -> &'a [LineView<'t>] {
    let mut reach = 1;
    while lines.get(reach - 1).is_some_and(|line| line.id() < id) {
        reach *= 2;
    }
    let near = &lines[..reach.min(lines.len())];
    &lines[near.partition_point(|line| line.id() < id)..]
}

/// Equal factors are multiplied as one power: points with many lines have few different counts.
fn product(factors: impl Iterator<Item = u64>) -> BigUint {
    let mut times: BTreeMap<u64, u32> = BTreeMap::new();
    for factor in factors {
        *times.entry(factor).or_default() += 1;
    }
    times.into_iter().map(|(factor, times)| BigUint::from(factor).pow(times)).product()
}
