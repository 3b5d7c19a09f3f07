//! The path that a run took, as far as it depended on the input.

use std::collections::BTreeMap;

use iced_x86::Mnemonic;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::expr::Expr;
use crate::frame::Concrete;

/// Steps of one path, at most: a loop over the input could go on for ever.
pub const MOST_STEPS: usize = 20_000;

/// A place where the input decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Holds in this run.
    pub condition: Expr,
    pub pc: u64,
    pub kind: PathStepKind,
    /// The call path, by number (see [`Path::frames`]).
    pub frames: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathStepKind {
    Branch {
        taken: bool,
        target: u64,
        next: u64,
    },
    /// An indirect jump or call, and what says where it goes.
    Jump {
        target: u64,
        value: Expr,
    },
    /// A load or store at an address that depends on the input.
    Address,
    /// A branch of the driver that passes operations on: they must stay as they are for it.
    Driver,
}

impl PathStepKind {
    /// The program decided there.
    pub fn is_decision(self) -> bool {
        matches!(self, PathStepKind::Branch { .. } | PathStepKind::Jump { .. })
    }
}

#[derive(Clone, Debug, Default)]
pub struct Path {
    pub steps: Vec<PathStep>,
    pinned: FxHashSet<Expr>,
    call_paths: Vec<Box<[u64]>>,
    known_paths: FxHashMap<Box<[u64]>, u32>,
    pub counts: Counts,
    /// Instructions that made their results concrete: how often, and one place.
    pub concrete: BTreeMap<(String, Concrete), (u64, u64)>,
}

/// How much was followed, and what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub instructions: u64,
    /// Executed on expressions.
    pub followed: u64,
    /// Loads from constant tables at places that depend on the input.
    pub tables: u64,
    /// Branches that went another way than the expressions say.
    pub diverged: u64,
    /// Bytes that became concrete at the bound on depth.
    pub cut: u64,
    /// Instructions that became concrete because there were too many expressions.
    pub too_many: u64,
    /// Steps beyond the most.
    pub dropped: u64,
    /// Addresses that depend on the input and were taken as they were.
    pub pinned: u64,
    /// Loads at places that depend on the input of which some were not known.
    pub partial: u64,
    /// Bytes of the input that the program got.
    pub input: u64,
}

impl Path {
    /// Without steps.
    pub fn of_counts(counts: Counts) -> Path {
        Path { counts, ..Path::default() }
    }

    pub fn push(&mut self, step: PathStep) {
        if self.steps.len() >= MOST_STEPS {
            self.counts.dropped += 1;
            return;
        }
        self.steps.push(step);
    }

    pub fn pin(&mut self, step: PathStep) {
        if self.pinned.insert(step.condition) {
            self.counts.pinned += 1;
            self.push(step);
        }
    }

    pub fn concrete(&mut self, mnemonic: Mnemonic, why: Concrete, pc: u64) {
        let entry = self.concrete.entry((format!("{mnemonic:?}").to_lowercase(), why)).or_insert((0, pc));
        entry.0 += 1;
    }

    /// A number for a call path.
    pub fn call_path(&mut self, frames: &[u64]) -> u32 {
        if let Some(&known) = self.known_paths.get(frames) {
            return known;
        }
        let number = self.call_paths.len() as u32;
        self.call_paths.push(frames.into());
        self.known_paths.insert(frames.into(), number);
        number
    }

    /// Where the callers of step `at` go on, outermost first.
    pub fn frames(&self, at: usize) -> &[u64] {
        self.call_paths.get(self.steps[at].frames as usize).map_or(&[], |frames| frames)
    }

    /// Whether a branch or jump depended on the input.
    pub fn has_branches(&self) -> bool {
        self.steps.iter().any(|step| step.kind.is_decision())
    }
}
