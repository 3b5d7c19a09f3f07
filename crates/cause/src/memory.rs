//! What recovery was seen to do, by the search and by the search for causes.

use std::sync::Arc;

use crash::recovery::{Observation, Verdict};
use crash::scenes::Scenes;
use crash::seen::{Seen, SeenCache};
use crash::view::PointView;
use crash::walk::{Rules, Walk, WalkError};
use persistency::states::CrashState;
use trace::TraceReader;

/// Runs that need not be made, because recovery could not tell the state from one that it has run on.
#[derive(Debug, Default)]
pub struct Memory {
    /// None: every state is to be run.
    seen: Option<Seen>,
    /// By which the search learnt: what is true in one says nothing about another.
    scenes: Arc<Scenes>,
    /// Of the walk that [`Memory::arrive`] is told of.
    cache: SeenCache,
}

impl Memory {
    /// What a search with these scenes has learnt.
    pub fn new(seen: Option<Seen>, scenes: Arc<Scenes>) -> Self {
        Memory { seen, scenes, cache: SeenCache::default() }
    }

    /// A walk at whose points the memory can be asked.
    pub fn walk<'r>(&self, reader: &'r TraceReader, rules: Rules) -> Result<Walk<'r>, WalkError> {
        let mut walk = Walk::new(reader, rules)?;
        walk.set_scenes(Arc::clone(&self.scenes));
        Ok(walk)
    }

    /// The walk has come to this point. Call before any question there.
    pub fn arrive(&mut self, view: &PointView<'_>) {
        if let Some(seen) = &self.seen {
            self.cache.arrive(seen, view);
        }
    }

    pub fn recall(&mut self, view: &PointView<'_>, state: &CrashState) -> Option<Verdict> {
        let seen = self.seen.as_ref()?;
        seen.lookup(&mut self.cache, view, state).map(|decided| decided.verdict)
    }

    /// The memory as it is asked at a point of another walk, for one question: nothing is known there from the last one.
    pub fn elsewhere<T>(&mut self, view: &PointView<'_>, ask: impl FnOnce(&mut Memory) -> T) -> T {
        let here = std::mem::take(&mut self.cache);
        self.arrive(view);
        let answer = ask(self);
        self.cache = here;
        answer
    }

    pub fn learn(&mut self, view: &PointView<'_>, state: &CrashState, observation: &Observation) {
        let (Some(seen), Some(reads)) = (&mut self.seen, &observation.reads) else { return };
        if seen.insert(&mut self.cache, view, state, reads, &observation.verdict).is_err() {
            // Recovery is not deterministic: nothing that was seen says anything.
            self.seen = None;
        }
    }
}
