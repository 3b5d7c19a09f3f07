//! Where file systems are checked: a folder with a pool and a mount point, in a private mount namespace. Each batch of workloads is
//! run without a crash, recorded, and passed to a check session.

use std::env;
use std::ffi::OsString;
use std::fs as files;
use std::io::{self, Read, Seek};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use check::checked::Checked;
use check::code_path::{self, Environment};
use drive::template::{replaced, words};
use finding::finding::Location;
use fs::campaign::Reached;
use fs::oracle::Promises;
use fs::usable::Growth;
use fs::workload::{FsWorkload, Step};
use fuse::coverage::transitions;
use fuse::judge::TreeJudge;
use fuse::mounting::{self, Mounting};
use fuse::reference::{ReferenceError, Walks, reference};
use fuse::screen::{Pools, Screen};
use operation::boundaries::{BoundarySource, OperationBoundaries};
use record::request::{Request, Stream};
use recover::command::{Command, Input};
use recover::limits::Limits;
use runner::plan::ServedTree;
use supervise::memory_file;
use supervise::temporary::Temporary;
use trace::TraceReader;

use super::check::Failed;
use super::release::Release;
use crate::commands::crash::Job;
use crate::commands::options::crash::CrashOptions;
use crate::commands::output::code_path::say_choice;
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
    pub kind: FileSystemKind<'a>,
    pub mkfs: Option<&'a str>,
}

#[derive(Debug)]
pub enum FileSystemKind<'a> {
    /// The command of a daemon.
    Fuse(&'a str),
    /// A library that intercepts system calls, and the environment that tells it its places.
    Preload { library: &'a Path, env: &'a [String] },
}

/// `LD_PRELOAD`, and what the user says.
fn preloaded(library: &Path, env: &[String]) -> Result<Vec<(OsString, OsString)>, Failed> {
    let library =
        library.canonicalize().map_err(|error| Failed::Usage(format!("--preload: {}: {error}", library.display())))?;
    let mut all = vec![(OsString::from("LD_PRELOAD"), library.into_os_string())];
    for assignment in env {
        let (name, value) = assignment
            .split_once('=')
            .ok_or_else(|| Failed::Usage(format!("--env: `{assignment}` is no assignment; write NAME=VALUE")))?;
        all.push((name.into(), value.into()));
    }
    Ok(all)
}

/// Who makes a file system, and the option that says so.
struct Maker {
    option: &'static str,
    by: String,
    /// What to do if it fails.
    help: &'static str,
}

/// What came of a batch.
#[derive(Debug)]
pub struct Batched {
    pub checked: Checked,
    pub reader: TraceReader,
    pub boundaries: OperationBoundaries,
    pub interrupted: bool,
}

/// Workloads that share a recording.
#[derive(Debug)]
pub struct Batch {
    pub steps: Vec<Step>,
    pub promises: Promises,
    pub needs_fsync: bool,
    pub growth: Growth,
    /// Code whose bugs were found with earlier batches: it is taken to be repaired.
    pub repaired: Vec<Location>,
}

/// The place where they are checked.
#[derive(Debug)]
pub struct Laboratory {
    /// Before the folder: what is mounted there goes first.
    release: Option<Release>,
    folder: Temporary,
    own: OsString,
    /// By a daemon; else a preloaded library is checked.
    is_mounted: bool,
    daemon: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
}

impl Laboratory {
    /// Makes the file system. This process is in another mount namespace afterwards if there is a daemon.
    pub fn open(file_system: &FileSystem<'_>) -> Result<Laboratory, Failed> {
        let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
        let mkfs = file_system.mkfs.map(words).transpose();
        let mkfs = mkfs.map_err(|error| Failed::Usage(format!("--mkfs: {error}")))?;
        let (daemon, env) = match &file_system.kind {
            FileSystemKind::Fuse(daemon) => (Self::daemon_words(daemon)?, Vec::new()),
            FileSystemKind::Preload { library, env } => (Vec::new(), preloaded(library, env)?),
        };
        let in_the_open = !daemon.is_empty() && mounting::enter().map_err(|error| usage(&error))? == Mounting::Helper;
        if in_the_open {
            render::warning(
                "no mount namespace of our own: everybody sees the mounts (through fusermount3), and recoveries run one at a time",
            );
        }
        let folder = Temporary::new("fs");
        let folder = folder.map_err(|error| Failed::Usage(format!("cannot make a temporary folder: {error}")))?;
        let own = env::current_exe().map_err(|error| usage(&error))?.into();
        let is_mounted = !daemon.is_empty();
        let mut laboratory = Laboratory { release: None, folder, own, is_mounted, daemon: Vec::new(), env: Vec::new() };
        laboratory.daemon = laboratory.filled(&daemon);
        for (name, value) in env {
            let value = laboratory.filled(&[value]).pop().unwrap_or_default();
            laboratory.env.push((name, value));
        }
        laboratory.choose_code_path(match &file_system.kind {
            FileSystemKind::Fuse(_) => laboratory.daemon.clone(),
            FileSystemKind::Preload { library, .. } => vec![library.into()],
        });
        for folder in laboratory.folders() {
            files::create_dir_all(&folder)
                .map_err(|error| Failed::Usage(format!("cannot make {}: {error}", folder.display())))?;
        }
        if in_the_open {
            let release = Release::start(&laboratory.own, &laboratory.mount());
            laboratory.release = Some(release.map_err(|error| usage(&error))?);
        }
        // Without a command for it, whoever uses it first makes the file system.
        let made = mkfs.map_or_else(|| laboratory.driver(), |mkfs| laboratory.filled(&mkfs));
        let by = made.first().map_or_else(String::new, |program| format!("`{}`", program.to_string_lossy()));
        let maker = match (&file_system.mkfs, is_mounted) {
            (Some(_), _) => Maker { option: "--mkfs", by, help: "" },
            (None, true) => Maker {
                option: "--fuse",
                by: "the daemon, which makes the file system at its first mount without --mkfs,".to_owned(),
                help: "; --mkfs names the command that makes one",
            },
            (None, false) => Maker { option: "--preload", by: "the process with the library".to_owned(), help: "" },
        };
        laboratory.make(&made, &maker)?;
        Ok(laboratory)
    }

    /// A file system that uses PMDK runs the code that runs on PM, in all its runs.
    fn choose_code_path(&mut self, asks: Vec<OsString>) {
        let mut all: Environment = env::vars_os().chain(self.env.iter().cloned()).collect();
        let before = all.len();
        say_choice(code_path::choose_for(&asks, &mut all));
        self.env.extend(all.drain(before..));
    }

    /// Everybody sees the mounts: there can be one at a time.
    pub fn is_in_the_open(&self) -> bool {
        self.release.is_some()
    }

    fn daemon_words(daemon: &str) -> Result<Vec<OsString>, Failed> {
        let daemon = words(daemon).map_err(|error| Failed::Usage(format!("--fuse: {error}")))?;
        for place in [POOL, MOUNT] {
            if !daemon.iter().any(|word| word.to_string_lossy().contains(place)) {
                return Err(Failed::Usage(format!(
                    "--fuse: the command does not say {place}; write it where it belongs"
                )));
            }
        }
        Ok(daemon)
    }

    /// Those that a replay needs again, outer ones first.
    fn folders(&self) -> Vec<PathBuf> {
        // Apart: the folder of a pool may be private to a run.
        vec![self.folder.path().to_owned(), self.pools(), self.mount()]
    }

    fn pools(&self) -> PathBuf {
        self.folder.path().join("pools")
    }

    fn pool(&self) -> PathBuf {
        self.pools().join("pool")
    }

    /// The pool as it is before every batch.
    fn fresh(&self) -> PathBuf {
        self.folder.path().join("pool.fresh")
    }

    /// A copy of that, for a run that changes it.
    fn private(&self) -> PathBuf {
        self.folder.path().join("pool.private")
    }

    /// Where the tree is. What a preloaded library leaves to the kernel is lost with the pool, or not.
    fn mount(&self) -> PathBuf {
        if self.is_mounted { self.folder.path().join("mount") } else { self.pools().join("tree") }
    }

    fn filled(&self, words: &[OsString]) -> Vec<OsString> {
        let (pool, mount) = (self.pool(), self.mount());
        let bytes = |path: &Path| path.as_os_str().as_encoded_bytes().to_vec();
        words.iter().map(|word| replaced(&replaced(word, POOL, &bytes(&pool)), MOUNT, &bytes(&mount))).collect()
    }

    fn make(&self, words: &[OsString], maker: &Maker) -> Result<(), Failed> {
        let Maker { option, by, help } = maker;
        let (program, args) = words.split_first().ok_or_else(|| Failed::Usage(format!("{option} is empty")))?;
        let mut made = std::process::Command::new(program);
        let made = made.args(args).envs(self.env.iter().cloned()).stdin(Stdio::null()).output();
        let made = made.map_err(|error| Failed::Usage(format!("{option}: cannot start {by}: {error}")))?;
        if !made.status.success() {
            let how = match (made.status.code(), made.status.signal()) {
                (Some(code), _) => format!("exit code {code}"),
                (None, signal) => format!("signal {}", signal.unwrap_or_default()),
            };
            let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
            return Err(Failed::Target(format!("{option}: {by} failed ({how}): {said}{help}")));
        }
        let copied = files::copy(self.pool(), self.fresh());
        copied.map(drop).map_err(|error| Failed::Target(format!("{option}: {by} made no file {{pool}}: {error}")))
    }

    /// The pool as it was made.
    fn reset(&self) -> Result<(), Failed> {
        if !self.is_mounted {
            let emptied = fs::usable::remove_all(&self.mount());
            emptied.map_err(|(path, errno)| Failed::Usage(format!("cannot remove {}: {errno}", path.display())))?;
        }
        let copied = files::copy(self.fresh(), self.pool());
        copied.map(drop).map_err(|error| Failed::Usage(format!("cannot put the pool back: {error}")))
    }

    fn driver(&self) -> Vec<OsString> {
        if !self.is_mounted {
            return vec![self.own.clone(), "drive".into(), "folder".into(), "--root".into(), self.mount().into()];
        }
        let own = [self.own.clone(), "drive".into(), "fuse".into(), "--mount".into(), self.mount().into(), "--".into()];
        own.into_iter().chain(self.daemon.iter().cloned()).collect()
    }

    fn command(&self, words: &[OsString]) -> Result<Command, Failed> {
        let mut command = Command::here(words).ok_or_else(|| Failed::Usage("--fuse is empty".into()))?;
        command.env.retain(|(name, _)| self.env.iter().all(|(own, _)| own != name));
        command.env.extend(self.env.iter().cloned());
        Ok(command)
    }

    /// Records a batch and searches for states that break a promise.
    pub fn check(&self, batch: &Batch, options: &CrashOptions) -> Result<Batched, Failed> {
        let Batch { steps, promises, needs_fsync, growth, .. } = batch;
        let target = |error: ReferenceError| Failed::Target(error.to_string());
        let driver = self.command(&self.driver())?;
        let limits = Limits { output: OUTPUT, wall: options.timeout, ..Limits::default() };
        self.reset()?;
        let walks = if batch.needs_fsync { Walks::All } else { Walks::Crashed };
        let copied = files::copy(self.fresh(), self.private());
        copied.map_err(|error| Failed::Usage(format!("cannot copy the pool: {error}")))?;
        let reference =
            reference(&batch.steps, &driver, &self.pool(), &self.private(), &limits, walks, *growth).map_err(target)?;
        let (reader, boundaries, answers) = self.recorded(&batch.steps)?;
        reference.agrees(&batch.steps, &answers).map_err(target)?;
        let judge = TreeJudge {
            boundaries: boundaries.clone(),
            steps: steps.clone(),
            reference,
            promises: *promises,
            needs_fsync: *needs_fsync,
            mount: self.is_mounted.then(|| self.mount()),
            folders: self.folders(),
        };
        let native = Command { stdin: Input::Bytes(format!("walk\n{}\n", growth.line()).into_bytes()), ..driver };
        let (daemon, attendant) = match !self.is_mounted {
            true => (native.clone(), Vec::new()),
            false => {
                let words = [self.own.clone(), "drive".into(), "attend".into(), "--mount".into(), self.mount().into()];
                let no_growth = (*growth == Growth::Anything).then(|| "--no-growth".into());
                (self.command(&self.daemon)?, words.into_iter().chain(no_growth).collect())
            }
        };
        let served = ServedTree { judge: Arc::new(judge), daemon, attendant, native, machines: None };
        let trace = self.trace();
        let job = Job {
            options,
            env: env::vars_os().collect(),
            trace: &trace,
            shard: None,
            journal: None,
            merge: &[],
            served: Some(served),
            fleet: None,
            repaired: &batch.repaired,
        };
        let (checked, interrupted) = job.search(&reader).map_err(Failed::of_search)?;
        Ok(Batched { checked, reader, boundaries, interrupted })
    }

    /// Tries random workloads without a crash. A preloaded library is not tried: what it leaves to the kernel is not in its pool.
    pub fn screen(&self, growth: Growth, options: &CrashOptions) -> Result<Option<Screen>, Failed> {
        if !self.is_mounted {
            return Ok(None);
        }
        let used = self.folder.path().join("pool.used");
        let pools = Pools { pool: self.pool(), fresh: self.fresh(), used, private: self.private() };
        self.reset()?;
        let limits = Limits { output: OUTPUT, wall: options.timeout, ..Limits::default() };
        let screen = Screen::open(self.command(&self.driver())?, pools, limits, growth);
        screen.map(Some).map_err(|error| Failed::Target(error.to_string()))
    }

    /// What the file system does to PM in each step of these workloads.
    pub fn coverage(&self, workloads: &[FsWorkload]) -> Result<Vec<Reached>, Failed> {
        let (reader, boundaries, _) = self.recorded(&FsWorkload::chain(workloads))?;
        let step = |number: usize| transitions(&reader, &boundaries, number..number + 1);
        let steps = |place: std::ops::Range<usize>| place.map(step).collect::<Result<_, _>>().map(Reached::Steps);
        let covered: Result<_, trace::ReadError> = FsWorkload::places(workloads).into_iter().map(steps).collect();
        covered.map_err(|error| Failed::Usage(error.to_string()))
    }

    fn trace(&self) -> PathBuf {
        self.folder.path().join("check.fptrace")
    }

    /// The trace of these steps, where each begins and ends in it, and the answers.
    fn recorded(&self, steps: &[Step]) -> Result<(TraceReader, OperationBoundaries, String), Failed> {
        let trace = self.trace();
        let answers = self.record(steps, &trace)?;
        let reader = TraceReader::open(&trace).map_err(|error| Failed::Usage(error.to_string()))?;
        let boundaries = OperationBoundaries::of(&reader, &BoundarySource::Events);
        let boundaries = boundaries.map_err(|error| Failed::Usage(error.to_string()))?;
        Ok((reader, boundaries, answers))
    }

    /// Records the daemon with its driver; the answers.
    fn record(&self, steps: &[Step], trace: &Path) -> Result<String, Failed> {
        self.reset()?;
        let failed = |error: io::Error| Failed::Usage(format!("cannot give the driver its operations: {error}"));
        let lines: String = steps.iter().map(|step| format!("{}\n", step.op)).collect();
        let mut answers = memory_file::create(c"answers").map_err(failed)?;
        let mut request = Request::new(self.driver(), trace);
        request.options.pm = vec![self.pool().to_string_lossy().into_owned()];
        request.options.operations_stdin = true;
        // The calls of the workload are served by the daemon, which is recorded too: nobody may wait for them with the order of events held.
        request.options.files = !self.is_mounted;
        request.env.extend(self.env.iter().cloned());
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
