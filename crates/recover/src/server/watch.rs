//! Waits for a server, and ends the wait when its processes take more than they may.
//!
//! The probe keeps limits of its own, but knows neither what programs that a shell starts use together nor what happens before the
//! first use of a pool.

use std::time::{Duration, Instant};

use supervise::cancel::Cancel;
use supervise::fork_server::{ForkServer, ServerState};
use supervise::limits::Limits;
use verdict::end::Limit;

use super::run::ServerError;

/// Most runs are over before the first look.
pub(super) const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Watched {
    /// It got there; `Late` if its time was over first.
    At(ServerState),
    /// Its processes must be ended.
    OverLimit(Limit),
}

/// Waits until the server is somewhere. `own`: bytes of memory that are not the program's.
pub(super) fn watch(
    engine: &ForkServer,
    limits: &Limits,
    own: u64,
    cancel: &Cancel,
    floods: impl Fn() -> Result<bool, ServerError>,
) -> Result<Watched, ServerError> {
    let until = Instant::now() + limits.wall;
    let most = limits.memory.saturating_add(own);
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let stage = engine.wait(BETWEEN_LOOKS.min(left));
        if stage != ServerState::Late {
            return Ok(Watched::At(stage));
        }
        if cancel.is_cancelled() {
            return Err(ServerError::Cancelled);
        }
        if floods()? {
            return Ok(Watched::OverLimit(Limit::Output));
        }
        let usage = engine.usage(u32::MAX);
        if usage.memory > most && usage.memory_shared_once() > most {
            return Ok(Watched::OverLimit(Limit::Memory));
        }
        if left.is_zero() {
            return Ok(Watched::At(ServerState::Late));
        }
    }
}
