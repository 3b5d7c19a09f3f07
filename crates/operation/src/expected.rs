//! What the program answers without a crash: the whole run, and every run that leaves one operation out.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use verdict::end::End;

use crate::answers::Answers;
use crate::workload::Workload;
use verdict::position::CrashPosition;

/// The answers that are right, by where the crash came.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Expected {
    /// Operations that a recovered process is asked, before the readback.
    pub operations_after: usize,
    /// Of the run of all operations.
    pub whole: Answers,
    /// By the first operation that a recovered process is asked: the answers of the readback after the last one.
    pub readbacks: Vec<Option<Answers>>,
    /// By operation: those that follow it within the operations_after, and the readback, in a run without it.
    pub without: Vec<Option<Answers>>,
    /// By operation: how the program ends without it, if not well.
    pub fails_without: BTreeMap<usize, End>,
    /// Operations without which the program could not be asked: what is right if they did not happen is not known.
    pub unknown: BTreeSet<usize>,
    /// By the first operation that a recovered process is asked: how it ends after them and the readback, if not well.
    pub fails_after: BTreeMap<usize, End>,
    /// By boundary, where operations are windows: what is asked after it, on the pools as they were there.
    pub at_boundary: Vec<Answers>,
    /// More answers that are right, by the number of the position: of the orders of windows.
    pub orders: BTreeMap<u64, Vec<Answers>>,
    /// By boundary: where the operations that can be asked after it end; windows have no answers of their own.
    ends: Vec<usize>,
}

impl Expected {
    pub fn new(workload: &Workload, operations_after: usize) -> Expected {
        let count = workload.count();
        Expected {
            operations_after,
            whole: Answers::default(),
            readbacks: vec![None; count + 1],
            without: vec![None; count],
            fails_without: BTreeMap::new(),
            unknown: BTreeSet::new(),
            fails_after: BTreeMap::new(),
            at_boundary: Vec::new(),
            orders: BTreeMap::new(),
            ends: (0..=count).map(|boundary| workload.next_window(boundary)).collect(),
        }
    }

    /// False if they are not those of a workload with so many operations: another machine sent them.
    pub(crate) fn is_sound(&self, count: usize) -> bool {
        let answers = [&self.whole].into_iter().chain(self.readbacks.iter().chain(&self.without).flatten());
        let mut answers = answers.chain(&self.at_boundary).chain(self.orders.values().flatten());
        let lengths = [self.readbacks.len(), self.without.len() + 1, self.ends.len()];
        let is_later = |(boundary, end): (usize, &usize)| (boundary..=count).contains(end);
        lengths == [count + 1; 3] && self.ends.iter().enumerate().all(is_later) && answers.all(Answers::is_sound)
    }

    /// Which operations a process that recovered in this position is asked, before the readback.
    pub fn asked(&self, position: CrashPosition) -> std::ops::Range<usize> {
        self.asked_from(position.next())
    }

    /// Which operations are asked from this one on.
    pub fn asked_from(&self, next: usize) -> std::ops::Range<usize> {
        let count = self.without.len();
        let next = next.min(count);
        next..next.saturating_add(self.operations_after).min(count).min(self.ends[next])
    }

    /// All answers that are right: as if everything had happened, first; then as if the operation under way had not, or, if it is
    /// a window, any of its orders.
    pub fn right(&self, position: CrashPosition) -> Vec<Answers> {
        let Some(committed) = self.committed(position) else { return Vec::new() };
        let others =
            self.rolled_back(position).into_iter().chain(self.orders.get(&position.number()).into_iter().flatten());
        let mut right = vec![committed];
        for answers in others {
            if !right.contains(answers) {
                right.push(answers.clone());
            }
        }
        right
    }

    /// The processes that are asked their readback at the boundary after so many operations: by the first operation that they are asked.
    pub fn asked_here(&self, boundary: usize) -> std::ops::Range<usize> {
        let count = self.without.len();
        match boundary.checked_sub(self.operations_after) {
            Some(next) if boundary < count => next..next + 1,
            next if boundary == count => next.unwrap_or(0)..count + 1,
            // Not one: the boundary is too near to the beginning.
            _ => 0..0,
        }
    }

    /// As if all operations up to the crash had happened.
    pub fn committed(&self, position: CrashPosition) -> Option<Answers> {
        let asked = self.asked(position);
        if let Some(answers) = self.at_boundary.get(asked.start) {
            return Some(answers.clone());
        }
        let mut answers = Answers::default();
        for number in asked.clone() {
            answers.push(self.whole.get(number)?);
        }
        answers.extend(self.readbacks[asked.start].as_ref()?);
        Some(answers)
    }

    /// A run that failed: its answers are right if without a crash the program fails as well, in the same way.
    pub fn right_failures(&self, position: CrashPosition, end: &End) -> Vec<Answers> {
        let without = match position {
            CrashPosition::During(number)
                if self.fails_without.get(&number).is_some_and(|own| is_same_end(own, end)) =>
            {
                self.rolled_back(position).cloned()
            }
            _ => None,
        };
        let after = self.fails_after.get(&self.asked(position).start).filter(|own| is_same_end(own, end));
        without.into_iter().chain(after.and_then(|_| self.committed(position))).collect()
    }

    /// A run after a crash inside an operation whose absence nobody could try: it may be as if that had not happened, so nothing is
    /// wrong about it unless it fails in a way of its own.
    pub fn may_be_right(&self, position: CrashPosition, end: &End) -> bool {
        let CrashPosition::During(number) = position else { return false };
        let fails_so = self.fails_without.get(&number).is_some_and(|own| is_same_end(own, end));
        self.unknown.contains(&number) && (*end == End::Exited(0) || fails_so)
    }

    /// As if the operation under way had not happened; none if it must have.
    pub fn rolled_back(&self, position: CrashPosition) -> Option<&Answers> {
        match position {
            CrashPosition::During(number) => self.without.get(number)?.as_ref(),
            CrashPosition::Before | CrashPosition::After(_) => None,
        }
    }
}

/// Wherever it was.
fn is_same_end(one: &End, other: &End) -> bool {
    match (one, other) {
        (End::Exited(one), End::Exited(other)) => one == other,
        (End::Signalled { signal: one, .. }, End::Signalled { signal: other, .. }) => one == other,
        (End::Hung, End::Hung) => true,
        (End::OverLimit(one), End::OverLimit(other)) => one == other,
        _ => false,
    }
}
