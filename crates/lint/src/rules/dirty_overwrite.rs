//! FP0302: a value in PM that one line of code overwrites again and again before it was ever durable.
//!
//! Mumak §2: such a variable should be in ordinary memory until its value is final. One overwrite is common and harmless
//! (zeroed, then filled in); reported is the third value that the same instruction stores to the same bytes. Data that is
//! never flushed at all is FP0301's.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use persistency::effect::{Effect, FlushVerdict};
use persistency::line::LineId;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::{EventKind, FlushTarget};

use super::library_state::own_store;
use super::volatile_locks::lock_function;
use crate::lint::Tag;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

/// So many earlier values of the same bytes, by the same instruction, were never durable.
const REPEATED: usize = 2;

#[derive(Debug, Default)]
pub struct DirtyOverwrite {
    /// Overwrites on lines that have not been flushed since: reported when they are.
    waiting: FxHashMap<LineId, Vec<(SiteId, u64)>>,
}

static INFO: RuleInfo = RuleInfo::new(
    "FP0302",
    "dirty-overwrite",
    Class::Performance,
    Severity::Warning,
    "this value is overwritten repeatedly before it was ever durable",
)
.about_flushes();

impl DirtyOverwrite {
    fn store(&mut self, moment: &Moment<'_>) {
        let world = moment.world;
        for stored in moment.step.stored() {
            if stored.overwritten.is_empty() {
                continue;
            }
            let Some(line) = moment.step.after().line(stored.line) else { continue };
            let earlier = line.stores().iter().rev().skip(1);
            let same = earlier.take_while(|store| !store.mask().and(stored.overwritten).is_empty()).filter(|store| {
                let (_, site) = Tag::unpack(store.event);
                site == moment.site || world.sites.get(site).pc == moment.event.pc
            });
            if same.take(REPEATED).count() == REPEATED {
                let waiting = self.waiting.entry(stored.line).or_default();
                match waiting.iter_mut().find(|(site, _)| *site == moment.site) {
                    Some((_, count)) => *count += 1,
                    None => waiting.push((moment.site, 1)),
                }
            }
        }
    }
}

impl Rule for DirtyOverwrite {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::OVERWRITES.and(Wants::USEFUL_FLUSHES)
    }

    #[inline]
    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        match (&moment.event.kind, moment.step.effect) {
            (&EventKind::Flush { target: FlushTarget::Pool(place), .. }, Effect::Flush(flush)) => {
                if flush.verdict == FlushVerdict::Useful
                    && !self.waiting.is_empty()
                    && let Some(overwrites) = self.waiting.remove(&LineId::of(place))
                {
                    for (site, count) in overwrites {
                        out.report_times(site, Role::Store, count);
                    }
                }
            }
            (EventKind::Store { .. } | EventKind::Rmw { .. }, _) => self.store(moment),
            _ => {}
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames) || own_store(frames)
    }
}
