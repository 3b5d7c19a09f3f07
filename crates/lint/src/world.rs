//! What rules can ask about the run so far, beside the state of lines.

use finding::blame;
use finding::finding::{Location, Role};
use finding::note::Note;
use finding::site::{SiteId, Sites};
use persistency::effect::{Effect, FlushVerdict};
use persistency::line::LineId;
use persistency::tracker::Applied;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::{Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, Place, ThreadId};
use trace::symbol::Symbolizer;

use crate::flushed::FlushedLines;
pub use crate::flushed::LastFlush;
use crate::lint::Tag;
use crate::mappings::Mappings;

/// A useful flush that its thread has not fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnfencedFlush {
    pub line: LineId,
    pub site: SiteId,
    pub event: EventId,
    /// The newest store that it is for.
    pub store: Option<SiteId>,
}

/// A flush that only a locked instruction of somebody else has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accident {
    pub flush: UnfencedFlush,
    pub thread: ThreadId,
    /// The locked instruction.
    pub fence: SiteId,
}

/// A thread that never fences would else grow its list with every flush.
const THIN_AT: usize = 4096;

/// What the C library calls when the program has ended.
const AT_EXIT: [&str; 5] = ["exit", "__run_exit_handlers", "__cxa_finalize", "_dl_fini", "quick_exit"];

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
    /// By thread: completed by accident, and its thread has not fenced on purpose since.
    accidents: Vec<FxHashMap<LineId, Accident>>,
    mappings: Mappings,
    /// Per locked instruction, whether it is somebody else's.
    foreign: FxHashMap<SiteId, bool>,
    system: Vec<bool>,
    symbols: Symbolizer<'t>,
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
            accidents: Vec::new(),
            mappings: Mappings::default(),
            foreign: FxHashMap::default(),
            system: blame::system_modules(tables),
            symbols: Symbolizer::new(tables),
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

    /// Flushes that only locked instructions of somebody else have completed, oldest first.
    pub fn accidents(&self) -> Vec<Accident> {
        let mut all: Vec<Accident> = self.accidents.iter().flat_map(|lines| lines.values().copied()).collect();
        all.sort_unstable_by_key(|accident| accident.flush.event);
        all
    }

    /// Whether an instruction is the system's, or runs after `main` has returned. Asked of locked instructions only, and only where
    /// they complete something.
    fn is_foreign(&mut self, site: SiteId) -> bool {
        if let Some(known) = self.foreign.get(&site) {
            return *known;
        }
        let place = self.sites.get(site);
        let foreign = self.system[place.pc.module.0 as usize] || self.runs_at_exit(site);
        self.foreign.insert(site, foreign);
        foreign
    }

    fn runs_at_exit(&mut self, site: SiteId) -> bool {
        let place = self.sites.get(site);
        let symbols = &mut self.symbols;
        self.tables.call_path(place.context).filter(|call| self.system[call.module.0 as usize]).any(|call| {
            let frames = symbols.call_frames(call);
            frames.iter().filter_map(|frame| frame.function.as_deref()).any(|name| AT_EXIT.contains(&name))
        })
    }

    /// The function of the system that the program called, or that was called when it had ended.
    pub(crate) fn named_fence(&self, site: SiteId, symbols: &mut Symbolizer<'_>) -> Note {
        let frames = blame::frames(self.sites.get(site), Role::Fence, self.tables, symbols);
        let at_exit = |frame: &&Location| frame.function.as_deref().is_some_and(|name| AT_EXIT.contains(&name));
        let system = |frame: &&Location| blame::is_system(&frame.module);
        let called = frames.iter().take_while(system).last();
        let named = frames.iter().rfind(at_exit).or(called).or(frames.first());
        Note::FencedIn {
            function: named.and_then(|frame| frame.function.clone()),
            module: named.map_or_else(String::new, |frame| frame.module.clone()),
        }
    }

    #[cold]
    fn fenced_by_accident(&mut self, thread: ThreadId, fence: SiteId) {
        let at = thread.0 as usize;
        let Some(unfenced) = self.unfenced.get(at) else { return };
        if self.accidents.len() <= at {
            self.accidents.resize_with(at + 1, FxHashMap::default);
        }
        for &flush in &unfenced.flushes {
            self.accidents[at].insert(flush.line, Accident { flush, thread, fence });
        }
    }

    /// Another thread has taken care of the line.
    #[cold]
    fn flushed_elsewhere(&mut self, thread: ThreadId, line: LineId) {
        for (at, lines) in self.accidents.iter_mut().enumerate() {
            if at != thread.0 as usize {
                lines.remove(&line);
            }
        }
    }

    /// Takes what an event changed.
    #[inline]
    pub(crate) fn update(&mut self, id: EventId, site: SiteId, event: &Event<'_>, step: &Applied<'_>) {
        match (&event.kind, step.effect) {
            (&EventKind::Flush { kind, target: FlushTarget::Pool(place) }, Effect::Flush(flush))
                if flush.verdict == FlushVerdict::Useful =>
            {
                let line = LineId::of(place);
                self.lines.set(line, LastFlush::new(site, place, step, flush.stores, self.fences));
                if !self.accidents.is_empty() {
                    self.flushed_elsewhere(event.thread, line);
                }
                if kind != FlushKind::Clflush {
                    let pending = step.after().line(line);
                    let store = pending.and_then(|line| line.stores().last().map(|store| Tag::unpack(store.event).1));
                    self.add_unfenced(event.thread, UnfencedFlush { line, site, event: id, store });
                }
            }
            (EventKind::Fence { .. }, Effect::Fence(fence)) | (EventKind::Rmw { .. }, Effect::Rmw(fence))
                if fence.counts =>
            {
                self.fences += 1;
                let thread = event.thread.0 as usize;
                let on_purpose = matches!(event.kind, EventKind::Fence { kind: FenceKind::Sfence | FenceKind::Mfence });
                let completes = self.unfenced.get(thread).is_some_and(|unfenced| !unfenced.flushes.is_empty());
                let pending = completes || self.accidents.get(thread).is_some_and(|lines| !lines.is_empty());
                if pending && !on_purpose && self.is_foreign(site) {
                    self.fenced_by_accident(event.thread, site);
                } else if let Some(lines) = self.accidents.get_mut(thread) {
                    lines.clear();
                }
                if let Some(unfenced) = self.unfenced.get_mut(thread) {
                    unfenced.flushes.clear();
                }
            }
            (&EventKind::Flush { target: FlushTarget::Pool(place), .. }, _) if !self.accidents.is_empty() => {
                self.flushed_elsewhere(event.thread, LineId::of(place));
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
