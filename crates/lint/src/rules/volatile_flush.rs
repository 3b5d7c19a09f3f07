//! FP0202: a flush of ordinary memory.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use persistency::effect::{Effect, FlushVerdict};
use trace::Tables;

use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct VolatileFlush;

static INFO: RuleInfo = RuleInfo::new(
    "FP0202",
    "flush-of-volatile-memory",
    Class::Performance,
    Severity::Performance,
    "this flush is of ordinary memory: it makes nothing durable",
)
.about_flushes();

impl Rule for VolatileFlush {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::WASTED_FLUSHES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let Effect::Flush(flush) = moment.step.effect
            && flush.verdict == FlushVerdict::Volatile
        {
            out.report(moment.site, Role::Flush);
        }
        Ok(())
    }
}
