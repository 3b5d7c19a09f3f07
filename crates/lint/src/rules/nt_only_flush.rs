//! FP0203: a flush of a line on which only non-temporal stores are pending. They are not in the cache; the fence alone
//! makes them durable.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use persistency::effect::{Effect, FlushVerdict};
use trace::Tables;

use super::super::lint::Tag;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct NtOnlyFlush;

static INFO: RuleInfo = RuleInfo::new(
    "FP0203",
    "flush-of-nt-stores",
    Class::Performance,
    Severity::Performance,
    "this flush has nothing to do: only non-temporal stores touched the line, and they bypass the cache",
)
.about_flushes();

impl Rule for NtOnlyFlush {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::WASTED_FLUSHES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let Effect::Flush(flush) = moment.step.effect else { return Ok(()) };
        if flush.verdict != FlushVerdict::OnlyNonTemporal {
            return Ok(());
        }
        let line = flush.line.and_then(|line| moment.step.after().line(line));
        match line.and_then(|line| line.stores().last().copied()) {
            Some(store) => {
                let (_, store) = Tag::unpack(store.event);
                out.report_with(moment.site, Role::Flush, (Role::Store, store));
            }
            None => out.report(moment.site, Role::Flush),
        }
        Ok(())
    }
}
