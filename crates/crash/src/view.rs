//! A crash point with the bytes that its states have.

use std::cell::{OnceCell, RefCell};
use std::cmp::Reverse;
use std::rc::Rc;

use num_bigint::BigUint;
use persistency::line::LineId;
use persistency::point::{Content, CrashPoint, LineView, PointError};
use persistency::states::{Base, CrashState};
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::chosen::Chosen;
use crate::image::{CrashImage, GuaranteedImage, LineBytes};
use crate::newest::NewestContents;

/// Stands for the bytes of a crash state at its point: states with equal bytes have equal ones. Two others are taken for
/// one with a probability of 2⁻¹²⁸ per pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StateKey(u128);

/// Contents of one line that differ in their bytes.
#[derive(Debug)]
pub struct DistinctContents {
    pub contents: Vec<(Content, LineBytes)>,
    /// False if the line has too many pending stores to look at every one of them.
    pub are_all: bool,
}

/// Of lines with more pending stores only the newest ones are taken apart.
const MOST_CONTENTS: usize = 4096;
/// Cuts of one line that are looked at.
const MOST_CUTS: usize = 4096;

/// What a power failure at one place of a trace could leave, byte for byte.
#[derive(Debug)]
pub struct PointView<'w> {
    crash: CrashPoint<'w>,
    guaranteed: &'w GuaranteedImage,
    newest: &'w RefCell<NewestContents>,
    /// Of what [`StateKey`]s are made: per line and content. Filled as states are asked for.
    parts: RefCell<FxHashMap<(usize, Content), u128>>,
    everything: RefCell<Option<u128>>,
    distinct: RefCell<FxHashMap<usize, Rc<DistinctContents>>>,
    cuts: RefCell<FxHashMap<usize, Rc<DistinctContents>>>,
    places: OnceCell<FxHashMap<LineId, usize>>,
    chosen: &'w Chosen,
}

impl<'w> PointView<'w> {
    pub(crate) fn new(
        crash: CrashPoint<'w>,
        guaranteed: &'w GuaranteedImage,
        newest: &'w RefCell<NewestContents>,
        chosen: &'w Chosen,
    ) -> Self {
        let (parts, everything, distinct, cuts, places) = Default::default();
        PointView { crash, guaranteed, newest, parts, everything, distinct, cuts, places, chosen }
    }

    pub fn crash_point(&self) -> &CrashPoint<'w> {
        &self.crash
    }

    pub fn guaranteed(&self) -> &'w GuaranteedImage {
        self.guaranteed
    }

    /// States that break conditions.
    pub fn chosen(&self) -> &'w Chosen {
        self.chosen
    }

    /// The dirty lines, ascending.
    pub fn lines(&self) -> &[LineView<'w>] {
        self.crash.lines()
    }

    /// The place of a line in [`lines`](Self::lines); none if it is not dirty.
    pub fn index_of(&self, id: LineId) -> Option<usize> {
        // Asked for every line that a recovery reads, nearly all of which are clean.
        let lines = || self.lines().iter().enumerate().map(|(index, line)| (line.id(), index)).collect();
        self.places.get_or_init(lines).get(&id).copied()
    }

    /// How many crash states there are, with the stores of each line whole and in order.
    pub fn state_count(&self) -> BigUint {
        self.crash.state_count()
    }

    /// The bytes that a dirty line has with this content.
    ///
    /// # Panics
    /// If the line cannot have this content.
    pub fn bytes(&self, index: usize, content: Content) -> LineBytes {
        let line = &self.lines()[index];
        if content == everything_of(line) {
            return self.newest.borrow_mut().bytes(line, self.guaranteed);
        }
        if let Some(distinct) = self.distinct.borrow().get(&index).filter(|_| content.is_whole()) {
            let found =
                distinct.contents.binary_search_by_key(&Reverse(content.kept), |(known, _)| Reverse(known.kept));
            if let Ok(at) = found {
                return distinct.contents[at].1;
            }
        }
        let mut bytes = self.guaranteed.line(line.id());
        line.overlay(content, &mut bytes).expect("a content of this line");
        self.guaranteed.cut(line.id(), &mut bytes);
        bytes
    }

    /// What a state has of any line.
    pub fn line_of(&self, state: &CrashState, id: LineId) -> LineBytes {
        match self.index_of(id) {
            Some(index) => self.bytes(index, state.content(&self.lines()[index])),
            None => self.guaranteed.line(id),
        }
    }

    /// The contents of a dirty line with its stores whole and in order that differ in their bytes, with these: everything first, then fewer
    /// and fewer stores. Of several with equal bytes it is the one with the most stores.
    pub fn distinct_contents(&self, index: usize) -> Rc<DistinctContents> {
        if let Some(known) = self.distinct.borrow().get(&index) {
            return Rc::clone(known);
        }
        let line = &self.lines()[index];
        let mut bytes = self.guaranteed.line(line.id());
        let mut newest: FxHashMap<LineBytes, u32> = FxHashMap::from_iter([(bytes, 0)]);
        let left_out = line.stores().len().saturating_sub(MOST_CONTENTS);
        for (kept, store) in (1..).zip(line.stores()) {
            let stored = line.bytes(store).expect("the walk's tracker keeps bytes");
            bytes[store.start as usize..][..stored.len()].copy_from_slice(stored);
            if kept as usize > left_out {
                self.guaranteed.cut(line.id(), &mut bytes);
                newest.insert(bytes, kept);
            }
        }
        let mut contents: Vec<_> = newest.into_iter().map(|(bytes, kept)| (Content::whole(kept), bytes)).collect();
        contents.sort_unstable_by_key(|(content, _)| Reverse(content.kept));
        let distinct = Rc::new(DistinctContents { contents, are_all: left_out == 0 });
        self.distinct.borrow_mut().insert(index, Rc::clone(&distinct));
        distinct
    }

    /// What else a dirty line can have: wide stores cut, non-temporal ones out of order. Without those whose bytes whole stores have, too; the likely
    /// ones first, as [`LineView::cuts`] has them.
    pub fn distinct_cuts(&self, index: usize) -> Rc<DistinctContents> {
        if let Some(known) = self.cuts.borrow().get(&index) {
            return Rc::clone(known);
        }
        let line = &self.lines()[index];
        let mut cuts = line.cuts().expect("the walk's tracker keeps bytes").peekable();
        let mut contents = Vec::new();
        let mut are_all = true;
        if cuts.peek().is_some() {
            let whole = self.distinct_contents(index);
            are_all = whole.are_all;
            let mut known: FxHashSet<LineBytes> = whole.contents.iter().map(|(_, bytes)| *bytes).collect();
            let taken: Vec<Content> = cuts.by_ref().take(MOST_CUTS).collect();
            let first = taken.iter().map(|content| content.kept).min().unwrap_or_default();
            let prefixes = self.prefixes(index, first as usize);
            for content in taken {
                let mut bytes = prefixes[(content.kept - first) as usize];
                line.overlay_ahead(content, &mut bytes).expect("a content of this line");
                self.guaranteed.cut(line.id(), &mut bytes);
                if known.insert(bytes) {
                    contents.push((content, bytes));
                }
            }
            are_all &= cuts.peek().is_none();
        }
        let distinct = Rc::new(DistinctContents { contents, are_all });
        self.cuts.borrow_mut().insert(index, Rc::clone(&distinct));
        distinct
    }

    /// The bytes of a line with the first `first` of its stores, with one more, and so on.
    fn prefixes(&self, index: usize, first: usize) -> Vec<LineBytes> {
        let line = &self.lines()[index];
        let mut bytes = self.guaranteed.line(line.id());
        let mut prefixes = Vec::new();
        for (kept, store) in line.stores().iter().enumerate() {
            if kept >= first {
                prefixes.push(bytes);
            }
            let stored = line.bytes(store).expect("the walk's tracker keeps bytes");
            bytes[store.start as usize..][..stored.len()].copy_from_slice(stored);
        }
        prefixes
    }

    /// The image of a state.
    ///
    /// # Errors
    /// If it is not a state of this point.
    pub fn image(&self, state: &CrashState) -> Result<CrashImage<'w>, PointError> {
        self.crash.check(state)?;
        let mut lines = Vec::new();
        let mut take = |index: usize, content: Content| {
            let id = self.lines()[index].id();
            let bytes = self.bytes(index, content);
            if bytes != self.guaranteed.line(id) {
                lines.push((id, bytes));
            }
        };
        match state.base {
            Base::Guaranteed => {
                for &(id, content) in &state.lines {
                    // A clean line may be named with the only content that it has.
                    if let Some(index) = self.index_of(id) {
                        take(index, content);
                    }
                }
            }
            Base::Everything => {
                let mut named = state.lines.iter().peekable();
                for (index, line) in self.lines().iter().enumerate() {
                    while named.next_if(|(id, _)| *id < line.id()).is_some() {}
                    let content = named.next_if(|(id, _)| *id == line.id()).map(|&(_, content)| content);
                    take(index, content.unwrap_or_else(|| everything_of(line)));
                }
            }
        }
        Ok(CrashImage::new(self.guaranteed, lines))
    }

    /// Costs what the state's lines cost, not what the point's do (but for the first).
    pub fn key(&self, state: &CrashState) -> StateKey {
        let mut key = match state.base {
            Base::Guaranteed => 0,
            Base::Everything => self.everything_key(),
        };
        for &(id, content) in &state.lines {
            let Some(index) = self.index_of(id) else { continue };
            if state.base == Base::Everything {
                key ^= self.part(index, everything_of(&self.lines()[index]));
            }
            key ^= self.part(index, content);
        }
        StateKey(key)
    }

    fn everything_key(&self) -> u128 {
        if let Some(known) = *self.everything.borrow() {
            return known;
        }
        let parts = self.lines().iter().enumerate().map(|(index, line)| self.part(index, everything_of(line)));
        let key = parts.fold(0, |key, part| key ^ part);
        *self.everything.borrow_mut() = Some(key);
        key
    }

    /// Nothing for a line that is as guaranteed: states name different lines but may have the same bytes.
    fn part(&self, index: usize, content: Content) -> u128 {
        if let Some(&known) = self.parts.borrow().get(&(index, content)) {
            return known;
        }
        let bytes = self.bytes(index, content);
        let same = bytes == self.guaranteed.line(self.lines()[index].id());
        let part = if same { 0 } else { xxh3_128_with_seed(&bytes, index as u64) };
        self.parts.borrow_mut().insert((index, content), part);
        part
    }
}

/// All stores of a line.
pub fn everything_of(line: &LineView<'_>) -> Content {
    Content::whole(u32::try_from(line.pending()).unwrap_or(u32::MAX))
}
