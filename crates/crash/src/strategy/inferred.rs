//! *inferred*: states that break a likely-correctness condition (Witcher §4.3).
//!
//! An order says that *X* must be in PM before *Y*: it is broken by a state that has a pending store to *Y* and lacks one to *X*.
//! Guardians must reach PM together: that is broken by a state that has a pending store to one and lacks one to another.
//! Each pair of pending stores that can be broken is broken twice: in the state with the least (what is guaranteed and, of *Y*'s line, the
//! stores up to that one), which is the image that the paper makes (its Figure 3g), and in the one with the most (everything
//! but, of *X*'s line, that store and what follows), which it does not: there the program got furthest with *X* forgotten. Since the one depends on *Y*
//! alone and the other on *X*, a point has at most two states per pending store, however many conditions there are.
//!
//! Where one of the two stores is guaranteed already, *guaranteed-only* and *program-order* are the states to try.
//! Stores that were pending for long count as much as new ones, as in the paper; but a pair of which both were pending at an earlier fence of the operation
//! under way was broken there, and is not again.

use std::cmp::Reverse;
use std::sync::Arc;

use infer::{Conditions, Order, Rule, Span, SpanNo};
use persistency::line::LineId;
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, EventId};

use super::spec::{Reach, Strategy};
use crate::view::{PointView, StateKey};

/// The conditions of a search. Searches with the same ones can be joined; only what they are compared by is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct KnownConditions {
    digest: u64,
    #[serde(skip)]
    conditions: Option<Arc<Conditions>>,
}

impl KnownConditions {
    pub fn new(conditions: Conditions) -> Self {
        KnownConditions { digest: conditions.digest(), conditions: Some(Arc::new(conditions)) }
    }

    /// None if this was read from a journal.
    pub fn get(&self) -> Option<&Conditions> {
        self.conditions.as_deref()
    }
}

impl PartialEq for KnownConditions {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

impl Eq for KnownConditions {}

#[derive(Debug)]
pub struct Inferred {
    /// In reverse.
    states: Vec<CrashState>,
    capped: bool,
}

impl Inferred {
    /// Names nothing if the view has no conditions.
    pub fn new(view: &PointView<'_>, cap: u64) -> Self {
        let Some(conditions) = view.conditions() else { return Inferred { states: Vec::new(), capped: false } };
        let touched = Touched::new(view, conditions);
        let (mut least, mut most) = (vec![false; touched.stores.len()], vec![false; touched.stores.len()]);
        // Pairs whose stores are chosen already have nothing to add; nearly all pairs of guardians are such.
        let chosen = |marks: &[bool], stores: &[usize]| stores.iter().all(|&store| marks[store]);
        let mut mark = |xs: &[usize], ys: &[usize]| {
            if chosen(&most, xs) && chosen(&least, ys) {
                return;
            }
            for (&x, &y) in xs.iter().flat_map(|x| ys.iter().map(move |y| (x, y))) {
                if touched.can_break(x, y) && (touched.stores[x].is_fresh || touched.stores[y].is_fresh) {
                    least[y] = true;
                    most[x] = true;
                }
            }
        };
        touched.for_each_order(conditions, |first, second| mark(&touched.places[first].1, &touched.places[second].1));
        touched
            .for_each_guardians(conditions, |first, second| mark(&touched.places[first].1, &touched.places[second].1));
        let mut states = Vec::new();
        let mut seen: FxHashSet<StateKey> = FxHashSet::default();
        let mut add = |state: CrashState| {
            if seen.insert(view.key(&state)) {
                states.push(state);
            }
        };
        let in_order = |marks: &[bool]| {
            let marked = touched.stores.iter().zip(marks).filter(|(_, chosen)| **chosen);
            let mut chosen: Vec<Store> = marked.map(|(store, _)| *store).collect();
            // Stores that nobody ever flushes are old, and seldom to blame.
            chosen.sort_by_key(|store| (Reverse(store.event), store.line));
            chosen
        };
        for store in in_order(&least) {
            add(CrashState { base: Base::Guaranteed, lines: vec![(store.line, Content::whole(store.place + 1))] });
        }
        for store in in_order(&most) {
            add(CrashState { base: Base::Everything, lines: vec![(store.line, Content::whole(store.place))] });
        }
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let capped = states.len() > cap;
        states.truncate(cap);
        states.reverse();
        Inferred { states, capped }
    }
}

impl Strategy for Inferred {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        self.states.pop()
    }

    fn reach(&self) -> Reach {
        if self.capped { Reach::Capped } else { Reach::Done }
    }
}

/// A condition that a state breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    pub rule: Rule,
    /// What is not in PM, and the store that is missing.
    pub first: Span,
    pub missing: EventId,
    /// What is in PM though, and its store.
    pub second: Span,
    pub present: EventId,
    /// The instructions that gave the hint, about the first and about the second place.
    pub evidence: (CodeAddr, CodeAddr),
}

/// A condition that this state of the point breaks, of several the one whose stores are the newest.
pub fn broken(view: &PointView<'_>, conditions: &Conditions, state: &CrashState) -> Option<Broken> {
    let touched = Touched::new(view, conditions);
    let has = |store: &Store| {
        let line = view.crash_point().line(store.line).expect("stores are those of the point");
        state.content(line).kept > store.place
    };
    let mut found: Option<(Reverse<(EventId, EventId)>, Pair)> = None;
    let mut look = |first: usize, second: usize, order: Option<Order>| {
        for (&x, &y) in
            touched.places[first].1.iter().flat_map(|x| touched.places[second].1.iter().map(move |y| (x, y)))
        {
            let stores = (&touched.stores[x], &touched.stores[y]);
            let newest = Reverse((stores.0.event.max(stores.1.event), stores.0.event.min(stores.1.event)));
            if has(stores.1) && !has(stores.0) && found.is_none_or(|(known, _)| newest < known) {
                let (first, second) = (touched.places[first].0, touched.places[second].0);
                found = Some((newest, Pair { x, y, first, second, order }));
            }
        }
    };
    touched.for_each_order(conditions, |first, second| {
        look(first, second, conditions.between(touched.places[first].0, touched.places[second].0));
    });
    touched.for_each_guardians(conditions, |first, second| look(first, second, None));
    let (_, pair) = found?;
    let rule = pair.order.map_or(Rule::Pa1, |order| order.rule);
    let (missing, present) = (touched.stores[pair.x].event, touched.stores[pair.y].event);
    let (first, second) = (conditions.span(pair.first), conditions.span(pair.second));
    let evidence = pair.order.map_or_else(
        || {
            let read_by =
                |span: SpanNo| conditions.guardian_at(span).map_or_else(CodeAddr::default, |of| of.evidence.0);
            (read_by(pair.first), read_by(pair.second))
        },
        |order| order.evidence,
    );
    Some(Broken { rule, first, missing, second, present, evidence })
}

/// A pending store to a place of a condition.
#[derive(Clone, Copy, Debug)]
struct Store {
    line: LineId,
    /// Among the pending stores of its line.
    place: u32,
    event: EventId,
    is_fresh: bool,
}

/// Two pending stores that a condition is about: `y` must not be in PM without `x`.
#[derive(Clone, Copy, Debug)]
struct Pair {
    x: usize,
    y: usize,
    first: SpanNo,
    second: SpanNo,
    /// None: two guardians.
    order: Option<Order>,
}

/// The pending stores of a point to places of conditions.
struct Touched {
    stores: Vec<Store>,
    /// Per place, which of the stores; ascending.
    places: Vec<(SpanNo, Vec<usize>)>,
    guardians: Vec<usize>,
}

impl Touched {
    fn new(view: &PointView<'_>, conditions: &Conditions) -> Self {
        let mut stores = Vec::new();
        let mut places: FxHashMap<SpanNo, Vec<usize>> = FxHashMap::default();
        for line in view.lines() {
            let start = line.id().start();
            for (place, store) in (0..).zip(line.stores()) {
                let offset = start.offset.0 + u64::from(store.start);
                let span = Span { pool: start.pool, offset, len: u32::from(store.len) };
                let near = conditions.overlapping(span);
                if near.is_empty() {
                    continue;
                }
                for number in near {
                    places.entry(number).or_default().push(stores.len());
                }
                let is_fresh = store.event >= view.fresh_from();
                stores.push(Store { line: line.id(), place, event: store.event, is_fresh });
            }
        }
        let mut places: Vec<(SpanNo, Vec<usize>)> = places.into_iter().collect();
        places.sort_unstable_by_key(|&(number, _)| number);
        let is_guardian = |at: &usize| conditions.guardian_at(places[*at].0).is_some();
        let guardians = (0..places.len()).filter(is_guardian).collect();
        Touched { stores, places, guardians }
    }

    /// Is there a state with `y` and without `x`? Of one line a prefix is in PM.
    fn can_break(&self, x: usize, y: usize) -> bool {
        let (x, y) = (&self.stores[x], &self.stores[y]);
        x.line != y.line || y.place < x.place
    }

    /// Every two places of which the first must be in PM before the second.
    fn for_each_order(&self, conditions: &Conditions, mut each: impl FnMut(usize, usize)) {
        let numbers: Vec<SpanNo> = self.places.iter().map(|&(number, _)| number).collect();
        for (at, &second) in numbers.iter().enumerate() {
            conditions.before_among(second, &numbers).into_iter().for_each(|first| each(first, at));
        }
    }

    /// Every two guardians, both ways.
    fn for_each_guardians(&self, conditions: &Conditions, mut each: impl FnMut(usize, usize)) {
        for &first in &self.guardians {
            for &second in &self.guardians {
                let span = |at: usize| conditions.span(self.places[at].0);
                if !span(first).overlaps(span(second)) {
                    each(first, second);
                }
            }
        }
    }
}
