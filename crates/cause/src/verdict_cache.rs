//! What recovery was seen to do, by the search and by the search for causes.

use std::sync::Arc;

use crash::assumed::AssumedRepairs;
use crash::read_tree::{ReadTree, ReadTreeCache};
use crash::recovery::Observation;
use crash::view::PointView;
use crash::walk::{Rules, Walk, WalkError};
use persistency::states::CrashState;
use trace::TraceReader;
use verdict::position::CrashPositions;
use verdict::verdict::Verdict;

/// Runs that need not be made, because recovery could not tell the state from one that it has run on.
#[derive(Debug, Default)]
pub struct VerdictCache {
    /// None: every state is to be run.
    read_tree: Option<ReadTree>,
    /// The positions of the search: what holds for one says nothing about another.
    pub positions: Arc<CrashPositions>,
    /// Repairs that the search assumed.
    pub assumed: Arc<AssumedRepairs>,
    /// Of the walk that [`VerdictCache::arrive`] is told of.
    cache: ReadTreeCache,
}

impl VerdictCache {
    /// What a search with these positions found out.
    pub fn new(read_tree: Option<ReadTree>, positions: Arc<CrashPositions>) -> Self {
        VerdictCache { read_tree, positions, assumed: Arc::default(), cache: ReadTreeCache::default() }
    }

    /// A walk at whose points the memory can be asked.
    pub fn walk<'r>(&self, reader: &'r TraceReader, rules: Rules) -> Result<Walk<'r>, WalkError> {
        let mut walk = Walk::new(reader, rules)?;
        walk.set_positions(Arc::clone(&self.positions));
        walk.assume(Arc::clone(&self.assumed));
        Ok(walk)
    }

    /// What is known, for the next search; none if nothing may be concluded.
    pub fn take_tree(&mut self) -> Option<ReadTree> {
        self.cache = ReadTreeCache::default();
        self.read_tree.take()
    }

    /// Continues with what a search found out.
    pub fn put_tree(&mut self, read_tree: Option<ReadTree>) {
        self.cache = ReadTreeCache::default();
        self.read_tree = read_tree;
    }

    /// The walk has come to this point. Call before any question there.
    pub fn arrive(&mut self, view: &PointView<'_>) {
        if let Some(read_tree) = &self.read_tree {
            self.cache.arrive(read_tree, view);
        }
    }

    pub fn recall(&mut self, view: &PointView<'_>, state: &CrashState) -> Option<Verdict> {
        let read_tree = self.read_tree.as_ref()?;
        read_tree.lookup(&mut self.cache, view, state).map(|decided| decided.verdict)
    }

    /// The memory as it is asked at a point of another walk, for one question: nothing is known there from the last one.
    pub fn elsewhere<T>(&mut self, view: &PointView<'_>, ask: impl FnOnce(&mut VerdictCache) -> T) -> T {
        let here = std::mem::take(&mut self.cache);
        self.arrive(view);
        let answer = ask(self);
        self.cache = here;
        answer
    }

    pub fn learn(&mut self, view: &PointView<'_>, state: &CrashState, observation: &Observation) {
        let (Some(read_tree), Some(reads)) = (&mut self.read_tree, &observation.reads) else { return };
        if read_tree.insert(&mut self.cache, view, state, reads, &observation.verdict).is_err() {
            // Recovery is not deterministic: nothing that was seen says anything.
            self.read_tree = None;
        }
    }
}
