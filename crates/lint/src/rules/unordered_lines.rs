//! FP0304: one fence that completes the flushes of several lines, which different lines of code asked for.
//!
//! Mumak §4.2: among them no order is guaranteed. A loop that flushes the lines of one object is one request, and no order
//! is expected among its parts; so only flushes from different lines of code count, which is known when they have names
//! (loops are unrolled). What a library flushes for one call is one request as well.

use finding::finding::{Class, Finding, Role};
use finding::severity::Severity;
use persistency::effect::Effect;
use trace::Tables;
use trace::event::{EventKind, FenceKind};

use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct UnorderedLines;

static INFO: RuleInfo = RuleInfo::new(
    "FP0304",
    "unordered-lines",
    Class::Ordering,
    Severity::Warning,
    "this fence completes flushes of several lines: no order among them is guaranteed",
)
.about_flushes();

impl Rule for UnorderedLines {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::FENCES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        // A locked instruction that happens to follow is nobody's intention.
        let EventKind::Fence { kind: FenceKind::Sfence | FenceKind::Mfence } = moment.event.kind else { return Ok(()) };
        let Effect::Fence(fence) = moment.step.effect else { return Ok(()) };
        if fence.lines_settled < 2 {
            return Ok(());
        }
        let flushes = moment.world.unfenced(moment.event.thread);
        let Some(first) = flushes.first() else { return Ok(()) };
        let other = flushes.iter().find(|flush| flush.site != first.site && flush.line != first.line);
        if let Some(other) = other {
            out.report_with(moment.site, Role::Fence, (Role::Flush, first.site));
            out.note_related(moment.site, Role::Fence, (Role::Flush, other.site));
        }
        Ok(())
    }

    fn withdraws(&self, finding: &Finding) -> bool {
        finding.locations.iter().filter(|location| location.role == Role::Flush).count() < 2
    }
}
