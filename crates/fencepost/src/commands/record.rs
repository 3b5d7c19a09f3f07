//! `fencepost record`: runs a program and records what it does to persistent memory.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsFd;
use std::path::PathBuf;

use check::code_path;
use check::recording::{RecordError, record};
use clap::{Args, ValueEnum};
use record::probe_host::{HostError, Until};
use record::recorder::RecordOptions;
use record::recording::Recording;
use record::request::{Request, RequestError, Stream};
use record::stop::StopRequest;
use trace::event::ExitStatus;

pub mod summary;

use self::summary::Summary;
use super::output::code_path::say_choice;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost record -- ./server --pool /mnt/pmem/data    files mapped shared and writable are pools
  fencepost record --pm '/mnt/pmem/*' -- ./server       only these files are pools
  fencepost record -o run.fptrace --watch put -- ./kv   name the trace; record calls of `put`

`fencepost lint`, `fencepost crash` and `fencepost trace` work on the recording. The program's
output is left alone; Fencepost writes to standard error.";

/// Run a program and record what it does to persistent memory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Record {
    /// Treat files that match this glob as pools; `*` matches `/` too. Repeatable.
    /// [default: every file mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    /// Record calls of this function, with arguments and result. Repeatable.
    #[arg(long, value_name = "SYMBOL")]
    watch: Vec<String>,
    /// Record loads from persistent memory too.
    #[arg(long)]
    loads: bool,
    /// Infer likely conditions between stores from data and control dependence, for `fencepost crash --strategy inferred`;
    /// they go to FILE.conditions.
    #[arg(long, conflicts_with = "loads")]
    infer: bool,
    /// Mark operations: `stdin` serves standard input one line at a time, and each line is an operation.
    #[arg(long, value_enum, value_name = "WHERE")]
    operations: Option<Operations>,
    /// Use the real clock instead of a virtual one.
    #[arg(long)]
    real_time: bool,
    /// Use real randomness instead of a fixed sequence.
    #[arg(long)]
    real_random: bool,
    /// Use the real time-stamp counter.
    #[arg(long)]
    real_tsc: bool,
    /// Recorder: the in-process engine, or the slow single-stepping reference.
    #[arg(long, value_enum, default_value_t = Backend::Probe, env = "FENCEPOST_BACKEND", hide_env = true)]
    backend: Backend,
    /// File to write the trace to.
    #[arg(short, long, value_name = "FILE", default_value = "fencepost.fptrace")]
    output: PathBuf,
    /// When to end the recording; `first` kills processes that outlive the program.
    #[arg(long, value_enum, default_value_t = Follow::All)]
    follow: Follow,
    /// Exit as the program did, with its exit code or by its signal.
    #[arg(long)]
    exit_with_target: bool,
    /// Print only errors.
    #[arg(short, long)]
    quiet: bool,
    /// Do not use a PID namespace.
    #[arg(long, hide = true)]
    no_namespace: bool,
    /// Size of the probe's code caches in bytes, for tests.
    #[arg(long, hide = true, default_value_t = 0)]
    cache_bytes: u64,
    /// The program and its arguments.
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Backend {
    Probe,
    Step,
}

impl From<Backend> for record::request::Backend {
    fn from(backend: Backend) -> Self {
        match backend {
            Backend::Probe => Self::Probe,
            Backend::Step => Self::Step,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Operations {
    Stdin,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Follow {
    /// Until the program and every process that it started have ended.
    All,
    /// Until the program itself has ended.
    First,
}

/// What does all that the engine does not.
const REFERENCE: &str = "`fencepost record --backend step` records without the engine, slowly, one instruction at a time; \
    `fencepost crash --engine native` takes its trace";

impl Record {
    pub fn run(&self) -> Exit {
        let mut request = self.request();
        let choice = code_path::choose_for(&self.command, &mut request.env);
        if !self.quiet {
            say_choice(choice);
        }
        match recorded(request, self.infer) {
            Ok(recording) => self.finish(&recording),
            Err(exit) => exit,
        }
    }

    fn request(&self) -> Request {
        let mut request = Request::new(self.command.clone(), &self.output);
        request.options = RecordOptions {
            files: true,
            pm: self.pm.clone(),
            watch: self.watch.clone(),
            loads: self.loads,
            real_time: self.real_time,
            real_random: self.real_random,
            real_tsc: self.real_tsc,
            operations_stdin: self.operations == Some(Operations::Stdin),
            substitutes: Vec::new(),
            flow: None,
            values: None,
        };
        request.backend = self.backend.into();
        request.until = if self.follow == Follow::First { Until::FirstEnds } else { Until::AllEnd };
        request.namespaces = !self.no_namespace;
        request.cache_bytes = self.cache_bytes;
        request
    }

    fn finish(&self, recording: &Recording) -> Exit {
        if !self.quiet {
            let program = self.command[0].to_string_lossy();
            Summary { program: &program, globs: &self.pm, recording, trace: &self.output }.print();
        }
        if self.exit_with_target {
            return match recording.target {
                ExitStatus::Code(code) => Exit::Target(code as u8),
                ExitStatus::Signal(signal) => record::ending::by_signal(signal),
            };
        }
        outcome(recording)
    }
}

/// Runs a request; the conditions that follow from its flow go beside the trace. What failed is said.
pub fn recorded(request: Request, infer: bool) -> Result<Recording, Exit> {
    let trace = request.trace.clone();
    let recorded = record(request, infer, StopRequest::from_signals()).map_err(|error| say(&error))?;
    recorded.save_conditions(&trace).map_err(|error| say(&error))?;
    Ok(recorded.recording)
}

/// What came of a recording, if the program's own end is not asked for.
pub fn outcome(recording: &Recording) -> Exit {
    if recording.interrupted {
        Exit::Interrupted
    } else if !recording.activity.any() {
        Exit::NoActivity
    } else {
        Exit::Clean
    }
}

/// What records a program for another command: as its own option, this is not on the command line.
pub fn backend() -> record::request::Backend {
    match env::var_os("FENCEPOST_BACKEND") {
        Some(name) if name == "step" => record::request::Backend::Step,
        _ => record::request::Backend::Probe,
    }
}

/// A standard output that does not come into a document on ours: standard error. If there is none, nobody wants to see it.
pub fn beside_documents() -> Stream {
    io::stderr().as_fd().try_clone_to_owned().map_or(Stream::Null, |stderr| Stream::File(stderr.into()))
}

/// Says why there is no recording.
pub fn say(error: &RecordError) -> Exit {
    let failed = match error {
        RecordError::Failed(failed) => failed,
        RecordError::Conditions(error) => {
            render::error(error);
            return Exit::TargetFailed;
        }
    };
    render::error(&failed.error);
    if failed.error.is_refusal() {
        render::help(REFERENCE);
    }
    if let Some(path) = &failed.salvaged {
        render::note(format_args!("the events recorded until then are in {}", path.display()));
    }
    match &failed.error {
        RequestError::Host(HostError::Internal(_)) => Exit::Internal,
        error if error.is_usage() => Exit::Usage,
        _ => Exit::TargetFailed,
    }
}
