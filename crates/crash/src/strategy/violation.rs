//! Conditions that states of a crash point can break.

use std::cmp::Reverse;

use infer::{ConditionRule, Conditions, Span, SpanNo};
use persistency::content::Content;
use persistency::line::LineId;
use persistency::point::LineView;
use persistency::states::CrashState;
use rustc_hash::FxHashMap;
use trace::event::{CodeAddr, EventId};

use crate::image::GuaranteedImage;
use crate::view::PointView;

/// A condition that a state breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub rule: ConditionRule,
    /// What is not in PM, and the store that is missing.
    pub first: Span,
    pub missing: EventId,
    /// What is in PM though, and its store.
    pub second: Span,
    pub present: EventId,
    /// The instructions that gave the hint, about the first and about the second place.
    pub evidence: (CodeAddr, CodeAddr),
}

/// A condition that this state of the point breaks, of several the one whose stores are the newest. Never looks at all pairs of stores: a program
/// that does not flush has a hundred thousand pending ones.
pub fn broken(view: &PointView<'_>, conditions: &Conditions, state: &CrashState) -> Option<Broken> {
    let touched = Touched::new(view, conditions, EventId(0), usize::MAX);
    let is_there: Vec<bool> = view
        .lines()
        .iter()
        .flat_map(|line| {
            let content = state.content(line);
            (0..line.stores().len() as u32).map(move |place| has_store(line, content, place))
        })
        .collect();
    let pair = touched.newest_broken(conditions, &is_there)?;
    let order = if pair.is_order { conditions.between(pair.first, pair.second) } else { None };
    let rule = order.map_or(ConditionRule::Pa1, |order| order.rule);
    let (missing, present) = (touched.stores[pair.x].event, touched.stores[pair.y].event);
    let (first, second) = (conditions.span(pair.first), conditions.span(pair.second));
    let evidence = order.map_or_else(
        || {
            let read_by =
                |span: SpanNo| conditions.guardian_at(span).map_or_else(CodeAddr::default, |of| of.evidence.0);
            (read_by(pair.first), read_by(pair.second))
        },
        |order| order.evidence,
    );
    Some(Broken { rule, first, missing, second, present, evidence })
}

/// Is this pending store of the line in PM, with at least one of its granules?
fn has_store(line: &LineView<'_>, content: Content, place: u32) -> bool {
    if content.is_whole() {
        return content.kept > place;
    }
    let event = line.stores().get(place as usize).map(|store| store.event);
    let mut found = false;
    line.for_each_store(content, |store, _| found |= Some(store.event) == event);
    found
}

/// A pending store, as far as it is on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Store {
    pub line: LineId,
    /// Among the pending stores of its line.
    pub place: u32,
    pub event: EventId,
    pub span: Span,
    pub is_fresh: bool,
}

impl Store {
    /// Is there anything but zeroes in PM where it stores?
    pub fn is_over_old(&self, guaranteed: &GuaranteedImage) -> bool {
        let from = (self.span.offset - self.line.start().offset.0) as usize;
        guaranteed.line(self.line)[from..from + self.span.len as usize].iter().any(|&byte| byte != 0)
    }
}

/// Two pending stores that a condition is about, as numbers of [`Touched::stores`]: `y` must not be in PM without `x`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    pub x: usize,
    pub y: usize,
    pub first: SpanNo,
    pub second: SpanNo,
    /// False: two guardians.
    pub is_order: bool,
}

/// The newest stores that a store makes pairs with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Partners {
    /// That must be in PM if it is.
    pub missing: Option<usize>,
    /// That must not be in PM if it is not.
    pub present: Option<usize>,
}

/// The pending stores of a point, and which places of conditions they touch.
#[derive(Debug)]
pub(crate) struct Touched {
    pub stores: Vec<Store>,
    /// Ascending.
    places: Vec<Touching>,
    /// Of these places.
    guardians: Vec<usize>,
    /// There are more pending stores than were looked at.
    pub is_partial: bool,
}

/// The stores to one place.
#[derive(Debug)]
struct Touching {
    place: SpanNo,
    /// Ascending.
    stores: Vec<usize>,
    /// One of them is.
    is_fresh: bool,
}

impl Touched {
    /// Stores from `fresh_from` on are fresh: pairs of others were met before. At most so many are looked at, the newest.
    pub fn new(view: &PointView<'_>, conditions: &Conditions, fresh_from: EventId, most: usize) -> Self {
        let mut stores: Vec<Store> = Vec::new();
        let mut places: FxHashMap<SpanNo, Vec<usize>> = FxHashMap::default();
        let newest = newest_from(view, most);
        let oldest = newest.unwrap_or_default();
        for line in view.lines() {
            let start = line.id().start();
            for (place, store) in (0..).zip(line.stores()).filter(|(_, store)| store.event >= oldest) {
                let offset = start.offset.0 + u64::from(store.start);
                let span = Span { pool: start.pool, offset, len: u32::from(store.len) };
                for number in conditions.overlapping(span) {
                    places.entry(number).or_default().push(stores.len());
                }
                let is_fresh = store.event >= fresh_from;
                stores.push(Store { line: line.id(), place, event: store.event, span, is_fresh });
            }
        }
        let touching = |(place, own): (SpanNo, Vec<usize>)| {
            let is_fresh = own.iter().any(|&store| stores[store].is_fresh);
            Touching { place, stores: own, is_fresh }
        };
        let mut places: Vec<Touching> = places.into_iter().map(touching).collect();
        places.sort_unstable_by_key(|touching| touching.place);
        let is_guardian = |at: &usize| conditions.guardian_at(places[*at].place).is_some();
        let guardians = (0..places.len()).filter(is_guardian).collect();
        Touched { stores, places, guardians, is_partial: newest.is_some() }
    }

    /// For each store, with conditions and as pieces.
    pub fn newest_partners(&self, conditions: &Conditions, pieces: &[(usize, usize)]) -> Vec<Partners> {
        let mut newest = vec![Partners::default(); self.stores.len()];
        // Of a store to two lines the first.
        let age = |at: usize| (self.stores[at].event, Reverse(at));
        let later =
            |known: Option<usize>, other: usize| known.filter(|&known| age(known) >= age(other)).or(Some(other));
        let mut add = |x: usize, y: usize| {
            newest[y].missing = later(newest[y].missing, x);
            newest[x].present = later(newest[x].present, y);
        };
        self.for_each_pair(conditions, |Pair { x, y, .. }| add(x, y));
        for &(one, other) in pieces {
            for (x, y) in [(one, other), (other, one)] {
                if self.can_break(x, y) {
                    add(x, y);
                }
            }
        }
        newest
    }

    /// Every two fresh stores, one right after the other, to neighbouring bytes by one function. (Its loops may be unrolled.)
    pub fn pieces(&self, is_same_function: impl Fn(EventId, EventId) -> bool) -> Vec<(usize, usize)> {
        let mut row: Vec<usize> = (0..self.stores.len()).filter(|&at| self.stores[at].is_fresh).collect();
        row.sort_by_key(|&at| self.stores[at].event);
        let next_to = |a: Span, b: Span| a.pool == b.pool && (a.end() == b.offset || b.end() == a.offset);
        let pairs = row.windows(2).map(|pair| (pair[0], pair[1]));
        let one = |&(a, b): &(usize, usize)| {
            let (a, b) = (&self.stores[a], &self.stores[b]);
            next_to(a.span, b.span) && is_same_function(a.event, b.event)
        };
        pairs.filter(one).collect()
    }

    /// Every two stores that a condition is about, that some state can break, and of which one is fresh. Some come several times.
    pub fn for_each_pair(&self, conditions: &Conditions, mut each: impl FnMut(Pair)) {
        let mut pairs = |first: usize, second: usize, is_order: bool| {
            let (first, second) = (&self.places[first], &self.places[second]);
            for (&x, &y) in first.stores.iter().flat_map(|x| second.stores.iter().map(move |y| (x, y))) {
                if self.can_break(x, y) && (self.stores[x].is_fresh || self.stores[y].is_fresh) {
                    each(Pair { x, y, first: first.place, second: second.place, is_order });
                }
            }
        };
        let all: Vec<usize> = (0..self.places.len()).collect();
        let fresh = |of: &[usize]| of.iter().copied().filter(|&at| self.places[at].is_fresh).collect::<Vec<usize>>();
        let numbers = |of: &[usize]| of.iter().map(|&at| self.places[at].place).collect::<Vec<SpanNo>>();
        let fresh_places = fresh(&all);
        let (all_numbers, fresh_numbers) = (numbers(&all), numbers(&fresh_places));
        for (second, touching) in self.places.iter().enumerate() {
            let (among, named) = if touching.is_fresh { (&all, &all_numbers) } else { (&fresh_places, &fresh_numbers) };
            for at in conditions.before_among(touching.place, named) {
                pairs(among[at], second, true);
            }
        }
        let fresh_guardians = fresh(&self.guardians);
        for &first in &self.guardians {
            let seconds = if self.places[first].is_fresh { &self.guardians } else { &fresh_guardians };
            for &second in seconds {
                let span = |at: usize| conditions.span(self.places[at].place);
                if !span(first).overlaps(span(second)) {
                    pairs(first, second, false);
                }
            }
        }
    }

    /// Of the pairs with `x` missing and `y` there, the one whose stores are the newest.
    fn newest_broken(&self, conditions: &Conditions, is_there: &[bool]) -> Option<Pair> {
        let newest = |at: usize, there: bool| {
            let own = self.places[at].stores.iter().copied().filter(|&store| is_there[store] == there);
            own.max_by_key(|&store| self.stores[store].event)
        };
        // Of every place the newest store that is missing, and the newest that is there.
        let missing: Vec<Option<usize>> = (0..self.places.len()).map(|at| newest(at, false)).collect();
        let there: Vec<Option<usize>> = (0..self.places.len()).map(|at| newest(at, true)).collect();
        let mut found: Option<((EventId, EventId), Pair)> = None;
        // Whether no older stores of these places would be a better pair.
        let mut look = |first: usize, second: usize, is_order: bool| {
            let (Some(x), Some(y)) = (missing[first], there[second]) else { return false };
            let is_newest = self.can_break(x, y);
            let (xs, ys) = match is_newest {
                true => (std::slice::from_ref(&x), std::slice::from_ref(&y)),
                false => (&self.places[first].stores[..], &self.places[second].stores[..]),
            };
            for (&x, &y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y))) {
                let events = (self.stores[x].event, self.stores[y].event);
                let age = (events.0.max(events.1), events.0.min(events.1));
                if !is_there[x] && is_there[y] && self.can_break(x, y) && found.is_none_or(|(known, _)| age > known) {
                    let (first, second) = (self.places[first].place, self.places[second].place);
                    found = Some((age, Pair { x, y, first, second, is_order }));
                }
            }
            is_newest
        };
        let firsts: Vec<usize> = (0..self.places.len()).filter(|&at| missing[at].is_some()).collect();
        let names: Vec<SpanNo> = firsts.iter().map(|&at| self.places[at].place).collect();
        for second in (0..self.places.len()).filter(|&at| there[at].is_some()) {
            for at in conditions.before_among(self.places[second].place, &names) {
                look(firsts[at], second, true);
            }
        }
        let mut seconds: Vec<usize> = self.guardians.iter().copied().filter(|&at| there[at].is_some()).collect();
        seconds.sort_by_key(|&at| Reverse(there[at].map(|store| self.stores[store].event)));
        let span = |at: usize| conditions.span(self.places[at].place);
        for &first in self.guardians.iter().filter(|&&at| missing[at].is_some()) {
            for &second in seconds.iter().filter(|&&second| !span(first).overlaps(span(second))) {
                if look(first, second, false) {
                    break;
                }
            }
        }
        Some(found?.1)
    }

    /// Is there a state with `y` and without `x`? Of one line a prefix is in PM.
    fn can_break(&self, x: usize, y: usize) -> bool {
        let (x, y) = (&self.stores[x], &self.stores[y]);
        x.line != y.line || y.place < x.place
    }
}

/// From which event on there are so many pending stores; none if there are no more in all.
fn newest_from(view: &PointView<'_>, most: usize) -> Option<EventId> {
    let mut events: Vec<EventId> =
        view.lines().iter().flat_map(|line| line.stores()).map(|store| store.event).collect();
    if events.len() <= most {
        return None;
    }
    let at = events.len() - most;
    Some(*events.select_nth_unstable(at).1)
}
