//! Before a finding is shown: its crash image is built from the trace again, and the failure is reproduced twice on the
//! uninstrumented program.

use crash::walk::{Rules, Walk, WalkError};
use trace::TraceReader;
use verdict::end::Frame;

use cause::analyse::RootCause;
use persistency::point::PointError;
use runner::runner::{Runner, RunnerError};

#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    State(#[from] PointError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

/// What native mode said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It failed both times, in the same way.
    Confirmed,
    /// It passed at least once, or failed differently: nothing may be claimed.
    NotReproduced,
}

/// Runs the cause's state twice in native mode.
pub fn confirm(
    reader: &TraceReader,
    rules: Rules,
    cause: &RootCause,
    runner: &mut Runner,
) -> Result<Confirmation, ConfirmError> {
    let mut walk = Walk::new(reader, rules)?;
    walk.advance_to(cause.point.at)?;
    let view = walk.view();
    let image = view.image(&cause.state)?;
    let (first, second) = (runner.confirm(&image)?, runner.confirm(&image)?);
    let same = first.symptom().zip(second.symptom()).is_some_and(|(first, second)| first.confirms(second));
    Ok(if same { Confirmation::Confirmed } else { Confirmation::NotReproduced })
}

/// Where recovery was when it broke down on the cause's state; empty if it did not, or if nobody knows.
pub fn breakdown(
    reader: &TraceReader,
    rules: Rules,
    cause: &RootCause,
    runner: &mut Runner,
) -> Result<Vec<Frame>, ConfirmError> {
    let mut walk = Walk::new(reader, rules)?;
    walk.advance_to(cause.point.at)?;
    let view = walk.view();
    let image = view.image(&cause.state)?;
    // On a busy machine a run may be killed before it has said where it is.
    for _ in 0..3 {
        runner.observe(&image)?;
        if !runner.broke_down_at().is_empty() {
            break;
        }
    }
    Ok(runner.broke_down_at().to_vec())
}
