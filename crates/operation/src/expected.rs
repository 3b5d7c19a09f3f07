//! What the program answers without a crash: the whole run, and every run that leaves one operation out.

use std::collections::BTreeMap;

use recover::report::End;

use crate::answers::Answers;
use crate::scene::Scene;
use crate::workload::Workload;

/// The answers that are right, by where the crash came.
#[derive(Clone, Debug, Default)]
pub struct Expected {
    /// Operations that a recovered process is asked, before the tail.
    pub horizon: usize,
    /// Of the run of all operations.
    pub whole: Answers,
    /// By the first operation that a recovered process is asked: the answers of the tail after the last one.
    pub tails: Vec<Option<Answers>>,
    /// By operation: those that follow it within the horizon, and the tail, in a run without it.
    pub without: Vec<Option<Answers>>,
    /// By operation: how the program ends without it, if not well.
    pub fails_without: BTreeMap<usize, End>,
    /// By the first operation that a recovered process is asked: how it ends after them and the tail, if not well.
    pub fails_after: BTreeMap<usize, End>,
    /// By border, where operations are windows: what is asked after it, on the pools as they were there.
    pub at_border: Vec<Answers>,
    /// More answers that are right, by the number of the scene: of the orders of windows.
    pub orders: BTreeMap<u64, Vec<Answers>>,
    /// By border: where the operations that can be asked after it end; windows have no answers of their own.
    ends: Vec<usize>,
}

impl Expected {
    pub fn new(workload: &Workload, horizon: usize) -> Expected {
        let count = workload.count();
        Expected {
            horizon,
            whole: Answers::default(),
            tails: vec![None; count + 1],
            without: vec![None; count],
            fails_without: BTreeMap::new(),
            fails_after: BTreeMap::new(),
            at_border: Vec::new(),
            orders: BTreeMap::new(),
            ends: (0..=count).map(|border| workload.next_window(border)).collect(),
        }
    }

    /// Which operations a process that recovered in this scene is asked, before the tail.
    pub fn asked(&self, scene: Scene) -> std::ops::Range<usize> {
        self.asked_from(scene.next())
    }

    /// Which operations are asked from this one on.
    pub fn asked_from(&self, next: usize) -> std::ops::Range<usize> {
        let count = self.without.len();
        let next = next.min(count);
        next..(next + self.horizon).min(count).min(self.ends[next])
    }

    /// All answers that are right: as if everything had happened, first; then as if the operation under way had not, or, if it is
    /// a window, any of its orders.
    pub fn right(&self, scene: Scene) -> Vec<Answers> {
        let Some(committed) = self.committed(scene) else { return Vec::new() };
        let others = self.rolled_back(scene).into_iter().chain(self.orders.get(&scene.number()).into_iter().flatten());
        let mut right = vec![committed];
        for answers in others {
            if !right.contains(answers) {
                right.push(answers.clone());
            }
        }
        right
    }

    /// The processes that are asked their tail at the border after so many operations: by the first operation that they are asked.
    pub fn asked_here(&self, border: usize) -> std::ops::Range<usize> {
        let count = self.without.len();
        match border.checked_sub(self.horizon) {
            Some(next) if border < count => next..next + 1,
            next if border == count => next.unwrap_or(0)..count + 1,
            // Not one: the border is too near to the beginning.
            _ => 0..0,
        }
    }

    /// As if all operations up to the crash had happened.
    pub fn committed(&self, scene: Scene) -> Option<Answers> {
        let asked = self.asked(scene);
        if let Some(answers) = self.at_border.get(asked.start) {
            return Some(answers.clone());
        }
        let mut answers = Answers::default();
        for number in asked.clone() {
            answers.push(self.whole.get(number)?);
        }
        answers.extend(self.tails[asked.start].as_ref()?);
        Some(answers)
    }

    /// A run that failed: its answers are right if without a crash the program fails as well, in the same way.
    pub fn right_failures(&self, scene: Scene, end: &End) -> Vec<Answers> {
        let without = match scene {
            Scene::During(number) if self.fails_without.get(&number).is_some_and(|own| is_same_end(own, end)) => {
                self.rolled_back(scene).cloned()
            }
            _ => None,
        };
        let after = self.fails_after.get(&self.asked(scene).start).filter(|own| is_same_end(own, end));
        without.into_iter().chain(after.and_then(|_| self.committed(scene))).collect()
    }

    /// As if the operation under way had not happened; none if it must have.
    pub fn rolled_back(&self, scene: Scene) -> Option<&Answers> {
        match scene {
            Scene::During(number) => self.without.get(number)?.as_ref(),
            Scene::Before | Scene::After(_) => None,
        }
    }
}

/// Wherever it was.
fn is_same_end(one: &End, other: &End) -> bool {
    match (one, other) {
        (End::Exited(one), End::Exited(other)) => one == other,
        (End::Signalled { signal: one, .. }, End::Signalled { signal: other, .. }) => one == other,
        _ => false,
    }
}
