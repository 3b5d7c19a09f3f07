//! Walks that begin near the place where they are wanted.
//!
//! Who looks for the cause of a failing state asks what is in PM at dozens of places around its crash point, most of them before it, and a walk only
//! goes forward. From the beginning of the trace each would cost as much as all events before it, so finding causes would take time quadratic in the
//! length of the run. [`Checkpoints::walk_to`] begins at a copy of an earlier walk, a *checkpoint*, and leaves checkpoints on its way.
//!
//! # What a checkpoint costs
//! It shares the pages of the guaranteed image, so its price is what is pending: that is copied, both to make it and to begin there. Where very much
//! is pending, checkpoints lie so far apart that copying takes no longer than walking does.
//!
//! # Which are kept
//! The next place is most likely near the last one: causes are looked for along the trace. Within [`NEAR`] events of it there is a checkpoint every
//! [`EVERY`] events, and further away they lie apart in proportion to the distance, at multiples of powers of two, so that thinning out needs no
//! decision: some thirty near ones and less than twenty for each further doubling of the distance. Together they hold [`MOST_BYTES`] beside
//! what one walk holds; above that the furthest are dropped.
//!
//! # When they mean nothing
//! They are of one trace under one set of rules and assumed repairs. A walk that is asked for under others drops them all.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use trace::TraceReader;
use trace::event::EventId;

use crate::assumed::AssumedRepairs;
use crate::walk::{Checkpoint, Rules, Walk, WalkError};

/// So far from the last place a cause may be looked for, and somewhat further (`EVENTS_BACK` of the crate `cause`).
const NEAR: u64 = 32 << 10;
/// To walk so many events takes about as long as a recovery of the fastest programs.
const EVERY: u64 = 1 << 10;
/// Above [`NEAR`], a checkpoint is wanted at each such part of the distance.
const PARTS: u64 = 16;
/// Beside the pages of one walk.
const MOST_BYTES: usize = 48 << 20;
/// To walk over an event takes about as long as to copy so many bytes of what is pending.
const BYTES_PER_EVENT: u64 = 64;

const PAGE_BYTES: usize = crate::image::PAGE_BYTES as usize;

/// Places of one trace from which walks can begin.
#[derive(Debug)]
pub struct Checkpoints {
    of: Option<Under>,
    kept: BTreeMap<EventId, Kept>,
    /// [`EVERY`] and [`BYTES_PER_EVENT`], but for tests.
    every: u64,
    bytes_per_event: u64,
}

impl Default for Checkpoints {
    fn default() -> Self {
        Checkpoints { of: None, kept: BTreeMap::new(), every: EVERY, bytes_per_event: BYTES_PER_EVENT }
    }
}

/// What all checkpoints are of.
#[derive(Debug)]
struct Under {
    fingerprint: u128,
    rules: Rules,
    assumed: Arc<AssumedRepairs>,
}

#[derive(Debug)]
struct Kept {
    checkpoint: Checkpoint,
    /// Of what is pending.
    pending_bytes: usize,
    /// Of pages that it does not share with the one before.
    page_bytes: usize,
}

/// The checkpoints that there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldCheckpoints {
    /// Ascending.
    pub places: Vec<EventId>,
    /// About as much memory they take, beside the pages of one walk.
    pub bytes: usize,
}

impl Checkpoints {
    /// At every event, whatever it costs: so that short traces show whether walks are right.
    pub fn dense() -> Self {
        Checkpoints { every: 1, bytes_per_event: u64::MAX, ..Checkpoints::default() }
    }

    /// A walk with these assumptions that has come to this place.
    pub fn walk_to<'r>(
        &mut self,
        reader: &'r TraceReader,
        rules: Rules,
        assumed: &Arc<AssumedRepairs>,
        at: EventId,
    ) -> Result<Walk<'r>, WalkError> {
        self.set_under(reader, rules, assumed);
        let mut walk = match self.kept.range(..=at).next_back() {
            Some((_, kept)) => Walk::from_checkpoint(reader, &kept.checkpoint),
            None => {
                let mut walk = Walk::new(reader, rules)?;
                walk.assume(Arc::clone(assumed));
                walk
            }
        };
        let mut last = walk.at();
        while let Some(next) = next_stop(walk.at(), at, self.every) {
            walk.advance_to(next)?;
            if walk.at() < next {
                break;
            }
            let pending_bytes = walk.pending_bytes();
            if (next.0 - last.0).saturating_mul(self.bytes_per_event) >= pending_bytes as u64 {
                self.kept.insert(next, Kept { checkpoint: walk.checkpoint(), pending_bytes, page_bytes: 0 });
                self.count_pages(next);
                last = next;
            }
        }
        walk.advance_to(at)?;
        self.thin(at);
        Ok(walk)
    }

    /// What is kept at present.
    pub fn held(&self) -> HeldCheckpoints {
        let bytes = self.kept.values().map(|kept| kept.pending_bytes + kept.page_bytes).sum();
        HeldCheckpoints { places: self.kept.keys().copied().collect(), bytes }
    }

    fn set_under(&mut self, reader: &TraceReader, rules: Rules, assumed: &Arc<AssumedRepairs>) {
        let fingerprint = reader.fingerprint();
        let is_same = |under: &Under| {
            let same_repairs = Arc::ptr_eq(&under.assumed, assumed) || under.assumed == *assumed;
            same_repairs && (under.fingerprint, under.rules) == (fingerprint, rules)
        };
        if !self.of.as_ref().is_some_and(is_same) {
            self.kept.clear();
            self.of = Some(Under { fingerprint, rules, assumed: Arc::clone(assumed) });
        }
    }

    /// The walk has come to `at`: keeps what is wanted from there.
    fn thin(&mut self, at: EventId) {
        let every = self.every;
        let is_wanted = |place: EventId| place.0.is_multiple_of(spacing(place.0.abs_diff(at.0), every));
        let mut held = 0;
        let mut unwanted = Vec::new();
        for (place, kept) in &self.kept {
            held += kept.pending_bytes + kept.page_bytes;
            unwanted.extend((!is_wanted(*place)).then_some(*place));
        }
        for place in unwanted {
            held = self.drop_one(place, held);
        }
        while held > MOST_BYTES && self.kept.len() > 1 {
            let (Some((&first, _)), Some((&last, _))) = (self.kept.first_key_value(), self.kept.last_key_value())
            else {
                break;
            };
            held = self.drop_one(if first.0.abs_diff(at.0) >= last.0.abs_diff(at.0) { first } else { last }, held);
        }
    }

    /// How many bytes are held then.
    fn drop_one(&mut self, place: EventId, held: usize) -> usize {
        let Some(dropped) = self.kept.remove(&place) else { return held };
        let Some((&next, kept)) = self.kept.range(place..).next() else {
            return held - dropped.pending_bytes - dropped.page_bytes;
        };
        let before = kept.page_bytes;
        self.count_pages(next);
        held + self.kept[&next].page_bytes - before - dropped.pending_bytes - dropped.page_bytes
    }

    /// Counts the pages anew that this checkpoint and the next one do not share with those before them. The first one holds those of a walk.
    fn count_pages(&mut self, place: EventId) {
        let mut changed = self.kept.range(place..);
        let places = [changed.next(), changed.next()].map(|known| known.map(|(&place, _)| place));
        for place in places.into_iter().flatten() {
            let before = self.kept.range(..place).next_back();
            let pages =
                before.map_or(0, |(_, before)| before.checkpoint.pages_not_shared(&self.kept[&place].checkpoint));
            if let Some(kept) = self.kept.get_mut(&place) {
                kept.page_bytes = pages * PAGE_BYTES;
            }
        }
    }
}

/// Walks over one trace as it is, without any assumption, for several who ask for the same places: what shows, confirms and keeps a finding.
#[derive(Debug)]
pub struct PlainWalks<'r> {
    reader: &'r TraceReader,
    rules: Rules,
    checkpoints: Mutex<Checkpoints>,
}

impl<'r> PlainWalks<'r> {
    pub fn new(reader: &'r TraceReader, rules: Rules) -> Self {
        PlainWalks { reader, rules, checkpoints: Mutex::default() }
    }

    /// A walk that has come to this place. While one goes there, others wait: they will find its checkpoints.
    pub fn to(&self, at: EventId) -> Result<Walk<'r>, WalkError> {
        let mut checkpoints = self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner);
        checkpoints.walk_to(self.reader, self.rules, &Arc::default(), at)
    }
}

/// How far apart checkpoints are wanted at this distance.
fn spacing(distance: u64, every: u64) -> u64 {
    // The largest power of two that is not above.
    let part = (distance / PARTS).max(1);
    if distance < NEAR { every } else { 1 << part.ilog2() }
}

/// The next place on the way at which a checkpoint is wanted.
fn next_stop(from: EventId, to: EventId, every: u64) -> Option<EventId> {
    let every = spacing(to.0 - from.0, every);
    let next = (from.0 / every + 1).checked_mul(every)?;
    (next <= to.0).then_some(EventId(next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_are_wanted_from_afar_are_wanted_from_nearer() {
        for exponent in 0..40 {
            let distance = 3_u64 << exponent;
            assert!(spacing(distance * 2, EVERY).is_multiple_of(spacing(distance, EVERY)), "{distance}");
            assert!(spacing(distance, EVERY) <= EVERY.max(distance / PARTS), "{distance}");
        }
    }

    #[test]
    fn there_are_few_however_long_the_trace() {
        for at in [0, 100, 50_000, 1_500_000, 3 << 30] {
            let (mut place, mut count) = (EventId(0), 0);
            while let Some(next) = next_stop(place, EventId(at), EVERY) {
                (place, count) = (next, count + 1);
            }
            let doublings = (at / NEAR + 1).ilog2() as u64 + 1;
            assert!(count <= 34 + 20 * doublings && at - place.0 < EVERY, "{count} to {at}");
        }
    }
}
