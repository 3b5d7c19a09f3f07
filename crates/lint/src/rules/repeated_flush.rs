//! FP0303: a flush that served several stores to its line, where a later flush repeats it.
//!
//! Mumak §4.2: fields that happen to share a line are flushed one by one. Whether the later flush is waste depends on the
//! layout, which differs between compilers and versions; so this is a warning about the pair, and FP0201 keeps quiet.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use persistency::effect::{Effect, FlushVerdict};
use trace::Tables;
use trace::event::{EventKind, FlushTarget};

use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;
use crate::world::LastFlush;

#[derive(Debug, Default)]
pub struct RepeatedFlush;

static INFO: RuleInfo = RuleInfo::new(
    "FP0303",
    "repeated-flush",
    Class::Performance,
    Severity::Warning,
    "this flush serves several stores to one line, and a later flush repeats it",
)
.about_flushes();

/// What a flush with nothing to do repeats: an earlier flush of the line that served several stores and named other
/// bytes of it. Libraries name the line's first byte whatever they were asked for; there another place in the code
/// stands for other bytes. At most one fence lies between the two (`persist(&a); persist(&b)`): a flush long after has
/// nothing to do with that one, and is FP0201's.
pub(super) fn repeats(moment: &Moment<'_>) -> Option<LastFlush> {
    let Effect::Flush(flush) = moment.step.effect else { return None };
    if !matches!(flush.verdict, FlushVerdict::Clean | FlushVerdict::AlreadyFlushed) {
        return None;
    }
    let EventKind::Flush { target: FlushTarget::Pool(place), .. } = moment.event.kind else { return None };
    let earlier = moment.world.last_flush(flush.line?)?;
    let byte = (place.offset.0 % 64) as u8;
    let other_bytes = byte != earlier.byte || (byte == 0 && moment.site != earlier.site);
    let near = moment.world.fences_since(earlier) <= 1;
    (earlier.several && other_bytes && near).then_some(earlier)
}

impl Rule for RepeatedFlush {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::WASTED_FLUSHES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if let Some(earlier) = repeats(moment) {
            out.report_with(earlier.site, Role::Flush, (Role::Flush, moment.site));
        }
        Ok(())
    }
}
