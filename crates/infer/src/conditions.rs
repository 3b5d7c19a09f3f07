//! Likely-correctness conditions (Witcher, Table 2), as plain data, with an index by place.
//!
//! An *order* says that one place must be in PM before another is stored to; the *guardians* are places that decide
//! whether others are read, any two of which must reach PM together. Guardians are kept as one set, not as pairs
//! (§4.2.1).

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHasher};
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, PoolId};

/// Some bytes of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span {
    pub pool: PoolId,
    pub offset: u64,
    pub len: u32,
}

impl Span {
    pub fn end(self) -> u64 {
        self.offset + u64::from(self.len)
    }

    pub fn overlaps(self, other: Span) -> bool {
        self.pool == other.pool && self.offset < other.end() && other.offset < self.end()
    }

    /// The words of eight bytes that it touches.
    fn words(self) -> impl Iterator<Item = Word> {
        let last = if self.len == 0 { self.offset / 8 } else { (self.end() - 1) / 8 + 1 };
        (self.offset / 8..last).map(move |number| Word { pool: self.pool, number })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Word {
    pool: PoolId,
    number: u64,
}

/// Which row of the table a condition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rule {
    /// The second was computed from the first.
    Po1,
    /// Whether the second was stored depended on the first.
    Po2,
    /// The second decided whether the first was read: a guardian.
    Po3,
    /// Both are guardians.
    Pa1,
}

/// A span of [`Conditions::spans`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpanNo(pub u32);

/// `first` must be in PM before `second` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Order {
    pub rule: Rule,
    pub first: Span,
    pub second: Span,
    /// The instructions that gave the hint: the one that accessed the first place, and the one that accessed the second.
    pub evidence: (CodeAddr, CodeAddr),
}

/// A place that decided whether another was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Guardian {
    pub span: Span,
    /// The instruction that read it, and the one that read what it guards.
    pub evidence: (CodeAddr, CodeAddr),
}

/// How much was seen, and what was left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Counts {
    pub instructions: u64,
    pub pm_loads: u64,
    pub pm_stores: u64,
    /// How often a set of labels was cut to the cap.
    pub sets_cut: u64,
    /// Orders that were not kept because there were too many.
    pub dropped: u64,
    /// Orders between places of which one is never stored to: no state can break them.
    pub unbreakable: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OrderRow(Rule, SpanNo, SpanNo, u32, u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct GuardianRow(SpanNo, u32, u32);

/// What is written to a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Rows {
    spans: Vec<Span>,
    code: Vec<CodeAddr>,
    orders: Vec<OrderRow>,
    guardians: Vec<GuardianRow>,
    counts: Counts,
}

/// All conditions of a run.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    rows: Rows,
    by_word: FxHashMap<Word, Vec<SpanNo>>,
    /// Per span: the orders that it is the second of.
    by_second: FxHashMap<SpanNo, Vec<u32>>,
    by_pair: FxHashMap<(SpanNo, SpanNo), u32>,
    guards: FxHashMap<SpanNo, u32>,
}

impl Conditions {
    /// In a fixed order, each once.
    pub fn new(orders: Vec<Order>, guardians: Vec<Guardian>, counts: Counts) -> Self {
        let places = orders.iter().flat_map(|order| [order.first, order.second]);
        let mut spans: Vec<Span> = places.chain(guardians.iter().map(|guardian| guardian.span)).collect();
        let told = orders.iter().map(|order| order.evidence).chain(guardians.iter().map(|guardian| guardian.evidence));
        let mut code: Vec<CodeAddr> = told.flat_map(|(first, second)| [first, second]).collect();
        spans.sort_unstable();
        spans.dedup();
        code.sort_unstable();
        code.dedup();
        let span = |span: Span| SpanNo(spans.binary_search(&span).expect("it was put there") as u32);
        let instruction = |at: CodeAddr| code.binary_search(&at).expect("it was put there") as u32;
        let evidence = |(first, second): (CodeAddr, CodeAddr)| (instruction(first), instruction(second));
        let mut order_rows: Vec<OrderRow> = orders
            .iter()
            .map(|order| {
                let (a, b) = evidence(order.evidence);
                OrderRow(order.rule, span(order.first), span(order.second), a, b)
            })
            .collect();
        let mut guardian_rows: Vec<GuardianRow> = guardians
            .iter()
            .map(|guardian| {
                let (a, b) = evidence(guardian.evidence);
                GuardianRow(span(guardian.span), a, b)
            })
            .collect();
        order_rows.sort_unstable();
        order_rows.dedup_by_key(|row| (row.0, row.1, row.2));
        guardian_rows.sort_unstable();
        guardian_rows.dedup_by_key(|row| row.0);
        Conditions::from_rows(Rows { spans, code, orders: order_rows, guardians: guardian_rows, counts })
            .expect("numbers of spans and code are right")
    }

    /// None if a row names a span or an instruction that is not there.
    pub(crate) fn from_rows(rows: Rows) -> Option<Self> {
        let (spans, code) = (rows.spans.len() as u32, rows.code.len() as u32);
        let right = rows.orders.iter().all(|row| row.1.0.max(row.2.0) < spans && row.3.max(row.4) < code)
            && rows.guardians.iter().all(|row| row.0.0 < spans && row.1.max(row.2) < code);
        if !right {
            return None;
        }
        let mut conditions = Conditions { rows, ..Conditions::default() };
        for (number, span) in conditions.rows.spans.iter().enumerate() {
            for word in span.words() {
                conditions.by_word.entry(word).or_default().push(SpanNo(number as u32));
            }
        }
        for (number, row) in conditions.rows.orders.iter().enumerate() {
            let pair = conditions.by_pair.entry((row.1, row.2));
            let is_new = matches!(pair, std::collections::hash_map::Entry::Vacant(_));
            pair.or_insert(number as u32);
            if is_new {
                conditions.by_second.entry(row.2).or_default().push(number as u32);
            }
        }
        conditions.guards = (0..).zip(&conditions.rows.guardians).map(|(number, row)| (row.0, number)).collect();
        Some(conditions)
    }

    pub(crate) fn rows(&self) -> &Rows {
        &self.rows
    }

    pub fn counts(&self) -> Counts {
        self.rows.counts
    }

    pub fn is_empty(&self) -> bool {
        self.rows.orders.is_empty() && self.rows.guardians.is_empty()
    }

    /// All orders, by rule and places. One pair of places may be ordered by several rules.
    pub fn orders(&self) -> impl ExactSizeIterator<Item = Order> {
        self.rows.orders.iter().map(|&row| self.order(row))
    }

    pub fn guardians(&self) -> impl ExactSizeIterator<Item = Guardian> {
        self.rows.guardians.iter().map(|&row| self.guardian(row))
    }

    fn order(&self, OrderRow(rule, first, second, a, b): OrderRow) -> Order {
        let code = &self.rows.code;
        let evidence = (code[a as usize], code[b as usize]);
        Order { rule, first: self.span(first), second: self.span(second), evidence }
    }

    fn guardian(&self, GuardianRow(span, a, b): GuardianRow) -> Guardian {
        let code = &self.rows.code;
        Guardian { span: self.span(span), evidence: (code[a as usize], code[b as usize]) }
    }

    pub fn span(&self, number: SpanNo) -> Span {
        self.rows.spans[number.0 as usize]
    }

    /// The places of conditions that overlap this one, ascending.
    pub fn overlapping(&self, span: Span) -> Vec<SpanNo> {
        let near = span.words().filter_map(|word| self.by_word.get(&word)).flatten().copied();
        let mut found: Vec<SpanNo> = near.filter(|&number| self.span(number).overlaps(span)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The order of two places, if there is one; the first rule that gives it.
    pub fn between(&self, first: SpanNo, second: SpanNo) -> Option<Order> {
        self.by_pair.get(&(first, second)).map(|&row| self.order(self.rows.orders[row as usize]))
    }

    /// How many places must be in PM before this one.
    pub fn count_before(&self, second: SpanNo) -> usize {
        self.by_second.get(&second).map_or(0, Vec::len)
    }

    /// The places that must be in PM before this one.
    pub fn before(&self, second: SpanNo) -> impl Iterator<Item = SpanNo> {
        let rows = self.by_second.get(&second).into_iter().flatten();
        rows.map(|&row| self.rows.orders[row as usize].1)
    }

    pub fn guardian_at(&self, span: SpanNo) -> Option<Guardian> {
        self.guards.get(&span).map(|&row| self.guardian(self.rows.guardians[row as usize]))
    }

    /// Stands for all conditions: equal ones have equal digests.
    pub fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for OrderRow(rule, first, second, ..) in &self.rows.orders {
            hasher.write_u8(*rule as u8);
            hasher.write_u64(u64::from(first.0) << 32 | u64::from(second.0));
        }
        for GuardianRow(span, ..) in &self.rows.guardians {
            hasher.write_u32(span.0);
        }
        for span in &self.rows.spans {
            hasher.write_u32(span.pool.0);
            hasher.write_u64(span.offset);
            hasher.write_u32(span.len);
        }
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u32) -> Span {
        Span { pool: PoolId(0), offset, len }
    }

    fn order(rule: Rule, first: Span, second: Span) -> Order {
        Order { rule, first, second, evidence: Default::default() }
    }

    #[test]
    fn conditions_are_sorted_and_each_is_there_once() {
        let (a, b) = (span(0, 8), span(64, 4));
        let orders = vec![order(Rule::Po2, a, b), order(Rule::Po1, a, b), order(Rule::Po2, a, b)];
        let conditions = Conditions::new(orders.clone(), Vec::new(), Counts::default());
        assert_eq!(conditions.orders().map(|order| order.rule).collect::<Vec<_>>(), [Rule::Po1, Rule::Po2]);
        let mut other = orders;
        other.reverse();
        assert_eq!(Conditions::new(other, Vec::new(), Counts::default()).digest(), conditions.digest());
        assert_ne!(Conditions::default().digest(), conditions.digest());
    }

    #[test]
    fn places_are_found_by_overlap() {
        let spans = [span(0, 8), span(4, 2), span(60, 8), span(200, 64)];
        let orders = vec![order(Rule::Po1, spans[0], spans[1]), order(Rule::Po3, spans[2], spans[3])];
        let conditions = Conditions::new(orders, Vec::new(), Counts::default());
        for offset in 0..300 {
            for len in [1, 4, 8, 70] {
                let asked = span(offset, len);
                let expected: Vec<Span> = spans.iter().copied().filter(|span| span.overlaps(asked)).collect();
                let found: Vec<Span> = conditions.overlapping(asked).iter().map(|&no| conditions.span(no)).collect();
                assert_eq!(found, expected, "{asked:?}");
            }
        }
        assert!(conditions.overlapping(Span { pool: PoolId(1), offset: 0, len: 8 }).is_empty());
    }

    #[test]
    fn the_order_of_two_places_is_found() {
        let (a, b, c) = (span(0, 8), span(64, 8), span(128, 8));
        let orders = vec![order(Rule::Po3, a, b), order(Rule::Po1, a, b), order(Rule::Po2, c, b)];
        let guardian = Guardian { span: b, evidence: Default::default() };
        let conditions = Conditions::new(orders, vec![guardian], Counts::default());
        let number = |span: Span| conditions.overlapping(span)[0];
        assert_eq!(conditions.between(number(a), number(b)).unwrap().rule, Rule::Po1);
        assert!(conditions.between(number(b), number(a)).is_none());
        assert_eq!(conditions.before(number(b)).collect::<Vec<_>>(), [number(a), number(c)]);
        assert_eq!(conditions.guardian_at(number(b)), Some(guardian));
        assert_eq!(conditions.guardian_at(number(a)), None);
    }
}
