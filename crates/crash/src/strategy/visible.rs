//! *visible*: all states that recovery can tell apart (DESIGN.md, "Recovery sees only what it reads").
//!
//! The first run gets everything. A run that read the dirty lines *l₁, l₂, …* in this order is one leaf of a tree: its
//! siblings at depth *i* agree with it on *l₁ … lᵢ₋₁* and have another content of *lᵢ*. Recovery being deterministic, such
//! a sibling reads the same lines up to *lᵢ*, so each can be worked out on its own, each leaf is reached once, and
//! when no branch is left all states that differ in anything that recovery reads have been decided. States with fewer
//! lines that are not as in program order come first.
//!
//! Needs to know what was read. Without that all states are tried one by one, as far as the limit allows.

use std::collections::BTreeMap;
use std::rc::Rc;

use persistency::line::LineId;
use persistency::point::Content;
use persistency::states::{Base, CrashState, States};

use super::spec::{Reach, Strategy};
use crate::view::{PointView, everything_of};

/// The content of one line and, through its parents, of those read before it.
#[derive(Debug)]
struct Fixed {
    parent: Option<Rc<Fixed>>,
    line: LineId,
    content: Content,
}

type Branch = Option<Rc<Fixed>>;

#[derive(Debug)]
pub struct Visible {
    cap: Option<u64>,
    tried: u64,
    /// By the number of lines that deviate, then by age.
    waiting: BTreeMap<(usize, u64), Branch>,
    next_age: u64,
    current: Branch,
    /// Tries all states: the reads are not known.
    blind: Option<States>,
    dropped: bool,
}

impl Visible {
    pub fn new(cap: Option<u64>) -> Self {
        let waiting = BTreeMap::from([((0, 0), None)]);
        Visible { cap, tried: 0, waiting, next_age: 1, current: None, blind: None, dropped: false }
    }

    fn has_room(&self) -> bool {
        self.cap.is_none_or(|cap| self.tried < cap)
    }

    fn wait(&mut self, deviating: usize, branch: Branch) {
        self.waiting.insert((deviating, self.next_age), branch);
        self.next_age += 1;
        // What the limit will not let in need not wait.
        let room = self.cap.map_or(u64::MAX, |cap| cap - self.tried);
        if self.waiting.len() as u64 > room {
            self.waiting.pop_last();
            self.dropped = true;
        }
    }
}

impl Strategy for Visible {
    fn next(&mut self, view: &PointView<'_>) -> Option<CrashState> {
        if !self.has_room() {
            let more = self.blind.as_ref().map_or(!self.waiting.is_empty(), |states| states.distance().is_some());
            self.dropped |= more;
            return None;
        }
        if let Some(states) = &mut self.blind {
            self.tried += 1;
            return states.next();
        }
        let (_, branch) = self.waiting.pop_first()?;
        self.tried += 1;
        self.current = branch;
        let mut lines: Vec<(LineId, Content)> = fixed(&self.current)
            .filter(|fixed| view.crash_point().line(fixed.line).map(everything_of) != Some(fixed.content))
            .map(|fixed| (fixed.line, fixed.content))
            .collect();
        lines.sort_unstable();
        Some(CrashState { base: Base::Everything, lines })
    }

    fn learned(&mut self, view: &PointView<'_>, state: &CrashState, reads: Option<&[LineId]>) {
        if self.blind.is_some() {
            return;
        }
        let Some(reads) = reads else {
            let mut states = view.crash_point().states(Base::Everything);
            // The first is program order, which was tried first.
            states.next();
            self.blind = Some(states);
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
        let deviating = state.lines.len();
        let mut path = self.current.clone();
        for &line in &reads[before..] {
            let Some(index) = view.index_of(line) else { continue };
            let used = state.content(&view.lines()[index]);
            // What was used is one of these: all are either everything or came from here.
            let distinct = view.distinct_contents(index);
            self.dropped |= !distinct.are_all;
            for &(content, _) in &distinct.contents {
                if content != used {
                    self.wait(deviating + 1, Some(Rc::new(Fixed { parent: path.clone(), line, content })));
                }
            }
            path = Some(Rc::new(Fixed { parent: path, line, content: used }));
        }
    }

    fn reach(&self) -> Reach {
        match (&self.blind, self.dropped) {
            (_, false) => Reach::Distinguishable,
            (None, true) => Reach::Capped,
            (Some(_), true) => Reach::CappedWithoutReads,
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
