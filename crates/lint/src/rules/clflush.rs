//! FP0501: `clflush` where `clwb` would do.
//!
//! `clflush` throws the line out of the cache and is ordered with every other `clflush` (SDM vol. 2, CLFLUSH). Off by default: on
//! processors without `clwb` there is no choice.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use persistency::effect::{Effect, FlushVerdict};
use trace::Tables;
use trace::event::{EventKind, FlushKind};

use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct Clflush;

static INFO: RuleInfo = RuleInfo::new(
    "FP0501",
    "clflush",
    Class::Performance,
    Severity::Note,
    "clflush evicts the line and is ordered with every other clflush; clwb would do",
)
.about_flushes()
.off();

impl Rule for Clflush {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::USEFUL_FLUSHES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let (EventKind::Flush { kind: FlushKind::Clflush, .. }, Effect::Flush(flush)) =
            (&moment.event.kind, moment.step.effect)
            && flush.verdict == FlushVerdict::Useful
        {
            out.report(moment.site, Role::Flush);
        }
        Ok(())
    }
}
