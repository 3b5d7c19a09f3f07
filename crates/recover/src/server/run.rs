//! Starts the server and asks it for runs.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, Seek};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use supervise::cancel::Cancel;
use supervise::fork_server::{ForkServer, Processes, ServerState, Setup};
use supervise::limits::{Limits, OUTPUT_ENDS_RUN};
use supervise::memory_file;
use supervise::mounts::Mounts;
use supervise::probe::{LaunchError, ProbeImage, Substituted};
use supervise::target::{Target, TargetError};
use trace::event::{ExitStatus, PoolId};
use wire::recover::{NOWHERE, reference};

use super::attendant::Attendant;
use super::output::Stream;
use super::private::{Private, directories};
use super::report::{Noted, end, left_running, noted, path, report};
use super::stop::{Arrival, StoppedRun};
use super::watch::{Watched, watch};
use crate::command::{Command, Input};
use crate::folders::Folders;
use crate::leftovers::Restored;
use crate::report::RunReport;
use crate::slot::Slot;
use verdict::end::{End, Frame, Limit};

#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error(transparent)]
    Launch(#[from] LaunchError),
    #[error("cannot {action} for the recovery: {source}")]
    System { action: &'static str, source: io::Error },
    /// The probe met something that it cannot run.
    #[error("the recovery cannot run under the probe: {0}")]
    Refused(String),
    #[error("the fork server does not answer")]
    Silent,
    #[error("the run was ended from outside")]
    Cancelled,
}

pub(super) fn system(action: &'static str) -> impl Fn(io::Error) -> ServerError {
    move |source| ServerError::System { action, source }
}

/// More than a run's own limit: for the machinery around it.
pub(super) const ALLOWANCE: Duration = Duration::from_secs(20);

/// Between the beginnings of runs in a row.
const TURN_NS: u64 = 1_000_000;

/// To get to its first use of a pool a program may take so long, however short its runs have been.
const START_AT_LEAST: Duration = Duration::from_secs(3);

/// A recovery command that is ready to run on whatever the slot holds.
#[derive(Debug)]
pub struct Server {
    target: Target,
    directory: CString,
    /// Directories that are private to each run, and where what is changed there is kept.
    directories: Vec<PathBuf>,
    place: PathBuf,
    stdin: File,
    /// What a run reads, if these are operations.
    operations: Option<Vec<Range<u64>>>,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    pools: Vec<Substituted>,
    roots: Vec<Substituted>,
    probe: ProbeImage,
    /// Real time and randomness.
    pub real_world: bool,
    /// Real time alone.
    pub real_time: bool,
    pub cancel: Cancel,
    pub(super) running: Option<Running>,
    /// The command of a process beside the recovery, whose report is the standard output of a run.
    attendant_words: Vec<OsString>,
    attendant: Option<Attendant>,
    /// The recovery cannot be forked: nobody inside watches its limits.
    once: bool,
    /// With coverage: the maps at the fork point, and those of the last run.
    cover: Option<(Vec<u8>, Vec<u8>)>,
    /// Processes that were started from scratch.
    pub starts: u64,
    /// Where the last run was when a signal ended it, or when its time was over; innermost frame first.
    pub broke_down_at: Vec<Frame>,
    /// The last run left files in its private folders, or processes: a run that follows it in the same recovery would not find them.
    pub left_behind: bool,
    /// How the first process of the last run ended, as `wait` tells it.
    pub status: i32,
    /// Which of several runs in a row the next one is: its clock and its random numbers are not those of the others.
    pub turn: u64,
    /// Runs to come are over where their operations are: what the program does at the end of its input is left out.
    pub ends_with_input: bool,
    /// Why runs have no private folders, if they have none.
    pub not_private: Option<String>,
    /// A run that can be undone is, so that the next one needs no fork. Otherwise every run is a fork.
    pub in_place: bool,
}

/// A server at its fork point.
#[derive(Debug)]
pub(super) struct Running {
    pub engine: ForkServer,
    pub private: Private,
    /// Bytes of memory that the server itself uses.
    memory: u64,
    pub stopped: Option<StoppedRun>,
}

impl Server {
    pub fn new(command: &Command, slot: &Slot) -> Result<Server, ServerError> {
        let target = Target::of(
            &command.executable().unwrap_or_else(|| command.program.clone()),
            &std::iter::once(command.program.as_os_str().to_owned())
                .chain(command.args.iter().cloned())
                .collect::<Vec<_>>(),
            &command.env,
        )?;
        let directory = CString::new(command.dir.as_os_str().as_bytes()).map_err(|_| TargetError::ZeroByte)?;
        Ok(Server {
            target,
            directory,
            directories: directories(command, slot),
            place: slot.place().to_owned(),
            stdin: input(&command.stdin).map_err(system("prepare the standard input"))?,
            operations: match &command.stdin {
                Input::Operations(operations) => Some(operations.byte_ranges.clone()),
                _ => None,
            },
            stdout: Stream::create().map_err(system("keep the standard output"))?,
            stderr: Stream::create().map_err(system("keep the standard error"))?,
            pools: slot
                .paths()
                .map(|(path, private)| Substituted { path: path.into(), private: private.into() })
                .collect(),
            roots: slot
                .space
                .roots()
                .iter()
                .map(|root| Substituted { path: root.path.clone(), private: root.private.clone() })
                .collect(),
            probe: ProbeImage::Embedded,
            real_world: false,
            real_time: false,
            cancel: Cancel::default(),
            running: None,
            attendant_words: Vec::new(),
            attendant: None,
            once: false,
            cover: None,
            starts: 0,
            broke_down_at: Vec::new(),
            left_behind: false,
            status: 0,
            turn: 0,
            ends_with_input: false,
            not_private: None,
            in_place: true,
        })
    }

    /// The operations of the runs to come: byte ranges of those that the command was made with.
    pub fn give(&mut self, byte_ranges: Vec<Range<u64>>) {
        self.operations = Some(byte_ranges);
    }

    /// Runs to come count what they do, and may make their pools. What they read is not told.
    pub fn count_coverage(&mut self) {
        self.cover = Some(Default::default());
    }

    /// The maps of the last run (`wire::cover`).
    pub fn maps(&self) -> &[u8] {
        self.cover.as_ref().map_or(&[], |(_, last)| last)
    }

    /// What the runs to come find on standard input: all of it, as operations if the command was made with some.
    pub fn feed(&mut self, input: &[u8]) -> Result<(), ServerError> {
        let write = || {
            self.stdin.set_len(0)?;
            self.stdin.write_all_at(input, 0)
        };
        write().map_err(system("write the standard input"))?;
        if let Some(operations) = &mut self.operations {
            operations.clear();
            operations.push(0..input.len() as u64);
        }
        Ok(())
    }

    /// Before a run: which files the pools are, and with coverage the maps.
    fn prepare(&mut self, running: &mut Running, slot: &Slot) -> Result<(), ServerError> {
        let engine = &mut running.engine;
        match &self.cover {
            None => slot.tell(engine),
            Some((before, _)) => {
                let before = running.stopped.as_ref().map_or(before, |stopped| &stopped.maps);
                for pool in 0..self.pools.len() {
                    engine.set_file(pool, slot.metadata(PoolId(pool as u32)).as_ref());
                }
                engine.maps().copy_from_slice(before);
                // Runs share the position in the file.
                self.stdin.rewind().map_err(system("rewind the standard input"))?;
            }
        }
        Ok(())
    }

    /// How runs got their process since the command was last started, and why the last one ended it.
    pub fn processes(&self) -> Processes {
        let Some(running) = &self.running else { return Processes::default() };
        running.engine.processes()
    }

    /// With a process beside it: `--beside PID` is added to its command.
    pub fn attend(&mut self, words: Vec<OsString>) {
        self.attendant_words = words;
    }

    /// Runs the recovery on what the slot holds now.
    pub fn run(&mut self, slot: &Slot, limits: &Limits) -> Result<RunReport, ServerError> {
        match self.run_until(slot, limits, NOWHERE)? {
            Arrival::Ended(report) => Ok(*report),
            Arrival::Stopped { .. } => Err(ServerError::Silent),
        }
    }

    pub(super) fn run_until(&mut self, slot: &Slot, limits: &Limits, place: u64) -> Result<Arrival, ServerError> {
        if self.cancel.is_cancelled() {
            return Err(ServerError::Cancelled);
        }
        let started = Instant::now();
        let mut running = match self.running.take() {
            Some(running) => running,
            None => match self.anew(limits)? {
                Started::Ready(running) => *running,
                Started::Ended(report) => return Ok(Arrival::Ended(report)),
            },
        };
        self.prepare(&mut running, slot)?;
        let engine = &running.engine;
        self.clear_output()?;
        set_limits(engine, limits);
        engine.recovery().later_ns.store(self.turn * TURN_NS, Ordering::Relaxed);
        engine.recovery().salt.store(self.turn, Ordering::Relaxed);
        engine.give(self.operations.as_deref().unwrap_or_default());
        if !self.attendant_words.is_empty() {
            if self.attendant.is_none() {
                let started = Attendant::start(&self.attendant_words, engine.supervisor());
                self.attendant = Some(started.map_err(system("start a process beside it"))?);
            }
            let begun = self.attendant.as_mut().map_or(Ok(()), Attendant::begin);
            begun.map_err(system("use what it serves"))?;
        }
        engine.put_back(self.in_place);
        engine.stop_at(place);
        engine.end_with_input(self.ends_with_input);
        engine.ask();
        // A fork is watched from inside as well, which knows where it is when its time is over.
        let wall = if self.once { limits.wall } else { limits.wall + ALLOWANCE };
        let watched =
            watch(engine, &Limits { wall, ..limits.clone() }, running.memory, &self.cancel, || self.floods(limits))?;
        if watched == Watched::At(ServerState::Stopped) {
            return self.has_stopped(running);
        }
        let mut done = watched == Watched::At(ServerState::Done);
        // One that hangs inside the recovery gets free when that is ended.
        let attended = match self.attendant.as_mut().filter(|_| done) {
            Some(attendant) => Some(attendant.end().map_err(system("know what it served"))?),
            None => {
                self.attendant = None;
                None
            }
        };
        if let Some(text) = engine.refusals().into_iter().next() {
            return Err(ServerError::Refused(text));
        }
        self.broke_down_at = path(engine);
        let mut noted = noted(engine);
        let end = match watched {
            Watched::At(ServerState::Done) => end(engine, engine.recovery().status.load(Ordering::Acquire), limits),
            Watched::At(ServerState::Ended(status)) => end(engine, wait_status(status), limits),
            Watched::At(ServerState::Late) => End::Hung,
            Watched::At(_) => return Err(ServerError::Silent),
            Watched::OverLimit(limit) => {
                // It may be in the middle of anything.
                noted = Noted { reads: None, files_changed: true, tree_changed: true, ..noted };
                End::OverLimit(limit)
            }
        };
        let end = match running.stopped {
            // What was forked is gone, perhaps for want of memory: nothing is known of the run.
            Some(_) if !engine.is_stopped() => {
                done = false;
                End::OverLimit(Limit::Memory)
            }
            _ => end,
        };
        // With coverage runs make their pools themselves.
        noted.files_changed |= self.cover.is_none() && slot.is_altered();
        let report = report(engine, end, &noted, started.elapsed());
        let mut report = self.with_output(report, limits)?;
        if let Some(attended) = attended {
            report.stdout = attended;
        }
        if let Some((_, last)) = &mut self.cover {
            last.clear();
            last.extend_from_slice(running.engine.maps());
        }
        self.status = running.engine.recovery().status.load(Ordering::Acquire);
        // The next run must find nothing of this one.
        let restored = if done { running.private.restore(&running.engine) } else { Restored::No };
        self.left_behind = restored != Restored::Untouched || left_running(&running.engine);
        if restored != Restored::No {
            self.running = Some(running);
        }
        Ok(Arrival::Ended(Box::new(report)))
    }

    /// The attendant of another process is of no use.
    fn anew(&mut self, limits: &Limits) -> Result<Started, ServerError> {
        self.attendant = None;
        self.start(limits)
    }

    /// Starts the command from scratch.
    pub(super) fn launch(&mut self, reference: u32) -> Result<(ForkServer, Private), ServerError> {
        self.stdout.reset().map_err(system("empty the output"))?;
        self.stderr.reset().map_err(system("empty the output"))?;
        self.starts += 1;
        let mut folders = Folders::default();
        if self.not_private.is_none() {
            self.directories.iter().for_each(|dir| folders.try_add(dir, &self.place));
        }
        match self.launch_in(reference, folders) {
            Err(ServerError::Launch(LaunchError::Mounts(error))) => {
                self.not_private = Some(error.to_string());
                self.launch_in(reference, Folders::default())
            }
            launched => launched,
        }
    }

    fn launch_in(&self, reference: u32, mut folders: Folders) -> Result<(ForkServer, Private), ServerError> {
        let mut mounts = Mounts::default();
        if !folders.layers().is_empty() {
            let refused = |error| ServerError::Launch(LaunchError::Mounts(error));
            mounts = folders.mounts().map_err(refused)?;
            folders.except(&self.place, &mut mounts).map_err(refused)?;
        }
        let mut private: Vec<PathBuf> = folders.layers().iter().map(|layer| layer.dir.clone()).collect();
        private.push(self.place.clone());
        let engine = ForkServer::start(&Setup {
            probe: &self.probe,
            target: &self.target,
            directory: &self.directory,
            stdin: self.stdin.as_fd(),
            stdout: self.stdout.file.as_fd(),
            stderr: self.stderr.file.as_fd(),
            pools: &self.pools,
            roots: &self.roots,
            real_world: self.real_world,
            real_time: self.real_world || self.real_time,
            operations: self.operations.is_some(),
            reference,
            mounts: &mounts,
            private: &private,
            cover: self.cover.is_some(),
        })?;
        Ok((engine, Private::new(folders)))
    }

    /// Starts the command and waits until it wants a pool. Its limits hold from its first instruction on.
    fn start(&mut self, limits: &Limits) -> Result<Started, ServerError> {
        let begun = Instant::now();
        let (mut engine, mut private) = self.launch(reference::NONE)?;
        let start = Limits { wall: limits.wall.max(START_AT_LEAST), ..limits.clone() };
        let watched = watch(&engine, &start, ENGINE_MEMORY, &self.cancel, || self.floods(limits))?;
        if let Some(error) = engine.start_error() {
            return Err(error.into());
        }
        if let Some(text) = engine.refusals().into_iter().next() {
            return Err(ServerError::Refused(text));
        }
        let end = match watched {
            Watched::At(stage @ (ServerState::Ready | ServerState::Once)) => {
                self.once = stage == ServerState::Once;
                if let Some((before, _)) = &mut self.cover {
                    *before = engine.maps().to_vec();
                }
                self.stdout.mark(limits.output).map_err(system("read the output"))?;
                self.stderr.mark(limits.output).map_err(system("read the output"))?;
                private.at_fork_point().map_err(system("look at the private folders"))?;
                let memory = engine.usage(limits.processes).memory_shared_once();
                return Ok(Started::Ready(Box::new(Running { engine, private, memory, stopped: None })));
            }
            // It never used a pool: its answer is the same for every crash image.
            Watched::At(ServerState::Ended(status)) => end(&engine, wait_status(status), limits),
            Watched::At(ServerState::Late) => End::Hung,
            Watched::At(_) => return Err(ServerError::Silent),
            Watched::OverLimit(limit) => End::OverLimit(limit),
        };
        let noted = noted(&engine);
        let report = report(&engine, end, &noted, begun.elapsed());
        Ok(Started::Ended(Box::new(self.with_output(report, limits)?)))
    }

    fn floods(&self, limits: &Limits) -> Result<bool, ServerError> {
        let most = limits.output.saturating_mul(OUTPUT_ENDS_RUN);
        let len = |stream: &Stream| stream.file.metadata().map(|metadata| metadata.len());
        let longest = len(&self.stdout).and_then(|out| Ok(out.max(len(&self.stderr)?)));
        Ok(longest.map_err(system("look at the output"))? > most)
    }

    pub(super) fn clear_output(&self) -> Result<(), ServerError> {
        self.stdout.clear().and_then(|()| self.stderr.clear()).map_err(system("empty the output"))
    }

    /// Standard output since it was emptied last.
    pub(super) fn written(&self, limits: &Limits) -> Result<Vec<u8>, ServerError> {
        Ok(self.stdout.content(limits.output).map_err(system("read the output"))?.0)
    }

    pub(super) fn with_output(&self, mut report: RunReport, limits: &Limits) -> Result<RunReport, ServerError> {
        let (stdout, cut) = self.stdout.content(limits.output).map_err(system("read the output"))?;
        let (stderr, cut_too) = self.stderr.content(limits.output).map_err(system("read the output"))?;
        for boundary in &mut report.boundaries {
            *boundary += self.stdout.before_len();
        }
        report.stdout = stdout;
        report.stderr = stderr;
        report.output_cut = cut || cut_too;
        Ok(report)
    }
}

/// What the probe may use for itself before the fork point: code caches and tables.
const ENGINE_MEMORY: u64 = 256 << 20;

enum Started {
    Ready(Box<Running>),
    Ended(Box<RunReport>),
}

pub(super) fn set_limits(engine: &ForkServer, limits: &Limits) {
    let recovery = engine.recovery();
    recovery.wall_ms.store(limits.wall.as_millis() as u64, Ordering::Relaxed);
    // Whole seconds, at least one.
    recovery.cpu_s.store(limits.cpu.as_millis().div_ceil(1000).max(1) as u64, Ordering::Relaxed);
    recovery.memory.store(limits.memory, Ordering::Relaxed);
    recovery.output.store(limits.output.saturating_mul(OUTPUT_ENDS_RUN), Ordering::Relaxed);
    recovery.processes.store(limits.processes, Ordering::Relaxed);
}

/// As `wait` would give it.
pub(super) fn wait_status(status: ExitStatus) -> i32 {
    match status {
        ExitStatus::Code(code) => (code & 0xff) << 8,
        ExitStatus::Signal(signal) => signal,
    }
}

fn input(input: &Input) -> io::Result<File> {
    match input {
        Input::Empty => File::open("/dev/null"),
        Input::File(path) => File::open(path),
        Input::Bytes(bytes) => memory_file::holding(c"input", bytes),
        Input::Operations(operations) => memory_file::holding(c"operations", &operations.text),
    }
}
