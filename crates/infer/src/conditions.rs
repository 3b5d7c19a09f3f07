//! Likely-correctness conditions (Witcher, Table 2), as plain data, with an index by place.
//!
//! An *order* says that one place must be in PM before another is stored to; the *guardians* are places that decide
//! whether others are read, any two of which must reach PM together. Guardians are kept as one set, not as pairs
//! (§4.2.1).

use std::hash::Hasher;

use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    pool: PoolId,
    number: u64,
}

/// Which row of the table a condition comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ConditionRule {
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
    pub rule: ConditionRule,
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
    /// Orders that were not kept, and accesses that gave none, because there were too many.
    pub dropped: u64,
    /// Orders between places of which one is never stored to: no state can break them.
    pub unbreakable: u64,
}

/// The second place, the first, and so on: all orders of one second place are neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
struct OrderRow(SpanNo, SpanNo, ConditionRule, u32, u32);

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
    /// Ascending.
    words: Vec<(Word, SpanNo)>,
    /// Per span, where the orders begin that have it as their second place; one more than there are spans.
    starts: Vec<u32>,
}

impl Conditions {
    /// In a fixed order, each once.
    pub fn new(orders: Vec<Order>, guardians: Vec<Guardian>, counts: Counts) -> Self {
        let places = orders.iter().flat_map(|order| [order.first, order.second]);
        let (spans, span_numbers) = numbered(places.chain(guardians.iter().map(|guardian| guardian.span)));
        let told = orders.iter().map(|order| order.evidence).chain(guardians.iter().map(|guardian| guardian.evidence));
        let (code, code_numbers) = numbered(told.flat_map(|(first, second)| [first, second]));
        let span = |span: Span| SpanNo(span_numbers[&span]);
        let instruction = |at: CodeAddr| code_numbers[&at];
        let evidence = |(first, second): (CodeAddr, CodeAddr)| (instruction(first), instruction(second));
        let mut order_rows: Vec<OrderRow> = orders
            .iter()
            .map(|order| {
                let (a, b) = evidence(order.evidence);
                OrderRow(span(order.second), span(order.first), order.rule, a, b)
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

    /// With those of other runs.
    pub fn with(self, others: impl IntoIterator<Item = Conditions>) -> Conditions {
        let (mut orders, mut guardians) = (self.orders().collect::<Vec<_>>(), self.guardians().collect::<Vec<_>>());
        for other in others {
            orders.extend(other.orders());
            guardians.extend(other.guardians());
        }
        Conditions::new(orders, guardians, self.counts())
    }

    /// None if a row names a span or an instruction that is not there, or is not where it should be.
    pub(crate) fn from_rows(rows: Rows) -> Option<Self> {
        let (spans, code) = (rows.spans.len() as u32, rows.code.len() as u32);
        let right = rows.orders.iter().all(|row| row.0.0.max(row.1.0) < spans && row.3.max(row.4) < code)
            && rows.guardians.iter().all(|row| row.0.0 < spans && row.1.max(row.2) < code)
            && rows.orders.is_sorted()
            && rows.guardians.is_sorted();
        if !right {
            return None;
        }
        let numbered = (0..).map(SpanNo).zip(&rows.spans);
        let mut words: Vec<(Word, SpanNo)> =
            numbered.flat_map(|(number, span)| span.words().map(move |word| (word, number))).collect();
        words.sort_unstable();
        let mut starts = vec![0; rows.spans.len() + 1];
        for row in &rows.orders {
            starts[row.0.0 as usize + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        Some(Conditions { rows, words, starts })
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

    /// All orders, by their second place. One pair of places may be ordered by several rules.
    pub fn orders(&self) -> impl ExactSizeIterator<Item = Order> {
        self.rows.orders.iter().map(|&row| self.order(row))
    }

    pub fn guardians(&self) -> impl ExactSizeIterator<Item = Guardian> {
        self.rows.guardians.iter().map(|&row| self.guardian(row))
    }

    fn order(&self, OrderRow(second, first, rule, a, b): OrderRow) -> Order {
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
        let (Some(first), Some(last)) = (span.words().next(), span.words().last()) else { return Vec::new() };
        let from = self.words.partition_point(|&(word, _)| word < first);
        let near = self.words[from..].iter().take_while(|&&(word, _)| word <= last).map(|&(_, number)| number);
        let mut found: Vec<SpanNo> = near.filter(|&number| self.span(number).overlaps(span)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The order of two places, if there is one; the first rule that gives it.
    pub fn between(&self, first: SpanNo, second: SpanNo) -> Option<Order> {
        let rows = self.rows_of(second);
        let at = rows.partition_point(|row| row.1 < first);
        rows.get(at).filter(|row| row.1 == first).map(|&row| self.order(row))
    }

    fn rows_of(&self, second: SpanNo) -> &[OrderRow] {
        let at = |number: u32| self.starts[number as usize] as usize;
        &self.rows.orders[at(second.0)..at(second.0 + 1)]
    }

    /// Which of these places, named in ascending order, must be in PM before this one.
    pub fn before_among(&self, second: SpanNo, among: &[SpanNo]) -> Vec<usize> {
        let rows = self.rows_of(second);
        if rows.len() < among.len() {
            let mut found: Vec<usize> = rows.iter().filter_map(|row| among.binary_search(&row.1).ok()).collect();
            // One that several rules name comes several times.
            found.dedup();
            return found;
        }
        let is_before = |&at: &usize| rows.binary_search_by_key(&among[at], |row| row.1).is_ok();
        (0..among.len()).filter(is_before).collect()
    }

    pub fn guardian_at(&self, span: SpanNo) -> Option<Guardian> {
        let at = self.rows.guardians.binary_search_by_key(&span, |row| row.0).ok()?;
        Some(self.guardian(self.rows.guardians[at]))
    }

    /// Stands for all conditions: equal ones have equal digests.
    pub fn digest(&self) -> u64 {
        let mut hasher = FxHasher::default();
        for OrderRow(second, first, rule, ..) in &self.rows.orders {
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

/// Each of these once, ascending, and its place there. There are millions of orders between few places.
fn numbered<T: Copy + Ord + std::hash::Hash>(all: impl Iterator<Item = T>) -> (Vec<T>, FxHashMap<T, u32>) {
    let mut each: Vec<T> = all.collect::<FxHashSet<T>>().into_iter().collect();
    each.sort_unstable();
    let numbers = each.iter().copied().zip(0..).collect();
    (each, numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(offset: u64, len: u32) -> Span {
        Span { pool: PoolId(0), offset, len }
    }

    fn order(rule: ConditionRule, first: Span, second: Span) -> Order {
        Order { rule, first, second, evidence: Default::default() }
    }

    #[test]
    fn conditions_are_sorted_and_each_is_there_once() {
        let (a, b) = (span(0, 8), span(64, 4));
        let orders =
            vec![order(ConditionRule::Po2, a, b), order(ConditionRule::Po1, a, b), order(ConditionRule::Po2, a, b)];
        let conditions = Conditions::new(orders.clone(), Vec::new(), Counts::default());
        assert_eq!(
            conditions.orders().map(|order| order.rule).collect::<Vec<_>>(),
            [ConditionRule::Po1, ConditionRule::Po2]
        );
        let mut other = orders;
        other.reverse();
        assert_eq!(Conditions::new(other, Vec::new(), Counts::default()).digest(), conditions.digest());
        assert_ne!(Conditions::default().digest(), conditions.digest());
    }

    #[test]
    fn places_are_found_by_overlap() {
        let spans = [span(0, 8), span(4, 2), span(60, 8), span(200, 64)];
        let orders = vec![order(ConditionRule::Po1, spans[0], spans[1]), order(ConditionRule::Po3, spans[2], spans[3])];
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
        let orders =
            vec![order(ConditionRule::Po3, a, b), order(ConditionRule::Po1, a, b), order(ConditionRule::Po2, c, b)];
        let guardian = Guardian { span: b, evidence: Default::default() };
        let conditions = Conditions::new(orders, vec![guardian], Counts::default());
        let number = |span: Span| conditions.overlapping(span)[0];
        assert_eq!(conditions.between(number(a), number(b)).unwrap().rule, ConditionRule::Po1);
        assert!(conditions.between(number(b), number(a)).is_none());
        let all = [number(a), number(b), number(c)];
        assert_eq!(conditions.before_among(number(b), &all), [0, 2]);
        assert_eq!(conditions.before_among(number(b), &all[1..]), [1]);
        assert!(conditions.before_among(number(a), &all).is_empty());
        assert_eq!(conditions.guardian_at(number(b)), Some(guardian));
        assert_eq!(conditions.guardian_at(number(a)), None);
    }
}
