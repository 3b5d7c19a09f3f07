//! `fencepost check`: record, lint, crash, recover, report, in one go.

use std::ffi::OsString;
use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};

use check::transient;
use clap::Args;
use finding::finding::Finding;
use lint::lint::{Active, Options};
use lint::registry;
use operation::boundaries::{BoundarySource, OperationBoundaries};
use operation::workload::Workload;
use persistency::model::Fences;
use record::request::{Request, Stream};
use runner::reference::error::ReferenceError;
use runner::reference::run::all_read;
use supervise::memory_file;
use supervise::temporary::Temporary;
use trace::TraceReader;

use super::code_path::{choose_for, choose_for_line};
use super::crash::{Job, printed};
use super::options::crash::CrashOptions;
use super::options::driver::DriverOptions;
use super::options::gate::{Gate, GateOptions};
use super::options::rule::RuleOptions;
use super::output::findings::print;
use super::output::html::{Outcome, can_be_written};
use super::record::summary::say_failure;
use super::record::{backend, beside_documents, outcome, recorded};
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost check -- ./kv pool < operations                   recovery: the same command again
  fencepost check --recover './kv pool verify' -- ./kv pool load
  fencepost check --grammar kv.toml -- ./kv pool              compare the answers to operations
  fencepost check --ops ops --op-command './tool pool {op}'   one process per operation
  fencepost check --ops ops --op-socket '{socket}' -- ./server {socket} pool

Fencepost runs the program once and records its stores, flushes and fences. It lints the recording,
then simulates power failures: it works out what each could leave in persistent memory, runs the
recovery on it, and names the stores to blame. Every finding is confirmed on the uninstrumented
program; `fencepost replay ID` reproduces it.";

/// Check a program: record it, lint it, simulate power failures and run its recovery.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Check {
    /// Treat files that match this glob as pools; `*` matches `/` too. Repeatable.
    /// [default: every file mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    #[command(flatten)]
    driver: DriverOptions,
    #[command(flatten)]
    options: CrashOptions,
    /// Record with the real clock. Recoveries always run on a virtual clock.
    #[arg(long)]
    real_time: bool,
    /// Keep the recording in FILE, for `fencepost crash` and `fencepost lint`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Skip the lint.
    #[arg(long)]
    no_lint: bool,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    /// The program to check, and its arguments.
    #[arg(last = true, required_unless_present = "op_command", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    rules: RuleOptions,
    #[command(flatten)]
    gate: GateOptions,
}

impl Check {
    pub fn run(&self) -> Exit {
        let choice = match &self.driver.op_command {
            Some(line) => choose_for_line(line),
            None => choose_for(&self.command),
        };
        choice.say();
        // What is wrong with the options is said before the program runs.
        let (rules, gate) = match self.ready() {
            Ok(ready) => ready,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        let folder = match Temporary::new("check") {
            Ok(folder) => folder,
            Err(error) => {
                render::error(format_args!("cannot make a temporary folder for the trace: {error}"));
                return Exit::Usage;
            }
        };
        let trace = self.output.clone().unwrap_or_else(|| folder.path().join("check.fptrace"));
        let (recorded, answers) = match self.record(&trace, &rules) {
            Ok(recorded) => recorded,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        if matches!(recorded, Exit::Clean | Exit::NoActivity) {
            say_failure(&trace);
        }
        match recorded {
            Exit::Clean => {}
            // A program that was refused its operations does nothing.
            Exit::NoActivity if self.told_unread(&trace) => return Exit::TargetFailed,
            Exit::NoActivity => {
                render::warning("no persistent-memory activity: there is nothing to check");
                render::help("`fencepost record` on the same command says more");
                return Exit::NoActivity;
            }
            failed => return failed,
        }
        let reader = match TraceReader::open(&trace) {
            Ok(reader) => reader,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        self.judge(&reader, &trace, rules, gate, answers)
    }

    /// Says why, if the program has not read its operations.
    fn told_unread(&self, trace: &Path) -> bool {
        if self.options.resume.any() {
            return false;
        }
        let Ok(Some(workload)) = self.options.operations.workload() else { return false };
        let Ok(reader) = TraceReader::open(trace) else { return false };
        let read = OperationBoundaries::of(&reader, &BoundarySource::Events)
            .map_err(ReferenceError::from)
            .and_then(|boundaries| all_read(&reader, &boundaries, &workload));
        read.is_err_and(|error| {
            let error = if self.driver.any() { error.driven() } else { error };
            render::error(&error);
            render::help(error.advice());
            true
        })
    }

    fn ready(&self) -> Result<(Vec<Active>, Gate), String> {
        can_be_written(self.options.html.as_deref())?;
        self.driver.fits(&self.options.operations, &self.command)?;
        let resume = &self.options.resume;
        if resume.any() && self.driver.any() {
            return Err("--op-begin and --op-marks are for programs that read operations themselves; leave out --op-command and --op-socket".into());
        }
        resume.fits(&self.options.operations, self.options.recover.as_deref())?;
        Ok((self.rules()?, self.gate.open()?))
    }

    fn rules(&self) -> Result<Vec<Active>, String> {
        if self.no_lint { Ok(Vec::new()) } else { self.rules.activate() }
    }

    /// Records the program; how that ended, and what it answered to its operations.
    fn record(&self, trace: &Path, rules: &[Active]) -> Result<(Exit, Option<Vec<u8>>), String> {
        let failed = |error: io::Error| format!("cannot give the program its operations: {error}");
        let resume = &self.options.resume;
        let operations = if resume.any() { None } else { self.options.operations.workload()? };
        let separator = self.options.operations.window_separator.as_deref();
        let command = resume.recorded(&self.driver.driven(&self.command, separator)?)?;
        let mut request = Request::new(command, trace);
        request.options.pm.clone_from(&self.pm);
        request.options.watch = registry::watches(rules).into_iter().chain(resume.watches().cloned()).collect();
        request.options.operations_stdin = operations.is_some();
        request.options.real_time = self.real_time;
        request.backend = backend();
        let mut answers = None;
        if operations.is_some() || resume.any() {
            let given = operations.as_ref().map_or(&[][..], Workload::operations);
            let file = memory_file::create(c"answers").map_err(failed)?;
            request.stdin = Stream::File(memory_file::holding(c"operations", given).map_err(failed)?);
            request.stdout = Stream::File(file.try_clone().map_err(failed)?);
            answers = Some(file);
        } else if self.message_format.is_document() {
            request.stdout = beside_documents();
        }
        let exit = recorded(request, self.options.breaks_conditions()).map_or_else(|exit| exit, |it| outcome(&it));
        let answers = answers.map(|mut file| {
            let mut bytes = Vec::new();
            file.rewind().and_then(|()| file.read_to_end(&mut bytes)).map(|_| bytes)
        });
        Ok((exit, answers.transpose().map_err(failed)?))
    }

    fn judge(
        &self,
        reader: &TraceReader,
        trace: &Path,
        rules: Vec<Active>,
        gate: Gate,
        recorded: Option<Vec<u8>>,
    ) -> Exit {
        let misuse = match self.lint(reader, rules) {
            Ok(misuse) => misuse,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        let job = Job { options: &self.options, trace, shard: None, journal: None, merge: &[], recorded, served: None };
        match job.session(reader, &self.rules.libraries()) {
            Ok((checked, interrupted)) => {
                let mut misuse = misuse;
                if self.options.operations.workload().is_ok_and(|workload| workload.is_some()) {
                    transient::confirm(&mut misuse, &checked);
                }
                let judged = gate.judge(checked.findings.iter().cloned().chain(misuse).collect());
                let exit = self.options.end(judged.any_fails(), interrupted, &checked.coverage);
                let outcome =
                    Outcome { reader, checked: &checked, judged: &judged, options: &self.options, interrupted };
                printed(
                    print(reader, &checked, &judged, self.message_format, exit),
                    outcome.write(judged.finish(reader.event_count(), exit)),
                )
            }
            Err(exit) => exit,
        }
    }

    fn lint(&self, reader: &TraceReader, rules: Vec<Active>) -> Result<Vec<Finding>, String> {
        if self.no_lint {
            return Ok(Vec::new());
        }
        let options = Options {
            model: self.options.model,
            fences: if self.options.strict_fences { Fences::Strict } else { Fences::All },
            libraries: self.rules.libraries(),
        };
        Ok(lint::lint::lint(reader, rules, &options).map_err(|error| error.to_string())?.findings)
    }
}
