//! How much of a line's pending stores is in PM.
//!
//! A line's stores form *steps*, which reach PM in their order: step *n* begins once all of step *n − 1* is there. Within a step each
//! granule (8 aligned bytes) gets its stores in order, and the granules are independent of one another. So a step is
//!
//! - a store through the cache: narrow ones have one granule and are there or not, wide ones can be torn;
//! - `movdir64b`: always whole;
//! - a run of non-temporal stores of one thread with nothing else between them: see [the model](crate::adr).
//!
//! Which stores reach how far is a [`Content`]. Each has one form only, so equal contents are equal values.

use num_bigint::BigUint;
use serde::{Deserialize, Serialize};

use crate::line::{ByteMask, GranuleMask, LINE_BYTES};
use crate::pending::{PendingStore, Route};

/// Granules of a line.
pub const GRANULES: usize = LINE_BYTES / crate::line::GRANULE_BYTES;

/// How much of a line's pending stores is in PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Content {
    /// So many of the oldest, whole. The next one is missing, at least in part.
    pub kept: u32,
    /// What is there of the step that the next one belongs to.
    #[serde(default, skip_serializing_if = "Ahead::is_empty")]
    pub ahead: Ahead,
}

/// Per granule, how many stores are in PM beyond those that are kept, counting only stores that write to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ahead(pub [u16; GRANULES]);

impl Ahead {
    pub const NOTHING: Ahead = Ahead([0; GRANULES]);

    pub fn is_empty(&self) -> bool {
        *self == Ahead::NOTHING
    }
}

impl Content {
    pub fn whole(kept: u32) -> Self {
        Content { kept, ahead: Ahead::NOTHING }
    }

    /// Some prefix of the stores, none of them cut.
    pub fn is_whole(&self) -> bool {
        self.ahead.is_empty()
    }

    /// Calls `each` with every store that is in PM, oldest first, and with the bytes of the line that are.
    pub(crate) fn for_each_store(&self, stores: &[PendingStore], mut each: impl FnMut(&PendingStore, ByteMask)) {
        let (whole, rest) = stores.split_at((self.kept as usize).min(stores.len()));
        whole.iter().for_each(|store| each(store, store.mask()));
        let mut left = self.ahead;
        for store in rest {
            if left.is_empty() {
                break;
            }
            let there = GranuleMask(granules(store).filter(|&g| take_one(&mut left.0[g])).fold(0, |m, g| m | 1 << g));
            if !there.is_empty() {
                each(store, there.bytes().and(store.mask()));
            }
        }
    }

    /// Can this be in PM, and is it in the one form that it has?
    pub(crate) fn is_possible(&self, stores: &[PendingStore]) -> bool {
        let kept = self.kept as usize;
        if self.is_whole() || kept >= stores.len() {
            return self.is_whole() && kept <= stores.len();
        }
        if stores[kept].route == Route::Direct64 {
            return false;
        }
        let reach = reach(&stores[kept..step_end(stores, kept)]);
        let inside = self.ahead.0.iter().zip(reach).all(|(there, most)| *there <= most);
        inside && granules(&stores[kept]).any(|granule| self.ahead.0[granule] == 0)
    }
}

fn take_one(count: &mut u16) -> bool {
    let some = *count > 0;
    *count = count.saturating_sub(1);
    some
}

fn granules(store: &PendingStore) -> impl Iterator<Item = usize> + use<> {
    let mask = store.mask().granules().0;
    (0..GRANULES).filter(move |granule| mask >> granule & 1 == 1)
}

/// The end of the step that begins with this store (or goes on with it).
fn step_end(stores: &[PendingStore], first: usize) -> usize {
    if stores[first].route != Route::NonTemporal {
        return first + 1;
    }
    // A longer run has far more contents than anybody looks at; it is cut so that counts fit.
    let most = stores.len().min(first + usize::from(u16::MAX));
    let thread = stores[first].thread;
    let goes_on = |store: &&PendingStore| store.route == Route::NonTemporal && store.thread == thread;
    first + stores[first..most].iter().take_while(goes_on).count()
}

/// How many of these stores write to each granule.
fn reach(stores: &[PendingStore]) -> [u16; GRANULES] {
    let mut counts = [0; GRANULES];
    stores.iter().flat_map(granules).for_each(|granule| counts[granule] += 1);
    counts
}

/// The steps of these stores: begin and end.
fn steps(stores: &[PendingStore]) -> impl DoubleEndedIterator<Item = (usize, usize)> + use<> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < stores.len() {
        let end = step_end(stores, at);
        // Most stores are narrow: they have no cuts.
        if end - at > 1 || stores[at].can_tear() {
            found.push((at, end));
        }
        at = end;
    }
    found.into_iter()
}

/// How many contents these stores have.
pub(crate) fn count(stores: &[PendingStore]) -> BigUint {
    let mut total = BigUint::from(stores.len() as u64 + 1);
    for (first, end) in steps(stores) {
        let counts = reach(&stores[first..end]);
        let all: BigUint = counts.iter().map(|&count| BigUint::from(u32::from(count) + 1)).product();
        total += all - (end - first + 1) as u64;
    }
    total
}

/// The contents that are no prefix, the newest steps first: in each those that leave all but the first or all but the last stores or granules,
/// then the others. Every two granules are told apart by the former: one is there without the other, and the other way round.
pub(crate) fn cuts(stores: &[PendingStore]) -> impl Iterator<Item = Content> + use<'_> {
    let solid = steps(stores).rev().flat_map(|(first, end)| solid(stores, first, end));
    let others = steps(stores).rev().flat_map(|(first, end)| {
        let known = solid_set(stores, first, end);
        every(stores, first, end).filter(move |content| known.binary_search(content).is_err())
    });
    solid.chain(others)
}

fn solid_set(stores: &[PendingStore], first: usize, end: usize) -> Vec<Content> {
    let mut known = solid(stores, first, end);
    known.sort_unstable();
    known
}

/// The cuts of a step without holes.
fn solid(stores: &[PendingStore], first: usize, end: usize) -> Vec<Content> {
    let full = reach(&stores[first..end]);
    let mut found: Vec<Content> = Vec::new();
    let mut add = |counts: [u16; GRANULES]| {
        let content = canonical(stores, first, counts);
        if !content.is_whole() && !found.contains(&content) {
            found.push(content);
        }
    };
    // The later stores without the earlier ones; a granule with a later one has the earlier ones, too.
    let mut later = [0; GRANULES];
    for at in (first + 1..end).rev().take(GRANULES * 2) {
        granules(&stores[at]).for_each(|granule| later[granule] = full[granule]);
        add(later);
    }
    // The lower and the upper granules.
    for boundary in 1..GRANULES {
        let (mut lower, mut upper) = (full, full);
        lower[boundary..].fill(0);
        upper[..boundary].fill(0);
        add(lower);
        add(upper);
    }
    found
}

/// All cuts of a step.
fn every(stores: &[PendingStore], first: usize, end: usize) -> impl Iterator<Item = Content> + use<'_> {
    let full = reach(&stores[first..end]);
    let next = move |counts: &[u16; GRANULES]| {
        // An odometer.
        let mut counts = *counts;
        let at = (0..GRANULES).find(|&granule| counts[granule] < full[granule])?;
        counts[..at].fill(0);
        counts[at] += 1;
        Some(counts)
    };
    std::iter::successors(Some([0; GRANULES]), next)
        .map(move |counts| canonical(stores, first, counts))
        .filter(|content| !content.is_whole())
}

/// The content with everything before `first` and, from there on, so many stores per granule.
fn canonical(stores: &[PendingStore], first: usize, mut counts: [u16; GRANULES]) -> Content {
    let mut kept = first;
    while kept < stores.len() && granules(&stores[kept]).all(|granule| counts[granule] > 0) {
        granules(&stores[kept]).for_each(|granule| counts[granule] -= 1);
        kept += 1;
    }
    Content { kept: kept as u32, ahead: Ahead(counts) }
}
