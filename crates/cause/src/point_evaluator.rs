//! States of one crash point, tried out: of those that recovery cannot tell apart, one is run.

use crash::assignment::Assignment;
use crash::image::CrashImage;
use crash::recovery::{Observation, Recovery, RecoveryError};
use crash::view::{PointView, StateKey};
use crash::walk::{Rules, Walk, WalkError};
use persistency::states::CrashState;
use rustc_hash::FxHashMap;
use trace::TraceReader;
use trace::event::EventId;
use verdict::verdict::Verdict;

use crate::verdict_cache::VerdictCache;

/// What a run that hangs costs of the allowance: it takes as long as many others.
const HANG: u32 = 16;

/// A crash point with its recovery and the verdicts so far.
pub struct PointEvaluator<'a, 'w, R> {
    pub view: &'a PointView<'w>,
    pub recovery: &'a mut R,
    pub(crate) memory: &'a mut VerdictCache,
    known: FxHashMap<StateKey, Verdict>,
    /// Runs that may still be made.
    pub allowance: u32,
    /// Runs so far, with those that the memory saved.
    pub runs: u64,
    /// Is there no time for more? Asked before every run.
    pub is_over: &'a dyn Fn() -> bool,
}

impl<R> std::fmt::Debug for PointEvaluator<'_, '_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PointEvaluator")
            .field("known", &self.known.len())
            .field("allowance", &self.allowance)
            .finish_non_exhaustive()
    }
}

/// Why no verdict came.
#[derive(Debug, thiserror::Error)]
pub enum EvaluateError {
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    Point(#[from] persistency::point::PointError),
    /// The search for the cause takes too long; what is known must do.
    #[error("the allowance of recovery runs for one cause is used up")]
    Exhausted,
}

impl<'a, 'w, R: Recovery> PointEvaluator<'a, 'w, R> {
    /// `view` is one of the memory's walk.
    pub fn new(view: &'a PointView<'w>, recovery: &'a mut R, memory: &'a mut VerdictCache) -> Self {
        memory.arrive(view);
        PointEvaluator {
            view,
            recovery,
            memory,
            known: FxHashMap::default(),
            allowance: 0,
            runs: 0,
            is_over: &|| false,
        }
    }

    /// What the search found out already.
    pub fn remember(&mut self, state: &CrashState, verdict: Verdict) {
        self.known.insert(self.view.key(state), verdict);
    }

    pub fn verdict(&mut self, assignment: &Assignment) -> Result<Verdict, EvaluateError> {
        let state = assignment.state(self.view);
        let key = self.view.key(&state);
        if let Some(verdict) = self.known.get(&key) {
            return Ok(verdict.clone());
        }
        let verdict = match self.memory.recall(self.view, &state) {
            Some(verdict) => verdict,
            None => {
                let observation = self.observe(&self.view.image(&state)?)?;
                self.memory.learn(self.view, &state, &observation);
                observation.verdict
            }
        };
        self.known.insert(key, verdict.clone());
        Ok(verdict)
    }

    pub fn passes(&mut self, assignment: &Assignment) -> Result<bool, EvaluateError> {
        self.verdict(assignment).map(|verdict| verdict.is_pass())
    }

    /// Does recovery pass at a point of another walk with everything in PM?
    pub fn passes_at(&mut self, view: &PointView<'_>) -> Result<bool, EvaluateError> {
        let state = Assignment::everything(view).state(view);
        if let Some(verdict) = self.memory.elsewhere(view, |memory| memory.recall(view, &state)) {
            return Ok(verdict.is_pass());
        }
        let observation = self.observe(&view.image(&state)?)?;
        self.memory.elsewhere(view, |memory| memory.learn(view, &state, &observation));
        Ok(observation.verdict.is_pass())
    }

    /// A walk for [`PointEvaluator::passes_at`], at this place.
    pub fn walk_to<'r>(&mut self, reader: &'r TraceReader, rules: Rules, at: EventId) -> Result<Walk<'r>, WalkError> {
        self.memory.walk_to(reader, rules, at)
    }

    /// Runs recovery on an image that need not be a state of the point.
    pub fn run(&mut self, image: &CrashImage<'_>) -> Result<Verdict, EvaluateError> {
        self.observe(image).map(|observation| observation.verdict)
    }

    fn observe(&mut self, image: &CrashImage<'_>) -> Result<Observation, EvaluateError> {
        if self.allowance == 0 || (self.is_over)() {
            return Err(EvaluateError::Exhausted);
        }
        self.allowance -= 1;
        self.runs += 1;
        if let Some(verdict) = self.memory.recall_image(image) {
            return Ok(Observation { verdict, reads: None });
        }
        match self.recovery.run(image) {
            Err(error) if error.is_cancelled() => Err(EvaluateError::Exhausted),
            observation => {
                let observation = observation?;
                if observation.verdict.is_endless() {
                    self.allowance = self.allowance.saturating_sub(HANG - 1);
                }
                self.memory.learn_image(image, &observation);
                Ok(observation)
            }
        }
    }
}
