//! FP0201: a flush of a line to which nothing was stored since its last flush.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use persistency::effect::{Effect, FlushVerdict};
use trace::Tables;

use super::repeated_flush::repeats;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct CleanFlush;

static INFO: RuleInfo = RuleInfo::new(
    "FP0201",
    "flush-of-clean-line",
    Class::Performance,
    Severity::Performance,
    "this flush has nothing to do: nothing was stored to the line since its last flush",
)
.about_flushes();

impl Rule for CleanFlush {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::WASTED_FLUSHES
    }

    #[inline]
    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let Effect::Flush(flush) = moment.step.effect else { return Ok(()) };
        if matches!(flush.verdict, FlushVerdict::Clean | FlushVerdict::AlreadyFlushed) && repeats(moment).is_none() {
            match flush.line.and_then(|line| moment.world.last_flush(line)) {
                Some(earlier) if earlier.site != moment.site => {
                    out.report_with(moment.site, Role::Flush, (Role::Flush, earlier.site));
                }
                _ => out.report(moment.site, Role::Flush),
            }
        }
        Ok(())
    }
}
