//! FP0103: a non-temporal store that no fence of its thread ever followed. It may still wait in a write-combining buffer,
//! on eADR machines as well.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use trace::Tables;

use crate::rule::{Loss, LostStore, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct NtNotFenced;

static INFO: RuleInfo = RuleInfo::new(
    "FP0103",
    "nt-store-not-fenced",
    Class::Durability,
    Severity::Error,
    "this non-temporal store is never fenced by its thread: it may not be durable",
);

impl Rule for NtNotFenced {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn blames(&self, lost: &LostStore) -> Option<(SiteId, Role)> {
        (lost.fate == Loss::NeverDrained).then_some((lost.site, Role::Store))
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if lost.fate == Loss::NeverDrained {
            out.report(lost.site, Role::Store);
        }
        Ok(())
    }
}
