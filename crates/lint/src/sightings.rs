//! What rules report while the trace is read: counts per rule and site, nothing else.

use std::rc::Rc;

use finding::finding::Role;
use finding::site::SiteId;
use rustc_hash::FxHashMap;
use trace::event::{EventId, PoolId, ThreadId};

/// What makes two reports the same sighting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub rule: usize,
    pub site: SiteId,
    pub role: Role,
    pub related: Option<(Role, SiteId)>,
    /// A script's own words; none for the rule's title.
    pub message: Option<Rc<str>>,
    pub detail: Option<Detail>,
}

/// What else a rule knows about a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detail {
    /// The pool that it is about.
    In(PoolId),
    /// The locked instruction that happens to complete a flush.
    FencedAt(SiteId),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub count: u64,
    pub first: EventId,
    /// Whose event the first was.
    pub thread: Option<ThreadId>,
}

/// All reports of a run.
#[derive(Debug, Default)]
pub struct Sightings {
    pub(crate) tallies: FxHashMap<Key, Tally>,
}

/// Where one rule puts its reports about one event.
#[derive(Debug)]
pub struct Sink<'s> {
    pub(crate) all: &'s mut Sightings,
    pub(crate) rule: usize,
    pub(crate) event: EventId,
    pub(crate) thread: Option<ThreadId>,
}

impl Sink<'_> {
    /// The rule was broken at `site`.
    pub fn report(&mut self, site: SiteId, role: Role) {
        self.add(self.key(site, role), 1);
    }

    /// As [`Sink::report`], naming the other side.
    pub fn report_with(&mut self, site: SiteId, role: Role, related: (Role, SiteId)) {
        self.add(Key { related: Some(related), ..self.key(site, role) }, 1);
    }

    /// As [`Sink::report`], so many times at once.
    pub fn report_times(&mut self, site: SiteId, role: Role, count: u64) {
        self.add(self.key(site, role), count);
    }

    /// As [`Sink::report`], in other words than the rule's title.
    pub fn report_as(&mut self, site: SiteId, role: Role, message: Rc<str>) {
        self.add(Key { message: Some(message), ..self.key(site, role) }, 1);
    }

    /// As [`Sink::report`], with what else is known.
    pub fn report_detail(&mut self, site: SiteId, role: Role, detail: Detail) {
        self.add(Key { detail: Some(detail), ..self.key(site, role) }, 1);
    }

    /// Names one more other side of what was reported.
    pub fn note_related(&mut self, site: SiteId, role: Role, related: (Role, SiteId)) {
        self.add(Key { related: Some(related), ..self.key(site, role) }, 0);
    }

    /// The reports that follow are about another event.
    pub(crate) fn at(&mut self, event: EventId, thread: ThreadId) {
        (self.event, self.thread) = (event, Some(thread));
    }

    fn key(&self, site: SiteId, role: Role) -> Key {
        Key { rule: self.rule, site, role, related: None, message: None, detail: None }
    }

    fn add(&mut self, key: Key, count: u64) {
        let tally = self.all.tallies.entry(key).or_insert(Tally { count: 0, first: self.event, thread: self.thread });
        tally.count += count;
        if self.event < tally.first {
            (tally.first, tally.thread) = (self.event, self.thread);
        }
    }
}
