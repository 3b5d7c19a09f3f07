//! Where file systems are checked: a folder with a pool and a mount point, in a mount namespace of its own. Each batch of workloads is
//! run without a crash, recorded, and handed to a check session.

use std::env;
use std::ffi::OsString;
use std::fs as files;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use check::session::Checked;
use drive::template::{replaced, words};
use fs::oracle::Promises;
use fs::workload::Step;
use fuse::judge::TreeJudge;
use fuse::mounting::{self, Mounting};
use fuse::reference::{ReferenceError, reference};
use operation::boundaries::{BoundarySource, OperationBoundaries};
use record::request::{Request, Stream};
use recover::command::{Command, Input};
use recover::limits::Limits;
use runner::runner::ServedTree;
use supervise::memory_file;
use tempfile::TempDir;
use trace::TraceReader;

use super::check::Failed;
use crate::commands::crash::Job;
use crate::commands::options::crash::CrashOptions;
use crate::commands::record::{backend, outcome, recorded};
use crate::exit::Exit;
use crate::render;

const POOL: &str = "{pool}";
const MOUNT: &str = "{mount}";

/// Trees of a run that are kept: they are compared, so none may be missing.
const OUTPUT: u64 = 256 << 20;

/// The file system, as the user names it.
#[derive(Debug)]
pub struct FileSystem<'a> {
    pub daemon: &'a str,
    pub mkfs: Option<&'a str>,
}

/// Workloads that share a recording.
#[derive(Debug)]
pub struct Batch {
    pub steps: Vec<Step>,
    pub count: usize,
    pub promises: Promises,
    pub needs_fsync: bool,
}

/// The place where they are checked.
#[derive(Debug)]
pub struct Laboratory {
    folder: TempDir,
    own: OsString,
    daemon: Vec<OsString>,
}

impl Laboratory {
    /// Makes the file system. This process is in another mount namespace afterwards.
    pub fn open(file_system: &FileSystem<'_>) -> Result<Laboratory, Failed> {
        let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
        let daemon = words(file_system.daemon).map_err(|error| Failed::Usage(format!("--fuse: {error}")))?;
        for place in [POOL, MOUNT] {
            if !daemon.iter().any(|word| word.to_string_lossy().contains(place)) {
                return Err(Failed::Usage(format!(
                    "--fuse: the command does not say {place}; write it where it belongs"
                )));
            }
        }
        let mkfs = file_system.mkfs.map(words).transpose();
        let mkfs = mkfs.map_err(|error| Failed::Usage(format!("--mkfs: {error}")))?;
        match mounting::enter().map_err(|error| usage(&error))? {
            Mounting::Private => {}
            Mounting::Helper => render::warning(
                "no mount namespace of our own: everybody sees the mounts (through fusermount3), and a kill may leave one behind",
            ),
        }
        let folder = tempfile::Builder::new().prefix("fencepost-fs-").tempdir();
        let folder = folder.map_err(|error| Failed::Usage(format!("cannot make a temporary folder: {error}")))?;
        let own = env::current_exe().map_err(|error| usage(&error))?.into();
        let mut laboratory = Laboratory { folder, own, daemon: Vec::new() };
        laboratory.daemon = laboratory.filled(&daemon);
        // Apart: the folder of a pool may be private to a run.
        for folder in [laboratory.mount(), laboratory.folder.path().join("pools")] {
            files::create_dir(folder).map_err(|error| usage(&error))?;
        }
        // Without a command for it the daemon makes the file system when it is mounted first.
        let made = mkfs.map_or_else(|| laboratory.driver(), |mkfs| laboratory.filled(&mkfs));
        laboratory.make(&made, if file_system.mkfs.is_some() { "--mkfs" } else { "--fuse" })?;
        Ok(laboratory)
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join("pools/pool")
    }

    /// The pool as it is before every batch.
    fn fresh(&self) -> PathBuf {
        self.folder.path().join("pool.fresh")
    }

    fn mount(&self) -> PathBuf {
        self.folder.path().join("mount")
    }

    fn filled(&self, words: &[OsString]) -> Vec<OsString> {
        let (pool, mount) = (self.pool(), self.mount());
        let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        words.iter().map(|word| replaced(&replaced(word, POOL, &bytes(&pool)), MOUNT, &bytes(&mount))).collect()
    }

    fn make(&self, words: &[OsString], option: &str) -> Result<(), Failed> {
        let (program, args) = words.split_first().ok_or_else(|| Failed::Usage(format!("{option} is empty")))?;
        let shown = program.to_string_lossy();
        let made = std::process::Command::new(program).args(args).stdin(Stdio::null()).output();
        let made = made.map_err(|error| Failed::Usage(format!("{option}: cannot start `{shown}`: {error}")))?;
        if !made.status.success() {
            let how = match (made.status.code(), made.status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            };
            let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(Failed::Target(format!("{option}: `{shown}` failed ({how}): {said}")));
        }
        let copied = files::copy(self.pool(), self.fresh());
        copied.map(drop).map_err(|error| Failed::Target(format!("{option}: `{shown}` made no file {{pool}}: {error}")))
    }

    /// The pool as it was made.
    fn reset(&self) -> Result<(), Failed> {
        let copied = files::copy(self.fresh(), self.pool());
        copied.map(drop).map_err(|error| Failed::Usage(format!("cannot put the pool back: {error}")))
    }

    fn driver(&self) -> Vec<OsString> {
        let own = [self.own.clone(), "drive".into(), "fuse".into(), "--mount".into(), self.mount().into(), "--".into()];
        own.into_iter().chain(self.daemon.iter().cloned()).collect()
    }

    fn command(words: &[OsString]) -> Result<Command, Failed> {
        Command::here(words).ok_or_else(|| Failed::Usage("--fuse is empty".into()))
    }

    /// Records a batch and searches for states that break a promise.
    pub fn check(&self, batch: &Batch, options: &CrashOptions) -> Result<(Checked, TraceReader, bool), Failed> {
        let target = |error: ReferenceError| Failed::Target(error.to_string());
        let driver = Self::command(&self.driver())?;
        let limits = Limits { output: OUTPUT, wall: options.timeout, ..Limits::default() };
        self.reset()?;
        let reference = reference(&batch.steps, &driver, &self.pool(), &self.fresh(), &limits).map_err(target)?;
        let trace = self.folder.path().join("check.fptrace");
        let answers = self.record(batch, &trace)?;
        reference.agrees(&batch.steps, &answers).map_err(target)?;
        let reader = TraceReader::open(&trace).map_err(|error| Failed::Usage(error.to_string()))?;
        let boundaries = OperationBoundaries::of(&reader, &BoundarySource::Events);
        let boundaries = boundaries.map_err(|error| Failed::Usage(error.to_string()))?;
        let Batch { steps, promises, needs_fsync, .. } = batch;
        let judge =
            TreeJudge { boundaries, steps: steps.clone(), reference, promises: *promises, needs_fsync: *needs_fsync };
        let attendant = [self.own.clone(), "drive".into(), "attend".into(), "--mount".into(), self.mount().into()];
        let served = ServedTree {
            judge: Arc::new(judge),
            daemon: Self::command(&self.daemon)?,
            attendant: attendant.into(),
            native: Command { stdin: Input::Bytes(b"walk\nusable\n".to_vec()), ..driver },
            machines: None,
        };
        let job = Job {
            options,
            env: env::vars_os().collect(),
            trace: &trace,
            shard: None,
            journal: None,
            merge: &[],
            served: Some(served),
        };
        let (checked, interrupted) = job.session(&reader).map_err(Failed::Told)?;
        Ok((checked, reader, interrupted))
    }

    /// Records the daemon with its driver; the answers.
    fn record(&self, batch: &Batch, trace: &Path) -> Result<String, Failed> {
        self.reset()?;
        let failed = |error: io::Error| Failed::Usage(format!("cannot give the driver its operations: {error}"));
        let lines: String = batch.steps.iter().map(|step| format!("{}\n", step.op)).collect();
        let mut answers = memory_file::create(c"answers").map_err(failed)?;
        let mut request = Request::new(self.driver(), trace);
        request.options.pm = vec![self.pool().to_string_lossy().into_owned()];
        request.options.operations_stdin = true;
        // The calls of the workload are served by the daemon, which is recorded too: nobody may wait for them with the order of events held.
        request.options.files = false;
        request.backend = backend();
        request.stdin = Stream::File(memory_file::holding(c"operations", lines.as_bytes()).map_err(failed)?);
        request.stdout = Stream::File(answers.try_clone().map_err(failed)?);
        let exit = recorded(request, false).map_or_else(|exit| exit, |recording| outcome(&recording));
        let mut text = Vec::new();
        answers.rewind().and_then(|()| answers.read_to_end(&mut text)).map_err(failed)?;
        match exit {
            Exit::Clean => Ok(String::from_utf8_lossy(&text).into_owned()),
            other => Err(Failed::Told(other)),
        }
    }
}
