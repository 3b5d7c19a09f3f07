//! FP0102: a flush that no fence of its thread ever followed. The write-back was asked for and never waited for.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use trace::Tables;

use super::volatile_locks::lock_function;
use crate::rule::{Loss, LostStore, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct FlushNotFenced;

static INFO: RuleInfo = RuleInfo::new(
    "FP0102",
    "flush-not-fenced",
    Class::Durability,
    Severity::Error,
    "this flush is never fenced by its thread: what it flushed may not be durable",
)
.about_flushes();

impl Rule for FlushNotFenced {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn blames(&self, lost: &LostStore) -> Option<(SiteId, Role)> {
        if let Loss::NeverFenced { flush } = lost.fate { Some((flush, Role::Flush)) } else { None }
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let Loss::NeverFenced { flush } = lost.fate {
            out.report_with(flush, Role::Flush, (Role::Store, lost.site));
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames)
    }
}
