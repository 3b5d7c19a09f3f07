//! FP0205: an `mfence` before which its thread neither flushed nor stored non-temporally.
//!
//! It completes nothing, but it may order loads, which no trace shows; `sfence` cannot, and is FP0204's. So this is a note.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use trace::Tables;
use trace::event::{EventKind, FenceKind};

use super::useless_fence;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct NeedlessMfence;

static INFO: RuleInfo = RuleInfo::new(
    "FP0205",
    "mfence-completes-nothing",
    Class::Performance,
    Severity::Note,
    "this mfence completes nothing: its thread has neither flushed nor stored non-temporally since its last fence",
);

impl Rule for NeedlessMfence {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::FENCES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let EventKind::Fence { kind: FenceKind::Mfence } = moment.event.kind else { return Ok(()) };
        if useless_fence::completes_nothing(moment) {
            out.report(moment.site, Role::Fence);
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        useless_fence::is_of_a_copy(frames)
    }
}
