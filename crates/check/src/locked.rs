//! Crash states that are possible only if locked instructions are no fences (`--strict-fences`).
//!
//! A locked instruction (a CAS, a mutex) completes the flushes before it, so a fence that is missing there is not missed. But whoever takes
//! the instruction away, or moves it, loses data. What fails on such states is a warning of its own rule, which names the instruction that
//! the program relies on.

use crash::search::SearchOptions;
use crash::strategy::StrategySpec;
use crash::walk::{Rules, Walk};
use finding::blame;
use finding::finding::{Finding, FindingId, Location, Role, Title};
use finding::note::Note;
use finding::severity::Severity;
use finding::site::Site;
use persistency::model::{Fences, ModelKind};
use runner::runner::Runner;
use rustc_hash::FxHashMap;
use trace::event::{EventId, EventKind, FenceKind, FlushKind, FlushTarget, StoreKind, ThreadId};
use trace::symbol::Symbolizer;
use trace::{ReadError, TraceReader};

use cause::analyse::RootCause;
use cause::store_history::StoreInfo;
use persistency::line::LineId;

use crate::further::{Further, NEAR};
use crate::session::{CheckSession, Phase, SessionError};

/// Its rule; `fencepost explain` has a page on it.
const RULE: &str = "FP0607";
const TITLE: &str = "durable in time only because a locked instruction happens to come after the flush";

impl CheckSession<'_> {
    /// Looks for what fails if locked instructions complete nothing.
    pub(crate) fn locked(
        &self,
        further: &mut Further<'_>,
        runners: &mut [Runner],
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<(), SessionError> {
        let rules = self.options.rules;
        if rules != (Rules { model: ModelKind::X86Adr, fences: Fences::All }) || self.is_stopped() {
            return Ok(());
        }
        let spans = relying(self.reader)?;
        let relies = |at: EventId| {
            let before = spans.partition_point(|(begin, _)| *begin < at);
            before.checked_sub(1).is_some_and(|last| at <= spans[last].1)
        };
        let survey = further.passed(relies);
        if survey.is_empty() {
            return Ok(());
        }
        let options = SearchOptions {
            rules: Rules { fences: Fences::Strict, ..rules },
            strategies: vec![StrategySpec::GuaranteedOnly, NEAR],
            conditions: None,
            ..self.options.clone()
        };
        let session = CheckSession { options: &options, bundles_option: self.bundles_option.clone(), ..*self };
        let assumed = further.assumed.clone();
        let (positions, time) = (further.positions, further.time);
        let found = session.search_and_analyse(&survey, runners, positions, time, assumed, on_phase)?;
        let mut symbols = Symbolizer::new(self.reader.tables());
        let mut instructions: FxHashMap<EventId, (Location, Note)> = FxHashMap::default();
        for cause in &found.analysis.causes {
            if let Some((store, site)) = self.relied_on(cause)? {
                instructions.insert(store, self.named(site, &mut symbols));
            }
        }
        let warn = |finding: &mut Finding| {
            let missing = finding.failure.iter().flat_map(|failure| &failure.missing);
            let Some((location, note)) = missing.filter_map(|store| instructions.get(&store.event)).next() else {
                // It can happen without that, and was found, or there was no time for it.
                return false;
            };
            finding.locations.push(location.clone());
            finding.notes.push(note.clone());
            finding.rule = RULE.to_owned();
            finding.severity = Severity::Warning;
            finding.title = Title::Rule(TITLE.to_owned());
            finding.id = FindingId::new(RULE, finding.guilty());
            further.is_new(finding)
        };
        let mut notes = Vec::new();
        let confirmed = session.confirmed_as(&found.analysis.causes, runners, &mut notes, &warn)?;
        further.add(confirmed);
        further.notes.extend(notes);
        Ok(())
    }

    /// The store that is missing though it is sure to be in PM if locked instructions are fences, and the instruction that makes it so.
    fn relied_on(&self, cause: &RootCause) -> Result<Option<(EventId, Site)>, SessionError> {
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        walk.advance_to(cause.point.at)?;
        let view = walk.view();
        let is_pending = |store: &&StoreInfo| {
            view.lines().iter().flat_map(|line| line.stores()).any(|pending| pending.event == store.event)
        };
        for store in cause.missing.iter().filter(|_| !cause.in_program_order).filter(|store| !is_pending(store)) {
            if let Some(site) = completed_by(self.reader, store, cause.point.at)? {
                return Ok(Some((store.event, site)));
            }
        }
        Ok(None)
    }

    fn named(&self, site: Site, symbols: &mut Symbolizer<'_>) -> (Location, Note) {
        let frames = blame::frames(site, Role::Fence, self.reader.tables(), symbols);
        let own = &frames[blame::guilty(&frames, self.libraries)];
        // Of a library, the function that the program called.
        let called = frames.iter().take_while(|frame| blame::is_system(&frame.module)).last();
        let named = called.or(frames.first()).unwrap_or(own);
        (own.clone(), Note::FencedIn { function: named.function.clone(), module: named.module.clone() })
    }
}

/// Spans of the trace in which something is durable only because of a locked instruction: from it to the next fence of its thread.
fn relying(reader: &TraceReader) -> Result<Vec<(EventId, EventId)>, ReadError> {
    /// What a thread has asked for since its last fence, and since when a locked instruction has stood in for that.
    #[derive(Default)]
    struct Asked {
        pending: bool,
        since: Option<EventId>,
    }
    let mut threads: FxHashMap<ThreadId, Asked> = FxHashMap::default();
    let mut spans = Vec::new();
    let mut events = reader.events();
    while let Some((id, event)) = events.next_with_id()? {
        let asked = threads.entry(event.thread).or_default();
        match event.kind {
            EventKind::Flush { kind: FlushKind::Clwb | FlushKind::Clflushopt, target: FlushTarget::Pool(_) } => {
                asked.pending = true;
            }
            EventKind::Store { kind: StoreKind::NonTemporal, .. } => asked.pending = true,
            EventKind::Rmw { .. } | EventKind::Fence { kind: FenceKind::Locked } if asked.pending => {
                asked.pending = false;
                asked.since.get_or_insert(id);
            }
            EventKind::Fence { kind: FenceKind::Sfence | FenceKind::Mfence } => {
                asked.pending = false;
                spans.extend(asked.since.take().map(|since| (since, id)));
            }
            _ => {}
        }
    }
    let end = EventId(reader.event_count());
    spans.extend(threads.into_values().filter_map(|asked| Some((asked.since?, end))));
    Ok(joined(spans))
}

/// The same events, in spans that follow each other.
fn joined(mut spans: Vec<(EventId, EventId)>) -> Vec<(EventId, EventId)> {
    spans.sort_unstable();
    let mut all: Vec<(EventId, EventId)> = Vec::new();
    for (begin, end) in spans {
        match all.last_mut().filter(|last| begin <= last.1) {
            Some(last) => last.1 = last.1.max(end),
            None => all.push((begin, end)),
        }
    }
    all
}

/// The locked instruction before `at` that completes a flush of the store's line.
fn completed_by(reader: &TraceReader, store: &StoreInfo, at: EventId) -> Result<Option<Site>, ReadError> {
    let mut events = reader.events_near(EventId(store.event.0 + 1)..at);
    let mut flush_pending = store.streams.then_some(store.thread);
    while let Some((_, event)) = events.next_with_id()? {
        match event.kind {
            EventKind::Flush { target: FlushTarget::Pool(place), .. } if LineId::of(place) == store.line => {
                flush_pending = Some(event.thread);
            }
            EventKind::Rmw { .. } | EventKind::Fence { kind: FenceKind::Locked }
                if flush_pending == Some(event.thread) =>
            {
                return Ok(Some(Site { pc: event.pc, context: event.context }));
            }
            _ => {}
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_meet_are_one() {
        let of = |list: &[(u64, u64)]| list.iter().map(|&(a, b)| (EventId(a), EventId(b))).collect::<Vec<_>>();
        assert_eq!(joined(of(&[(7, 9), (1, 3), (2, 5), (5, 6)])), of(&[(1, 6), (7, 9)]));
        assert_eq!(joined(Vec::new()), []);
    }
}
