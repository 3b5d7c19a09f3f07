//! FP0402: a store inside a PMDK transaction to a range that was neither added to it nor allocated in it (Agamotto §4.2, its
//! first custom oracle). If the transaction aborts or power fails, the old value does not come back.
//!
//! Only the program's own stores count: what libpmemobj stores, or a function that it called, is its own business.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use trace::Tables;
use trace::event::EventKind;

use super::volatile_locks::lock_function;
use crate::pmdk::transactions::Transactions;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug)]
pub struct UnloggedStore;

static INFO: RuleInfo = RuleInfo::new(
    "FP0402",
    "unlogged-store",
    Class::Atomicity,
    Severity::Error,
    "this store in a transaction is to a range that was neither added to it nor allocated in it",
);

impl Rule for UnloggedStore {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, tables: &Tables) -> Wants {
        if Transactions::recorded(tables) { Wants::STORES } else { Wants::NOTHING }
    }

    fn watches(&self) -> Vec<String> {
        Transactions::watches()
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let (place, len) = match moment.event.kind {
            EventKind::Store { place, bytes, .. } => (place, bytes.len() as u64),
            EventKind::Rmw { place, new, .. } => (place, new.len() as u64),
            _ => return Ok(()),
        };
        let thread = moment.event.thread;
        if moment.transactions.working(thread)
            && !moment.world.in_pm_library(moment.site)
            && let Some(began) = moment.transactions.uncovered(thread, place, len)
        {
            out.report_with(moment.site, Role::Store, (Role::Call, began));
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames)
    }
}
