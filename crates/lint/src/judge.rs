//! The judgement at the end: which stores never became durable, and how far they got.
//!
//! It is passed once, when nothing can follow any more. Unmapping a pool settles nothing (the program may map it again,
//! or call `fsync` on its file), and neither does the end of a thread (another may flush the line again) or of one process
//! among several; what was pending then and stayed so is found here, and what was made durable later is no finding. A
//! thread that ends leaves its unfenced flushes behind: [`World`] keeps them, so that they are found here too.

use persistency::domain::{PendingStore, Route};
use persistency::line::ByteMask;
use persistency::point::LineView;
use persistency::tracker::Tracker;
use trace::event::{EventId, Place, PoolId, PoolOffset};

use crate::lint::Tag;
use crate::rule::{Loss, LostStore};
use crate::world::World;

/// All lost stores, by ascending place. Stores whose bytes were all stored again are left out: the later one counts.
pub(crate) fn lost(tracker: &Tracker, world: &World<'_>) -> Vec<LostStore> {
    let unfenced = world.all_unfenced();
    let mut lost = Vec::new();
    for pool in 0..world.tables.pools.len() as u32 {
        let whole = Place { pool: PoolId(pool), offset: PoolOffset(0) };
        for line in tracker.lines_in(whole, u64::MAX) {
            let flush = unfenced.get(&line.id()).copied();
            let elsewhere = world.last_flush(line.id()).map(|flush| flush.site);
            let last_streamed = line.stores().iter().rposition(|store| store.route.bypasses_cache());
            for (at, store) in newest(&line) {
                let (event, site) = Tag::unpack(store.event);
                let fate = if store.route.bypasses_cache() {
                    Loss::NeverDrained
                } else if last_streamed.is_some_and(|streamed| streamed > at) {
                    continue; // Line order: the fence that the later non-temporal store lacks would settle this one too.
                } else if let Some(flush) = flush.filter(|flush| flush.event > event) {
                    Loss::NeverFenced { flush: flush.site }
                } else {
                    Loss::NeverFlushed { elsewhere }
                };
                // What the file system zeroed at the boundary of a range is not the program's store.
                if store.route != Route::Zeroed {
                    let (thread, route) = (store.thread, store.route);
                    lost.push(LostStore { event, site, thread, line: line.id(), route, fate });
                }
            }
        }
    }
    lost
}

/// The pending stores that own at least one byte of the line, with their place in its list.
fn newest<'t>(line: &LineView<'t>) -> Vec<(usize, &'t PendingStore)> {
    let mut later = ByteMask::EMPTY;
    let mut found = Vec::new();
    for (at, store) in line.stores().iter().enumerate().rev() {
        if !store.mask().without(later).is_empty() {
            found.push((at, store));
        }
        later = later.or(store.mask());
    }
    found.reverse();
    found
}

/// An event number that no event has: the end of the trace.
pub(crate) const END: EventId = EventId(u64::MAX);
