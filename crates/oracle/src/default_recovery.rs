//! The recovery command when the user names none: the workload's command again, with an empty standard input.

use std::ffi::OsString;
use std::path::PathBuf;

use recover::command::{Command, Input};
use thiserror::Error;
use trace::Meta;

#[derive(Debug, Error)]
#[error("the trace does not say which command was recorded; name the recovery command with --recover")]
pub struct NoCommand;

/// In the recording's directory, with this environment (a trace does not hold one).
pub fn default_recovery(meta: &Meta, env: Vec<(OsString, OsString)>) -> Result<Command, NoCommand> {
    let (program, args) = meta.command.split_first().ok_or(NoCommand)?;
    Ok(Command {
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        env,
        dir: directory(meta),
        stdin: Input::Empty,
    })
}

/// Where recoveries and checkers run: where the recording did, or here if the trace does not tell.
pub fn directory(meta: &Meta) -> PathBuf {
    if meta.cwd.is_empty() { std::env::current_dir().unwrap_or_else(|_| "/".into()) } else { meta.cwd.clone().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workload_again_in_its_directory() {
        let meta = Meta { command: vec!["./kv".into(), "pool".into()], cwd: "/data".into(), ..Meta::default() };
        let command = default_recovery(&meta, Vec::new()).unwrap();
        assert_eq!((command.program, command.args), ("./kv".into(), vec!["pool".into()]));
        assert_eq!((command.dir, command.stdin), ("/data".into(), Input::Empty));
    }

    #[test]
    fn a_trace_without_a_command_needs_one() {
        let message = default_recovery(&Meta::default(), Vec::new()).unwrap_err().to_string();
        assert!(message.contains("--recover"), "{message}");
    }
}
