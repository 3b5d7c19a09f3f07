//! *visible*: all states that recovery can tell apart (docs/how-it-works.md, "Recovery sees only what it reads").
//!
//! The first run gets everything. A run that read the dirty lines *l₁, l₂, …* in this order is one leaf of a tree: its
//! siblings at depth *i* agree with it on *l₁ … lᵢ₋₁* and have another content of *lᵢ*. Recovery being deterministic, such
//! a sibling reads the same lines up to *lᵢ*, so each can be worked out on its own, each leaf is reached once, and
//! when no branch is left all states that differ in anything that recovery reads have been decided. States with fewer
//! lines that are not as in program order come first.
//!
//! Contents with cuts (wide stores that are torn, non-temporal ones out of order) are branches like others, but there are many of them: of one
//! store of 64 bytes 254. States with whole stores come first, then those with one cut, the likeliest of every line before the second of
//! any. They have a limit of their own, so that states without them are not crowded out; the strategy *torn* raises it.
//!
//! Needs to know what was read. Without that all states are tried one by one, as far as the limits allow.

use std::collections::BTreeMap;
use std::rc::Rc;

use persistency::content::Content;
use persistency::line::LineId;
use persistency::states::{Base, CrashState};

use super::spec::{Reach, Strategy};
use crate::strategy::blind::Blind;
use crate::view::{PointView, everything_of};

/// The content of one line and, through its parents, of those read before it.
#[derive(Debug)]
struct Fixed {
    parent: Option<Rc<Fixed>>,
    line: LineId,
    content: Content,
}

type Branch = Option<Rc<Fixed>>;

/// How many states are tried.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// With the stores of every line whole and in order.
    pub whole: Option<u64>,
    /// With cuts.
    pub cuts: Option<u64>,
}

/// Branches that wait for their turn, the first ones first.
#[derive(Debug)]
struct Waiting<K> {
    limit: Option<u64>,
    tried: u64,
    branches: BTreeMap<(K, u64), Branch>,
    /// There were more than the limit lets in.
    dropped: bool,
}

impl<K: Ord> Waiting<K> {
    fn new(limit: Option<u64>) -> Self {
        Waiting { limit, tried: 0, branches: BTreeMap::new(), dropped: false }
    }

    fn room(&self) -> u64 {
        self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(self.tried))
    }

    fn add(&mut self, key: K, age: u64, branch: Branch) {
        self.branches.insert((key, age), branch);
        if self.branches.len() as u64 > self.room() {
            self.branches.pop_last();
            self.dropped = true;
        }
    }

    fn next(&mut self) -> Option<Branch> {
        let (_, branch) = self.branches.pop_first()?;
        self.tried += 1;
        Some(branch)
    }
}

#[derive(Debug)]
pub struct Visible {
    limits: Limits,
    /// By the number of lines that deviate.
    whole: Waiting<usize>,
    /// By the number of lines with cuts, how likely the last cut is, and the number of lines that deviate.
    cuts: Waiting<(usize, usize, usize)>,
    next_age: u64,
    current: Branch,
    /// Tries all states: the reads are not known.
    blind: Option<Blind>,
    dropped: bool,
}

impl Visible {
    pub fn new(limits: Limits) -> Self {
        let mut whole = Waiting::new(limits.whole);
        whole.add(0, 0, None);
        let cuts = Waiting::new(limits.cuts);
        Visible { limits, whole, cuts, next_age: 1, current: None, blind: None, dropped: false }
    }

    fn branch(&mut self, parent: &Branch, line: LineId, content: Content, deviating: usize, rank: usize) {
        let cuts = fixed(parent).filter(|fixed| !fixed.content.is_whole()).count();
        let branch = Some(Rc::new(Fixed { parent: parent.clone(), line, content }));
        let age = self.next_age;
        self.next_age += 1;
        if cuts == 0 && content.is_whole() {
            self.whole.add(deviating, age, branch);
        } else {
            self.cuts.add((cuts + usize::from(!content.is_whole()), rank, deviating), age, branch);
        }
    }
}

impl Strategy for Visible {
    fn next(&mut self, view: &PointView<'_>) -> Option<CrashState> {
        if let Some(states) = &mut self.blind {
            return states.next();
        }
        self.current = self.whole.next().or_else(|| self.cuts.next())?;
        let mut lines: Vec<(LineId, Content)> = fixed(&self.current)
            .filter(|fixed| view.crash_point().line(fixed.line).map(everything_of) != Some(fixed.content))
            .map(|fixed| (fixed.line, fixed.content))
            .collect();
        lines.sort_unstable();
        Some(CrashState { base: Base::Everything, lines })
    }

    fn observe(&mut self, view: &PointView<'_>, state: &CrashState, reads: Option<&[LineId]>) {
        if self.blind.is_some() {
            return;
        }
        let Some(reads) = reads else {
            self.blind = Some(Blind::new(view, self.limits));
            return;
        };
        let before = fixed(&self.current).count();
        let mut expected: Vec<LineId> = fixed(&self.current).map(|fixed| fixed.line).collect();
        expected.reverse();
        if reads.len() < before || reads[..before] != expected {
            // Recovery read something else than the run that this one branched off: nothing can be built on it.
            self.dropped = true;
            return;
        }
        let deviating = state.lines.len() + 1;
        let mut path = self.current.clone();
        for &line in &reads[before..] {
            let Some(index) = view.index_of(line) else { continue };
            // What was used is everything, or came from here.
            let used = state.content(&view.lines()[index]);
            let (whole, cuts) = (view.distinct_contents(index), view.distinct_cuts(index));
            self.dropped |= !whole.are_all || !cuts.are_all;
            for &(content, _) in whole.contents.iter().filter(|(content, _)| *content != used) {
                self.branch(&path, line, content, deviating, 0);
            }
            for (rank, &(content, _)) in cuts.contents.iter().enumerate() {
                self.branch(&path, line, content, deviating, rank);
            }
            path = Some(Rc::new(Fixed { parent: path, line, content: used }));
        }
    }

    fn reach(&self) -> Reach {
        match &self.blind {
            None if !self.dropped && !self.whole.dropped && !self.cuts.dropped => Reach::Distinguishable,
            None => Reach::Capped,
            Some(blind) if blind.is_exhausted() => Reach::Distinguishable,
            Some(_) => Reach::CappedWithoutReads,
        }
    }
}

/// The fixed lines of a branch, the last one first.
fn fixed(branch: &Branch) -> impl Iterator<Item = &Fixed> {
    std::iter::successors(branch.as_deref(), |fixed| fixed.parent.as_deref())
}

/// Long branches would else be dropped by as many nested calls as they have lines.
impl Drop for Fixed {
    fn drop(&mut self) {
        let mut next = self.parent.take();
        while let Some(mut parent) = next.and_then(Rc::into_inner) {
            next = parent.parent.take();
        }
    }
}
