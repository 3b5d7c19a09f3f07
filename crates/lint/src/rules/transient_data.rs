//! FP0301: data in PM whose line is never flushed in the whole run. Whether it must be durable the trace cannot tell: a flush may be missing, or nobody
//! needs it after a restart, as with the files of locks.
//!
//! Writes to the pool's file are left out: they are the file system's business until somebody maps and flushes them.

use finding::finding::{Class, Location, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use persistency::domain::Route;
use trace::Tables;

use super::library_state::own_store;
use super::volatile_locks::lock_function;
use crate::rule::{Loss, LostStore, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::{Detail, Sink};

#[derive(Debug, Default)]
pub struct TransientData;

static INFO: RuleInfo = RuleInfo::new(
    "FP0301",
    "never-flushed",
    Class::Durability,
    Severity::Warning,
    "this store is to persistent memory, and its line is never flushed in the whole run",
)
.about_flushes();

impl Rule for TransientData {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::NOTHING
    }

    fn blames(&self, lost: &LostStore) -> Option<(SiteId, Role)> {
        let is_told = lost.fate == (Loss::NeverFlushed { elsewhere: None }) && lost.route != Route::File;
        is_told.then_some((lost.site, Role::Store))
    }

    fn lost(&mut self, lost: &LostStore, out: &mut Sink<'_>) -> Result<(), RuleError> {
        if self.blames(lost).is_some() {
            out.report_detail(lost.site, Role::Store, Detail::In(lost.line.pool));
        }
        Ok(())
    }

    fn dismisses(&self, frames: &[Location]) -> bool {
        lock_function(frames) || own_store(frames)
    }
}
