//! Collects hints as loads and stores of PM are met, and makes conditions of them (Witcher, Table 2).
//!
//! A hint is kept once per pair of places and rule, with the instructions that gave it first. Pairs that overlap are
//! left out: a place cannot be in PM before itself.

use rustc_hash::FxHashMap;
use trace::event::CodeAddr;

use crate::conditions::{ConditionRule, Conditions, Counts, Guardian, Order, Span};
use crate::labels::{Label, LabelSets, SetId};
use crate::stored::Stored;

/// Orders to keep, at most: a fifth of a gigabyte.
const MOST_ORDERS: usize = 1 << 22;

/// Places that hints are about, and loads that give them, at most. Places that are met later give none; a run of 2,000 operations on
/// PMDK's maps has some 60,000.
const MOST_PLACES: usize = 1 << 21;

/// Remembered accesses; a power of two.
const REMEMBERED: usize = 1 << 14;

/// A place, by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct PlaceNo(u32);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Met {
    Nothing,
    Loaded(PlaceNo),
    Stored(PlaceNo),
}

/// An instruction, by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct CodeNo(u32);

#[derive(Clone, Copy, Debug)]
struct Loaded {
    place: PlaceNo,
    code: CodeNo,
    /// The set of this label alone; empty until it is made.
    alone: SetId,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct OrderKey {
    rule: ConditionRule,
    first: PlaceNo,
    second: PlaceNo,
}

#[derive(Debug, Default)]
pub struct Hints {
    places: Vec<Span>,
    numbers: FxHashMap<Span, PlaceNo>,
    code: Vec<CodeAddr>,
    code_numbers: FxHashMap<CodeAddr, CodeNo>,
    loads: Vec<Loaded>,
    labels: FxHashMap<(Span, CodeAddr), Label>,
    orders: FxHashMap<OrderKey, (CodeNo, CodeNo)>,
    guardians: FxHashMap<PlaceNo, (CodeNo, CodeNo)>,
    stored: Stored,
    /// Accesses that gave all that they could, with their sets.
    recent: Vec<(Met, SetId, SetId)>,
    pub counts: Counts,
}

impl Hints {
    /// A load of `span` by the instruction at `code`; `control` decided that it happens. What the value carries then.
    pub fn loaded(&mut self, sets: &mut LabelSets, span: Span, code: CodeAddr, control: SetId) -> SetId {
        self.counts.pm_loads += 1;
        let label = match self.labels.get(&(span, code)) {
            Some(&label) => label,
            None if self.is_full() => {
                self.counts.dropped += 1;
                return SetId::EMPTY;
            }
            None => self.new_label(span, code),
        };
        let loaded = self.loads[label.0 as usize];
        if !control.is_empty() && self.is_new(Met::Loaded(loaded.place), control, SetId::EMPTY) {
            for &guardian in sets.get(control) {
                let guardian = self.loads[guardian.0 as usize];
                let evidence = (loaded.code, guardian.code);
                if self.add(ConditionRule::Po3, loaded.place, guardian.place, evidence) {
                    self.guardians.entry(guardian.place).or_insert((guardian.code, loaded.code));
                }
            }
        }
        if loaded.alone.is_empty() {
            self.loads[label.0 as usize].alone = sets.singleton(label);
        }
        self.loads[label.0 as usize].alone
    }

    /// A store to `span`, by what its value, its address and its being there at all carry.
    pub fn stored(&mut self, sets: &LabelSets, span: Span, code: CodeAddr, data: SetId, control: SetId) {
        self.counts.pm_stores += 1;
        self.mark_stored(span);
        if data.is_empty() && control.is_empty() {
            return;
        }
        if self.is_full() && !self.numbers.contains_key(&span) {
            self.counts.dropped += 1;
            return;
        }
        let place = self.place(span);
        if !self.is_new(Met::Stored(place), data, control) {
            return;
        }
        let code = self.code_no(code);
        for (rule, set) in [(ConditionRule::Po1, data), (ConditionRule::Po2, control)] {
            for &label in sets.get(set) {
                let loaded = self.loads[label.0 as usize];
                self.add(rule, loaded.place, place, (loaded.code, code));
            }
        }
    }

    /// Something changed these bytes.
    pub fn mark_stored(&mut self, span: Span) {
        self.stored.mark(span);
    }

    /// The sets have got new numbers.
    pub fn forget_sets(&mut self) {
        self.recent.clear();
        for loaded in &mut self.loads {
            loaded.alone = SetId::EMPTY;
        }
    }

    /// Conditions that some state could break.
    pub fn conditions(&self, sets: &LabelSets) -> Conditions {
        self.conditions_about(sets, |place| self.stored.any(place))
    }

    /// Conditions about places of which `is_stored` is true: no state can break the others.
    pub fn conditions_about(&self, sets: &LabelSets, is_stored: impl Fn(Span) -> bool) -> Conditions {
        let mut counts = Counts { sets_cut: sets.cut(), ..self.counts };
        let span = |place: PlaceNo| self.places[place.0 as usize];
        let mut orders = Vec::new();
        let at = |(first, second): (CodeNo, CodeNo)| (self.code[first.0 as usize], self.code[second.0 as usize]);
        let stored: Vec<bool> = self.places.iter().map(|&place| is_stored(place)).collect();
        for (key, &evidence) in &self.orders {
            if stored[key.first.0 as usize] && stored[key.second.0 as usize] {
                let (first, second) = (span(key.first), span(key.second));
                orders.push(Order { rule: key.rule, first, second, evidence: at(evidence) });
            } else {
                counts.unbreakable += 1;
            }
        }
        let guardians =
            self.guardians.iter().map(|(&place, &evidence)| Guardian { span: span(place), evidence: at(evidence) });
        let guardians = guardians.filter(|guardian| is_stored(guardian.span)).collect();
        Conditions::new(orders, guardians, counts)
    }

    fn is_full(&self) -> bool {
        self.places.len().max(self.loads.len()) >= MOST_PLACES
    }

    fn place(&mut self, span: Span) -> PlaceNo {
        let places = &mut self.places;
        *self.numbers.entry(span).or_insert_with(|| {
            places.push(span);
            PlaceNo(places.len() as u32 - 1)
        })
    }

    fn code_no(&mut self, at: CodeAddr) -> CodeNo {
        let code = &mut self.code;
        *self.code_numbers.entry(at).or_insert_with(|| {
            code.push(at);
            CodeNo(code.len() as u32 - 1)
        })
    }

    #[cold]
    fn new_label(&mut self, span: Span, code: CodeAddr) -> Label {
        let place = self.place(span);
        let label = Label(self.loads.len() as u32);
        let number = self.code_no(code);
        self.loads.push(Loaded { place, code: number, alone: SetId::EMPTY });
        self.labels.insert((span, code), label);
        label
    }

    /// False if this was met lately.
    fn is_new(&mut self, met: Met, data: SetId, control: SetId) -> bool {
        if self.recent.is_empty() {
            self.recent = vec![(Met::Nothing, SetId::EMPTY, SetId::EMPTY); REMEMBERED];
        }
        let (Met::Loaded(PlaceNo(place)) | Met::Stored(PlaceNo(place))) = met else { return true };
        let mix = u64::from(place) ^ u64::from(data.number()) << 21 ^ u64::from(control.number()) << 42;
        let at = (mix.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % REMEMBERED;
        std::mem::replace(&mut self.recent[at], (met, data, control)) != (met, data, control)
    }

    /// False if the two places overlap.
    fn add(&mut self, rule: ConditionRule, first: PlaceNo, second: PlaceNo, evidence: (CodeNo, CodeNo)) -> bool {
        if first == second || self.places[first.0 as usize].overlaps(self.places[second.0 as usize]) {
            return false;
        }
        let key = OrderKey { rule, first, second };
        if self.orders.len() < MOST_ORDERS {
            self.orders.entry(key).or_insert(evidence);
        } else if !self.orders.contains_key(&key) {
            self.counts.dropped += 1;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trace::event::{ModuleId, PoolId};

    fn span(offset: u64) -> Span {
        Span { pool: PoolId(0), offset, len: 8 }
    }

    fn at(addr: u64) -> CodeAddr {
        CodeAddr { module: ModuleId(0), addr }
    }

    #[test]
    fn the_four_rules() {
        let mut sets = LabelSets::default();
        let mut hints = Hints::default();
        let x = hints.loaded(&mut sets, span(0), at(1), SetId::EMPTY);
        hints.stored(&sets, span(64), at(2), x, SetId::EMPTY);
        hints.stored(&sets, span(128), at(3), SetId::EMPTY, x);
        hints.loaded(&mut sets, span(192), at(4), x);
        for offset in [0, 192] {
            hints.mark_stored(span(offset));
        }
        let conditions = hints.conditions(&sets);
        let found: Vec<_> = conditions
            .orders()
            .map(|order| {
                (order.rule, order.first.offset, order.second.offset, order.evidence.0.addr, order.evidence.1.addr)
            })
            .collect();
        assert_eq!(
            found,
            [(ConditionRule::Po3, 192, 0, 4, 1), (ConditionRule::Po1, 0, 64, 1, 2), (ConditionRule::Po2, 0, 128, 1, 3)]
        );
        assert_eq!(conditions.guardians().map(|guardian| guardian.span).collect::<Vec<_>>(), [span(0)]);
    }

    #[test]
    fn places_that_overlap_or_are_never_stored_to_give_nothing() {
        let mut sets = LabelSets::default();
        let mut hints = Hints::default();
        let x = hints.loaded(&mut sets, span(0), at(1), SetId::EMPTY);
        hints.stored(&sets, span(4), at(2), x, x);
        let y = hints.loaded(&mut sets, span(512), at(3), SetId::EMPTY);
        hints.stored(&sets, span(64), at(4), y, SetId::EMPTY);
        let conditions = hints.conditions(&sets);
        assert!(conditions.is_empty());
        assert_eq!(conditions.counts().unbreakable, 1);
    }
}
