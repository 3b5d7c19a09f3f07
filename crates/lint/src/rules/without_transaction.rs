//! FP0403: a store to an object of a chosen type outside any PMDK transaction (Agamotto §4.2).
//!
//! The types are chosen by number (`--set FP0403.types=1,2`); without a choice the rule has nothing to say. Objects are known
//! if they were allocated by a transaction of the same run.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::{EventKind, PoolId};

use super::volatile_locks::lock_function;
use crate::pmdk::ranges::Ranges;
use crate::pmdk::transactions::{Happening, Transactions, object};
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct WithoutTransaction {
    types: Vec<u64>,
    objects: FxHashMap<PoolId, Ranges>,
}

static INFO: RuleInfo = RuleInfo::new(
    "FP0403",
    "store-without-transaction",
    Class::Atomicity,
    Severity::Error,
    "this store to an object that transactions keep consistent is outside any transaction",
);

impl WithoutTransaction {
    pub fn new(types: Vec<u64>) -> WithoutTransaction {
        WithoutTransaction { types, ..WithoutTransaction::default() }
    }
}

impl Rule for WithoutTransaction {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, tables: &Tables) -> Wants {
        if self.types.is_empty() || !Transactions::recorded(tables) {
            return Wants::NOTHING;
        }
        Wants::CALLS.and(Wants::STORES)
    }

    fn watches(&self) -> Vec<String> {
        if self.types.is_empty() { Vec::new() } else { Transactions::watches() }
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        match *moment.happening {
            Happening::Allocated { start, len, type_num } if self.types.contains(&type_num) => {
                let (place, len) = object(start, len);
                let objects = self.objects.entry(place.pool).or_default();
                objects.add(place.offset.0, place.offset.0 + len, moment.site);
            }
            Happening::Freed { object } => {
                if let Some(objects) = self.objects.get_mut(&object.pool) {
                    objects.remove(object.offset.0);
                }
            }
            _ => {}
        }
        let (place, len) = match moment.event.kind {
            EventKind::Store { place, bytes, .. } => (place, bytes.len() as u64),
            EventKind::Rmw { place, new, .. } => (place, new.len() as u64),
            _ => return Ok(()),
        };
        let end = place.offset.0 + len;
        if let Some(objects) = self.objects.get(&place.pool)
            && let Some(allocated) = objects.overlap(place.offset.0, end)
            && !moment.transactions.inside(moment.event.thread)
            && !moment.world.in_pm_library(moment.site)
        {
            out.report_with(moment.site, Role::Store, (Role::Call, allocated));
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames)
    }
}
