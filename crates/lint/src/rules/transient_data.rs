//! FP0301: data in PM whose line is never flushed in the whole run. Either it is meant to be durable, or it belongs in DRAM.
//!
//! Writes to the pool's file are left out: they are the file system's business until somebody maps and flushes them.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use persistency::domain::Route;
use trace::Tables;

use super::library_state::own_store;
use super::volatile_locks::lock_function;
use crate::rule::{Fate, LostStore, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

#[derive(Debug, Default)]
pub struct TransientData;

static INFO: RuleInfo = RuleInfo::new(
    "FP0301",
    "transient-data",
    Class::Durability,
    Severity::Warning,
    "this data lies in persistent memory but its line is never flushed",
)
.about_flushes();

impl Rule for TransientData {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if lost.fate == (Fate::NeverFlushed { elsewhere: None }) && lost.route != Route::File {
            out.report(lost.site, Role::Store);
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames) || own_store(frames)
    }
}
