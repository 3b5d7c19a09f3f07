//! The states that break conditions, against all states of small points.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crash::chosen::Chosen;
use crash::outcome::merge;
use crash::points::Density;
use crash::rounds::Shard;
use crash::search::{Search, SearchOptions};
use crash::strategy::StrategySpec;
use crash::strategy::inferred::KnownConditions;
use crash::strategy::violation::broken;
use crash::survey::Survey;
use crash::view::PointView;
use crash::walk::{Rules, Walk};
use infer::conditions::Counts;
use infer::{ConditionRule, Conditions, Guardian, Order, Span};
use persistency::line::LineId;
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use trace::{CodeAddr, ContextId, EventId, EventKind, FenceKind, PoolId, StoreKind, TraceReader};

use crate::joining::assert_same;
use crate::recoveries::Fake;
use crate::traces::{Rng, place, random, record, traces};

fn span(pool: u32, offset: u64, len: u32) -> Span {
    Span { pool: PoolId(pool), offset, len }
}

fn order(first: Span, second: Span) -> Order {
    Order { rule: ConditionRule::Po1, first, second, evidence: Default::default() }
}

fn some_conditions(rng: &mut Rng) -> (Vec<Order>, Vec<Guardian>) {
    let mut some =
        || span(0, [0, 8, 16, 64, 72, 100, 128, 4096][rng.below(8) as usize], [4, 8, 8, 20][rng.below(4) as usize]);
    let orders: Vec<Order> = (0..5).map(|_| order(some(), some())).filter(|o| !o.first.overlaps(o.second)).collect();
    let guardians = (0..3).map(|_| Guardian { span: some(), evidence: Default::default() }).collect();
    (orders, guardians)
}

/// A pending store: its line, its place among the line's, its bytes, its event.
type Pending = (LineId, u32, Span, EventId);

fn pending(view: &PointView<'_>) -> Vec<Pending> {
    let of_line = |line: &persistency::point::LineView<'_>| {
        let (id, start) = (line.id(), line.id().start());
        let stores = (0..).zip(line.stores());
        stores
            .map(|(at, store)| {
                let offset = start.offset.0 + u64::from(store.start);
                (id, at, span(start.pool.0, offset, store.len.into()), store.event)
            })
            .collect::<Vec<Pending>>()
    };
    view.lines().iter().flat_map(of_line).collect()
}

fn has(view: &PointView<'_>, state: &CrashState, (line, at, ..): Pending) -> bool {
    state.content(view.crash_point().line(line).unwrap()).kept > at
}

/// All pairs of pending stores (x, y) that must not be in PM as y without x.
fn pairs(view: &PointView<'_>, orders: &[Order], guardians: &[Guardian]) -> Vec<(Pending, Pending)> {
    let stores = pending(view);
    let is_pair = |x: Span, y: Span| {
        orders.iter().any(|order| order.first.overlaps(x) && order.second.overlaps(y))
            || guardians.iter().any(|a| {
                let guards = |b: &Guardian| !a.span.overlaps(b.span) && b.span.overlaps(y);
                a.span.overlaps(x) && guardians.iter().any(guards)
            })
    };
    let all = stores.iter().flat_map(|x| stores.iter().map(move |y| (*x, *y)));
    all.filter(|(x, y)| is_pair(x.2, y.2)).collect()
}

/// The code that made a store.
type Site = (ContextId, CodeAddr);

/// Least; the code; that of the newest store on the other side; is it fresh; is something old where the missing store should be?
type Kind = (bool, Site, Site, bool, bool);

/// A state that could be tried.
#[derive(Clone, Debug)]
struct Possible {
    kind: Kind,
    epoch: usize,
    point: u64,
    store: Pending,
}

/// The strategy as its header describes it, by looking at all pairs of stores at every point.
#[derive(Default)]
struct Slow<'a> {
    orders: &'a [Order],
    guardians: &'a [Guardian],
    sites: Vec<Site>,
    epoch: usize,
    /// In the order of points, at each the least first, the newest first.
    possible: Vec<Possible>,
}

impl Slow<'_> {
    /// Stores in a row by the same function to neighbouring bytes, both ways.
    fn pieces(&self, view: &PointView<'_>, fresh: EventId) -> Vec<(Pending, Pending)> {
        let mut row = pending(view);
        row.retain(|store| store.3 >= fresh);
        row.sort_by_key(|store| store.3);
        let mut pieces = Vec::new();
        for pair in row.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            let touch = a.2.end() == b.2.offset || b.2.end() == a.2.offset;
            if a.2.pool == b.2.pool && touch && self.sites[a.3.0 as usize].0 == self.sites[b.3.0 as usize].0 {
                pieces.extend([(a, b), (b, a)]);
            }
        }
        pieces
    }

    fn look(&mut self, view: &PointView<'_>, point: u64, fresh: EventId) {
        let mut pairs = pairs(view, self.orders, self.guardians);
        pairs.extend(self.pieces(view, fresh));
        pairs.retain(|(x, y)| (x.0 != y.0 || y.1 < x.1) && x.3.max(y.3) >= fresh);
        let mut stores = pending(view);
        stores.sort_by_key(|&(line, at, _, event)| (Reverse(event), line, at));
        for least in [true, false] {
            for &store in &stores {
                let same = |other: &Pending| (other.0, other.1) == (store.0, store.1);
                let others = pairs.iter().filter(|(x, y)| same(if least { y } else { x }));
                let Some(other) =
                    others.map(|(x, y)| if least { *x } else { *y }).max_by_key(|other| (other.3, Reverse(other.0)))
                else {
                    continue;
                };
                let site = |event: EventId| self.sites[event.0 as usize];
                let missing = if least { other } else { store };
                let start = (missing.2.offset - missing.0.start().offset.0) as usize;
                let bytes = view.guaranteed().line(missing.0);
                let over_old = bytes[start..start + missing.2.len as usize].iter().any(|&byte| byte != 0);
                let kind = (least, site(store.3), site(other.3), store.3 >= fresh, over_old);
                self.possible.push(Possible { kind, epoch: self.epoch, point, store });
            }
        }
    }

    /// The states to try, by points.
    fn choose(&self, times: u64) -> HashMap<u64, Vec<CrashState>> {
        let mut kinds: HashMap<Kind, Vec<&Possible>> = HashMap::new();
        self.possible.iter().for_each(|one| kinds.entry(one.kind).or_default().push(one));
        let mut chosen: Vec<&Possible> = Vec::new();
        for (kind, all) in &kinds {
            let mut epochs: Vec<usize> = all.iter().map(|one| one.epoch).collect();
            epochs.dedup();
            for (number, &epoch) in (1..).zip(&epochs) {
                let is_last = number == epochs.len() as u64;
                if number > times && ![1, 4, 16, 64].contains(&number) && !is_last {
                    continue;
                }
                // Places among a line's pending stores change while some of them become guaranteed.
                let who = |one: &Possible| (one.store.3, one.store.0);
                let mut stores: Vec<(EventId, LineId)> = Vec::new();
                for one in all.iter().filter(|one| one.epoch == epoch) {
                    if !stores.contains(&who(one)) {
                        stores.push(who(one));
                    }
                }
                let most = if kind.3 { 8 } else { 1 };
                for store in stores.into_iter().take(most.max(usize::try_from(times).unwrap())) {
                    let mut points = all.iter().filter(|one| one.epoch == epoch && who(one) == store);
                    chosen.push(if kind.0 { points.next() } else { points.next_back() }.unwrap());
                }
            }
        }
        chosen.sort_by_key(|one| (one.point, !one.kind.0, Reverse(one.store.3), one.store.0));
        let (mut least, mut states) = (HashSet::new(), HashMap::<u64, Vec<CrashState>>::new());
        for one in chosen {
            let (line, at, _, event) = one.store;
            if one.kind.0 && !least.insert((one.epoch, event, line.pool, line.line)) {
                continue;
            }
            let (base, kept) = if one.kind.0 { (Base::Guaranteed, at + 1) } else { (Base::Everything, at) };
            let state = CrashState { base, lines: vec![(line, Content::whole(kept))] };
            states.entry(one.point).or_default().push(state);
        }
        states
    }
}

fn options(strategy: &str, conditions: Conditions) -> SearchOptions {
    SearchOptions {
        strategies: StrategySpec::list(strategy).unwrap(),
        conditions: Some(KnownConditions::new(conditions)),
        ..SearchOptions::default()
    }
}

fn survey(reader: &TraceReader) -> Survey {
    Survey::of(reader, Density::Fences, &|_, _| false).unwrap()
}

#[test]
fn of_every_kind_the_first_fourth_and_last_are_chosen() {
    let (mut named, mut torn) = ([0, 0, 0], 0);
    for seed in traces(160) {
        let recorded = random(seed, 120);
        let reader = &recorded.reader;
        let (orders, guardians) = some_conditions(&mut Rng(seed));
        let conditions = Conditions::new(orders.clone(), guardians.clone(), Counts::default());
        let survey = survey(reader);
        let mut slow = Slow { orders: &orders, guardians: &guardians, ..Slow::default() };
        // By points: from where on stores are fresh. Those before were pending at an earlier fence of the operation.
        let mut fresh_from: Vec<EventId> = Vec::new();
        let mut walk = Walk::new(reader, Rules::default()).unwrap();
        let (mut fresh, mut operation, mut events) = (EventId(0), EventId(0), reader.events());
        for (point, _) in survey.points() {
            while slow.sites.len() < point.at.0 as usize {
                let (event, at) = (events.next().unwrap().unwrap(), EventId(slow.sites.len() as u64));
                slow.sites.push((event.context, event.pc));
                fresh = match event.kind {
                    EventKind::Fence { .. } | EventKind::Rmw { .. } => at,
                    EventKind::OperationEnd { .. } => operation,
                    EventKind::OperationBegin { .. } => std::mem::replace(&mut operation, at),
                    _ => continue,
                };
                slow.epoch += 1;
            }
            walk.advance_to(point.at).unwrap();
            slow.look(&walk.view(), point.index, fresh);
            fresh_from.push(fresh);
        }
        for (number, times) in [1, 3, u64::MAX].into_iter().enumerate() {
            let chosen = Chosen::of(
                reader,
                &survey,
                &options(&format!("inferred:{times}"), conditions.clone()),
                &Arc::default(),
            )
            .unwrap();
            let states = slow.choose(times);
            let mut walk = Walk::new(reader, Rules::default()).unwrap();
            for ((point, _), &fresh) in survey.points().zip(&fresh_from) {
                let states = states.get(&point.index).map_or(&[][..], Vec::as_slice);
                assert_eq!(chosen.at(times, point.index), states, "point {} of {seed}", point.index);
                named[number] += states.len();
                walk.advance_to(point.at).unwrap();
                let view = walk.view();
                let (pairs, pieces) = (pairs(&view, &orders, &guardians), slow.pieces(&view, fresh));
                torn += pieces.len();
                for state in states {
                    view.crash_point().check(state).unwrap();
                    let breaks = |(x, y): &(Pending, Pending)| has(&view, state, *y) && !has(&view, state, *x);
                    let age = |x: EventId, y: EventId| (x.max(y), x.min(y));
                    let newest = pairs.iter().filter(|pair| breaks(pair)).map(|(x, y)| age(x.3, y.3)).max();
                    let is_broken = newest.is_some();
                    assert!(is_broken || pieces.iter().any(breaks), "{state:?} at {} of {seed}", point.at.0);
                    let found = broken(&view, &conditions, state);
                    assert_eq!(found.map(|found| age(found.missing, found.present)), newest);
                }
            }
        }
    }
    assert!(named[0] > 100 && named[0] < named[1] && named[1] < named[2] && torn > 50, "{named:?} {torn}");
}

#[test]
fn shards_and_workers_try_the_same_states() {
    let mut tried = 0;
    for seed in traces(80) {
        let recorded = random(seed, 120);
        let (orders, guardians) = some_conditions(&mut Rng(seed));
        let conditions = Conditions::new(orders, guardians, Counts::default());
        let options = options("program-order,guaranteed-only,inferred,visible:8", conditions);
        let survey = survey(&recorded.reader);
        let fake = Fake::random(seed);
        let run = |number, of, workers| {
            let search = Search { shard: Shard { number, of }, ..Search::new(&recorded.reader, &survey, &options) };
            search.run(&mut vec![fake.clone(); workers]).unwrap()
        };
        let whole = run(1, 1, 1);
        assert_same(&run(1, 1, 3).points, &whole.points, "three workers");
        assert_same(&merge((1..4).flat_map(|number| run(number, 3, 1).points)), &whole.points, "three shards");
        assert_eq!(whole.coverage.points_finished, whole.coverage.points_wanted);
        let own = whole.points.iter().flat_map(|outcome| &outcome.strategies);
        tried += own.filter(|of| of.strategy.needs_conditions()).map(|of| of.decided).sum::<u64>();
    }
    assert!(tried > 50, "{tried}");
}

#[test]
fn the_token_is_in_pm_and_the_key_is_not() {
    // Figure 1(b): key and value, then the token, on three lines; then a fence that finds no flush.
    let (key, value, token) = (0, 64, 128);
    let recorded = record(|recording| {
        for offset in [key, value, token] {
            let store = EventKind::Store { place: place(0, offset), kind: StoreKind::Plain, bytes: &[7; 8] };
            recording.push(0, 0, store);
        }
        recording.push(0, 0, EventKind::Fence { kind: FenceKind::Sfence });
    });
    let at = |offset| span(0, offset, 8);
    let conditions = Conditions::new(
        vec![order(at(key), at(token)), order(at(value), at(token))],
        vec![Guardian { span: at(token), evidence: Default::default() }],
        Counts::default(),
    );
    let survey = survey(&recorded.reader);
    let chosen =
        Chosen::of(&recorded.reader, &survey, &options("inferred", conditions.clone()), &Arc::default()).unwrap();
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap().with_chosen(Arc::new(chosen));
    walk.advance_to(EventId(3)).unwrap();
    let view = walk.view();
    let mut strategy = "inferred".parse::<StrategySpec>().unwrap().start(&view, 0);
    let states: Vec<CrashState> = std::iter::from_fn(|| strategy.next(&view)).collect();
    let lines: Vec<(Base, u64, u32)> =
        states.iter().map(|state| (state.base, state.lines[0].0.line.0, state.lines[0].1.kept)).collect();
    assert_eq!(lines, [(Base::Guaranteed, 2, 1), (Base::Everything, 1, 0), (Base::Everything, 0, 0)]);
    let found = broken(&view, &conditions, &states[0]).unwrap();
    assert_eq!((found.rule, found.second, found.first), (ConditionRule::Po1, at(token), at(value)));
    assert_eq!((found.missing, found.present), (EventId(1), EventId(2)));
}

/// How many states are tried for a token that must come after its key, with so many stores between them that nobody fences.
fn states_behind(fillers: usize) -> usize {
    let (key, token) = (0, 128);
    let recorded = record(|recording| {
        let between = [1024, 2048].into_iter().cycle().take(fillers);
        for offset in std::iter::once(key).chain(between).chain([token]) {
            let store = EventKind::Store { place: place(0, offset), kind: StoreKind::Plain, bytes: &[7; 8] };
            recording.push(0, 0, store);
        }
        recording.push(0, 0, EventKind::Fence { kind: FenceKind::Sfence });
    });
    let orders = vec![order(span(0, key, 8), span(0, token, 8))];
    let options = options("inferred", Conditions::new(orders, Vec::new(), Counts::default()));
    let chosen = Chosen::of(&recorded.reader, &survey(&recorded.reader), &options, &Arc::default()).unwrap();
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap().with_chosen(Arc::new(chosen));
    walk.advance_to(EventId(fillers as u64 + 2)).unwrap();
    let view = walk.view();
    let mut strategy = "inferred".parse::<StrategySpec>().unwrap().start(&view, 0);
    std::iter::from_fn(|| strategy.next(&view)).count()
}

#[test]
fn of_very_many_pending_stores_the_newest_are_paired() {
    assert_eq!(states_behind(100), 2, "the token without the key, and everything but the key");
    assert_eq!(states_behind(254), 2);
    assert_eq!(states_behind(255), 0, "the key is no longer among the newest 256");
}

#[test]
fn without_conditions_nothing_is_named() {
    let recorded = random(1, 20);
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(EventId(20)).unwrap();
    assert!("inferred".parse::<StrategySpec>().unwrap().start(&walk.view(), 0).next(&walk.view()).is_none());
}
