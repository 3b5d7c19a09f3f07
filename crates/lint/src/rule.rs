//! The interface of a rule: what built-in rules, scripts and rules of other crates implement.
//!
//! The duties of an implementation:
//!
//! 1. [`Rule::event`] sees every event of the kinds that it [wants](Rule::wants), in the order of the trace, after the
//!    persistency model took it and before the [`World`] did: the world still tells what was before.
//! 2. A rule keeps memory in proportion to dirty lines, live transactions or places in the code; never to events.
//! 3. A rule reports sites by number. It is asked about names, if it cares, once per site at the end
//!    ([`Rule::dismisses`]).
//! 4. A rule of severity *error* or *performance* reports only what is certain.

use std::borrow::Cow;

use finding::finding::{Class, Finding, Location, Role};
use finding::severity::{Level, Severity};
use finding::site::SiteId;
use persistency::domain::Route;
use persistency::line::LineId;
use persistency::tracker::Applied;
use trace::Tables;
use trace::event::{Event, EventId, ThreadId};

use crate::pmdk::transactions::{Happening, Transactions};
use crate::sightings::Sink;
use crate::world::World;

/// What a rule says about itself.
#[derive(Clone, Debug)]
pub struct RuleInfo {
    pub id: Cow<'static, str>,
    /// A few words with dashes, for people who configure it.
    pub name: Cow<'static, str>,
    pub class: Class,
    pub level: Level,
    /// The severity when it is switched on, for rules that are off by default.
    pub severity: Severity,
    /// One sentence for the head of its findings.
    pub title: Cow<'static, str>,
    /// Meaningless where a program needs no flushes (eADR).
    pub about_flushes: bool,
}

impl RuleInfo {
    /// A built-in rule that is on.
    pub const fn new(
        id: &'static str,
        name: &'static str,
        class: Class,
        severity: Severity,
        title: &'static str,
    ) -> RuleInfo {
        RuleInfo {
            id: Cow::Borrowed(id),
            name: Cow::Borrowed(name),
            class,
            level: Level::Report(severity),
            severity,
            title: Cow::Borrowed(title),
            about_flushes: false,
        }
    }

    pub const fn about_flushes(mut self) -> RuleInfo {
        self.about_flushes = true;
        self
    }

    pub const fn off(mut self) -> RuleInfo {
        self.level = Level::Allow;
        self
    }
}

/// Kinds of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Wants(pub(crate) u8);

impl Wants {
    pub const NOTHING: Wants = Wants(0);
    /// Stores, read-modify-writes, and writes by the kernel or to the file.
    pub const STORES: Wants = Wants(1 | Self::OVERWRITES.0);
    /// Those of them that overwrite bytes which were not durable yet.
    pub const OVERWRITES: Wants = Wants(32);
    pub const FLUSHES: Wants = Wants(Self::USEFUL_FLUSHES.0 | Self::WASTED_FLUSHES.0);
    /// Flushes that asked for stores which their thread had not asked for.
    pub const USEFUL_FLUSHES: Wants = Wants(2);
    /// All other flushes.
    pub const WASTED_FLUSHES: Wants = Wants(64);
    /// `sfence`, `mfence`, and locked instructions on ordinary memory.
    pub const FENCES: Wants = Wants(4);
    /// Calls and returns of watched functions.
    pub const CALLS: Wants = Wants(8);
    /// Everything else: mappings, syncs, threads, processes, operations.
    pub const OTHERS: Wants = Wants(16);

    pub const fn and(self, other: Wants) -> Wants {
        Wants(self.0 | other.0)
    }

    pub const fn contains(self, other: Wants) -> bool {
        self.0 & other.0 == other.0
    }
}

/// An event, what it did, and the world before it.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    pub id: EventId,
    pub event: &'a Event<'a>,
    pub site: SiteId,
    pub step: &'a Applied<'a>,
    pub world: &'a World<'a>,
    /// PMDK's transactions, after the event, if their functions were watched.
    pub(crate) transactions: &'a Transactions,
    /// What the event meant for them.
    pub(crate) happening: &'a Happening,
}

/// A store that was not durable when its program ended.
#[derive(Clone, Copy, Debug)]
pub struct LostStore {
    pub event: EventId,
    pub site: SiteId,
    pub thread: ThreadId,
    pub line: LineId,
    pub route: Route,
    pub fate: Loss,
}

/// How far a lost store got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// No flush followed. `elsewhere`: where the line was flushed at some other time of the run.
    NeverFlushed { elsewhere: Option<SiteId> },
    /// This flush followed, but no fence of the thread that flushed.
    NeverFenced { flush: SiteId },
    /// A non-temporal store that no fence of its thread followed.
    NeverDrained,
}

/// A rule that cannot go on: a script that is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RuleError(pub String);

/// See the module's header for the duties.
pub trait Rule {
    fn info(&self) -> &RuleInfo;

    /// The events that it has to see. Asked once, before the first.
    fn wants(&self, tables: &Tables) -> Wants;

    /// Functions whose calls must have been recorded.
    fn watches(&self) -> Vec<String> {
        Vec::new()
    }

    fn event(&mut self, _moment: &Moment<'_>, _out: &mut Sink<'_>) -> Result<(), RuleError> {
        Ok(())
    }

    /// Where the rule would report a store that was not durable when its program ended; none if it has nothing to say of it. Asked before
    /// [`Rule::lost`], and of more stores: only where somebody would report one of them, and the names of the code do not
    /// [dismiss](Rule::dismisses) it, the trace is read once more, to leave out stores that changed nothing.
    fn blames(&self, _lost: &LostStore) -> Option<(SiteId, Role)> {
        None
    }

    /// A store was not durable when its program ended. Called at the end, by ascending line.
    fn lost(&mut self, _lost: &LostStore, _out: &mut Sink<'_>) -> Result<(), RuleError> {
        Ok(())
    }

    /// The program has ended by itself. Called once, after the last event.
    fn end(&mut self, _world: &World<'_>, _out: &mut Sink<'_>) {}

    /// Whether the names of the code show that a sighting is harmless. Frames are innermost first.
    fn dismisses(&self, _frames: &[Location]) -> bool {
        false
    }

    /// Whether the names of all places of a finding, the other sides included, show that it is none.
    fn withdraws(&self, _finding: &Finding) -> bool {
        false
    }
}

/// The role that an event plays in a finding about it.
pub(crate) fn role_of(event: &Event<'_>) -> Role {
    use trace::event::EventKind::*;
    match event.kind {
        Store { .. } | Rmw { .. } | KernelWrite { .. } | FileWrite { .. } => Role::Store,
        Flush { .. } => Role::Flush,
        Fence { .. } => Role::Fence,
        Call { .. } | Return { .. } => Role::Call,
        _ => Role::Event,
    }
}
