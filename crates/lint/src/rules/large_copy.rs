//! FP0502: a large range that was stored through the cache and flushed line by line, where non-temporal stores would do.
//!
//! Off by default: whether they are faster depends on who reads the data next.

use finding::finding::{Class, Role};
use finding::severity::Severity;
use finding::site::SiteId;
use persistency::effect::{Effect, FlushVerdict};
use persistency::line::{ByteMask, LineId};
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::ThreadId;

use crate::lint::Tag;
use crate::rule::{Moment, Rule, RuleError, RuleInfo, Wants};
use crate::sightings::Sink;

/// Lines in a row, all of them stored whole, from which on a copy is large: 4 KiB.
const LARGE: u64 = 64;

#[derive(Clone, Copy, Debug)]
struct Run {
    site: SiteId,
    next: LineId,
    lines: u64,
}

#[derive(Debug, Default)]
pub struct LargeCopy {
    runs: FxHashMap<ThreadId, Run>,
}

static INFO: RuleInfo = RuleInfo::new(
    "FP0502",
    "large-copy",
    Class::Performance,
    Severity::Note,
    "a large range is stored through the cache and then flushed line by line; non-temporal stores would do",
)
.about_flushes()
.off();

impl Rule for LargeCopy {
    fn info(&self) -> &RuleInfo {
        &INFO
    }

    fn wants(&self, _: &Tables) -> Wants {
        Wants::FLUSHES
    }

    fn event(&mut self, moment: &Moment<'_>, out: &mut Sink<'_>) -> Result<(), RuleError> {
        let Effect::Flush(flush) = moment.step.effect else { return Ok(()) };
        let Some(line) = flush.line else { return Ok(()) };
        let thread = moment.event.thread;
        // `clflush` has settled the stores already: its lines are FP0501's.
        let stores = moment.step.after().line(line).map_or(&[][..], |view| view.stores());
        let written = stores.iter().fold(ByteMask::EMPTY, |mask, store| mask.or(store.mask()));
        if flush.verdict != FlushVerdict::Useful || written.count() < 64 {
            self.runs.remove(&thread);
            return Ok(());
        }
        let fresh = Run { site: moment.site, next: line, lines: 0 };
        let run = self.runs.entry(thread).or_insert(fresh);
        if run.site != moment.site || run.next != line {
            *run = fresh;
        }
        run.lines += 1;
        run.next.line.0 += 1;
        if run.lines == LARGE {
            let store = stores.last().map(|store| Tag::unpack(store.event).1);
            out.report_with(moment.site, Role::Flush, (Role::Store, store.unwrap_or(moment.site)));
        }
        Ok(())
    }
}
