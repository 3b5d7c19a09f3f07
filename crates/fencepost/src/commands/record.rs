//! `fencepost record`: runs a program and writes down what it does to persistent memory.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::{Args, ValueEnum};
use infer::{Conditions, Inference};
use record::flow::FlowHandle;
use record::probe_host::{HostError, ProbeRecorder, Until};
use record::recorder::{RecordOptions, Recorder};
use record::recording::Recording;
use record::step::StepRecorder;
use record::stop::StopRequest;
use record::target::Target;
use supervise::probe::LaunchError;
use trace::event::ExitStatus;
use trace::{Meta, TraceWriter, WriteError};

use super::code_path::choose_for;
mod output;
pub mod summary;

use self::output::Output;
use self::summary::Summary;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost record -- ./server --pool /mnt/pmem/data    files mapped shared and writable are pools
  fencepost record --pm '/mnt/pmem/*' -- ./server       only these files are pools
  fencepost record -o run.fptrace --watch put -- ./kv   name the trace; record calls of `put`

The program's own output is left alone; what Fencepost has to say goes to standard error.";

/// Run a program and record what it does to persistent memory.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Record {
    /// Files that are pools: a glob over the path; `*` matches `/` too. Repeatable.
    /// [default: every named file that is mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    /// Record the calls of this function, with arguments and result. Repeatable.
    #[arg(long, value_name = "SYMBOL")]
    watch: Vec<String>,
    /// Record loads from persistent memory as well.
    #[arg(long)]
    loads: bool,
    /// Follow how data and branches depend on persistent memory, for `fencepost crash --strategy inferred`: what is likely to hold goes
    /// to FILE.conditions.
    #[arg(long, conflicts_with = "loads")]
    infer: bool,
    /// What separates operations: `stdin` serves standard input line by line and marks each line as one.
    #[arg(long, value_enum, value_name = "WHERE")]
    operations: Option<Operations>,
    /// Let the program see the real time instead of a virtual clock.
    #[arg(long)]
    real_time: bool,
    /// Let the program see real randomness instead of a fixed sequence.
    #[arg(long)]
    real_random: bool,
    /// Let the program see the real time-stamp counter.
    #[arg(long)]
    real_tsc: bool,
    /// What records: the in-process engine, or the slow single-stepping reference.
    #[arg(long, value_enum, default_value_t = Backend::Probe, env = "FENCEPOST_BACKEND", hide_env = true)]
    backend: Backend,
    /// Where the trace goes.
    #[arg(short, long, value_name = "FILE", default_value = "fencepost.fptrace")]
    output: PathBuf,
    /// When the recording is over; `first` kills the processes that outlive the program itself.
    #[arg(long, value_enum, default_value_t = Follow::All)]
    follow: Follow,
    /// End as the program ended, with its exit code or by its signal.
    #[arg(long)]
    exit_with_target: bool,
    /// Say nothing but errors.
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

/// Why there is no recording.
enum Failure {
    Usage(String),
    Target(String),
    /// The engine cannot go on with this program.
    Refused(String),
    /// The engine made a mistake.
    Internal(String),
}

impl Record {
    pub fn run(&self) -> Exit {
        let choice = choose_for(&self.command);
        if !self.quiet {
            choice.say();
        }
        let target = match Target::resolve(&self.command) {
            Ok(target) => target,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        let output = Output::new(&self.output);
        let inference = self.infer.then(|| Arc::new(Mutex::new(Inference::default())));
        match self.record(&target, &output, inference.as_ref()) {
            Ok(recording) => {
                let conditions = inference.map(|inference| conditions(&inference));
                self.finish(&recording, &output, conditions.as_ref())
            }
            Err(failure) => {
                let is_refused = matches!(failure, Failure::Refused(_) | Failure::Internal(_));
                let (text, exit) = match failure {
                    Failure::Usage(text) => (text, Exit::Usage),
                    Failure::Target(text) | Failure::Refused(text) => (text, Exit::TargetFailed),
                    Failure::Internal(text) => (text, Exit::Internal),
                };
                render::error(text);
                if is_refused {
                    render::help(REFERENCE);
                }
                if let Some(path) = output.salvage() {
                    render::note(format_args!("the events recorded until then are in {}", path.display()));
                }
                exit
            }
        }
    }

    fn record(
        &self,
        target: &Target,
        output: &Output,
        inference: Option<&Arc<Mutex<Inference>>>,
    ) -> Result<Recording, Failure> {
        let writer = TraceWriter::create(output.partial(), self.meta()).map_err(|error| match error {
            WriteError::Io { ref source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Failure::Target(error.to_string())
            }
            error => Failure::Usage(error.to_string()),
        })?;
        let flow = inference.map(|inference| FlowHandle::new(Arc::clone(inference)));
        let options = RecordOptions { flow, ..self.options() };
        match self.backend {
            Backend::Probe => {
                let mut recorder = ProbeRecorder::new(StopRequest::from_signals());
                recorder.until = if self.follow == Follow::First { Until::FirstEnds } else { Until::AllEnd };
                recorder.namespaces = !self.no_namespace;
                recorder.cache_bytes = self.cache_bytes;
                recorder.run(target, &options, writer).map_err(|error| match error {
                    HostError::Launch(LaunchError::NoProbe | LaunchError::TooMany { .. }) => {
                        Failure::Usage(error.to_string())
                    }
                    HostError::Refused(text) => Failure::Refused(text),
                    HostError::Internal(text) => Failure::Internal(text),
                    error => Failure::Target(error.to_string()),
                })
            }
            Backend::Step => {
                let recorded =
                    StepRecorder.record(target, &options, writer).map_err(|e| Failure::Target(e.to_string()))?;
                Recording::from_trace(&recorded, output.partial()).map_err(|e| Failure::Target(e.to_string()))
            }
        }
    }

    fn options(&self) -> RecordOptions {
        RecordOptions {
            files: true,
            pm: self.pm.iter().map(|glob| absolute(glob)).collect(),
            watch: self.watch.clone(),
            loads: self.loads,
            real_time: self.real_time,
            real_random: self.real_random,
            real_tsc: self.real_tsc,
            operations_stdin: self.operations == Some(Operations::Stdin),
            substitutes: Vec::new(),
            flow: None,
            values: None,
        }
    }

    fn meta(&self) -> Meta {
        let flag = |on: bool, name: &str| on.then(|| name.to_owned());
        let mut options: Vec<String> = self.pm.iter().map(|glob| format!("--pm={glob}")).collect();
        options.extend(self.watch.iter().map(|symbol| format!("--watch={symbol}")));
        options.extend(flag(self.loads, "--loads"));
        options.extend(flag(self.infer, "--infer"));
        options.extend(flag(self.real_time, "--real-time"));
        options.extend(flag(self.real_random, "--real-random"));
        options.extend(flag(self.real_tsc, "--real-tsc"));
        options.extend(flag(self.operations == Some(Operations::Stdin), "--operations=stdin"));
        Meta {
            command: self.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            cwd: env::current_dir().map(|d| d.display().to_string()).unwrap_or_default(),
            recorder: if self.backend == Backend::Probe { "probe" } else { "step" }.to_owned(),
            options,
        }
    }

    fn finish(&self, recording: &Recording, output: &Output, conditions: Option<&Conditions>) -> Exit {
        if let Err(error) = output.complete() {
            render::error(format_args!(
                "the trace is whole but cannot be renamed from {} to {}: {error}",
                output.partial().display(),
                output.wanted().display()
            ));
            return Exit::TargetFailed;
        }
        let path = infer::beside(output.wanted());
        if let Some(Err(error)) = conditions.map(|conditions| conditions.save(&path)) {
            render::error(error);
            return Exit::TargetFailed;
        }
        if !self.quiet {
            let program = self.command[0].to_string_lossy();
            Summary { program: &program, globs: &self.pm, recording, trace: output.wanted() }.print();
        }
        if self.exit_with_target {
            return match recording.target {
                ExitStatus::Code(code) => Exit::Target(code as u8),
                ExitStatus::Signal(signal) => record::ending::by_signal(signal),
            };
        }
        if recording.interrupted {
            Exit::Interrupted
        } else if !recording.activity.any() {
            Exit::NoActivity
        } else {
            Exit::Clean
        }
    }
}

fn conditions(inference: &Mutex<Inference>) -> Conditions {
    inference.lock().unwrap_or_else(PoisonError::into_inner).conditions()
}

/// Globs match absolute paths: one that names a file here is completed.
fn absolute(glob: &str) -> String {
    if glob.starts_with(['/', '*']) {
        return glob.to_owned();
    }
    let here = env::current_dir().unwrap_or_default();
    here.join(glob.strip_prefix("./").unwrap_or(glob)).display().to_string()
}
