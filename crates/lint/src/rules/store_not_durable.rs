//! FP0101: a store that was never made durable, on a line that the program does flush at other times.
//!
//! Mumak §4.2: that the address is flushed elsewhere shows that its data is meant to be durable. Line granularity follows
//! from the hardware; a volatile field beside durable ones is reported (and belongs on another line).

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use trace::Tables;

use super::library_state::own_store;
use super::volatile_locks::lock_function;
use crate::rule::{Loss, LostStore, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct StoreNotDurable;

static INFO: RuleInfo = RuleInfo::new(
    "FP0101",
    "store-not-durable",
    Class::Durability,
    Severity::Error,
    "this store is never made durable, although its line is flushed elsewhere",
)
.about_flushes();

impl Rule for StoreNotDurable {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn blames(&self, lost: &LostStore) -> Option<(SiteId, Role)> {
        matches!(lost.fate, Loss::NeverFlushed { elsewhere: Some(_) }).then_some((lost.site, Role::Store))
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let Loss::NeverFlushed { elsewhere: Some(flush) } = lost.fate {
            out.report_with(lost.site, Role::Store, (Role::Flush, flush));
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames) || own_store(frames)
    }
}
