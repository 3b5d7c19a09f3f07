//! The states that break conditions, against all states of small points.

use std::collections::BTreeSet;

use crash::strategy::StrategySpec;
use crash::strategy::inferred::{KnownConditions, broken};
use crash::view::PointView;
use crash::walk::{Rules, Walk};
use infer::conditions::Counts;
use infer::{Conditions, Guardian, Order, Rule, Span};
use persistency::line::LineId;
use persistency::states::{Base, CrashState};
use trace::{EventId, EventKind, FenceKind, PoolId, StoreKind};

use crate::traces::{Rng, place, random, record, traces};

fn span(pool: u32, offset: u64, len: u32) -> Span {
    Span { pool: PoolId(pool), offset, len }
}

fn order(first: Span, second: Span) -> Order {
    Order { rule: Rule::Po1, first, second, evidence: Default::default() }
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

#[test]
fn every_condition_that_can_be_broken_is_and_nothing_else() {
    let (mut named, mut broken_pairs) = (0, 0);
    for seed in traces(160) {
        let mut rng = Rng(seed);
        let recorded = random(seed, 50);
        let (orders, guardians) = some_conditions(&mut rng);
        let conditions = Conditions::new(orders.clone(), guardians.clone(), Counts::default());
        let known = KnownConditions::new(conditions.clone());
        let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap().with_conditions(Some(known));
        // Stores before this were pending at an earlier fence of the operation.
        let (mut fence, mut events) = (EventId(0), recorded.reader.events());
        for at in 0..recorded.reader.event_count() {
            walk.advance_to(EventId(at)).unwrap();
            let view = walk.view();
            let mut strategy = "inferred".parse::<StrategySpec>().unwrap().start(&view, 0);
            let states: Vec<CrashState> = std::iter::from_fn(|| strategy.next(&view)).collect();
            let mut pairs = pairs(&view, &orders, &guardians);
            pairs.retain(|(x, y)| x.3.max(y.3) >= fence);
            match events.next().unwrap().unwrap().kind {
                EventKind::Fence { .. } | EventKind::Rmw { .. } => fence = EventId(at),
                EventKind::OperationBegin { .. } | EventKind::OperationEnd { .. } => fence = EventId(0),
                _ => {}
            }
            let breaks =
                |state: &CrashState, (x, y): &(Pending, Pending)| has(&view, state, *y) && !has(&view, state, *x);
            for state in &states {
                view.crash_point().check(state).unwrap();
                assert!(pairs.iter().any(|pair| breaks(state, pair)), "{state:?} at {at} of {seed} breaks nothing");
                assert!(broken(&view, &conditions, state).is_some());
            }
            let keys: BTreeSet<String> = states.iter().map(|state| format!("{:?}", view.key(state))).collect();
            assert_eq!(keys.len(), states.len(), "a state is named once");
            named += states.len();
            let all = view.state_count() <= 300u32.into();
            let possible: Vec<CrashState> = view.crash_point().states(Base::Guaranteed).take(300).collect();
            for pair in &pairs {
                let (x, y) = pair;
                let can = x.0 != y.0 || y.1 < x.1;
                if all {
                    assert_eq!(possible.iter().any(|state| breaks(state, pair)), can);
                }
                if !can {
                    continue;
                }
                for base in [Base::Guaranteed, Base::Everything] {
                    let (line, kept) = if base == Base::Guaranteed { (y.0, y.1 + 1) } else { (x.0, x.1) };
                    let state = CrashState { base, lines: vec![(line, persistency::point::Content::whole(kept))] };
                    assert!(
                        keys.contains(&format!("{:?}", view.key(&state))),
                        "{state:?} at {at} of {seed} is missing"
                    );
                }
                broken_pairs += 1;
            }
        }
    }
    assert!(named > 500 && broken_pairs > 500, "{named} {broken_pairs}");
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
    let known = KnownConditions::new(conditions.clone());
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap().with_conditions(Some(known));
    walk.advance_to(EventId(3)).unwrap();
    let view = walk.view();
    let mut strategy = "inferred".parse::<StrategySpec>().unwrap().start(&view, 0);
    let states: Vec<CrashState> = std::iter::from_fn(|| strategy.next(&view)).collect();
    let lines: Vec<(Base, u64, u32)> =
        states.iter().map(|state| (state.base, state.lines[0].0.line.0, state.lines[0].1.kept)).collect();
    assert_eq!(lines, [(Base::Guaranteed, 2, 1), (Base::Everything, 1, 0), (Base::Everything, 0, 0)]);
    let found = broken(&view, &conditions, &states[0]).unwrap();
    assert_eq!((found.rule, found.second, found.first), (Rule::Po1, at(token), at(value)));
    assert_eq!((found.missing, found.present), (EventId(1), EventId(2)));
}

#[test]
fn without_conditions_nothing_is_named() {
    let recorded = random(1, 20);
    let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
    walk.advance_to(EventId(20)).unwrap();
    assert!("inferred".parse::<StrategySpec>().unwrap().start(&walk.view(), 0).next(&walk.view()).is_none());
}
