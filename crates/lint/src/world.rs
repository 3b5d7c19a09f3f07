//! What rules can ask about the run so far, beside the state of lines.

use finding::blame;
use finding::site::{SiteId, Sites};
use persistency::effect::{Effect, FlushVerdict};
use persistency::line::LineId;
use persistency::tracker::Step;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::{Event, EventId, EventKind, FlushKind, FlushTarget, Place, ThreadId};

use crate::flushed::FlushedLines;
pub use crate::flushed::LastFlush;
use crate::mappings::Mappings;

/// A useful flush that its thread has not fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfencedFlush {
    pub line: LineId,
    pub site: SiteId,
    pub event: EventId,
}

/// A thread that never fences would else grow its list with every flush.
const THIN_AT: usize = 4096;

/// The run so far.
#[derive(Debug)]
pub struct World<'t> {
    pub tables: &'t Tables,
    pub sites: Sites,
    lines: FlushedLines,
    /// Fences that count, of all threads.
    fences: u64,
    unfenced: Vec<Unfenced>,
    /// Flushes of threads that ended before they fenced.
    abandoned: FxHashMap<LineId, UnfencedFlush>,
    mappings: Mappings,
    /// Per site, whether a PM library's frame is on its path; none if nobody has asked.
    in_library: std::cell::RefCell<Vec<Option<bool>>>,
    pm_libraries: Vec<bool>,
}

#[derive(Debug, Default)]
struct Unfenced {
    flushes: Vec<UnfencedFlush>,
    thin_at: usize,
}

impl Unfenced {
    #[cold]
    fn thin(&mut self) {
        let mut newest = FxHashMap::default();
        self.flushes.drain(..).for_each(|flush| keep_newest(&mut newest, flush));
        self.flushes.extend(newest.into_values());
        self.flushes.sort_unstable_by_key(|flush| flush.event);
        self.thin_at = self.flushes.len() * 2;
    }
}

impl<'t> World<'t> {
    pub fn new(tables: &'t Tables) -> World<'t> {
        World {
            tables,
            sites: Sites::default(),
            lines: FlushedLines::default(),
            fences: 0,
            unfenced: Vec::new(),
            abandoned: FxHashMap::default(),
            mappings: Mappings::default(),
            in_library: std::cell::RefCell::default(),
            pm_libraries: blame::pm_library_modules(tables),
        }
    }

    /// The last useful flush of a line; none if it was never flushed with something to write back.
    pub fn last_flush(&self, line: LineId) -> Option<LastFlush> {
        self.lines.get(line)
    }

    /// How many fences there have been since a flush, of whatever thread.
    pub fn fences_since(&self, flush: LastFlush) -> u32 {
        flush.fences_since(self.fences)
    }

    /// Useful flushes of the thread since its last fence, oldest first.
    pub fn unfenced(&self, thread: ThreadId) -> &[UnfencedFlush] {
        self.unfenced.get(thread.0 as usize).map_or(&[], |unfenced| &unfenced.flushes)
    }

    /// What the program has mapped at an address.
    pub fn place_at(&self, address: u64) -> Option<Place> {
        self.mappings.place_at(address)
    }

    /// Whether a PM library executed this, or called what did.
    pub fn in_pm_library(&self, site: SiteId) -> bool {
        let mut known = self.in_library.borrow_mut();
        let at = site.0 as usize;
        if known.len() <= at {
            known.resize(self.sites.len(), None);
        }
        *known[at].get_or_insert_with(|| {
            let place = self.sites.get(site);
            let library = |module: trace::event::ModuleId| self.pm_libraries[module.0 as usize];
            library(place.pc.module) || self.tables.call_path(place.context).any(|frame| library(frame.module))
        })
    }

    /// The newest flush of each line that no fence of its thread has followed.
    pub(crate) fn all_unfenced(&self) -> FxHashMap<LineId, UnfencedFlush> {
        let mut newest = self.abandoned.clone();
        for flush in self.unfenced.iter().flat_map(|unfenced| &unfenced.flushes) {
            keep_newest(&mut newest, *flush);
        }
        newest
    }

    /// Takes what an event changed.
    #[inline]
    pub(crate) fn update(&mut self, id: EventId, site: SiteId, event: &Event<'_>, step: &Step<'_>) {
        match (&event.kind, step.effect) {
            (&EventKind::Flush { kind, target: FlushTarget::Pool(place) }, Effect::Flush(flush))
                if flush.verdict == FlushVerdict::Useful =>
            {
                let line = LineId::of(place);
                self.lines.set(line, LastFlush::new(site, place, step, flush.stores, self.fences));
                if kind != FlushKind::Clflush {
                    self.add_unfenced(event.thread, UnfencedFlush { line, site, event: id });
                }
            }
            (EventKind::Fence { .. }, Effect::Fence(fence)) | (EventKind::Rmw { .. }, Effect::Rmw(fence))
                if fence.counts =>
            {
                self.fences += 1;
                if let Some(unfenced) = self.unfenced.get_mut(event.thread.0 as usize) {
                    unfenced.flushes.clear();
                }
            }
            (EventKind::ThreadEnd, _) => self.abandon(event.thread),
            (&EventKind::Map { place, len, address }, _) => self.mappings.map(address, len, place),
            (&EventKind::Unmap { len, address, .. }, _) => self.mappings.unmap(address, len),
            _ => {}
        }
    }

    #[inline(always)]
    fn add_unfenced(&mut self, thread: ThreadId, flush: UnfencedFlush) {
        let at = thread.0 as usize;
        if self.unfenced.len() <= at {
            self.unfenced.resize_with(at + 1, Unfenced::default);
        }
        let unfenced = &mut self.unfenced[at];
        if unfenced.flushes.len() >= THIN_AT.max(unfenced.thin_at) {
            unfenced.thin();
        }
        unfenced.flushes.push(flush);
    }

    fn abandon(&mut self, thread: ThreadId) {
        if let Some(unfenced) = self.unfenced.get_mut(thread.0 as usize) {
            for flush in std::mem::take(&mut unfenced.flushes) {
                keep_newest(&mut self.abandoned, flush);
            }
        }
    }
}

fn keep_newest(newest: &mut FxHashMap<LineId, UnfencedFlush>, flush: UnfencedFlush) {
    let known = newest.entry(flush.line).or_insert(flush);
    if known.event < flush.event {
        *known = flush;
    }
}
