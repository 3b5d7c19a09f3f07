//! The control context of a thread: which branches decide that the current instruction runs at all.
//!
//! A branch opens a region that ends where its ways meet, in the same call of the function (B. Xin, X. Zhang, "Efficient
//! Online Detection of Dynamic Control Dependence", ISSTA 2007). Regions that end at the same place are one: the
//! iterations of a loop would else pile up.
//!
//! Calls are told apart by where their return address lies on the stack, not by counting: frames that `longjmp` or an exception
//! left are dropped at the next call or return above them. A switch to another stack (coroutines) at a higher address
//! drops all; the context of the branches before it is then missed.

use crate::labels::{Collection, LabelSets, SetId};
use crate::postdominators::Meet;

/// Where a return address lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ReturnSlot(u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Region {
    until: Meet,
    /// How many frames there were.
    depth: usize,
    /// The context outside.
    before: SetId,
}

/// Frames to keep, at most; those below are forgotten. Recursion this deep has its regions merged long before.
const MOST_FRAMES: usize = 1 << 16;

#[derive(Clone, Debug, Default)]
pub struct Control {
    frames: Vec<ReturnSlot>,
    regions: Vec<Region>,
    context: SetId,
}

impl Control {
    /// The labels of all branches that decided that we are here.
    #[inline]
    pub fn context(&self) -> SetId {
        self.context
    }

    /// A branch that carries `labels` goes one of its ways; `until` is asked for if that matters.
    pub fn branch(&mut self, sets: &mut LabelSets, labels: SetId, until: impl FnOnce() -> Meet) {
        let inside = sets.add_newer(self.context, labels);
        if inside == self.context {
            return;
        }
        let (until, depth) = (until(), self.frames.len());
        let same = self.regions.last().is_some_and(|region| region.until == until && region.depth == depth);
        if !same {
            self.regions.push(Region { until, depth, before: self.context });
        }
        self.context = inside;
    }

    /// The first place in `from..to` where a region of the current call ends.
    #[inline]
    pub fn next_end(&self, from: u64, to: u64) -> Option<u64> {
        let own = self.regions.iter().rev().take_while(|region| region.depth == self.frames.len());
        let ends = own.filter_map(|region| match region.until {
            Meet::At(pc) if (from..to).contains(&pc) => Some(pc),
            _ => None,
        });
        ends.min()
    }

    /// Execution is at `pc`: regions that end here are left, with all that were opened inside.
    pub fn arrive(&mut self, pc: u64) {
        let depth = self.frames.len();
        let ends = |region: &Region| region.depth == depth && region.until == Meet::At(pc);
        if let Some(at) = self.regions.iter().position(ends) {
            self.drop_from(at);
        }
    }

    /// A call whose return address is put at `stack`.
    pub fn call(&mut self, stack: u64) {
        self.leave(ReturnSlot(stack));
        if self.frames.len() < MOST_FRAMES {
            self.frames.push(ReturnSlot(stack));
        }
    }

    /// A return through the address at `stack`.
    pub fn ret(&mut self, stack: u64) {
        if !self.leave(ReturnSlot(stack)) {
            // A function whose call was not seen.
            let depth = self.frames.len();
            self.drop_deeper(depth);
        }
    }

    /// Drops frames that lie at or below this one; were there any?
    fn leave(&mut self, frame: ReturnSlot) -> bool {
        let before = self.frames.len();
        while self.frames.last().is_some_and(|&last| last <= frame) {
            self.frames.pop();
        }
        if self.frames.len() == before {
            return false;
        }
        self.drop_deeper(self.frames.len() + 1);
        true
    }

    fn drop_deeper(&mut self, depth: usize) {
        let first = self.regions.partition_point(|region| region.depth < depth);
        if first < self.regions.len() {
            self.drop_from(first);
        }
    }

    fn drop_from(&mut self, at: usize) {
        self.context = self.regions[at].before;
        self.regions.truncate(at);
    }

    pub(crate) fn rename(&mut self, sets: &mut LabelSets, collection: &mut Collection) {
        self.context = collection.rename(sets, self.context);
        for region in &mut self.regions {
            region.before = collection.rename(sets, region.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Label;

    fn fixture() -> (LabelSets, [SetId; 3]) {
        let mut sets = LabelSets::default();
        let made = [1, 2, 3].map(|label| sets.singleton(Label(label)));
        (sets, made)
    }

    #[test]
    fn regions_nest_and_end_where_they_should() {
        let (mut sets, [x, y, _]) = fixture();
        let mut control = Control::default();
        control.branch(&mut sets, x, || Meet::At(100));
        control.branch(&mut sets, y, || Meet::At(50));
        assert_eq!(sets.get(control.context()), [Label(1), Label(2)]);
        assert_eq!(control.next_end(40, 120), Some(50));
        control.arrive(50);
        assert_eq!(control.context(), x);
        control.arrive(100);
        assert_eq!(control.context(), SetId::EMPTY);
    }

    #[test]
    fn an_outer_end_ends_what_is_inside() {
        let (mut sets, [x, y, _]) = fixture();
        let mut control = Control::default();
        control.branch(&mut sets, x, || Meet::At(100));
        control.branch(&mut sets, y, || Meet::Exit);
        control.arrive(100);
        assert_eq!(control.context(), SetId::EMPTY);
    }

    #[test]
    fn a_callee_runs_in_its_callers_context_but_does_not_end_it() {
        let (mut sets, [x, y, _]) = fixture();
        let mut control = Control::default();
        control.call(1000);
        control.branch(&mut sets, x, || Meet::At(100));
        control.call(900);
        control.branch(&mut sets, y, || Meet::Exit);
        assert_eq!(control.next_end(0, 200), None);
        control.arrive(100);
        assert_eq!(sets.get(control.context()), [Label(1), Label(2)], "100 in a recursive call is another place");
        control.ret(900);
        assert_eq!(control.context(), x);
        control.ret(1000);
        assert_eq!(control.context(), SetId::EMPTY);
    }

    #[test]
    fn frames_left_by_longjmp_are_dropped() {
        let (mut sets, [x, ..]) = fixture();
        let mut control = Control::default();
        control.call(1000);
        control.call(900);
        control.call(800);
        control.branch(&mut sets, x, || Meet::Exit);
        control.call(950);
        assert_eq!(control.context(), SetId::EMPTY);
        assert_eq!(control.frames, [ReturnSlot(1000), ReturnSlot(950)]);
        let mut unknown = Control::default();
        unknown.branch(&mut sets, x, || Meet::Exit);
        unknown.ret(5000);
        assert_eq!(unknown.context(), SetId::EMPTY);
    }

    #[test]
    fn a_loop_is_one_region() {
        let (mut sets, all) = fixture();
        let mut control = Control::default();
        for labels in all {
            control.branch(&mut sets, labels, || Meet::At(10));
        }
        assert_eq!((control.regions.len(), sets.get(control.context()).len()), (1, 3));
        control.arrive(10);
        assert_eq!(control.context(), SetId::EMPTY);
    }
}
