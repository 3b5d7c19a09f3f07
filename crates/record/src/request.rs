//! A recording as a library call: what to run, with what, and where the trace goes.
//!
//! Nothing of the calling process is changed: the program gets its streams, environment and directory from the request.
//!
//! ```no_run
//! use record::request::{Request, Stream};
//! use record::stop::StopRequest;
//! # fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let answers = supervise::memory_file::create(c"answers")?;
//! let mut request = Request::new(["./kv", "pool"], "run.fptrace");
//! request.stdin = Stream::File(supervise::memory_file::holding(c"operations", b"i 1 2\n")?);
//! request.stdout = Stream::File(answers.try_clone()?);
//! request.options.operations_stdin = true;
//! request.env.push(("PMEM_IS_PMEM_FORCE".into(), "1".into()));
//! let recorded = request.run(&StopRequest::new())?;
//! println!("{} events", recorded.summary.events.0);
//! // What the program answered is in `answers` now.
//! # Ok(())
//! # }
//! ```

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::PathBuf;

use supervise::probe::LaunchError;
use supervise::target::{Target, TargetError};
use trace::{Meta, ReadError, TraceWriter, WriteError};

use crate::probe_host::{HostError, ProbeRecorder, Until};
use crate::recorder::{RecordOptions, Recorder};
use crate::recording::Recording;
use crate::step::{StepError, StepRecorder};
use crate::stop::StopRequest;
use crate::trace_file::TraceFile;

/// What records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// The in-process engine.
    #[default]
    Probe,
    /// The slow single-stepping reference.
    Step,
}

impl Backend {
    /// As it stands in the trace.
    pub fn name(self) -> &'static str {
        match self {
            Backend::Probe => "probe",
            Backend::Step => "step",
        }
    }
}

/// One of the program's standard streams.
#[derive(Debug, Default)]
pub enum Stream {
    /// That of this process.
    #[default]
    Inherit,
    /// Nothing to read; what is written is dropped.
    Null,
    File(File),
}

/// One recording.
#[derive(Debug)]
pub struct Request {
    /// The program and its arguments. A word without `/` is looked up in the `PATH` of `env`.
    pub command: Vec<OsString>,
    /// The program's whole environment; that of this process to begin with. Of a name that is there twice, the last counts.
    pub env: Vec<(OsString, OsString)>,
    /// Where the program starts; none: where this process is.
    pub dir: Option<PathBuf>,
    pub stdin: Stream,
    pub stdout: Stream,
    pub stderr: Stream,
    /// Globs of pools, watched functions, operations, determinism; files beside the pools are recorded too. A glob that is no absolute path is completed with `dir`.
    pub options: RecordOptions,
    pub backend: Backend,
    /// The last three are of the probe only. When the recording is over.
    pub until: Until,
    /// Run the program in its own PID namespace if the system allows.
    pub namespaces: bool,
    /// Size of the code caches in bytes; 0: the default.
    pub cache_bytes: u64,
    /// Where the whole trace will be; it has another name until then.
    pub trace: PathBuf,
}

/// Why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot prepare the standard streams of the program: {0}")]
    Streams(io::Error),
    /// The trace cannot be created.
    #[error(transparent)]
    Create(WriteError),
    #[error(transparent)]
    Host(#[from] HostError),
    #[error(transparent)]
    Step(#[from] StepError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("the trace is whole but cannot be renamed from {} to {}: {source}", partial.display(), wanted.display())]
    Rename { partial: PathBuf, wanted: PathBuf, source: io::Error },
}

impl RequestError {
    /// The request itself is wrong: nothing was run.
    pub fn is_usage(&self) -> bool {
        match self {
            RequestError::Target(_) => true,
            RequestError::Create(WriteError::Io { source, .. }) => source.kind() != io::ErrorKind::StorageFull,
            RequestError::Create(_) => true,
            RequestError::Host(HostError::Launch(LaunchError::NoProbe | LaunchError::TooMany { .. })) => true,
            _ => false,
        }
    }

    /// The engine cannot go on with this program; the other backend may.
    pub fn is_refusal(&self) -> bool {
        matches!(self, RequestError::Host(HostError::Refused(_) | HostError::Internal(_)))
    }
}

/// A recording that failed, and what there is of it.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct Failed {
    #[source]
    pub error: RequestError,
    /// A trace with the events until then.
    pub salvaged: Option<PathBuf>,
}

impl Request {
    /// The command in the environment of this process, with its streams, in its directory; the trace goes to `trace`.
    pub fn new<C: Into<OsString>>(command: impl IntoIterator<Item = C>, trace: impl Into<PathBuf>) -> Request {
        Request {
            command: command.into_iter().map(Into::into).collect(),
            env: env::vars_os().collect(),
            dir: None,
            stdin: Stream::Inherit,
            stdout: Stream::Inherit,
            stderr: Stream::Inherit,
            options: RecordOptions { files: true, ..RecordOptions::default() },
            backend: Backend::Probe,
            until: Until::AllEnd,
            namespaces: true,
            cache_bytes: 0,
            trace: trace.into(),
        }
    }

    /// Runs the program to its end; the trace is whole then. `stop` ends it early.
    pub fn run(mut self, stop: &StopRequest) -> Result<Recording, Failed> {
        let file = TraceFile::new(&self.trace);
        self.record(stop, &file).map_err(|error| {
            let salvaged = if error.is_usage() { None } else { file.salvage().map(ToOwned::to_owned) };
            Failed { error, salvaged }
        })
    }

    fn record(&mut self, stop: &StopRequest, file: &TraceFile) -> Result<Recording, RequestError> {
        let meta = self.meta();
        self.options.pm = self.options.pm.iter().map(|glob| self.absolute(glob)).collect();
        let streams = self.streams().map_err(RequestError::Streams)?;
        let mut target = Target::resolve_in(&self.command, &self.env, self.dir.as_deref())?;
        target.streams = streams.as_ref().map(|files| [0, 1, 2].map(|at: usize| files[at].as_raw_fd()));
        let writer = TraceWriter::create(file.partial(), meta).map_err(RequestError::Create)?;
        let recording = match self.backend {
            Backend::Probe => {
                let mut recorder = ProbeRecorder::new(stop);
                recorder.until = self.until;
                recorder.namespaces = self.namespaces;
                recorder.cache_bytes = self.cache_bytes;
                recorder.run(&target, &self.options, writer)?
            }
            Backend::Step => {
                let recorded = StepRecorder.record(&target, &self.options, writer)?;
                Recording::from_trace(&recorded, file.partial())?
            }
        };
        file.complete().map_err(|source| RequestError::Rename {
            partial: file.partial().to_owned(),
            wanted: self.trace.clone(),
            source,
        })?;
        Ok(recording)
    }

    /// All three, if any is not this process's own.
    fn streams(&self) -> io::Result<Option<[File; 3]>> {
        let streams = [&self.stdin, &self.stdout, &self.stderr];
        if streams.iter().all(|stream| matches!(stream, Stream::Inherit)) {
            return Ok(None);
        }
        let open = |number: usize| match streams[number] {
            Stream::File(file) => file.try_clone(),
            Stream::Null => File::options().read(true).write(true).open("/dev/null"),
            Stream::Inherit => inherited(number as i32),
        };
        Ok(Some([open(0)?, open(1)?, open(2)?]))
    }

    fn meta(&self) -> Meta {
        let flag = |on: bool, name: &str| on.then(|| name.to_owned());
        let given = &self.options;
        let mut options: Vec<String> = given.pm.iter().map(|glob| format!("--pm={glob}")).collect();
        options.extend(given.watch.iter().map(|symbol| format!("--watch={symbol}")));
        options.extend(flag(given.loads, "--loads"));
        options.extend(flag(given.flow.is_some(), "--infer"));
        options.extend(flag(given.real_time, "--real-time"));
        options.extend(flag(given.real_random, "--real-random"));
        options.extend(flag(given.real_tsc, "--real-tsc"));
        options.extend(flag(given.operations_stdin, "--operations=stdin"));
        Meta {
            command: self.command.iter().map(|a| a.to_string_lossy().into_owned()).collect(),
            cwd: self.directory().display().to_string(),
            recorder: self.backend.name().to_owned(),
            options,
        }
    }

    fn directory(&self) -> PathBuf {
        let here = env::current_dir().unwrap_or_default();
        self.dir.as_ref().map_or(here.clone(), |dir| here.join(dir))
    }

    /// Globs match absolute paths: one that names a file in the program's directory is completed.
    fn absolute(&self, glob: &str) -> String {
        if glob.starts_with(['/', '*']) {
            return glob.to_owned();
        }
        self.directory().join(glob.strip_prefix("./").unwrap_or(glob)).display().to_string()
    }
}

/// A copy of one of this process's standard streams; the program gets none where this process has none.
fn inherited(number: i32) -> io::Result<File> {
    // SAFETY: only copied; if it is not open the kernel says so.
    let own = unsafe { BorrowedFd::borrow_raw(number) };
    own.try_clone_to_owned().map(File::from).or_else(|_| File::options().read(true).write(true).open("/dev/null"))
}
