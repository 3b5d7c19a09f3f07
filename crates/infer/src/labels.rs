//! Sets of labels. A label stands for loads of one place in PM by one instruction; a value carries two sets.
//!
//! The same few sets come again and again, so each is kept once and named by a number; the union of two named sets is
//! looked up before it is computed.
//!
//! **The cap.** A loop over a long list makes every node before a guardian of every node after it, and pairs of places grow with the
//! square of that. A set that would grow beyond [`MOST_LABELS`] keeps the labels that were met last: what a programmer checked just
//! before an access says more about it than what was checked hundreds of loads earlier. Of a branch all labels stay, and those of
//! the branches around it give way ([`LabelSets::add_newer`]). [`LabelSets::cut`] counts how often that was done. It
//! can miss conditions between places whose loads lie far apart, and adds none.

use rustc_hash::FxHasher;
use std::hash::Hasher;

/// Loads of one place by one instruction. Numbered by first appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label(pub u32);

/// A set of labels; equal sets have equal numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct SetId(u32);

impl SetId {
    pub const EMPTY: SetId = SetId(0);

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub fn number(self) -> u32 {
        self.0
    }
}

/// What is known of a value: the loads that reach it through data only, and those that reach it with at least one control
/// edge on the way. One word: the data set below, the control set above, and no bit set if both are empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Value(u64);

impl Value {
    pub const EMPTY: Value = Value(0);

    pub fn new(data: SetId, control: SetId) -> Self {
        Value(u64::from(data.0) | u64::from(control.0) << 32)
    }

    pub fn data(self) -> SetId {
        SetId(self.0 as u32)
    }

    pub fn control(self) -> SetId {
        SetId((self.0 >> 32) as u32)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn word(self) -> u64 {
        self.0
    }

    pub(crate) fn from_word(word: u64) -> Self {
        Value(word)
    }
}

/// Labels in a set, at most.
pub const MOST_LABELS: usize = 16;

/// The highest bit of a value's word is free for [`Shadow`](crate::shadow::Shadow): sets stay below this number.
const MOST_SETS: usize = 1 << 31;

/// Remembered unions; a power of two. Half a megabyte: it stays in the second-level cache.
const REMEMBERED: usize = 1 << 15;

/// All sets of labels that are alive.
#[derive(Debug)]
pub struct LabelSets {
    /// The labels of all sets, one after the other, each ascending.
    labels: Vec<Label>,
    /// Where each set begins in `labels`; one more than there are sets.
    starts: Vec<usize>,
    /// Open addressing: numbers of sets by the hash of their labels; 0 is free.
    table: Vec<u32>,
    /// (both operands, their union), by a hash of the operands.
    unions: Box<[(u64, SetId)]>,
    most: usize,
    cut: u64,
    merged: Vec<Label>,
}

impl Default for LabelSets {
    fn default() -> Self {
        LabelSets::with_cap(MOST_LABELS)
    }
}

impl LabelSets {
    /// Sets of at most so many labels.
    pub fn with_cap(most: usize) -> Self {
        LabelSets {
            labels: Vec::new(),
            starts: vec![0, 0],
            table: vec![0; 1 << 12],
            unions: vec![(0, SetId::EMPTY); REMEMBERED].into(),
            most,
            cut: 0,
            merged: Vec::new(),
        }
    }

    /// How often a set was cut to the cap.
    pub fn cut(&self) -> u64 {
        self.cut
    }

    /// How many sets there are, the empty one included, and how many labels they have together.
    pub fn size(&self) -> (usize, usize) {
        (self.starts.len() - 1, self.labels.len())
    }

    /// The labels of a set, ascending.
    pub fn get(&self, set: SetId) -> &[Label] {
        &self.labels[self.starts[set.0 as usize]..self.starts[set.0 as usize + 1]]
    }

    pub fn singleton(&mut self, label: Label) -> SetId {
        self.merged.clear();
        self.merged.push(label);
        self.intern()
    }

    /// Both sets in one.
    #[inline]
    pub fn union(&mut self, a: SetId, b: SetId) -> SetId {
        if a == b || b.is_empty() {
            return a;
        }
        if a.is_empty() {
            return b;
        }
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let key = u64::from(low.0) << 32 | u64::from(high.0);
        // Fibonacci hashing (Knuth, vol. 3, §6.4).
        let at = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize % REMEMBERED;
        let (known, union) = self.unions[at];
        if known == key {
            return union;
        }
        let union = self.compute(low, high);
        self.unions[at] = (key, union);
        union
    }

    /// `newer` and as many of `older` as there is room for.
    pub fn add_newer(&mut self, older: SetId, newer: SetId) -> SetId {
        let (have, more) = (self.get(older).len(), self.get(newer).len());
        if have + more <= self.most {
            return self.union(older, newer);
        }
        let mut merged = std::mem::take(&mut self.merged);
        merged.clear();
        merged.extend_from_slice(self.get(newer));
        let kept = self.get(newer);
        let others = self.get(older).iter().rev().filter(|label| kept.binary_search(label).is_err());
        let room = self.most.saturating_sub(more);
        let missing = others.clone().count() > room;
        merged.extend(others.take(room).copied());
        merged.sort_unstable();
        self.cut += u64::from(missing);
        self.merged = merged;
        self.intern()
    }

    /// The union of what two values carry.
    #[inline]
    pub fn join(&mut self, a: Value, b: Value) -> Value {
        if a == b || b.is_empty() {
            return a;
        }
        if a.is_empty() {
            return b;
        }
        Value::new(self.union(a.data(), b.data()), self.union(a.control(), b.control()))
    }

    #[cold]
    fn compute(&mut self, a: SetId, b: SetId) -> SetId {
        let mut merged = std::mem::take(&mut self.merged);
        merged.clear();
        {
            let (mut a, mut b) = (self.get(a).iter().copied().peekable(), self.get(b).iter().copied().peekable());
            loop {
                let next = match (a.peek(), b.peek()) {
                    (Some(x), Some(y)) => {
                        let next = *x.min(y);
                        a.next_if_eq(&next);
                        b.next_if_eq(&next);
                        next
                    }
                    (Some(_), None) => a.next().expect("peeked"),
                    (None, Some(_)) => b.next().expect("peeked"),
                    (None, None) => break,
                };
                merged.push(next);
            }
        }
        if merged.len() > self.most {
            self.cut += 1;
            merged.drain(..merged.len() - self.most);
        }
        self.merged = merged;
        self.intern()
    }

    /// The number of the set in `merged`.
    fn intern(&mut self) -> SetId {
        let mask = self.table.len() - 1;
        let mut at = hash(&self.merged) as usize & mask;
        while self.table[at] != 0 {
            let known = SetId(self.table[at]);
            if self.get(known) == self.merged {
                return known;
            }
            at = (at + 1) & mask;
        }
        let number = self.starts.len() - 1;
        assert!(number < MOST_SETS, "2³¹ sets of labels do not fit into memory");
        self.labels.extend_from_slice(&self.merged);
        self.starts.push(self.labels.len());
        self.table[at] = number as u32;
        if number * 2 > self.table.len() {
            self.grow();
        }
        SetId(number as u32)
    }

    fn grow(&mut self) {
        let mask = self.table.len() * 2 - 1;
        let mut table = vec![0; mask + 1];
        for number in 1..self.starts.len() as u32 - 1 {
            let mut at = hash(self.get(SetId(number))) as usize & mask;
            while table[at] != 0 {
                at = (at + 1) & mask;
            }
            table[at] = number;
        }
        self.table = table;
    }

    /// Forgets all sets but those that `rename` is called for, which returns their new numbers. The caller replaces every
    /// set that it holds.
    pub(crate) fn begin_collection(&mut self) -> Collection {
        let old = std::mem::replace(self, LabelSets { cut: self.cut, ..LabelSets::with_cap(self.most) });
        Collection { renamed: vec![0; old.starts.len()], old }
    }
}

/// The sets before a collection.
#[derive(Debug)]
pub(crate) struct Collection {
    old: LabelSets,
    renamed: Vec<u32>,
}

impl Collection {
    pub fn rename(&mut self, sets: &mut LabelSets, set: SetId) -> SetId {
        if set.is_empty() {
            return set;
        }
        let known = &mut self.renamed[set.0 as usize];
        if *known == 0 {
            sets.merged.clear();
            sets.merged.extend_from_slice(self.old.get(set));
            *known = sets.intern().0;
        }
        SetId(*known)
    }

    pub fn rename_value(&mut self, sets: &mut LabelSets, value: Value) -> Value {
        Value::new(self.rename(sets, value.data()), self.rename(sets, value.control()))
    }
}

fn hash(labels: &[Label]) -> u64 {
    let mut hasher = FxHasher::default();
    for label in labels {
        hasher.write_u32(label.0);
    }
    let hash = hasher.finish();
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(sets: &mut LabelSets, labels: &[u32]) -> SetId {
        let mut set = SetId::EMPTY;
        for &label in labels {
            let one = sets.singleton(Label(label));
            set = sets.union(set, one);
        }
        set
    }

    #[test]
    fn equal_sets_have_one_number_whatever_made_them() {
        let mut sets = LabelSets::default();
        let (a, b) = (set(&mut sets, &[3, 1, 2]), set(&mut sets, &[2, 3, 1, 1]));
        assert_eq!(a, b);
        assert_eq!(sets.get(a), [Label(1), Label(2), Label(3)]);
        assert_eq!(sets.union(a, SetId::EMPTY), a);
        assert_eq!(sets.get(SetId::EMPTY), []);
    }

    #[test]
    fn unions_are_unions_for_very_many_sets() {
        let mut sets = LabelSets::default();
        for i in 0..20_000u32 {
            let (a, b) = (set(&mut sets, &[i, i / 3]), set(&mut sets, &[i / 7, i]));
            let union = sets.union(a, b);
            let mut expected = vec![Label(i), Label(i / 3), Label(i / 7)];
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(sets.get(union), expected);
        }
    }

    #[test]
    fn a_full_set_keeps_what_was_met_last() {
        let mut sets = LabelSets::with_cap(3);
        let full = set(&mut sets, &[1, 2, 3]);
        assert_eq!(sets.cut(), 0);
        let more = set(&mut sets, &[1, 2, 3, 9]);
        assert_eq!((sets.get(more), sets.cut()), (&[Label(2), Label(3), Label(9)][..], 1));
        assert_ne!(full, more);
        let branch = set(&mut sets, &[0, 1]);
        let inside = sets.add_newer(more, branch);
        assert_eq!(sets.get(inside), [Label(0), Label(1), Label(9)]);
        assert_eq!(sets.add_newer(SetId::EMPTY, full), full);
    }

    #[test]
    fn a_collection_keeps_what_is_asked_for() {
        let mut sets = LabelSets::default();
        let kept = set(&mut sets, &[5, 6]);
        let before = sets.size();
        let mut collection = sets.begin_collection();
        let kept = collection.rename(&mut sets, kept);
        assert_eq!(collection.rename(&mut sets, SetId::EMPTY), SetId::EMPTY);
        assert_eq!(sets.get(kept), [Label(5), Label(6)]);
        assert!(sets.size() < before);
    }
}
