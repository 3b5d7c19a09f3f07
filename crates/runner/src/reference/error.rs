//! Why right answers could not be had, and what can be done about it.

use crash::walk::WalkError;
use trace::ReadError;

use crate::runner::RunnerError;
use persistency::point::PointError;

/// No answers could be had to compare with.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    State(#[from] PointError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error("the user stopped the runs without a crash")]
    Stopped,
    #[error(
        "the time budget was over after the runs without a crash for {done} of {all} operations: no crash was simulated"
    )]
    OutOfTime { done: usize, all: usize },
    #[error("the uninstrumented program does not show which answer belongs to which part of a window")]
    PlainWindows,
    #[error("the uninstrumented program {how} in a run without any crash")]
    PlainDied { how: String },
    #[error(
        "the program is not deterministic: given the same operations, line {line} of its output is {one} in one run and {other} in \
         another, without any crash; answers that vary cannot be compared"
    )]
    OutputVaries { line: usize, one: String, other: String },
    #[error(
        "the program did not read operations from its standard input, one line after the other{}",
        .how.as_ref().map_or_else(String::new, |how| format!("; it {how}"))
    )]
    NotRead { how: Option<String> },
    /// Of programs that get them by a driver, which has said why.
    #[error("no operation reached the program")]
    NotDriven,
    #[error("the program read {read} operations though it was given {given}: it went back in its standard input")]
    ReadMore { read: usize, given: usize },
    #[error("the program read {read} of {given} operations and then {how}; the last one was `{last}`")]
    ReadLess { read: usize, given: usize, how: String, last: String },
    #[error(
        "the program {how} in a run without any crash; it had answered {answered} of {given} operations and was at `{last}`"
    )]
    Died { how: String, answered: usize, given: usize, last: String },
    #[error("somebody killed the program (SIGKILL) in a run without any crash")]
    Killed,
    #[error("after operation {number}, `{operation}`, in a run without any crash, the program {how}")]
    Endless { number: usize, operation: String, how: String },
    #[error("the program wrote more than {0} MiB in a run without any crash; answers that are cut cannot be compared")]
    TooMuch(u64),
    #[error("the program answers nothing: it wrote nothing to its standard output for any of {0} operations")]
    NoAnswers(usize),
    #[error(
        "the program answers out of step: it reads on before it has answered (operation {number}, `{operation}`, has no answer, \
         and more is written after the last one); it must write and flush each answer before it reads the next operation"
    )]
    OutOfStep { number: usize, operation: String },
    #[error("`{command}` ({how}) wrote {lines} lines where {wanted} operations are to be answered by one line each")]
    Lines { command: String, how: String, lines: usize, wanted: usize },
    #[error(
        "the program is not deterministic: operation {number}, `{operation}`, is answered {one} in one run and {other} in \
         another, without any crash; answers that vary cannot be compared"
    )]
    Varies { number: usize, operation: String, one: String, other: String },
}

impl ReferenceError {
    /// Is it about what the program did in a run of the reference runs, so that it may be for want of room?
    pub(crate) fn is_about_a_run(&self) -> bool {
        use ReferenceError::*;
        matches!(
            self,
            Died { .. }
                | Endless { .. }
                | PlainDied { .. }
                | NoAnswers(_)
                | OutOfStep { .. }
                | Lines { .. }
                | Varies { .. }
                | OutputVaries { .. }
        )
    }

    /// Of a program that gets its operations by a driver: that one reads them.
    pub fn driven(self) -> ReferenceError {
        match self {
            ReferenceError::NotRead { .. } => ReferenceError::NotDriven,
            error => error,
        }
    }

    /// Does it say something about the program, and not about the machine?
    pub fn is_about_the_program(&self) -> bool {
        !self.advice().is_empty()
    }

    /// What to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            ReferenceError::OutOfTime { .. } => {
                "give it more time (--budget) or fewer operations: these runs tell which answers are right after a crash"
            }
            ReferenceError::PlainWindows => {
                "leave out --engine native: the fork server sees where operations begin and end"
            }
            ReferenceError::NotRead { .. } => {
                "a program that takes its operations otherwise needs --op-command, --op-socket or --op-begin"
            }
            ReferenceError::NotDriven => {
                "run it by hand: a server must accept connections at the place that --op-socket names until SIGTERM ends it, and \
                 --op-command must do one operation and end with exit code 0"
            }
            ReferenceError::ReadLess { .. } => {
                "run it by hand on these operations: without a crash it must read all of them and end with exit code 0"
            }
            ReferenceError::ReadMore { .. } => "let it read each line of its standard input once, without seeking",
            ReferenceError::Died { .. } | ReferenceError::PlainDied { .. } => {
                "run it by hand on these operations: it must end with exit code 0"
            }
            ReferenceError::Killed => {
                "the system does so when memory runs out; if that is not it (see dmesg), start the check again"
            }
            ReferenceError::Endless { .. } => {
                "what it would answer cannot be compared: give it more time (--timeout), or leave the operation out"
            }
            ReferenceError::TooMuch(_) => {
                "give it fewer operations, a shorter readback, or fewer that print much: every answer is kept and compared"
            }
            ReferenceError::NoAnswers(_) => {
                "add queries to the operations, or as a readback (--readback): answers are what is compared"
            }
            ReferenceError::OutOfStep { .. } => {
                "let it flush its output after each answer, and read one line at a time"
            }
            ReferenceError::Lines { .. } => {
                "run it by hand: without a crash, it must write a line for each operation that it runs, and nothing else"
            }
            ReferenceError::Varies { .. } | ReferenceError::OutputVaries { .. } => {
                "leave the operation out, or make its answer the same in every run"
            }
            _ => "",
        }
    }
}
