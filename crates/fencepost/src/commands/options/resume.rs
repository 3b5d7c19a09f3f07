//! Programs that read a file of operations themselves: where operations begin and end, and how such a program runs after a
//! crash.

use std::ffi::OsString;

use check::operations::OwnOperations;
use clap::Args;
use drive::template::words;
use operation::boundaries::BoundarySource;
use operation::resumed::Templates;

use super::driver::answering;
use super::operation::{OperationOptions, read};

#[derive(Args, Clone, Debug)]
pub struct ResumeOptions {
    /// The program reads its own operations: each call of this function begins one.
    #[arg(long, value_name = "SYMBOL")]
    pub op_begin: Option<String>,
    /// A call of this function ends the operation. [default: the return of the --op-begin function]
    #[arg(long, value_name = "SYMBOL")]
    pub op_end: Option<String>,
    /// The program reads its own operations and marks them (see marks/fencepost.h and the crate fencepost-marks).
    #[arg(long, conflicts_with = "op_begin")]
    pub op_marks: bool,
    /// Command that continues after a crash. {pool} is the pool, {k} the interrupted operation, {next} the first one that had
    /// not begun.
    #[arg(long, value_name = "CMD")]
    pub resume: Option<String>,
    /// Command that runs all operations except {k}: it gives the right answers if {k} did not happen.
    #[arg(long, value_name = "CMD")]
    pub without: Option<String>,
    /// File to which the program and these commands write their answers, one line per operation, instead of standard output.
    /// {answers} lets Fencepost choose, and is replaced in commands too.
    #[arg(long, value_name = "FILE")]
    pub answers: Option<String>,
}

impl ResumeOptions {
    /// Does the program read its operations itself?
    pub fn any(&self) -> bool {
        self.op_begin.is_some() || self.op_marks
    }

    fn source(&self) -> BoundarySource {
        match &self.op_begin {
            Some(begin) => BoundarySource::Calls { begin: begin.clone(), end: self.op_end.clone() },
            None => BoundarySource::Events,
        }
    }

    /// Is what was asked for possible?
    pub fn fits(&self, operations: &OperationOptions, recover: Option<&str>) -> Result<(), String> {
        let given = [
            ("--resume", &self.resume),
            ("--without", &self.without),
            ("--answers", &self.answers),
            ("--op-end", &self.op_end),
        ];
        if !self.any() {
            let alone = given.iter().find(|(_, value)| value.is_some());
            return alone.map_or(Ok(()), |(name, _)| {
                Err(format!("{name} needs --op-begin SYMBOL or --op-marks: they say where operations begin"))
            });
        }
        let option = if self.op_marks { "--op-marks" } else { "--op-begin" };
        for (name, value) in &given[..2] {
            if value.is_none() {
                return Err(format!(
                    "{option} needs {name} CMD: the program is run {}",
                    if *name == "--resume" { "after a crash by it" } else { "without an operation by it" }
                ));
            }
        }
        if recover.is_some() {
            return Err("--resume takes the place of --recover; leave that out".into());
        }
        if operations.grammar.is_some() || operations.readback.is_some() {
            return Err(format!("{option}: the program reads operations itself; leave out --grammar and --readback"));
        }
        self.templates().map(drop)
    }

    fn templates(&self) -> Result<Templates, String> {
        let of = |name: &str, text: &Option<String>| {
            let words = words(text.as_deref().unwrap_or_default()).map_err(|error| format!("{name}: {error}"))?;
            let words = self.recorded(&words)?;
            Ok::<_, String>(words.into_iter().map(|word| word.to_string_lossy().into_owned()).collect())
        };
        Ok(Templates { resume: of("--resume", &self.resume)?, without: of("--without", &self.without)? })
    }

    /// The command whose standard output has the answers.
    pub fn recorded(&self, words: &[OsString]) -> Result<Vec<OsString>, String> {
        match &self.answers {
            Some(file) => answering(file, words),
            None => Ok(words.to_vec()),
        }
    }

    /// The operations that the program reads itself.
    pub fn operations(&self, operations: &OperationOptions) -> Result<OwnOperations, String> {
        let text = operations.ops.as_deref().map(|path| read("operations", path)).transpose()?;
        Ok(OwnOperations { boundaries: self.source(), templates: self.templates()?, text })
    }
}
