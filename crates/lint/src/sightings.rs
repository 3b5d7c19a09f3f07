//! What rules report while the trace is read: counts per rule and site, nothing else.

use std::rc::Rc;

use finding::finding::Role;
use finding::site::SiteId;
use rustc_hash::FxHashMap;
use trace::event::EventId;

/// What makes two reports the same sighting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub rule: usize,
    pub site: SiteId,
    pub role: Role,
    pub related: Option<(Role, SiteId)>,
    /// A script's own words; none for the rule's title.
    pub message: Option<Rc<str>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Tally {
    pub count: u64,
    pub first: EventId,
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
}

impl Sink<'_> {
    /// The rule was broken at `site`.
    pub fn report(&mut self, site: SiteId, role: Role) {
        self.add(site, role, None, None, 1);
    }

    /// As [`Sink::report`], naming the other side.
    pub fn report_with(&mut self, site: SiteId, role: Role, related: (Role, SiteId)) {
        self.add(site, role, Some(related), None, 1);
    }

    /// As [`Sink::report`], so many times at once.
    pub fn report_times(&mut self, site: SiteId, role: Role, count: u64) {
        self.add(site, role, None, None, count);
    }

    /// As [`Sink::report`], in other words than the rule's title.
    pub fn report_as(&mut self, site: SiteId, role: Role, message: Rc<str>) {
        self.add(site, role, None, Some(message), 1);
    }

    /// Names one more other side of what was reported.
    pub fn note_related(&mut self, site: SiteId, role: Role, related: (Role, SiteId)) {
        self.add(site, role, Some(related), None, 0);
    }

    fn add(&mut self, site: SiteId, role: Role, related: Option<(Role, SiteId)>, message: Option<Rc<str>>, count: u64) {
        let key = Key { rule: self.rule, site, role, related, message };
        let tally = self.all.tallies.entry(key).or_insert(Tally { count: 0, first: self.event });
        tally.count += count;
        tally.first = tally.first.min(self.event);
    }
}
