//! `fencepost crash`: simulates power failures on a recording and runs recovery on the crash images.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use check::checked::Checked;
use check::code_path::{Environment, choose_as_recorded};
use check::search::{Search, SearchFailed};
use check::session::SessionError;
use clap::Args;
use crash::rounds::Shard;
use finding::blame::Libraries;
use finding::finding::Location;
use record::stop::StopRequest;
use report::words;
use runner::plan::ServedTree;
use runner::reference::error::ReferenceError;
use trace::TraceReader;

use super::options::crash::CrashOptions;
use super::options::files::FileOptions;
use super::options::fleet::{FleetOptions, OpenFleet};
use super::options::gate::GateOptions;
use super::output::code_path::{say_choice, warn_of_msync};
use super::output::findings::{print, with_document};
use super::output::html::{HtmlInput, can_be_written};
use super::output::progress::Progress;
use super::stopping::AtOnce;
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
    files: FileOptions,
    #[command(flatten)]
    gate: GateOptions,
    #[command(flatten)]
    fleet: FleetOptions,
}

impl Crash {
    pub fn run(&self) -> Exit {
        let gate = match can_be_written(self.options.html.as_deref())
            .and_then(|()| self.files.can_be_written())
            .and_then(|()| self.gate.open())
        {
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
        let mut env = env::vars_os().collect();
        say_choice(choose_as_recorded(&reader, &mut env));
        let journal = match (&self.journal, self.no_journal || !self.merge.is_empty()) {
            (_, true) => None,
            (Some(path), false) => Some(path.clone()),
            (None, false) => Some(self.default_journal()),
        };
        let fleet = match self.fleet.open() {
            Ok(fleet) => fleet,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        let job = Job {
            options: &self.options,
            fleet: fleet.as_ref().map(|fleet| &fleet.fleet as &check::elsewhere::Fleet),
            env,
            trace: &self.trace,
            shard: self.shard,
            journal,
            merge: &self.merge,
            served: None,
            repaired: &[],
        };
        match job.session(&reader) {
            Ok((checked, interrupted)) => {
                let judged = gate.judge(checked.findings.clone(), 0);
                let exit = self.options.end(&judged, interrupted, &checked);
                let outcome = HtmlInput {
                    reader: &reader,
                    checked: &checked,
                    judged: &judged,
                    options: &self.options,
                    interrupted,
                };
                let ended = outcome.write(judged.finish(reader.event_count(), exit));
                let files = &self.files;
                let ended = with_document(&reader, &checked, &judged, exit, |document| files.write(document, ended));
                let ended = printed(print(&reader, &checked, &judged, self.message_format, exit), ended);
                let page = self.options.html.as_deref();
                with_document(&reader, &checked, &judged, exit, |document| {
                    OpenFleet::finish(fleet, document, page, ended)
                })
            }
            Err(exit) => OpenFleet::abandon(fleet, exit),
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

/// A search on a recording, as the options say.
#[derive(Debug)]
pub struct Job<'a> {
    pub options: &'a CrashOptions,
    /// That of recoveries.
    pub env: Environment,
    /// The file that the reader reads: what was inferred lies beside it.
    pub trace: &'a Path,
    pub shard: Option<Shard>,
    pub journal: Option<PathBuf>,
    pub merge: &'a [PathBuf],
    /// A file system's daemon, and how to judge what it serves.
    pub served: Option<ServedTree>,
    /// Other machines that judge crash points.
    pub fleet: Option<&'a check::elsewhere::Fleet>,
    /// Code whose bugs are known from another recording: it is taken to be repaired.
    pub repaired: &'a [Location],
}

/// Why nothing was searched.
#[derive(Debug)]
pub enum JobFailed {
    Usage(String),
    Search(SearchFailed),
}

impl Job<'_> {
    /// What was found, and whether the user interrupted it. Errors have been told.
    pub fn session(&self, reader: &TraceReader) -> Result<(Checked, bool), Exit> {
        self.search(reader).map_err(|failed| match failed {
            JobFailed::Usage(text) => {
                render::error(text);
                Exit::Usage
            }
            JobFailed::Search(failed) => say_search_failed(failed),
        })
    }

    /// As [`session`](Self::session); the caller tells why nothing was searched.
    pub fn search(&self, reader: &TraceReader) -> Result<(Checked, bool), JobFailed> {
        let settings = self.options.settings().map_err(JobFailed::Usage)?;
        warn_of(reader, self.trace);
        let operations = self.options.operations().map_err(JobFailed::Usage)?;
        let search = Search {
            reader,
            trace: self.trace,
            settings: &settings,
            operations: operations.as_ref(),
            env: &self.env,
            libraries: &Libraries::default(),
            shard: self.shard.unwrap_or(Shard::WHOLE),
            journal: self.journal.clone(),
            merge: self.merge,
            recorded: None,
            served: self.served.clone(),
            real_time: false,
            fleet: self.fleet,
            repaired: self.repaired,
            conditions: None,
            since: Instant::now(),
        };
        let progress = Progress::new(settings.budget, self.options.progress);
        let stop = StopRequest::from_signals();
        let at_once = AtOnce::watch(stop);
        let checked = search.run(stop, &|phase| progress.show(phase));
        drop((progress, at_once));
        let (checked, interrupted) = checked.map_err(JobFailed::Search)?;
        if interrupted {
            say_interrupted(self.journal.as_deref());
        }
        Ok((checked, interrupted))
    }
}

/// What the user may take for a result about the whole run and is not.
pub fn warn_of(reader: &TraceReader, trace: &Path) {
    if reader.undamaged().is_err() {
        return;
    }
    if !reader.is_complete() {
        let trace = trace.display();
        render::warning(format_args!("{trace} is truncated; only crashes in the recorded part are simulated"));
    }
    if !reader.tables().pools.is_empty() {
        warn_of_msync(reader);
    }
}

/// Says why nothing was searched.
pub fn say_search_failed(failed: SearchFailed) -> Exit {
    match failed {
        SearchFailed::NoPool => {
            render::warning(failed);
            Exit::NoActivity
        }
        SearchFailed::Session(SessionError::NeverRecovers(symptom)) => {
            render::error(format_args!(
                "recovery fails even on the pools that the complete run left, without any power failure: {}",
                words::symptom(&symptom)
            ));
            render::help(
                "name the command that opens the pools after a crash with --recover, or the exit codes that mean success with --exit-ok",
            );
            Exit::TargetFailed
        }
        SearchFailed::Session(SessionError::Reference(error)) if error.is_about_the_program() => say_unjudged(&error),
        failed => {
            render::error(failed);
            Exit::Usage
        }
    }
}

/// Says why there are no answers to compare with.
pub fn say_unjudged(error: &ReferenceError) -> Exit {
    render::error(error);
    render::help(error.advice());
    Exit::TargetFailed
}

pub fn say_interrupted(journal: Option<&Path>) {
    match journal {
        Some(path) => render::warning(format_args!(
            "interrupted: what was decided until then is in {}, and the same command goes on from there",
            path.display()
        )),
        None => render::warning("interrupted: the search covers what was decided until then"),
    }
}
