//! `fencepost check`: records, lints, crashes, recovers and reports in one command.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use check::Request;
use check::code_path;
use check::request::Observer;
use check::run::{CheckError, CheckOutcome};
use check::session::Phase;
use clap::Args;
use record::recording::Recording;
use record::stop::StopRequest;
use trace::TraceReader;

use super::crash::{printed, say_interrupted, say_search_failed, say_unjudged, warn_of};
use super::options::crash::CrashOptions;
use super::options::driver::DriverOptions;
use super::options::files::FileOptions;
use super::options::fleet::{FleetOptions, OpenFleet};
use super::options::gate::{Gate, GateOptions};
use super::options::rule::RuleOptions;
use super::output::code_path::say_choice;
use super::output::findings::{print, with_document};
use super::output::html::{self, can_be_written};
use super::output::progress::Progress;
use super::record::summary::say_failure;
use super::record::{backend, beside_documents, say};
use super::select::choose;
use super::starting_pool;
use super::stopping::AtOnce;
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
    /// Start from no pool: remove the files that --pm names before the program runs.
    #[arg(long, requires = "pm")]
    fresh: bool,
    /// Start from a copy of FILE as the pool that --pm names.
    #[arg(long, value_name = "FILE", requires = "pm", conflicts_with = "fresh")]
    pool_from: Option<PathBuf>,
    /// Let the program and its recoveries see the real clock.
    #[arg(long)]
    real_time: bool,
    /// Keep the recording in FILE, for `fencepost crash` and `fencepost lint`.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Skip the lint.
    #[arg(long)]
    no_lint: bool,
    /// Check the first workload that the grammar gives. By default, up to a tenth of the budget goes into choosing one with many
    /// PM transitions.
    #[arg(long, requires = "grammar")]
    no_select: bool,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    /// The program to check, and its arguments.
    #[arg(last = true, required_unless_present = "op_command", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    rules: RuleOptions,
    #[command(flatten)]
    gate: GateOptions,
    #[command(flatten)]
    fleet: FleetOptions,
}

impl Check {
    pub fn run(&self) -> Exit {
        // What is wrong with the options is said before the program runs.
        let (mut request, gate) = match self.request() {
            Ok(ready) => ready,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        if let Err(text) = starting_pool::prepare(&self.pm, self.fresh, self.pool_from.as_deref()) {
            render::error(text);
            return Exit::Usage;
        }
        if self.selects() {
            let (operations, bundles) = (&self.options.operations, &self.options.bundles);
            choose(operations, &request.recording.command, &self.pm, self.options.budget.0, bundles);
            if let Ok(operations) = self.options.operations() {
                request.operations = operations;
            }
        }
        let trace = self.output.clone();
        let watcher = Watcher { options: &self.options, trace, progress: OnceLock::new(), at_once: OnceLock::new() };
        let fleet = match self.fleet.open() {
            Ok(fleet) => fleet,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        let checked = check::run(Request {
            observer: &watcher,
            fleet: fleet.as_ref().map(|fleet| &fleet.fleet as &check::elsewhere::Fleet),
            ..request
        });
        drop(watcher);
        let failed = match checked {
            Ok(outcome) => return self.report(&outcome, gate, fleet),
            Err(CheckError::Interrupted) => return Exit::Interrupted,
            Err(CheckError::Record(error)) => say(&error),
            Err(CheckError::NoActivity) => {
                render::warning("no persistent-memory activity: there is nothing to check");
                render::help("run `fencepost record` on the same command for details");
                Exit::NoActivity
            }
            Err(CheckError::Unread(error)) => say_unjudged(&error),
            Err(CheckError::Search(failed)) => say_search_failed(failed),
            Err(error) => {
                render::error(error);
                Exit::Usage
            }
        };
        OpenFleet::abandon(fleet, failed)
    }

    /// Is there a choice among generated workloads, and nothing said about it?
    fn selects(&self) -> bool {
        let operations = &self.options.operations;
        let pinned =
            self.no_select || self.real_time || self.options.resume.any() || operations.window_separator.is_some();
        operations.grammar.is_some() && !pinned
    }

    /// Everything that the options say.
    fn request(&self) -> Result<(Request<'static>, Gate), String> {
        let resume = &self.options.resume;
        can_be_written(self.options.html.as_deref())?;
        self.files.can_be_written()?;
        self.driver.fits(&self.options.operations, &self.command)?;
        if resume.any() && self.driver.any() {
            return Err("--op-begin and --op-marks are for programs that read operations themselves; leave out --op-command and --op-socket".into());
        }
        let operations = self.options.operations()?;
        let rules = if self.no_lint { Vec::new() } else { self.rules.activate()? };
        let gate = self.gate.open()?;
        let separator = self.options.operations.window_separator.as_deref();
        let command = resume.recorded(&self.driver.driven(&self.command, separator)?)?;
        let mut request = Request::new(command);
        request.recording.options.pm.clone_from(&self.pm);
        request.recording.options.real_time = self.real_time;
        request.recording.backend = backend();
        if self.message_format.is_document() {
            request.recording.stdout = beside_documents();
        }
        let env = &mut request.recording.env;
        say_choice(match &self.driver.op_command {
            Some(line) => code_path::choose_for_line(line, env),
            None => code_path::choose_for(&self.command, env),
        });
        request.trace.clone_from(&self.output);
        request.operations = operations;
        request.rules = rules;
        request.libraries = self.rules.libraries();
        request.settings = self.options.settings()?;
        request.stop = StopRequest::from_signals();
        Ok((request, gate))
    }

    fn report(&self, outcome: &CheckOutcome, gate: Gate, fleet: Option<OpenFleet>) -> Exit {
        let CheckOutcome { reader, checked, interrupted, .. } = outcome;
        if *interrupted {
            say_interrupted(None);
        }
        let (findings, inside) = self.rules.shown(outcome.findings().cloned().collect(), &outcome.inside_libraries);
        let judged = gate.judge(findings, inside);
        let exit = self.options.end(&judged, *interrupted, checked);
        let page =
            html::HtmlInput { reader, checked, judged: &judged, options: &self.options, interrupted: *interrupted };
        let ended = page.write(judged.finish(reader.event_count(), exit));
        let ended = with_document(reader, checked, &judged, exit, |document| self.files.write(document, ended));
        let ended = printed(print(reader, checked, &judged, self.message_format, exit), ended);
        let page = self.options.html.as_deref();
        with_document(reader, checked, &judged, exit, |document| OpenFleet::finish(fleet, document, page, ended))
    }
}

/// Says what the user should know before the search, and shows how that goes.
#[derive(Debug)]
struct Watcher<'a> {
    options: &'a CrashOptions,
    trace: Option<PathBuf>,
    progress: OnceLock<Progress>,
    /// In the recording a second Ctrl-C is the target's.
    at_once: OnceLock<AtOnce>,
}

impl Observer for Watcher<'_> {
    fn recorded(&self, recording: &Recording, reader: &TraceReader) {
        let _ = self.at_once.set(AtOnce::watch(StopRequest::from_signals()));
        say_failure(reader);
        if recording.activity.any() {
            warn_of(reader, self.trace.as_deref().unwrap_or(Path::new("the recording")));
        }
    }

    fn phase(&self, phase: Phase) {
        self.progress.get_or_init(|| Progress::new(self.options.budget.0, self.options.progress)).show(phase);
    }
}
