//! The exit codes of `fencepost`. They are part of its public interface and do not change their meaning.

use std::process::ExitCode;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: everything went well, nothing was found.
    Clean,
    /// 1: findings. For `trace verify`: the events do not explain the final content of a pool.
    Findings,
    /// 2: wrong usage or configuration, or input that cannot be used (no such program, not a trace).
    Usage,
    /// 3: the target failed, or could not be recorded, before any crash was simulated.
    TargetFailed,
    /// 4: the target did nothing to persistent memory.
    NoActivity,
    /// 5: nothing was found, but recovery failed and no time was left to tell why, or not every crash point is exhaustive and
    /// `--require-complete` was given.
    Incomplete,
    /// 70: an internal error; please report it.
    Internal,
    /// 130: interrupted by the user; what was recorded until then is saved.
    Interrupted,
    /// With `--exit-with-target`: the target's own code.
    Target(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        match self {
            Exit::Clean => 0,
            Exit::Findings => 1,
            Exit::Usage => 2,
            Exit::TargetFailed => 3,
            Exit::NoActivity => 4,
            Exit::Incomplete => 5,
            Exit::Internal => 70,
            Exit::Interrupted => 130,
            Exit::Target(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}
