//! States of one crash point, tried out: each content of bytes is run once.

use crash::image::CrashImage;
use crash::recovery::{Recovery, RecoveryError, Verdict};
use crash::view::{PointView, StateKey, everything_of};
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use rustc_hash::FxHashMap;

/// What each dirty line of a point has in PM, by its place in [`PointView::lines`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment(pub Vec<Content>);

impl Assignment {
    pub fn of(view: &PointView<'_>, state: &CrashState) -> Assignment {
        Assignment(view.lines().iter().map(|line| state.content(line)).collect())
    }

    pub fn everything(view: &PointView<'_>) -> Assignment {
        Assignment(view.lines().iter().map(everything_of).collect())
    }

    pub fn guaranteed(view: &PointView<'_>) -> Assignment {
        Assignment(vec![Content::default(); view.lines().len()])
    }

    pub fn state(&self, view: &PointView<'_>) -> CrashState {
        let named = view.lines().iter().zip(&self.0).filter(|(_, content)| **content != Content::default());
        CrashState { base: Base::Guaranteed, lines: named.map(|(line, &content)| (line.id(), content)).collect() }
    }
}

/// A crash point with its recovery and the verdicts so far.
pub struct Trial<'a, 'w, R> {
    pub view: &'a PointView<'w>,
    pub recovery: &'a mut R,
    known: FxHashMap<StateKey, Verdict>,
    /// Runs that may still be made.
    pub allowance: u32,
}

impl<R> std::fmt::Debug for Trial<'_, '_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trial")
            .field("known", &self.known.len())
            .field("allowance", &self.allowance)
            .finish_non_exhaustive()
    }
}

/// Why no verdict came.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    #[error(transparent)]
    Point(#[from] persistency::point::PointError),
    /// The search for the cause takes too long; what is known must do.
    #[error("the allowance of recovery runs for one cause is used up")]
    Exhausted,
}

impl<'a, 'w, R: Recovery> Trial<'a, 'w, R> {
    pub fn new(view: &'a PointView<'w>, recovery: &'a mut R, allowance: u32) -> Self {
        Trial { view, recovery, known: FxHashMap::default(), allowance }
    }

    /// What the search found out already.
    pub fn remember(&mut self, state: &CrashState, verdict: Verdict) {
        self.known.insert(self.view.key(state), verdict);
    }

    pub fn verdict(&mut self, assignment: &Assignment) -> Result<Verdict, TrialError> {
        let state = assignment.state(self.view);
        let key = self.view.key(&state);
        if let Some(verdict) = self.known.get(&key) {
            return Ok(verdict.clone());
        }
        let image = self.view.image(&state)?;
        let verdict = self.run(&image)?;
        self.known.insert(key, verdict.clone());
        Ok(verdict)
    }

    pub fn passes(&mut self, assignment: &Assignment) -> Result<bool, TrialError> {
        self.verdict(assignment).map(|verdict| verdict.pass)
    }

    /// Runs recovery on an image that need not be a state of the point.
    pub fn run(&mut self, image: &CrashImage<'_>) -> Result<Verdict, TrialError> {
        if self.allowance == 0 {
            return Err(TrialError::Exhausted);
        }
        self.allowance -= 1;
        Ok(self.recovery.run(image)?.verdict)
    }
}
