//! The client of a fork server: a recovery command under the probe, up to its first use of a pool; from there it is forked once per
//! run (`wire::recover` is the protocol). What a run means is not known here; see the crate `recover`.

use std::ffi::CStr;
use std::ffi::OsStr;
use std::fs::Metadata;
use std::ops::Range;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trace::event::ExitStatus;
use wire::cover::COVER_BYTES;
use wire::record::{HEADER_BYTES, Header, kind, record_bytes};
use wire::recover::{MAX_ANSWERS, MAX_BYTE_RANGES, NOTES_BYTES, OUTSIDE_BYTES, Recovery, go_on, state};

use crate::mounts::Mounts;
use crate::probe::{
    Launch, LaunchError, Launched, ProbeImage, ProbeOptions, Shared, Substituted, configure_recovery, configure_roots,
    cover, futex_wait, futex_wake,
};
use crate::target::Target;
use crate::usage::Usage;

/// What to serve.
#[derive(Debug)]
pub struct Setup<'a> {
    pub probe: &'a ProbeImage,
    pub target: &'a Target,
    pub directory: &'a CStr,
    pub stdin: BorrowedFd<'a>,
    pub stdout: BorrowedFd<'a>,
    pub stderr: BorrowedFd<'a>,
    pub pools: &'a [Substituted],
    /// Folders, and private ones that stand for them.
    pub roots: &'a [Substituted],
    /// Time, time-stamp counter and randomness as they really are.
    pub real_world: bool,
    pub real_time: bool,
    /// Standard input has operations, of which each run gets some (see [`ForkServer::give`]).
    pub operations: bool,
    /// Stop at every boundary between operations: one of `wire::recover::reference`.
    pub reference: u32,
    /// Private folders.
    pub mounts: &'a Mounts,
    /// Directories in which runs may change files unnoticed: nobody else sees it.
    pub private: &'a [PathBuf],
    /// Count what runs do (`wire::cover`) instead of telling what they read. Runs may make their pools.
    pub cover: bool,
}

/// Where the recovery is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerState {
    /// At its first use of a pool, ready to be forked.
    Ready,
    /// There, but good for one run only.
    Once,
    /// A run is over.
    Done,
    /// In a reference run: between two operations.
    Boundary,
    /// A run has got to where it shall stop, ready to be forked.
    Stopped,
    /// The recovery's own first process has ended, and every other with it.
    Ended(ExitStatus),
    /// Nothing of this within the time.
    Late,
}

/// Where the runs of a server got their processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Processes {
    /// By a fork.
    pub forked: u64,
    /// By putting back that of the run before.
    pub put_back: u64,
    /// Why the last run could not put its process back: one of `wire::recover::not_put_back`, and for a system call its number.
    pub why_not: u32,
    pub detail: u64,
}

/// The recovery's process. Ends with the value.
#[derive(Debug)]
pub struct ForkServer {
    launched: Launched,
    shared: Shared,
}

impl ForkServer {
    pub fn start(setup: &Setup<'_>) -> Result<ForkServer, LaunchError> {
        let maps = if setup.cover { COVER_BYTES } else { 0 };
        let mut shared = Shared::create(NOTES_BYTES + maps)?;
        let options = ProbeOptions {
            real_time: setup.real_time,
            real_random: setup.real_world,
            real_tsc: setup.real_world,
            substitutes: setup.pools.to_vec(),
            operations_stdin: setup.operations,
            ..ProbeOptions::default()
        };
        shared.configure(&setup.target.path, &options)?;
        configure_recovery(shared.control_mut(), setup.pools, setup.private)?;
        if setup.cover {
            cover(shared.control_mut());
        }
        configure_roots(shared.control_mut(), setup.roots)?;
        *shared.control_mut().recovery.reference.get_mut() = setup.reference;
        let launch = Launch {
            probe: setup.probe,
            target: setup.target,
            shared: &shared,
            namespaces: true,
            mounts: setup.mounts,
            until_first: false,
            directory: Some(setup.directory),
            streams: Some([setup.stdin, setup.stdout, setup.stderr].map(|stream| stream.as_raw_fd())),
        };
        // Servers outlive the worker threads that ask for them.
        let launched = launch.start_lasting()?;
        Ok(ForkServer { launched, shared })
    }

    /// What its processes use now; looks at no more than `enough` of them.
    pub fn usage(&self, enough: u32) -> Usage {
        Usage::look(self.launched.supervised.pid(), enough)
    }

    /// A process that is in the recovery's namespaces as long as this value lives.
    pub fn supervisor(&self) -> i32 {
        self.launched.supervised.pid()
    }

    pub fn recovery(&self) -> &Recovery {
        &self.shared.control().recovery
    }

    /// The root directory as its processes see it, for the host.
    pub fn root(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root", self.launched.supervised.pid()))
    }

    /// Files outside of the private directories that were changed, or opened for it, since the start.
    pub fn outside(&self) -> Vec<PathBuf> {
        let recovery = self.recovery();
        let len = (recovery.outside_len.load(Ordering::Acquire) as usize).min(OUTSIDE_BYTES);
        let lines = recovery.outside[..len].split(|byte| *byte == b'\n');
        lines.filter(|line| !line.is_empty()).map(|line| PathBuf::from(OsStr::from_bytes(line))).collect()
    }

    /// Why the probe did not start, if it did not.
    pub fn start_error(&self) -> Option<LaunchError> {
        self.launched.start_error()
    }

    /// The operations of the next run: byte ranges of the file behind standard input, at most [`MAX_BYTE_RANGES`].
    pub fn give(&self, byte_ranges: &[Range<u64>]) {
        let recovery = self.recovery();
        for (own, byte_range) in recovery.byte_ranges.iter().zip(byte_ranges) {
            own.from.store(byte_range.start, Ordering::Relaxed);
            own.to.store(byte_range.end, Ordering::Relaxed);
        }
        recovery.byte_range_count.store(byte_ranges.len().min(MAX_BYTE_RANGES) as u32, Ordering::Relaxed);
    }

    /// How long the standard output was at each boundary between operations of the last run.
    pub fn answers(&self) -> Vec<u32> {
        let recovery = self.recovery();
        let count = (recovery.answer_count.load(Ordering::Acquire) as usize).min(MAX_ANSWERS);
        recovery.answers[..count].iter().map(|len| len.load(Ordering::Relaxed)).collect()
    }

    /// Asks for the next run. The limits in [`Recovery`] must be set.
    pub fn ask(&self) {
        self.recovery().go_on.store(go_on::FORK, Ordering::SeqCst);
        self.wake();
    }

    /// At a boundary: the process itself goes on to the next one.
    pub fn go_on(&self) {
        self.recovery().go_on.store(go_on::ITSELF, Ordering::SeqCst);
        self.wake();
    }

    /// The next run stops here in its input, in bytes, unless it cannot be forked there; `NOWHERE`: it does not.
    pub fn stop_at(&self, place: u64) {
        self.recovery().stop_at.store(place, Ordering::SeqCst);
    }

    /// Is the next run over where its operations are?
    pub fn end_with_input(&self, ends: bool) {
        self.recovery().ends_with_input.store(ends.into(), Ordering::SeqCst);
    }

    /// May the next runs put their process back instead of ending it?
    pub fn put_back(&self, allowed: bool) {
        self.recovery().in_place.store(allowed.into(), Ordering::SeqCst);
    }

    /// Where its runs got their processes.
    pub fn processes(&self) -> Processes {
        let recovery = self.recovery();
        Processes {
            forked: recovery.forked.load(Ordering::Relaxed),
            put_back: recovery.resumed.load(Ordering::Relaxed),
            why_not: recovery.not_put_back.load(Ordering::Relaxed),
            detail: recovery.not_put_back_detail.load(Ordering::Relaxed),
        }
    }

    /// Is there a run that has stopped?
    pub fn is_stopped(&self) -> bool {
        self.recovery().stopped.load(Ordering::SeqCst) != 0
    }

    /// The run that has stopped shall end: then it is `Done`.
    pub fn leave(&self) {
        self.recovery().go_on.store(go_on::LEAVE, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        let recovery = self.recovery();
        if matches!(recovery.state.load(Ordering::SeqCst), state::DONE | state::BOUNDARY | state::STOPPED) {
            recovery.state.store(state::READY, Ordering::SeqCst);
        }
        recovery.wanted.fetch_add(1, Ordering::SeqCst);
        futex_wake(&recovery.wanted);
    }

    /// Waits until the recovery is at its fork point (`STARTING` is over), or a run is done.
    pub fn wait(&self, limit: Duration) -> ServerState {
        let recovery = self.recovery();
        let until = Instant::now() + limit;
        let asked = recovery.wanted.load(Ordering::SeqCst) != 0;
        loop {
            let now = recovery.state.load(Ordering::SeqCst);
            match now {
                state::DONE => return ServerState::Done,
                state::BOUNDARY => return ServerState::Boundary,
                state::STOPPED => return ServerState::Stopped,
                state::READY if !asked => return ServerState::Ready,
                state::ONCE if !asked => return ServerState::Once,
                _ => {}
            }
            if let Some(status) = self.launched.supervised.outcome() {
                // The answer may have come just before the end.
                return if recovery.state.load(Ordering::SeqCst) == state::DONE {
                    ServerState::Done
                } else {
                    ServerState::Ended(status)
                };
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return ServerState::Late;
            }
            futex_wait(&recovery.state, now, left.min(Duration::from_millis(5)));
        }
    }

    /// What the last run read and changed.
    pub fn notes(&self) -> Vec<u64> {
        self.shared.notes(self.recovery().note_count.load(Ordering::Acquire) as usize)
    }

    /// The maps of coverage, edges first; empty without it. Nobody must be running.
    pub fn maps(&mut self) -> &mut [u8] {
        self.shared.behind_notes()
    }

    /// Which file a pool is now, and how long, so that it is no news to the probe; none: there is none, and with coverage the run may make
    /// it.
    pub fn set_file(&self, pool: usize, file: Option<&Metadata>) {
        let own = &self.shared.control().pools[pool];
        own.device.store(file.map_or(0, MetadataExt::dev), Ordering::Relaxed);
        own.inode.store(file.map_or(0, MetadataExt::ino), Ordering::Relaxed);
        own.len.store(file.map_or(0, Metadata::len), Ordering::Relaxed);
    }

    /// What the probe could not do, said since the last look: the run is then worth nothing.
    pub fn refusals(&self) -> Vec<String> {
        let control = self.shared.control();
        let (mut at, head) = (control.tail.load(Ordering::Relaxed), control.head.load(Ordering::Acquire));
        let mut texts = Vec::new();
        while at < head {
            // SAFETY: published and not given back; a header is plain data.
            let header = unsafe { self.shared.bytes(at, HEADER_BYTES).as_ptr().cast::<Header>().read_unaligned() };
            // SAFETY: as above.
            let text = unsafe { self.shared.bytes(at + HEADER_BYTES as u64, header.size as usize & 0xffff) };
            if header.kind == kind::MESSAGE && header.aux == 2 {
                texts.push(String::from_utf8_lossy(text).into_owned());
            }
            at += record_bytes(header.size as usize) as u64;
        }
        control.tail.store(head, Ordering::Release);
        texts
    }
}

impl Drop for ForkServer {
    fn drop(&mut self) {
        self.shared.control().stop.store(1, Ordering::SeqCst);
        // The supervised processes end with the field.
    }
}
