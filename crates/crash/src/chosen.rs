//! Which states the strategy *inferred* tries, chosen over the whole run before the search.
//!
//! An order says that *X* must be in PM before *Y*: it is broken by a state that has a pending store to *Y* and lacks one to *X*.
//! Guardians must reach PM together: that is broken by a state that has a pending store to one and lacks one to another.
//! Each pair of pending stores can be broken in two ways: by the state with the **least** (what is guaranteed and, of *Y*'s line, the
//! stores up to that one), which is the image that the paper makes (Witcher, Figure 3g), and by the one with the **most** (everything
//! but, of *X*'s line, that store and what follows), which it does not: there the program got furthest with *X* forgotten.
//!
//! **Pieces.** Stores in a row by one function to neighbouring bytes write one object, a text for example, and are taken for two guardians. The
//! paper has no such rule: what is read word by word and only printed depends on nothing, and a torn one would go unnoticed.
//!
//! **Kinds.** Of states that are alike only some are taken: see [`crate::kinds`]. Where very many stores are pending, the newest are looked at.
//!
//! It deviates from the paper, which tries every violation, and can miss what only shows in a repetition that is not tried; the strategy
//! *visible* looks at every point. The choice depends on the trace and on the conditions alone, not on shards or workers.

use std::cmp::Reverse;
use std::sync::Arc;

use infer::Conditions;
use persistency::states::CrashState;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::event::{CodeAddr, ContextId, EventId, EventKind};
use trace::{Events, ReadError, TraceReader};

use crate::assumed::AssumedRepairs;
use crate::kinds::{Candidate, Kinds, PairKind, SiteNo, Way};
use crate::rounds::Shard;
use crate::search::SearchOptions;
use crate::strategy::StrategySpec;
use crate::strategy::inferred::KnownConditions;
use crate::strategy::violation::Touched;
use crate::survey::{Survey, stores};
use crate::view::PointView;
use crate::walk::{Walk, WalkError};

/// Pending stores that are looked at, the newest. A table that grows has thousands at every flush, and pairs of all of them took longer than the
/// whole search may.
const AT_ONE_POINT: usize = 256;

/// States of crash points.
#[derive(Clone, Debug, Default)]
pub struct Chosen {
    /// By the setting of the strategy and the number of the point.
    states: FxHashMap<(u64, u64), Vec<CrashState>>,
    /// Points with more pending stores than were looked at.
    partial: FxHashSet<u64>,
}

impl Chosen {
    /// The states of one point, the newest stores first.
    pub fn at(&self, times: u64, point: u64) -> &[CrashState] {
        self.states.get(&(times, point)).map_or(&[], Vec::as_slice)
    }

    /// Were all pending stores of the point looked at?
    pub fn is_partial(&self, point: u64) -> bool {
        self.partial.contains(&point)
    }

    /// What a search tries; nothing if it has no conditions.
    pub fn of(
        reader: &TraceReader,
        survey: &Survey,
        options: &SearchOptions,
        assumed: &Arc<AssumedRepairs>,
    ) -> Result<Chosen, WalkError> {
        let mut chosen = Chosen::default();
        let Some(conditions) = options.conditions.as_ref().and_then(KnownConditions::get) else { return Ok(chosen) };
        for strategy in &options.strategies {
            if let StrategySpec::Inferred { times } = *strategy {
                chosen.choose(reader, survey, options, assumed, conditions, times)?;
            }
        }
        Ok(chosen)
    }

    fn choose(
        &mut self,
        reader: &TraceReader,
        survey: &Survey,
        options: &SearchOptions,
        assumed: &Arc<AssumedRepairs>,
        conditions: &Conditions,
        times: u64,
    ) -> Result<(), WalkError> {
        let mut walk = Walk::new(reader, options.rules)?;
        walk.assume(Arc::clone(assumed));
        let mut sites = Sites::new(reader);
        let mut kinds = Kinds::new(times);
        for (_, pick) in options.selection.wanted(survey, Shard::WHOLE) {
            let point = survey.point(pick);
            if sites.advance_to(point.at)? {
                kinds.next_epoch();
            }
            walk.advance_to(point.at)?;
            let view = walk.view();
            let touched = Touched::new(&view, conditions, walk.fresh_from(), AT_ONE_POINT);
            if touched.is_partial {
                self.partial.insert(point.index);
            }
            meet(&view, &touched, conditions, &sites, |kind, candidate| kinds.meet(kind, point.index, candidate));
        }
        for pick in kinds.picks() {
            self.states.entry((times, pick.point)).or_default().push(pick.state());
        }
        Ok(())
    }
}

/// The states of a point that break pairs.
fn meet(
    view: &PointView<'_>,
    touched: &Touched,
    conditions: &Conditions,
    sites: &Sites<'_>,
    mut each: impl FnMut(PairKind, Candidate),
) {
    let pieces = touched.pieces(|one, other| sites.call_path(one) == sites.call_path(other));
    let newest = touched.newest_partners(conditions, &pieces);
    let mut order: Vec<usize> = (0..touched.stores.len()).collect();
    order.sort_by_key(|&at| (Reverse(touched.stores[at].event), touched.stores[at].line));
    for way in [Way::Least, Way::Most] {
        for &at in &order {
            let (store, partners) = (&touched.stores[at], &newest[at]);
            let other = if way == Way::Least { partners.missing } else { partners.present };
            let Some(other) = other.map(|other| &touched.stores[other]) else { continue };
            let missing = if way == Way::Least { other } else { store };
            let kind = PairKind {
                way,
                site: sites.of(store.event),
                other: sites.of(other.event),
                is_fresh: store.is_fresh,
                over_old: missing.is_over_old(view.guaranteed()),
            };
            each(kind, Candidate { event: store.event, line: store.line, place: store.place });
        }
    }
}

/// Which code made each store.
#[derive(Debug)]
struct Sites<'r> {
    events: Events<'r>,
    at: EventId,
    numbers: FxHashMap<(ContextId, CodeAddr), SiteNo>,
    /// By their numbers.
    call_paths: Vec<ContextId>,
    of_events: FxHashMap<EventId, SiteNo>,
}

impl<'r> Sites<'r> {
    fn new(reader: &'r TraceReader) -> Self {
        let (at, numbers, call_paths, of_events) = Default::default();
        Sites { events: reader.events(), at, numbers, call_paths, of_events }
    }

    /// Was there a fence or a boundary of operations on the way?
    fn advance_to(&mut self, at: EventId) -> Result<bool, ReadError> {
        let mut passed = false;
        while self.at < at {
            let Some(event) = self.events.next()? else { break };
            passed |= matches!(
                event.kind,
                EventKind::Fence { .. }
                    | EventKind::Rmw { .. }
                    | EventKind::OperationBegin { .. }
                    | EventKind::OperationEnd { .. }
            );
            if stores(&event.kind) {
                let call_paths = &mut self.call_paths;
                let site = *self.numbers.entry((event.context, event.pc)).or_insert_with(|| {
                    call_paths.push(event.context);
                    SiteNo(call_paths.len() as u32 - 1)
                });
                self.of_events.insert(self.at, site);
            }
            self.at.0 += 1;
        }
        Ok(passed)
    }

    fn of(&self, store: EventId) -> SiteNo {
        self.of_events[&store]
    }

    fn call_path(&self, store: EventId) -> ContextId {
        self.call_paths[self.of(store).0 as usize]
    }
}
