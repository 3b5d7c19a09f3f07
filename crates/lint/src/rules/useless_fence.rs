//! FP0204: a fence before which its thread neither flushed nor stored non-temporally.
//!
//! Only `sfence`: on x86 it orders nothing else (SDM vol. 3 §9.2.2: stores are not reordered with stores). Locked instructions
//! and `mfence` (FP0205) also order loads and are used to synchronise threads, so they are never certain waste. The C library's
//! copy functions end with an `sfence` after non-temporal stores, to ordinary memory too, which no trace shows: they
//! are left out.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use persistency::effect::Effect;
use trace::Tables;
use trace::event::{EventKind, FenceKind};

use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct UselessFence;

static INFO: RuleInfo = RuleInfo::new(
    "FP0204",
    "useless-fence",
    Class::Performance,
    Severity::Performance,
    "this fence has nothing to do: its thread has neither flushed nor stored non-temporally since its last fence",
);

impl Rule for UselessFence {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::FENCES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let EventKind::Fence { kind: FenceKind::Sfence } = moment.event.kind else { return Ok(()) };
        if completes_nothing(moment) {
            out.report(moment.site, Role::Fence);
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        is_of_a_copy(frames)
    }
}

/// Whether its thread had nothing under way that this fence completes.
pub(super) fn completes_nothing(moment: &Moment<'_>) -> bool {
    matches!(moment.step.effect, Effect::Fence(fence) if fence.counts && fence.flushes == 0 && fence.streamed == 0)
}

/// Whether the C library has it, or a function that copies.
pub(super) fn is_of_a_copy(frames: &[Location]) -> bool {
    frames.first().is_some_and(|innermost| {
        let copies = |name: &String| ["memcpy", "memmove", "memset"].iter().any(|copy| name.contains(copy));
        let pm_library = innermost.module.starts_with("libpmem");
        innermost.module.starts_with("libc.so")
            || innermost.module.starts_with("ld-linux")
            || (!pm_library && innermost.function.as_ref().is_some_and(copies))
    })
}
