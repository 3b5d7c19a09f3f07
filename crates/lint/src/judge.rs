//! The judgement at the end: which stores never became durable, and how far they got.
//!
//! It is passed once, when nothing can follow any more. Unmapping a pool settles nothing (the program may map it again,
//! or call `fsync` on its file), and neither does the end of a thread (another may flush the line again) or of one process
//! among several; what was pending then and stayed so is found here, and what was made durable later is no finding. A
//! thread that ends leaves its unfenced flushes behind: [`World`] keeps them, so that they are found here too.

use finding::blame;
use finding::site::SiteId;
use persistency::domain::{PendingStore, Route};
use persistency::line::{ByteMask, LineId};
use persistency::point::LineView;
use persistency::tracker::Tracker;
use rustc_hash::FxHashMap;
use trace::event::{EventId, Place, PoolId, PoolOffset};
use trace::symbol::Symbolizer;

use crate::lint::{Active, Tag};
use crate::rule::{Loss, LostStore};
use crate::world::{UnfencedFlush, World};

/// All lost stores, by ascending place. Stores whose bytes were all stored again are left out: the later one counts.
pub(crate) fn lost(tracker: &Tracker, world: &World<'_>) -> Vec<LostStore> {
    let unfenced = world.all_unfenced();
    let mut lost = Vec::new();
    for line in dirty_lines(tracker, world) {
        let last_streamed = line.stores().iter().rposition(|store| store.route.bypasses_cache());
        for (at, store) in newest(&line) {
            // Line order: the fence that the later non-temporal store lacks would settle this one too.
            let settled_with_it = last_streamed.is_some_and(|streamed| streamed > at);
            if store.route.bypasses_cache() || !settled_with_it {
                lost.extend(loss(&line, store, &unfenced, world));
            }
        }
    }
    lost
}

/// Whether a rule would report one of the pending stores. All of them count, those whose bytes were stored again as well: the later ones may turn out
/// to have changed nothing.
pub(crate) fn may_be_reported(rules: &[Active], tracker: &Tracker, world: &World<'_>) -> bool {
    let unfenced = world.all_unfenced();
    let mut symbols = Symbolizer::new(world.tables);
    let mut dismissed: FxHashMap<(usize, SiteId), bool> = FxHashMap::default();
    let mut is_reported = |lost: LostStore| {
        rules.iter().enumerate().any(|(at, active)| {
            let Some((site, role)) = active.rule.blames(&lost) else { return false };
            !*dismissed.entry((at, site)).or_insert_with(|| {
                let frames = blame::frames(world.sites.get(site), role, world.tables, &mut symbols);
                active.rule.dismisses(&frames)
            })
        })
    };
    dirty_lines(tracker, world).iter().any(|line| {
        let stores = line.stores().iter().chain(line.forgotten());
        stores.filter_map(|store| loss(line, store, &unfenced, world)).any(&mut is_reported)
    })
}

fn dirty_lines<'t>(tracker: &'t Tracker, world: &World<'_>) -> Vec<LineView<'t>> {
    let whole = |pool| Place { pool: PoolId(pool), offset: PoolOffset(0) };
    (0..world.tables.pools.len() as u32).flat_map(|pool| tracker.lines_in(whole(pool), u64::MAX)).collect()
}

/// How far a pending store got. None for what the file system zeroed at the boundary of a range: that is not the program's store.
fn loss(
    line: &LineView<'_>,
    store: &PendingStore,
    unfenced: &FxHashMap<LineId, UnfencedFlush>,
    world: &World<'_>,
) -> Option<LostStore> {
    let (event, site) = Tag::unpack(store.event);
    let flush = unfenced.get(&line.id()).filter(|flush| flush.event > event);
    let fate = if store.route.bypasses_cache() {
        Loss::NeverDrained
    } else if let Some(flush) = flush {
        Loss::NeverFenced { flush: flush.site }
    } else {
        Loss::NeverFlushed { elsewhere: world.last_flush(line.id()).map(|flush| flush.site) }
    };
    let (thread, route) = (store.thread, store.route);
    (route != Route::Zeroed).then(|| LostStore { event, site, thread, line: line.id(), route, fate })
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
