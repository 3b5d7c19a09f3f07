//! All states of a point, one by one: what *visible* does if it is not known what recovery reads.
//!
//! First those with the stores of every line whole and in order, then all. Nearest to program order first: a line counts for as many steps as
//! its content has better ones before it.

use persistency::content::Content;
use persistency::line::LineId;
use persistency::states::{Base, CrashState, States};
use rustc_hash::FxHashMap;

use super::visible::Limits;
use crate::view::PointView;

#[derive(Debug)]
pub struct Blind {
    whole: Product,
    all: Product,
}

impl Blind {
    /// Program order has been tried.
    pub fn new(view: &PointView<'_>, limits: Limits) -> Self {
        let whole = Product::new(view, limits.whole.map(|most| most.saturating_sub(1)), |_| Vec::new());
        let cuts = |index| view.distinct_cuts(index).contents.iter().map(|(content, _)| *content).collect();
        let mut all = Product::new(view, limits.cuts, cuts);
        let are_all = |index| view.distinct_contents(index).are_all && view.distinct_cuts(index).are_all;
        all.is_partial = !(0..view.lines().len()).all(are_all);
        Blind { whole, all }
    }

    pub fn next(&mut self) -> Option<CrashState> {
        self.whole.next().or_else(|| self.all.next())
    }

    /// Everything was tried.
    pub fn is_exhausted(&self) -> bool {
        // All states include those with whole stores.
        self.all.is_exhausted()
    }
}

/// Every combination of contents of the lines.
#[derive(Debug)]
struct Product {
    /// Of each line: program order first.
    contents: FxHashMap<LineId, Vec<Content>>,
    steps: States,
    left: Option<u64>,
    is_partial: bool,
}

impl Product {
    fn new(view: &PointView<'_>, left: Option<u64>, cuts: impl Fn(usize) -> Vec<Content>) -> Self {
        let mut contents = FxHashMap::default();
        let mut counts = Vec::new();
        for (index, line) in view.lines().iter().enumerate() {
            let whole = view.distinct_contents(index);
            let mut own: Vec<Content> = whole.contents.iter().map(|(content, _)| *content).collect();
            // After the first, which is everything.
            own.splice(1.min(own.len())..1.min(own.len()), cuts(index));
            counts.push((line.id(), own.len() as u64 - 1));
            contents.insert(line.id(), own);
        }
        let mut steps = States::counting(counts);
        // The first is program order.
        steps.next();
        Product { contents, steps, left, is_partial: false }
    }

    fn next(&mut self) -> Option<CrashState> {
        if self.left == Some(0) {
            return None;
        }
        let steps = self.steps.next()?;
        self.left = self.left.map(|left| left - 1);
        let lines = steps.lines.into_iter().map(|(id, step)| (id, self.contents[&id][step.kept as usize])).collect();
        Some(CrashState { base: Base::Everything, lines })
    }

    fn is_exhausted(&self) -> bool {
        !self.is_partial && self.steps.distance().is_none()
    }
}
