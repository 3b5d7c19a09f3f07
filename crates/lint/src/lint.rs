//! The pass over a trace.

use std::rc::Rc;

use finding::blame::Libraries;
use finding::finding::{Class, Finding, Role};
use finding::group::{Cause, Grouped, Sighting, group};
use finding::note::Note;
use finding::severity::Severity;
use finding::site::{Site, SiteId};
use persistency::domain::Detail;
use persistency::effect::{Effect, FlushVerdict};
use persistency::line::LineId;
use persistency::model::{Fences, ModelKind};
use persistency::tracker::Tracker;
use rustc_hash::FxHashSet;
use trace::event::{Event, EventId, EventKind, ExitStatus};
use trace::symbol::Symbolizer;
use trace::{Ending, Outcome, ReadError, Tables, TraceReader};

use crate::judge;
use crate::pmdk::transactions::{Happening, Transactions};
use crate::rule::{LostStore, Moment, Rule, RuleError, Wants, role_of};
use crate::sightings::{self, Sightings, Sink};
use crate::silent;
use crate::world::World;

/// A rule that is switched on, and what its findings count as.
pub struct Active {
    pub rule: Box<dyn Rule>,
    pub severity: Severity,
}

impl std::fmt::Debug for Active {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Active").field("rule", &self.rule.info().id).field("severity", &self.severity).finish()
    }
}

#[derive(Clone, Debug)]
pub struct Options {
    pub model: ModelKind,
    pub fences: Fences,
    pub libraries: Libraries,
}

#[derive(Debug, thiserror::Error)]
pub enum LintError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("rule {rule}, at event {event}: {source}")]
    Rule { rule: String, event: u64, source: RuleError },
    #[error("the trace has more than {} different call paths and cannot be checked; please report it", Tag::MAX_SITES)]
    TooManySites,
}

/// What came of it.
#[derive(Debug)]
pub struct Report {
    pub findings: Vec<Finding>,
    /// Remarks on performance that lie wholly inside a PM library: the program can hardly change them.
    pub inside_libraries: Vec<Finding>,
    pub events: u64,
    /// Why stores that were pending at the end were not judged, if they were not.
    pub unjudged: Option<&'static str>,
}

/// Reads a trace from its first event to its last.
pub fn lint(reader: &TraceReader, rules: Vec<Active>, options: &Options) -> Result<Report, LintError> {
    let tables = reader.tables();
    let mut pass = Pass::new(tables, rules, options);
    let mut sites: Vec<Option<SiteId>> = Vec::new();
    reader.events().for_each_with_shape(|id, shape, event| {
        let shape = shape as usize;
        if sites.len() <= shape {
            sites.resize(shape + 1, None);
        }
        let site = match sites[shape] {
            Some(site) => site,
            None => *sites[shape].insert(pass.site(event)),
        };
        pass.take_at(id, site, event)
    })?;
    let unjudged = match reader.ending() {
        Ending::Complete(Outcome::Ended(ExitStatus::Code(_))) => None,
        Ending::Complete(Outcome::Ended(ExitStatus::Signal(_))) => Some("the program was killed by a signal"),
        Ending::Complete(Outcome::Interrupted) => Some("the recording was interrupted"),
        Ending::Complete(Outcome::Failed) | Ending::Cut { .. } | Ending::Damaged { .. } => {
            Some("the trace does not reach the end of the program")
        }
    };
    if unjudged.is_none() {
        let lost = pass.lost_for_good(reader, &sites, options)?;
        pass.judge(&lost)?;
    }
    let (inside, own) = pass
        .grouped(&options.libraries)
        .into_iter()
        .partition::<Vec<Grouped>, _>(|grouped| grouped.inside_library && grouped.finding.class == Class::Performance);
    let findings = |grouped: Vec<Grouped>| grouped.into_iter().map(|grouped| grouped.finding).collect();
    let (findings, inside_libraries) = (findings(own), findings(inside));
    Ok(Report { findings, inside_libraries, events: reader.event_count(), unjudged })
}

/// One pass: feed it every event, then judge what is left.
#[derive(Debug)]
pub struct Pass<'t> {
    world: World<'t>,
    tracker: Tracker,
    rules: Vec<Active>,
    /// The rules that want each kind of event.
    stores: Vec<usize>,
    overwrites: Vec<usize>,
    useful_flushes: Vec<usize>,
    wasted_flushes: Vec<usize>,
    fences: Vec<usize>,
    calls: Vec<usize>,
    others: Vec<usize>,
    transactions: Transactions,
    /// The trace tells of transactions.
    has_transactions: bool,
    sightings: Sightings,
    /// From where something was stored to PM.
    storing: FxHashSet<SiteId>,
}

impl<'t> Pass<'t> {
    pub fn new(tables: &'t Tables, mut rules: Vec<Active>, options: &Options) -> Pass<'t> {
        let model = options.model.build(options.fences);
        if !model.needs_flushes() {
            rules.retain(|active| !active.rule.info().about_flushes);
        }
        let wanting = |wanted: Wants| -> Vec<usize> {
            let wants = |at: &usize| rules[*at].rule.wants(tables).contains(wanted);
            (0..rules.len()).filter(wants).collect()
        };
        Pass {
            stores: wanting(Wants::STORES),
            overwrites: wanting(Wants::OVERWRITES),
            useful_flushes: wanting(Wants::USEFUL_FLUSHES),
            wasted_flushes: wanting(Wants::WASTED_FLUSHES),
            fences: wanting(Wants::FENCES),
            calls: wanting(Wants::CALLS),
            others: wanting(Wants::OTHERS),
            world: World::new(tables),
            transactions: Transactions::default(),
            has_transactions: Transactions::recorded(tables),
            // Rules look at the newest stores of a line only.
            tracker: Tracker::new(model, Detail::LastWriters).keep_one_of_each(Tag::same_site),
            rules,
            sightings: Sightings::default(),
            storing: FxHashSet::default(),
        }
    }

    /// Takes the next event.
    pub fn take(&mut self, id: EventId, event: &Event<'_>) -> Result<(), LintError> {
        let site = self.site(event);
        self.take_at(id, site, event)
    }

    fn site(&mut self, event: &Event<'_>) -> SiteId {
        let site = self.world.sites.number(Site { pc: event.pc, context: event.context });
        if role_of(event) == Role::Store {
            self.storing.insert(site);
        }
        site
    }

    #[inline(always)]
    fn take_at(&mut self, id: EventId, site: SiteId, event: &Event<'_>) -> Result<(), LintError> {
        let tag = Tag::pack(id, site).ok_or(LintError::TooManySites)?;
        let step = self.tracker.apply(tag, event);
        let wanting = match event.kind {
            EventKind::Store { .. }
            | EventKind::Rmw { .. }
            | EventKind::KernelWrite { .. }
            | EventKind::FileWrite { .. } => {
                let overwrites = step.stored().iter().any(|line| !line.overwritten.is_empty());
                if overwrites { &self.overwrites } else { &self.stores }
            }
            EventKind::Flush { .. } => match step.effect {
                Effect::Flush(flush) if flush.verdict == FlushVerdict::Useful => &self.useful_flushes,
                _ => &self.wasted_flushes,
            },
            EventKind::Fence { .. } => &self.fences,
            EventKind::Call { .. } | EventKind::Return { .. } => &self.calls,
            _ => &self.others,
        };
        let happening = match self.has_transactions {
            true => self.transactions.observe(event, site, &self.world),
            false => Happening::Nothing,
        };
        if !wanting.is_empty() {
            let (world, transactions) = (&self.world, &self.transactions);
            let moment = Moment { id, event, site, step: &step, world, transactions, happening: &happening };
            for &at in wanting {
                let mut out = Sink { all: &mut self.sightings, rule: at, event: id, thread: Some(event.thread) };
                let rule = &mut self.rules[at].rule;
                if let Err(source) = rule.event(&moment, &mut out) {
                    return Err(LintError::Rule { rule: rule.info().id.to_string(), event: id.0, source });
                }
            }
        }
        self.world.update(id, site, event, &step);
        Ok(())
    }

    /// Stores that are pending now. If the program has ended by itself they are lost.
    pub fn lost(&self) -> Vec<LostStore> {
        judge::lost(&self.tracker, &self.world)
    }

    /// Whether a rule would report a store that is pending now, if the program ended here and the store changed something.
    pub fn reports_losses(&self) -> bool {
        judge::may_be_reported(&self.rules, &self.tracker, &self.world)
    }

    /// As [`Pass::lost`], without stores that changed nothing. `sites` are by shape.
    fn lost_for_good(
        &self,
        reader: &TraceReader,
        sites: &[Option<SiteId>],
        options: &Options,
    ) -> Result<Vec<LostStore>, LintError> {
        let lost = self.lost();
        let lines: FxHashSet<LineId> = lost.iter().map(|store| store.line).collect();
        if lines.is_empty() || !self.reports_losses() {
            return Ok(lost);
        }
        let tag = |id: EventId, shape: usize| {
            let site = sites[shape].expect("the first reading met it");
            Tag::pack(id, site).expect("the first reading packed it")
        };
        let tracker = Tracker::new(options.model.build(options.fences), Detail::LastWriters);
        let tracker = silent::track(reader, lines.iter().copied(), tracker, tag)?;
        let mut lost = judge::lost(&tracker, &self.world);
        // A store across the boundary of a line brings its other line along.
        lost.retain(|store| lines.contains(&store.line));
        Ok(lost)
    }

    /// The program has ended by itself, and has lost these stores.
    pub fn judge(&mut self, lost: &[LostStore]) -> Result<(), LintError> {
        for lost in lost {
            for (at, active) in self.rules.iter_mut().enumerate() {
                let (event, thread) = (lost.event, Some(lost.thread));
                let mut out = Sink { all: &mut self.sightings, rule: at, event, thread };
                if let Err(source) = active.rule.lost(lost, &mut out) {
                    let (rule, event) = (active.rule.info().id.to_string(), judge::END.0);
                    return Err(LintError::Rule { rule, event, source });
                }
            }
        }
        for (at, active) in self.rules.iter_mut().enumerate() {
            let mut out = Sink { all: &mut self.sightings, rule: at, event: judge::END, thread: None };
            active.rule.end(&self.world, &mut out);
        }
        Ok(())
    }

    /// How many lines have a store that is not guaranteed.
    pub fn dirty_line_count(&self) -> usize {
        self.tracker.dirty_line_count()
    }

    /// What each rule reported, by site and without names: rule id, site, count; in order.
    pub fn sighted(&self) -> Vec<(String, Site, u64)> {
        let named = self.sightings.tallies.iter().map(|(key, tally)| {
            let rule = self.rules[key.rule].rule.info().id.to_string();
            (rule, self.world.sites.get(key.site), tally.count)
        });
        let mut sorted: Vec<_> = named.collect();
        sorted.sort();
        sorted
    }

    /// Names the code and joins what has one cause.
    pub fn findings(&self, libraries: &Libraries) -> Vec<Finding> {
        self.grouped(libraries).into_iter().map(|grouped| grouped.finding).collect()
    }

    fn grouped(&self, libraries: &Libraries) -> Vec<Grouped> {
        let mut symbols = Symbolizer::new(self.world.tables);
        let mut causes: Vec<Cause> = Vec::new();
        let mut rule_of: Vec<usize> = Vec::new();
        let mut known: rustc_hash::FxHashMap<(usize, Option<Rc<str>>), usize> = rustc_hash::FxHashMap::default();
        let mut keys: Vec<_> = self.sightings.tallies.iter().collect();
        keys.sort_by_key(|(key, tally)| (key.rule, tally.first, key.site));
        let mut sightings = Vec::with_capacity(keys.len());
        for (key, tally) in keys {
            let cause = *known.entry((key.rule, key.message.clone())).or_insert_with(|| {
                let active = &self.rules[key.rule];
                let info = active.rule.info();
                causes.push(Cause {
                    rule: info.id.to_string(),
                    class: info.class,
                    severity: active.severity,
                    title: key.message.as_deref().unwrap_or(&info.title).to_owned(),
                });
                rule_of.push(key.rule);
                causes.len() - 1
            });
            let site = |id: SiteId| self.world.sites.get(id);
            sightings.push(Sighting {
                cause,
                site: site(key.site),
                role: key.role,
                related: key.related.map(|(role, id)| (role, site(id))),
                count: tally.count,
                first: tally.first,
                thread: tally.thread,
                note: key.detail.map(|detail| self.note(detail, &mut symbols)),
            });
        }
        let stores = self.storing.iter().map(|&site| self.world.sites.get(site));
        let mut findings = group(&causes, &sightings, stores, self.world.tables, libraries, |cause, frames| {
            self.rules[rule_of[cause]].rule.dismisses(frames)
        });
        findings.retain(|Grouped { finding, .. }| {
            let own = self.rules.iter().find(|active| active.rule.info().id == finding.rule);
            !own.is_some_and(|active| active.rule.withdraws(finding))
        });
        findings
    }

    fn note(&self, detail: sightings::Detail, symbols: &mut Symbolizer<'_>) -> Note {
        match detail {
            sightings::Detail::In(pool) => {
                Note::InFile { name: self.world.tables.pools[pool.0 as usize].info.path.clone() }
            }
            sightings::Detail::FencedAt(site) => self.world.named_fence(site, symbols),
        }
    }
}

/// What the tracker keeps of an event in place of its number: the number and the site in one word, so that a pending
/// store can be blamed without a table of events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tag;

impl Tag {
    const SITE_BITS: u32 = 24;
    pub const MAX_SITES: u32 = 1 << Self::SITE_BITS;

    #[inline]
    pub fn pack(id: EventId, site: SiteId) -> Option<EventId> {
        (site.0 < Self::MAX_SITES).then_some(EventId(id.0 << Self::SITE_BITS | u64::from(site.0)))
    }

    fn same_site(one: EventId, other: EventId) -> bool {
        Tag::unpack(one).1 == Tag::unpack(other).1
    }

    #[inline]
    pub fn unpack(tag: EventId) -> (EventId, SiteId) {
        (EventId(tag.0 >> Self::SITE_BITS), SiteId(tag.0 as u32 & (Self::MAX_SITES - 1)))
    }
}
