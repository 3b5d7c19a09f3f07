//! Starts a program under the probe.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering;

use wire::control::{CONTROL_FD_BELOW, SOCKET_FD_BELOW};

use super::error::{LaunchError, os};
use super::image::ProbeImage;
use super::shared::Shared;
use crate::lasting;
use crate::mounts::Mounts;
use crate::namespaces::Namespaces;
use crate::supervised::{Supervised, Surroundings, pointers};
use crate::supervisor::{Descriptors, First, Group, Identify, Inherited, Program};
use crate::target::Target;

/// Where the probe's three descriptors go if the limit leaves the choice. Every fork copies the table of descriptors
/// up to the highest one: a low number keeps forks cheap.
const USUAL_LIMIT: u64 = 1024;

/// How much of the system the run shares with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// In its own PID namespace: process numbers are the same in every run.
    Namespace,
    /// Beside all others, as wanted.
    Shared,
    /// Beside all others, because the system allows no namespace.
    Refused,
}

/// What to start and how.
#[derive(Debug)]
pub struct Launch<'a> {
    pub probe: &'a ProbeImage,
    pub target: &'a Target,
    /// Configured by [`Shared::configure`].
    pub shared: &'a Shared,
    pub namespaces: bool,
    /// Private folders; they need `namespaces`.
    pub mounts: &'a Mounts,
    pub until_first: bool,
    /// Where it starts; none: where the host is.
    pub directory: Option<&'a CStr>,
    /// Standard input, output and error; none: those of the host.
    pub streams: Option<[i32; 3]>,
}

/// A program that was started under the probe.
#[derive(Debug)]
pub struct Launched {
    pub supervised: Supervised,
    /// Descriptors of its pools arrive here.
    pub socket: OwnedFd,
    pub isolation: Isolation,
}

impl Launch<'_> {
    /// Starts the program from this thread: it ends with it.
    pub fn start(&self) -> Result<Launched, LaunchError> {
        let probe = self.probe.open()?;
        let (socket, theirs) = socket_pair()?;
        let number = free_numbers(open_files()?);
        let control = (self.shared.fd().as_raw_fd(), number - CONTROL_FD_BELOW);
        let mut list = vec![(probe.as_raw_fd(), number), control, (theirs.as_raw_fd(), number - SOCKET_FD_BELOW)];
        list.extend(self.streams.iter().flatten().copied().zip(0..));
        let identify = self.substituted()?;
        let begin = |namespaces: Namespaces| {
            let none = Mounts::default();
            let mounts = if namespaces.mount { self.mounts } else { &none };
            let surroundings =
                Surroundings { namespaces, mounts, identify: &identify, group: group(), until_first: self.until_first };
            Supervised::start_first(Some(self.first(number, list.clone())?), &surroundings).map_err(LaunchError::from)
        };
        let (supervised, isolation) = if self.namespaces {
            match begin(Namespaces::private()).map(|run| (run.wait_until_set_up(), run)) {
                Ok((Some((stage, error)), _)) if stage.is_isolation() && !self.mounts.is_empty() => {
                    return Err(LaunchError::Mounts(error));
                }
                Err(LaunchError::Start(error)) if !self.mounts.is_empty() => {
                    return Err(LaunchError::Mounts(error.source));
                }
                Ok((Some((stage, _)), _)) if stage.is_isolation() => (begin(Namespaces::NONE)?, Isolation::Refused),
                Ok((_, run)) => (run, Isolation::Namespace),
                Err(_) => (begin(Namespaces::NONE)?, Isolation::Refused),
            }
        } else {
            (begin(Namespaces::NONE)?, Isolation::Shared)
        };
        Ok(Launched { supervised, socket, isolation })
    }

    /// As [`start`](Self::start), but the program may outlive the thread that asks.
    pub fn start_lasting(&self) -> Result<Launched, LaunchError> {
        lasting::run(|| self.start())
    }

    fn first(&self, number: i32, list: Vec<(i32, i32)>) -> Result<First, LaunchError> {
        let limit = open_files()?;
        let placing = libc::rlimit { rlim_cur: limit.rlim_cur.max(number as u64 + 1), rlim_max: limit.rlim_max };
        Ok(First {
            program: Program::Descriptor(number),
            arguments: pointers(&self.target.arguments),
            environment: pointers(&self.target.environment),
            directory: self.directory.map(CStr::to_owned),
            descriptors: Descriptors { list, limits: Some([placing, limit]) },
            inherited: Inherited::OfHost,
            limits: None,
            // SAFETY: all zeros are a value of it; the supervisor's start puts the host's there.
            signal_mask: unsafe { std::mem::zeroed() },
        })
    }

    /// Under a private mount the file at a pool's path has another identity, by which the probe must know it as well.
    fn substituted(&self) -> Result<Vec<Identify<'_>>, LaunchError> {
        let control = self.shared.control();
        let count = control.recovery.substitute_count as usize;
        let all = control.recovery.substitutes[..count].iter().map(|substitute| {
            let path = &control.text[substitute.path.start as usize..][..substitute.path.len as usize];
            substitute.inside_inode.store(0, Ordering::Relaxed);
            let path = CString::new(path).map_err(|error| os("pass on the path of a pool")(error.into()))?;
            Ok(Identify { path, device: &substitute.inside_device, inode: &substitute.inside_inode })
        });
        all.collect()
    }
}

impl Launched {
    /// Why the probe did not start, if it did not.
    pub fn start_error(&self) -> Option<LaunchError> {
        let (stage, error) = self.supervised.failure()?;
        Some(LaunchError::not_started(stage, error))
    }
}

/// In the terminal's foreground program and host stay together.
fn group() -> Group {
    // SAFETY: plain system calls; the descriptor is closed again.
    unsafe {
        let terminal = libc::open(c"/dev/tty".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC | libc::O_NOCTTY);
        if terminal < 0 {
            return Group::OwnSession;
        }
        let foreground = libc::tcgetpgrp(terminal) == libc::getpgrp();
        libc::close(terminal);
        if foreground { Group::Hosts } else { Group::Own }
    }
}

fn open_files() -> Result<libc::rlimit, LaunchError> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a live out-pointer.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return Err(os("read the limit of open files")(io::Error::last_os_error()));
    }
    Ok(limit)
}

/// The number for the probe's descriptor: with the two below it above the program's limit if that is allowed, so that
/// the program never gets near them.
fn free_numbers(limit: libc::rlimit) -> i32 {
    let above = limit.rlim_cur.saturating_add(3);
    let top =
        if limit.rlim_cur <= USUAL_LIMIT && above <= limit.rlim_max { above } else { limit.rlim_cur.min(USUAL_LIMIT) };
    let mut number = top as i32 - 1;
    // SAFETY: asks only whether the descriptor is open.
    let free = |fd: i32| unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0;
    while number > 5 && !(free(number) && free(number - CONTROL_FD_BELOW) && free(number - SOCKET_FD_BELOW)) {
        number -= 1;
    }
    number
}

fn socket_pair() -> Result<(OwnedFd, OwnedFd), LaunchError> {
    let mut pair = [0; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: a live array of two for the result.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) } != 0 {
        return Err(os("create a socket pair")(io::Error::last_os_error()));
    }
    // SAFETY: both descriptors are new and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) })
}
