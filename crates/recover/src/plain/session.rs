//! Runs of commands on the same private pools: a recovery, then perhaps a checker.

use std::ffi::{CString, OsStr, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::{Duration, Instant};

use super::bind::Bind;
use super::error::{PlainError, system};
use super::isolation::{Isolation, Method};
use super::keeper::{Stage, Start};
use super::keys::IgnoredKeys;
use super::launch::{Ended, Running};
use super::nets::Nets;
use super::outcome;
use super::overlay::Overlay;
use super::placement::{Placement, Pool, PoolFile};
use super::streams::Streams;
use super::swap::Swap;
use super::watch::watch;
use crate::command::Command;
use crate::limits::Limits;
use crate::report::RunReport;

/// Runs recoveries in plain mode. One serves all threads.
#[derive(Clone, Debug)]
pub struct Plain {
    isolation: Isolation,
}

impl Plain {
    pub fn new() -> Plain {
        Plain { isolation: Isolation::detect() }
    }

    /// With an isolation that [`Isolation::detect`] found earlier, or a lesser one.
    pub fn with(isolation: Isolation) -> Plain {
        Plain { isolation }
    }

    pub fn isolation(&self) -> &Isolation {
        &self.isolation
    }

    /// One run on its own.
    pub fn run(&self, command: &Command, pools: &[PoolFile<'_>], limits: &Limits) -> Result<RunReport, PlainError> {
        self.session(pools)?.run(command, limits)
    }

    /// Puts the images in place for several runs, the later ones finding what the earlier ones left.
    pub fn session(&self, pools: &[PoolFile<'_>]) -> Result<Session, PlainError> {
        Session::enter(&self.isolation, pools)
    }
}

impl Default for Plain {
    fn default() -> Self {
        Plain::new()
    }
}

/// Images in place at the paths of their pools, until dropped.
#[derive(Debug)]
pub struct Session {
    isolation: Isolation,
    pools: Vec<Pool>,
    placement: Box<dyn Placement>,
}

impl Session {
    pub fn enter(isolation: &Isolation, pools: &[PoolFile<'_>]) -> Result<Session, PlainError> {
        let pools = pools.iter().map(Pool::find).collect::<Result<Vec<_>, _>>()?;
        let mut isolation = isolation.clone();
        let placement = place(&mut isolation, &pools)?;
        Ok(Session { isolation, pools, placement })
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
    pub fn run(&mut self, command: &Command, limits: &Limits) -> Result<RunReport, PlainError> {
        let words = Words::of(command)?;
        loop {
            let streams = Streams::open(&command.stdin)?;
            let before = self.file_numbers();
            let begin = Instant::now();
            let run = self.start(words.start(Some(streams.descriptors()), Some(Nets::beneath(limits))))?;
            let (cut, ended) = watch(run, &streams, limits, begin);
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
                borders: Vec::new(),
                output_cut,
                cpu: ended.cpu,
                wall,
                reads: None,
                dirtied: Vec::new(),
                pools_replaced: self.file_numbers() != before,
            });
        }
    }

    /// Runs the command with this process's terminal, streams and group, without limits: a debugger. Returns its exit
    /// code, or 128 and the signal, as a shell does.
    pub fn attend(&mut self, command: &Command) -> Result<i32, PlainError> {
        let words = Words::of(command)?;
        let _keys = IgnoredKeys::ignore();
        loop {
            let run = self.start(words.start(None, None))?;
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

    fn start(&mut self, start: Start) -> Result<Running, PlainError> {
        let mounts = self.placement.mounts().map_err(system("prepare the pool's private mounts"))?;
        Running::start(self.isolation.namespaces, &mounts, Some(start))
    }

    /// After a refused mount: the next best method is in place. (Recovery has not begun then.)
    fn falls_back(&mut self, ended: &Ended) -> Result<bool, PlainError> {
        let Some((Stage::Pools, error)) = &ended.failed else { return Ok(false) };
        self.isolation.refused.push(format!("{}: {error}", self.isolation.method));
        self.isolation.method = match self.isolation.method {
            Method::Overlay => Method::Bind,
            _ => Method::Swap,
        };
        self.placement = place(&mut self.isolation, &self.pools)?;
        Ok(true)
    }

    fn file_numbers(&self) -> Vec<Option<(u64, u64)>> {
        (0..self.pools.len()).map(|pool| file_number(&self.placement.content(pool))).collect()
    }
}

/// Puts the images in place by the isolation's method, or the best lesser one.
fn place(isolation: &mut Isolation, pools: &[Pool]) -> Result<Box<dyn Placement>, PlainError> {
    if isolation.method == Method::Overlay {
        match Overlay::prepare(pools) {
            Ok(overlay) => return Ok(Box::new(overlay)),
            Err(error) => isolation.refused.push(format!("{}: {error}", Method::Overlay)),
        }
        isolation.method = Method::Bind;
    }
    if isolation.method == Method::Bind {
        match Bind::prepare(pools) {
            Ok(bind) => return Ok(Box::new(bind)),
            Err(error) => isolation.refused.push(format!("{}: {error}", Method::Bind)),
        }
        isolation.method = Method::Swap;
    }
    let swap = Swap::prepare(pools).map_err(|(path, source)| PlainError::Swap { path, source })?;
    Ok(Box::new(swap))
}

/// Device and inode of a regular file. (An overlay marks a deleted file by a device file of its name.)
fn file_number(path: &Path) -> Option<(u64, u64)> {
    fs::symlink_metadata(path).ok().filter(|m| m.is_file()).map(|m| (m.dev(), m.ino()))
}

fn check_started(ended: &Ended, command: &Command, words: &Words) -> Result<(), PlainError> {
    let Some((stage, error)) = &ended.failed else { return Ok(()) };
    let source = std::io::Error::from_raw_os_error(error.raw_os_error().unwrap_or(libc::EIO));
    Err(match stage {
        Stage::Exec => PlainError::Exec { program: words.executable.clone(), source },
        Stage::Directory => PlainError::Directory { dir: command.dir.clone(), source },
        Stage::Fork => PlainError::System { what: "start a process", source },
        Stage::Streams => PlainError::System { what: "connect the standard streams", source },
        Stage::UserMaps => PlainError::Isolate { what: "map the user into its namespace", source },
        Stage::Proc => PlainError::Isolate { what: "mount /proc", source },
        _ => PlainError::Isolate { what: "make mounts private", source },
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
    fn of(command: &Command) -> Result<Words, PlainError> {
        let executable =
            command.executable().ok_or_else(|| PlainError::NoProgram { program: command.program.clone() })?;
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

    /// The pointers in it are good as long as the words.
    fn start(&self, streams: Option<[i32; 3]>, nets: Option<Nets>) -> Start {
        Start {
            program: self.program.clone(),
            arguments: pointers(&self.arguments),
            environment: pointers(&self.environment),
            dir: self.dir.clone(),
            streams,
            nets,
        }
    }
}

fn word(word: &OsStr) -> Result<CString, PlainError> {
    CString::new(word.as_bytes()).map_err(|_| PlainError::Word { word: word.to_string_lossy().into_owned() })
}

fn pointers(strings: &[CString]) -> Vec<*const c_char> {
    strings.iter().map(|s| s.as_ptr()).chain([ptr::null()]).collect()
}
