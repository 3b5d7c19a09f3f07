//! Runs of commands on the same private pools: a recovery, then perhaps a checker.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::bind::Bind;
use super::error::{NativeError, system};
use super::isolation::{Isolation, Method};
use super::kernel_limits;
use super::keys::IgnoredKeys;
use super::outcome;
use super::overlay::{Overlay, PrivateFolder};
use super::placement::{Placement, Pool, PoolFile};
use super::streams::Streams;
use super::swap::Swap;
use super::watch::{Cut, watch};
use crate::command::Command;
use crate::report::RunReport;
use crate::space::Space;
use supervise::cancel::Cancel;
use supervise::limits::Limits;
use supervise::supervised::{Ended, Start, Supervised, Surroundings};
use supervise::supervisor::{Group, KernelLimits, StartStage};

/// Runs recoveries natively. One serves all threads.
#[derive(Clone, Debug)]
pub struct Native {
    isolation: Isolation,
    pub cancel: Cancel,
}

impl Native {
    pub fn new() -> Native {
        Native::with(Isolation::detect())
    }

    /// With an isolation that [`Isolation::detect`] found earlier, or a lesser one.
    pub fn with(isolation: Isolation) -> Native {
        Native { isolation, cancel: Cancel::default() }
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// One run on its own.
    pub fn run(&self, command: &Command, pools: &[PoolFile<'_>], limits: &Limits) -> Result<RunReport, NativeError> {
        self.session(pools)?.run(command, limits)
    }

    /// Puts the images in place for several runs, the later ones finding what the earlier ones left.
    pub fn session(&self, pools: &[PoolFile<'_>]) -> Result<Session, NativeError> {
        self.enter(pools, None)
    }

    /// As [`session`](Self::session), with the files beside the pools as `space` has them. Recoveries change those, so that they must be put in
    /// place again afterwards.
    pub fn session_with(&self, pools: &[PoolFile<'_>], space: &Space) -> Result<Session, NativeError> {
        self.enter(pools, Some(space))
    }

    fn enter(&self, pools: &[PoolFile<'_>], space: Option<&Space>) -> Result<Session, NativeError> {
        let session = Session::enter(&self.isolation, pools, space)?;
        Ok(Session { cancel: self.cancel.clone(), ..session })
    }
}

impl Default for Native {
    fn default() -> Self {
        Native::new()
    }
}

/// Images in place at the paths of their pools, until dropped.
#[derive(Debug)]
pub struct Session {
    isolation: Isolation,
    pools: Vec<Pool>,
    placement: Box<dyn Placement>,
    private: Vec<PrivateFolder>,
    cancel: Cancel,
}

impl Session {
    pub fn enter(isolation: &Isolation, pools: &[PoolFile<'_>], space: Option<&Space>) -> Result<Session, NativeError> {
        let pools = pools.iter().map(Pool::find).collect::<Result<Vec<_>, _>>()?;
        let mut isolation = isolation.clone();
        let private = space.map(PrivateFolder::of).unwrap_or_default();
        let placement = place(&mut isolation, &pools, &private)?;
        Ok(Session { isolation, pools, placement, private, cancel: Cancel::default() })
    }

    /// Does recovery find the files beside the pools as they were? Not without a private mount over their folders.
    pub fn shows_files(&self) -> bool {
        self.private.is_empty() || self.isolation.method == Method::Overlay
    }

    /// The isolation in use: a lesser one than was wished for if the pool's file system refuses that.
    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// Where the content of a pool is now (the pools are numbered as they were given); none if recovery deleted it.
    pub fn content(&self, pool: usize) -> Option<PathBuf> {
        Some(self.placement.content(pool)).filter(|path| file_number(path).is_some())
    }

    /// Runs the command and returns when no process of it is left.
    pub fn run(&mut self, command: &Command, limits: &Limits) -> Result<RunReport, NativeError> {
        let words = Words::of(command)?;
        loop {
            if self.cancel.is_cancelled() {
                return Err(NativeError::Cancelled);
            }
            let streams = Streams::open(&command.stdin)?;
            let before = self.file_numbers();
            let begin = Instant::now();
            let run = self.start(&words.start(Some(streams.descriptors()), Some(kernel_limits::beneath(limits))))?;
            let (cut, ended) = watch(run, &streams, limits, begin, &self.cancel);
            if cut == Some(Cut::Cancelled) {
                return Err(NativeError::Cancelled);
            }
            let wall = begin.elapsed();
            if self.falls_back(&ended)? {
                continue;
            }
            check_started(&ended, command, &words)?;
            let (stdout, stderr, output_cut) = streams.take(limits).map_err(system("read the output"))?;
            return Ok(RunReport {
                end: outcome::end(cut, &ended, limits),
                stdout,
                stderr,
                boundaries: Vec::new(),
                output_cut,
                cpu: ended.cpu,
                wall,
                reads: None,
                dirtied: Vec::new(),
                pools_replaced: self.file_numbers() != before,
                tree_changed: true,
                outside: Vec::new(),
            });
        }
    }

    /// Runs the command with this process's terminal, streams and group, without limits: a debugger. Returns its exit
    /// code, or 128 and the signal, as a shell does.
    pub fn attend(&mut self, command: &Command) -> Result<i32, NativeError> {
        let words = Words::of(command)?;
        let _keys = IgnoredKeys::ignore();
        loop {
            let run = self.start(&words.start(None, None))?;
            while !run.wait(Duration::from_secs(60)) {}
            let ended = run.finish();
            if self.falls_back(&ended)? {
                continue;
            }
            check_started(&ended, command, &words)?;
            let status = ended.status.unwrap_or(libc::SIGKILL);
            return Ok(match libc::WIFSIGNALED(status) {
                true => 128 + libc::WTERMSIG(status),
                false => libc::WEXITSTATUS(status),
            });
        }
    }

    fn start(&mut self, start: &Start<'_>) -> Result<Supervised, NativeError> {
        let directory = PathBuf::from(OsStr::from_bytes(start.directory.to_bytes()));
        let mounts = self.placement.mounts(&[directory]).map_err(system("prepare the pool's private mounts"))?;
        let surroundings = Surroundings {
            namespaces: self.isolation.namespaces,
            mounts: &mounts,
            identify: &[],
            group: if start.streams.is_some() { Group::OwnSession } else { Group::Hosts },
            until_first: false,
        };
        Supervised::start(start, &surroundings)
            .map_err(|error| NativeError::Isolate { what: error.action, source: error.source })
    }

    /// After a refused mount: the next best method is in place. (Recovery has not begun then.)
    fn falls_back(&mut self, ended: &Ended) -> Result<bool, NativeError> {
        let Some((StartStage::Mounts, error)) = &ended.failed else { return Ok(false) };
        self.isolation.refused.push(format!("{}: {error}", self.isolation.method));
        self.isolation.method = match self.isolation.method {
            Method::Overlay => Method::Bind,
            _ => Method::Swap,
        };
        self.placement = place(&mut self.isolation, &self.pools, &self.private)?;
        Ok(true)
    }

    fn file_numbers(&self) -> Vec<Option<(u64, u64)>> {
        (0..self.pools.len()).map(|pool| file_number(&self.placement.content(pool))).collect()
    }
}

/// Puts the images in place by the isolation's method, or the best lesser one.
fn place(
    isolation: &mut Isolation,
    pools: &[Pool],
    private: &[PrivateFolder],
) -> Result<Box<dyn Placement>, NativeError> {
    if isolation.method == Method::Overlay {
        match Overlay::prepare(pools, private) {
            Ok(overlay) => return Ok(Box::new(overlay)),
            Err(error) => isolation.refused.push(format!("{}: {error}", Method::Overlay)),
        }
        isolation.method = Method::Bind;
    }
    // The lesser ones put a file at the path of every pool, and a program would take that for a pool that it has made.
    for pool in pools {
        if let Some(folder) = private.iter().find(|folder| folder.lacks(&pool.path)) {
            let (path, dir) = (pool.path.clone(), folder.dir().to_owned());
            return Err(NativeError::Absent { path, dir, why: isolation.refused.join("; ") });
        }
    }
    if isolation.method == Method::Bind {
        match Bind::prepare(pools) {
            Ok(bind) => return Ok(Box::new(bind)),
            Err(error) => isolation.refused.push(format!("{}: {error}", Method::Bind)),
        }
        isolation.method = Method::Swap;
    }
    let swap = Swap::prepare(pools).map_err(|(path, source)| NativeError::Swap { path, source })?;
    Ok(Box::new(swap))
}

/// Device and inode of a regular file. (An overlay marks a deleted file by a device file of its name.)
fn file_number(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()))
}

fn check_started(ended: &Ended, command: &Command, words: &Words) -> Result<(), NativeError> {
    let Some((stage, error)) = &ended.failed else { return Ok(()) };
    let source = std::io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
    Err(match stage {
        StartStage::Exec => NativeError::Exec { program: words.executable.clone(), source },
        StartStage::Directory => NativeError::Directory { dir: command.dir.clone(), source },
        StartStage::Fork => NativeError::System { what: "start a process", source },
        StartStage::Descriptors => NativeError::System { what: "connect the standard streams", source },
        StartStage::UserMaps => NativeError::Isolate { what: "map the user into its namespace", source },
        StartStage::Proc => NativeError::Isolate { what: "mount /proc", source },
        _ => NativeError::Isolate { what: "make mounts private", source },
    })
}

/// A command's words in the form that `execve` takes.
#[derive(Debug)]
struct Words {
    executable: PathBuf,
    program: CString,
    dir: CString,
    arguments: Vec<CString>,
    environment: Vec<CString>,
}

impl Words {
    fn of(command: &Command) -> Result<Words, NativeError> {
        let executable =
            command.executable().ok_or_else(|| NativeError::NoProgram { program: command.program.clone() })?;
        let words = [command.program.as_os_str()].into_iter().chain(command.args.iter().map(|arg| arg.as_os_str()));
        let variables = command.env.iter().map(|(name, value)| {
            let mut variable = name.clone();
            variable.push("=");
            variable.push(value);
            variable
        });
        Ok(Words {
            program: word(executable.as_os_str())?,
            dir: word(command.dir.as_os_str())?,
            arguments: words.map(word).collect::<Result<_, _>>()?,
            environment: variables.map(|variable| word(&variable)).collect::<Result<_, _>>()?,
            executable,
        })
    }

    fn start(&self, streams: Option<[i32; 3]>, limits: Option<KernelLimits>) -> Start<'_> {
        Start {
            program: &self.program,
            arguments: &self.arguments,
            environment: &self.environment,
            directory: &self.dir,
            streams,
            limits,
        }
    }
}

fn word(word: &OsStr) -> Result<CString, NativeError> {
    CString::new(word.as_bytes()).map_err(|_| NativeError::Word { word: word.to_string_lossy().into_owned() })
}
