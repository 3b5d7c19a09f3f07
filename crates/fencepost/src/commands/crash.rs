//! `fencepost crash`: simulates power failures on a recording and runs recovery on what they leave.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use check::session::{CheckSession, Checked, SessionError};
use clap::Args;
use crash::rounds::Shard;
use crash::search::Budget;
use crash::strategy::inferred::KnownConditions;
use finding::blame::Libraries;
use infer::Conditions;
use record::stop::StopRequest;
use report::words;
use runner::runner::ServedTree;
use trace::TraceReader;

use super::code_path::{choose_as_recorded, warn_of_msync};
use super::options::crash::CrashOptions;
use super::options::driver::Driver;
use super::options::gate::GateOptions;
use super::output::findings::print;
use super::output::html::{Outcome, can_be_written};
use super::output::progress::Progress;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost crash run.fptrace                                recovery: the recorded command again
  fencepost crash --recover './kv pool verify' run.fptrace   another recovery
  fencepost crash --shard 2/3 --journal two run.fptrace      a third of the work
  fencepost crash --merge one --merge two --merge three run.fptrace

If a search stops (Ctrl-C, the budget, a kill), the same command continues from its journal.";

/// Simulate power failures on a recording, run recovery, and name the stores to blame.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Crash {
    /// The recording to crash.
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    #[command(flatten)]
    options: CrashOptions,
    /// Do part K of N of the work.
    #[arg(long, value_name = "K/N")]
    shard: Option<Shard>,
    /// File that saves progress, to continue from. [default: TRACE.journal; TRACE.K-of-N.journal for shards]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Neither write a journal nor continue from one.
    #[arg(long, conflicts_with = "journal")]
    no_journal: bool,
    /// Merge the journals of shards instead of searching. Repeatable.
    #[arg(long, value_name = "JOURNAL", conflicts_with_all = ["shard", "journal", "no_journal"])]
    merge: Vec<PathBuf>,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    #[command(flatten)]
    gate: GateOptions,
}

impl Crash {
    pub fn run(&self) -> Exit {
        let gate = match can_be_written(self.options.html.as_deref()).and_then(|()| self.gate.open()) {
            Ok(gate) => gate,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        let reader = match TraceReader::open(&self.trace) {
            Ok(reader) => reader,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        choose_as_recorded(&reader).say();
        let journal = match (&self.journal, self.no_journal || !self.merge.is_empty()) {
            (_, true) => None,
            (Some(path), false) => Some(path.clone()),
            (None, false) => Some(self.default_journal()),
        };
        // A recording that nobody inferred conditions from is searched without.
        let inferred = infer::beside(&self.trace).exists();
        let without = self.options.without_conditions().filter(|_| !inferred);
        let job = Job {
            options: without.as_ref().unwrap_or(&self.options),
            trace: &self.trace,
            shard: self.shard,
            journal,
            merge: &self.merge,
            recorded: None,
            served: None,
        };
        match job.session(&reader, &Libraries::default()) {
            Ok((checked, interrupted)) => {
                let judged = gate.judge(checked.findings.clone());
                let exit = self.options.end(judged.any_fails(), interrupted, &checked.coverage);
                let outcome = Outcome {
                    reader: &reader,
                    checked: &checked,
                    judged: &judged,
                    options: &self.options,
                    interrupted,
                };
                printed(
                    print(&reader, &checked, &judged, self.message_format, exit),
                    outcome.write(judged.finish(reader.event_count(), exit)),
                )
            }
            Err(exit) => exit,
        }
    }

    fn default_journal(&self) -> PathBuf {
        let part = self.shard.map_or_else(String::new, |shard| format!(".{}-of-{}", shard.number, shard.of));
        let mut name = self.trace.clone().into_os_string();
        name.push(format!("{part}.journal"));
        name.into()
    }
}

/// That exit, unless printing failed.
pub fn printed(result: io::Result<()>, exit: Exit) -> Exit {
    match render::ended(result) {
        Exit::Clean => exit,
        failed => failed,
    }
}

/// Trees are compared, so nothing of one may be missing.
const TREE_BYTES: u64 = 16 << 20;

/// A search for failing crash states, as `check` and `crash` make it.
#[derive(Debug)]
pub struct Job<'a> {
    pub options: &'a CrashOptions,
    /// The file that the reader reads: what was inferred lies beside it.
    pub trace: &'a Path,
    pub shard: Option<Shard>,
    pub journal: Option<PathBuf>,
    pub merge: &'a [PathBuf],
    /// What the program answered to its operations while it was recorded.
    pub recorded: Option<Vec<u8>>,
    /// A file system's daemon, and how to judge what it serves.
    pub served: Option<ServedTree>,
}

impl Job<'_> {
    /// What was found, and whether the user interrupted it. Errors have been told.
    pub fn session(&self, reader: &TraceReader, libraries: &Libraries) -> Result<(Checked, bool), Exit> {
        let told = |text: String| {
            render::error(text);
            Exit::Usage
        };
        reader.undamaged().map_err(|error| told(error.to_string()))?;
        if !reader.is_complete() {
            render::warning(format_args!(
                "{} is truncated; only crashes in the recorded part are simulated",
                self.trace.display()
            ));
        }
        if reader.tables().pools.is_empty() {
            render::warning("the trace has no pool: there is nothing to crash");
            return Err(Exit::NoActivity);
        }
        warn_of_msync(reader);
        let mut plan = self.options.plan(reader, self.recorded.clone()).map_err(told)?;
        if let Some(served) = &self.served {
            plan.recovery = served.daemon.clone();
            plan.served = Some(served.clone());
            plan.limits.output = TREE_BYTES;
        }
        let mut search = self.options.search_options(&plan).map_err(told)?;
        if self.options.breaks_conditions() {
            let conditions = Conditions::load(&infer::beside(self.trace)).map_err(|error| told(error.to_string()))?;
            search.conditions = Some(KnownConditions::new(conditions));
        }
        let stop = StopRequest::from_signals();
        let before = stop.count();
        let stopped = AtomicBool::new(false);
        let budget = self.options.budget.0;
        let now = Instant::now();
        let session = CheckSession {
            reader,
            plan: &plan,
            expectation: &self.options.expectation(),
            options: &search,
            shard: CrashOptions::shard_or_whole(self.shard),
            equivalence: !self.options.no_equivalence,
            workers: self.options.workers(reader),
            budget: Budget { stop: Some(&stopped), deadline: budget.map(|budget| now + budget), ..Budget::default() },
            analysis_deadline: budget.map(|budget| now + budget + budget / 8 + Duration::from_secs(2)),
            journal: self.journal.as_deref(),
            merge: self.merge,
            again: self.options.again,
            skip_operations: self.options.operations.skipped(),
            recovery_from: None,
            bundles: &self.options.bundles,
            bundles_option: self.options.bundles_option(),
            libraries,
        };
        let progress = Progress::new(budget, self.options.progress);
        let checked = session.run(&|phase| {
            if stop.count() > before {
                stopped.store(true, Ordering::Relaxed);
            }
            progress.show(phase);
        });
        drop(progress);
        match checked {
            Ok(checked) => {
                let interrupted = stopped.load(Ordering::Relaxed);
                if interrupted {
                    self.say_interrupted();
                }
                Ok((checked, interrupted))
            }
            Err(SessionError::NeverRecovers(symptom)) => {
                render::error(format_args!(
                    "recovery fails even on the pools that the complete run left, without any power failure: {}",
                    words::symptom(&symptom)
                ));
                render::help(
                    "name the command that opens the pools after a crash with --recover, or the exit codes that mean success with --exit-ok",
                );
                Err(Exit::TargetFailed)
            }
            Err(SessionError::Reference(error)) if error.is_about_the_program() => {
                let error = if Driver::of(&reader.tables().meta).is_some() { error.driven() } else { error };
                render::error(&error);
                render::help(error.advice());
                Err(Exit::TargetFailed)
            }
            Err(error) => Err(told(error.to_string())),
        }
    }

    fn say_interrupted(&self) {
        match &self.journal {
            Some(path) => render::warning(format_args!(
                "interrupted: what was decided until then is in {}, and the same command goes on from there",
                path.display()
            )),
            None => render::warning("interrupted: the search covers what was decided until then"),
        }
    }
}
