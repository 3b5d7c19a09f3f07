//! FP0104: a flush that only a locked instruction in somebody else's code completes: a mutex, `malloc`, lazy binding, what the C library does at
//! exit.
//!
//! Locked instructions are fences (SDM vol. 3 §9.2.2), so what was flushed is durable from then on, and nothing is lost in this run. But nobody
//! promised it: another version of the library, static linking or eager binding take it away. What runs after `main` has returned is nobody's
//! care either, whose code it is. A fence of the thread's own later on is, whatever happened before it.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use trace::Tables;

use super::library_state::own_store;
use super::volatile_locks::lock_function;
use crate::rule::{Rule, RuleInfo, Wants};
use crate::sightings::{Detail, Sink};
use crate::world::World;

#[derive(Debug, Default)]
pub struct AccidentalFence;

static INFO: RuleInfo = RuleInfo::new(
    "FP0104",
    "fenced-by-accident",
    Class::Durability,
    Severity::Warning,
    "this flush is never fenced by the program: only a locked instruction of a library completes it",
)
.about_flushes();

impl Rule for AccidentalFence {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn end(&mut self, world: &World<'_>, out: &mut Sink<'_>) {
        for accident in world.accidents() {
            out.at(accident.flush.event, accident.thread);
            out.report_detail(accident.flush.site, Role::Flush, Detail::FencedAt(accident.fence));
            if let Some(store) = accident.flush.store {
                out.note_related(accident.flush.site, Role::Flush, (Role::Store, store));
            }
        }
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames) || own_store(frames)
    }
}
