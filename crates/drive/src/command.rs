//! One process per operation: its answer is what it writes to standard output, and how it ends.

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use crate::error::{DriveError, system};
use crate::input::Input;
use crate::template::filled;

/// Takes operations until there are no more. `first` is run before the first of them.
pub fn run(template: &[OsString], first: &[OsString]) -> Result<(), DriveError> {
    let mut input = Input::begin()?;
    prepare(first)?;
    while let Some(operation) = input.next_line()? {
        let status = start(&filled(template, &operation), Stdio::inherit())?;
        answer(format_args!("{}\n", how(status)))?;
    }
    Ok(())
}

/// Runs what shall run before the first operation; it must succeed.
pub(crate) fn prepare(words: &[OsString]) -> Result<(), DriveError> {
    if words.is_empty() {
        return Ok(());
    }
    let status = start(words, io::stderr().into())?;
    if status.success() {
        return Ok(());
    }
    let program = words[0].to_string_lossy().into_owned();
    Err(DriveError::FirstFailed { program, how: how(status), status })
}

pub(crate) fn start(words: &[OsString], output: Stdio) -> Result<ExitStatus, DriveError> {
    // An empty operation in a template of nothing else leaves no word.
    let Some((program, args)) = words.split_first() else { return Ok(ExitStatus::from_raw(0)) };
    Command::new(program)
        .args(args)
        .stdin(Stdio::null())
        .stdout(output)
        .status()
        .map_err(|source| DriveError::Start { program: program.to_string_lossy().into_owned(), source })
}

pub(crate) fn answer(text: std::fmt::Arguments<'_>) -> Result<(), DriveError> {
    let mut out = io::stdout().lock();
    out.write_fmt(text).and_then(|()| out.flush()).map_err(system("write an answer"))
}

/// `exit 0`, `signal 11`.
pub fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("signal {signal}"),
        (None, None) => "unknown".into(),
    }
}

/// As a shell would end.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
