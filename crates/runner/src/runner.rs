//! Runs recovery on crash images and has it judged: the fork server first, native mode where that is refused.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use crash::changes::ChangeCursor;
use crash::image::CrashImage;
use crash::recovery::{Cancelled, Observation, Recovery, RecoveryError};
use operation::equivalence::{Asking, Equivalence, somewhere};
use persistency::line::{LINE_BYTES, LineId};
use recover::command::{Command, Input, Operations};
use recover::native::{Native, NativeError, PoolFile};
use recover::report::RunReport;
use recover::server::{Server, ServerError};
use recover::slot::{RecordedNames, Slot, SlotError};
use trace::event::{EventId, PoolId};
use verdict::end::Frame;
use verdict::position::CrashPosition;
use verdict::read::Read;
use verdict::verdict::Verdict;

use crate::adaptive_timeout::AdaptiveTimeout;
use crate::commands::Commands;
use crate::machine::{Machine, MachineFailed};
use crate::names::Names;
use crate::plan::{EngineChoice, OperationPlan, RecoveryPlan};

#[derive(Debug, thiserror::Error)]
pub enum RunnerError {
    #[error(transparent)]
    Slot(#[from] SlotError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Native(#[from] NativeError),
    #[error(transparent)]
    Machine(#[from] MachineFailed),
}

impl RunnerError {
    /// The run was ended from outside.
    pub fn is_cancelled(&self) -> bool {
        matches!(
            self,
            RunnerError::Server(ServerError::Cancelled)
                | RunnerError::Native(NativeError::Cancelled)
                | RunnerError::Machine(MachineFailed::Cancelled)
        )
    }
}

/// Servers at their fork points that wait for their position to come again: each is a process with its memory.
const MOST_PARKED: usize = 8;

/// Of the runs whose process had been put back, the 1st, 2nd, 4th, 8th … and each of so many are repeated in a fresh process.
const COMPARED: u64 = 256;

/// One worker's means to run recoveries.
#[derive(Debug)]
pub struct Runner {
    pub(crate) plan: RecoveryPlan,
    pub(crate) slot: Slot,
    pub(crate) servers: Option<Servers>,
    /// Where the recovery is a driver that starts a command per operation.
    pub(crate) commands: Option<Commands>,
    machine: Option<Box<dyn Machine>>,
    native: Option<Native>,
    cursor: ChangeCursor,
    /// Lines of the slot that are not as guaranteed: shown, or changed by a run.
    strange: Vec<LineId>,
    /// The slot holds nothing of use.
    pub(crate) stale: bool,
    /// The first event that had not happened at the crash that is shown.
    at: EventId,
    /// Judges by the answers to operations, once it is known which are right.
    pub equivalence: Option<Arc<Equivalence>>,
    /// What was recorded is a recovery from a crash in this position: after another crash the same answers are right.
    pub recovers_from: Option<CrashPosition>,
    /// The position whose command the server runs, where it depends on the position.
    served: Option<CrashPosition>,
    /// Those of other positions, the last ones at the end: searches come back to them.
    parked: Vec<(CrashPosition, Server)>,
    last: Option<RunReport>,
    names: Names,
    pub timeout: AdaptiveTimeout,
    /// Runs may put their process back for the next one.
    in_place: bool,
    /// Runs in a process that had been put back.
    reused: u64,
    /// One of these showed something else than fresh processes did, so that earlier ones may have been wrong.
    pub reuse_differs: bool,
    /// Why the fork server is not used, if it should have been.
    pub refused: Option<String>,
    /// Files that recoveries have changed where later ones see it.
    pub outside: BTreeSet<PathBuf>,
}

#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) recovery: Server,
    checker: Option<Server>,
}

impl Runner {
    pub fn new(plan: RecoveryPlan) -> Result<Runner, RunnerError> {
        let names = RecordedNames { names: &plan.names, folders: &plan.folders };
        let slot = Slot::with_files(&plan.pools, &[names])?;
        let mut plan = plan;
        if let Some(operations) = &plan.operations {
            let text = match operations.asking {
                Asking::Fed => Arc::clone(operations.workload.text()),
                // Its standard input is empty.
                Asking::Resumed(_) => Arc::default(),
            };
            plan.recovery.stdin = Input::Operations(Operations { text, byte_ranges: Vec::new() });
        }
        let machines = plan.served.as_ref().and_then(|served| served.machines.as_ref());
        let machine = machines.map(|machines| machines.machine()).transpose()?;
        let servers = match plan.engine {
            EngineChoice::Native => None,
            EngineChoice::ForkServer if machine.is_some() => None,
            EngineChoice::ForkServer => {
                let server = |command: &Command| -> Result<Server, ServerError> {
                    let mut server = Server::new(command, &slot)?;
                    server.cancel = plan.cancel.clone();
                    server.real_time = plan.real_time;
                    Ok(server)
                };
                let checker = plan.checker.as_ref().map(server).transpose()?;
                let mut recovery = server(&plan.recovery)?;
                if let Some(served) = plan.served.as_ref().filter(|served| !served.attendant.is_empty()) {
                    recovery.attend(served.attendant.clone());
                }
                Some(Servers { recovery, checker })
            }
        };
        let has_windows = |plan: &OperationPlan| plan.workload.next_window(0) < plan.workload.count();
        let by_lines = plan.operations.as_ref().is_some_and(|plan| plan.asking == Asking::Fed && !has_windows(plan));
        let commands = match servers.is_some() && by_lines {
            true => Commands::of(&plan.recovery, &plan.cancel, plan.real_time),
            false => None,
        };
        Ok(Runner {
            plan,
            slot,
            servers,
            commands,
            machine,
            native: None,
            cursor: ChangeCursor::default(),
            strange: Vec::new(),
            stale: true,
            at: EventId(0),
            equivalence: None,
            recovers_from: None,
            served: None,
            parked: Vec::new(),
            last: None,
            names: Names::default(),
            timeout: AdaptiveTimeout::default(),
            in_place: true,
            reused: 0,
            reuse_differs: false,
            refused: None,
            outside: BTreeSet::new(),
        })
    }

    /// The report of the last run: of the checker if it was the checker that failed.
    pub fn last(&self) -> Option<&RunReport> {
        self.last.as_ref()
    }

    /// Where the last run was when a signal ended it, or when its time was over; empty if nobody knows.
    pub fn broke_down_at(&self) -> &[Frame] {
        self.servers.as_ref().map_or(&[], |servers| &servers.recovery.broke_down_at)
    }

    /// Files that the workload changed and that recovery finds as the whole run left them.
    pub fn left_out(&self) -> Vec<&str> {
        let names = self.plan.names.iter().map(String::as_str);
        names.filter(|name| self.slot.space.private(name).is_none()).collect()
    }

    /// The files with the image that was shown last, as runs have left it.
    pub fn files(&self) -> impl Iterator<Item = (&std::path::Path, &std::path::Path)> {
        self.slot.paths()
    }

    /// Puts an image into the slot: only what differs from what is there.
    pub fn show(&mut self, image: &CrashImage<'_>) -> Result<(), RunnerError> {
        let guaranteed = image.guaranteed();
        let changes = guaranteed.changes(&mut self.cursor);
        let resized = (0..self.plan.pools.len() as u32).any(|p| self.slot.len(PoolId(p)) != guaranteed.len(PoolId(p)));
        if self.stale || changes.all || resized {
            self.slot.renew(|pool| guaranteed.len(pool))?;
            if let Some(commands) = &mut self.commands {
                commands.filled();
            }
            if let Some(machine) = &mut self.machine {
                machine.clear()?;
            }
            for pool in guaranteed.pools() {
                for (number, page) in guaranteed.pages(pool) {
                    self.slot.write(pool, number * page.len() as u64, page)?;
                    if let Some(machine) = &mut self.machine {
                        machine.put(number * page.len() as u64, page)?;
                    }
                }
            }
            self.stale = false;
        } else {
            let strange = std::mem::take(&mut self.strange);
            for line in changes.lines.into_iter().chain(strange) {
                self.put(line, &guaranteed.line(line))?;
            }
        }
        self.slot.show_files(guaranteed.files())?;
        self.strange.clear();
        for (line, bytes) in image.lines() {
            self.put(*line, bytes)?;
            self.strange.push(*line);
        }
        if let Some(commands) = &mut self.commands {
            commands
                .shown(guaranteed.files().identity(), guaranteed.pools().map(|pool| guaranteed.len(pool)).collect());
        }
        Ok(())
    }

    fn put(&mut self, line: LineId, bytes: &[u8; LINE_BYTES]) -> Result<(), RunnerError> {
        self.slot.write(line.pool, line.start().offset.0, bytes)?;
        if let Some(commands) = &mut self.commands {
            commands.put(line, bytes);
        }
        match &mut self.machine {
            Some(machine) => Ok(machine.put(line.start().offset.0, bytes)?),
            None => Ok(()),
        }
    }

    /// Recovery in the virtual machine, on what it was given.
    fn in_machine(&mut self) -> Result<Option<Observation>, RunnerError> {
        let Some(machine) = &mut self.machine else { return Ok(None) };
        let run = machine.run(&self.plan.limits, &self.plan.cancel)?;
        let verdict = self.plan.by_tree(self.at, &run, self.plan.oracle.judge(&run));
        let reads = run.reads.clone().map(|reads| self::reads(&self.plan, reads));
        self.strange.extend(&run.dirtied);
        self.stale |= run.pools_replaced;
        self.last = Some(run);
        Ok(Some(Observation { verdict, reads }))
    }

    /// Runs recovery, and the checker if recovery passes, on the image.
    pub fn observe(&mut self, image: &CrashImage<'_>) -> Result<Observation, RunnerError> {
        self.show(image)?;
        let position = self.position(image);
        self.at = image.guaranteed().at();
        if let Some(answer) = self.in_machine()? {
            return Ok(answer);
        }
        if self.servers.is_some() {
            let served = self.by_commands(position, image).and_then(|run| match run {
                None => self.compared(position, image),
                run => self.serve(position, run),
            });
            match served {
                Err(RunnerError::Server(error)) if !matches!(error, ServerError::Cancelled) => {
                    self.go_native(error.to_string());
                    self.show(image)?;
                }
                answer => return self.credible(answer?),
            }
        }
        let answer = self.natively(position)?;
        self.credible(answer)
    }

    /// A run of the fork server. Now and then, one whose process had been put back is repeated in a fresh one, and must show the same.
    fn compared(
        &mut self,
        position: Option<CrashPosition>,
        image: &CrashImage<'_>,
    ) -> Result<Observation, RunnerError> {
        let before = self.put_back();
        let answer = self.serve(position, None)?;
        let is_hang = matches!(&answer.verdict, Verdict::Fail(symptom) if symptom.is_hang());
        if self.put_back() == before || is_hang {
            return Ok(answer);
        }
        self.reused += 1;
        if !self.reused.is_power_of_two() && !self.reused.is_multiple_of(COMPARED) {
            return Ok(answer);
        }
        self.in_place = false;
        self.show(image)?;
        let fresh = self.serve(position, None)?;
        if fresh == answer {
            self.in_place = true;
            return Ok(answer);
        }
        // A program that is not deterministic contradicts itself in fresh processes, too: that is for the read tree to find out.
        self.show(image)?;
        self.reuse_differs |= self.serve(position, None)? == fresh;
        Ok(fresh)
    }

    fn put_back(&self) -> u64 {
        self.servers.as_ref().map_or(0, |servers| servers.recovery.processes().put_back)
    }

    /// From now on without the fork server.
    pub fn go_native(&mut self, why: String) {
        self.refused = Some(why);
        self.servers = None;
        self.commands = None;
        self.stale = true;
    }

    /// A failure for want of room for the pools is none of the program's.
    fn credible(&self, answer: Observation) -> Result<Observation, RunnerError> {
        if !answer.verdict.is_pass() {
            self.slot.had_room()?;
        }
        Ok(answer)
    }

    /// Was there room for what runs without a crash do, which begin without a pool?
    pub fn had_room(&self) -> Result<(), RunnerError> {
        Ok(self.slot.had_room_for_all()?)
    }

    /// Where among the operations the crash of this image came.
    pub fn position(&self, image: &CrashImage<'_>) -> Option<CrashPosition> {
        self.position_at(image.guaranteed().at())
    }

    /// Where among the operations a crash just before this event comes.
    pub fn position_at(&self, at: EventId) -> Option<CrashPosition> {
        let equivalence = self.equivalence.as_ref()?;
        Some(self.recovers_from.unwrap_or_else(|| equivalence.position(at)))
    }

    /// What the slot holds is not what it was shown.
    pub(crate) fn is_stale(&self) -> bool {
        self.stale
    }

    /// What a run on the slot has changed there.
    pub(crate) fn changed_by(&mut self, run: &RunReport) {
        self.strange.extend(&run.dirtied);
        self.stale |= run.pools_replaced;
        if run.tree_changed {
            self.slot.space.forget();
        }
    }

    fn serve(
        &mut self,
        position: Option<CrashPosition>,
        by_commands: Option<RunReport>,
    ) -> Result<Observation, RunnerError> {
        // Another position has another command.
        let other = self.is_resumed() && self.served != position;
        let resumed = other.then(|| self.command(position));
        let known = self.parked.iter().position(|(parked, _)| other && Some(*parked) == position);
        let known = known.map(|at| self.parked.remove(at).1);
        let Some(servers) = &mut self.servers else { return self.natively(position) };
        let limits = self.timeout.limits(&self.plan.limits);
        if let Some(command) = resumed {
            let mut server = match known {
                Some(server) => server,
                None => Server::new(&command, &self.slot)?,
            };
            server.cancel = self.plan.cancel.clone();
            server.real_time = self.plan.real_time;
            let before = std::mem::replace(&mut servers.recovery, server);
            if let Some(served) = std::mem::replace(&mut self.served, position) {
                self.parked.push((served, before));
                if self.parked.len() > MOST_PARKED {
                    self.parked.remove(0);
                }
            }
        }
        if let (Some(equivalence), Some(position)) = (&self.equivalence, position) {
            servers.recovery.give(equivalence.byte_ranges(position));
        }
        let run = match by_commands {
            Some(run) => run,
            None => {
                if let Some(commands) = &mut self.commands {
                    commands.left_alone();
                }
                servers.recovery.in_place = self.in_place;
                servers.recovery.run(&self.slot, &limits)?
            }
        };
        self.timeout.note(&run);
        let mut verdict = self.plan.oracle.judge_named(&run, None, &|frame| self.names.of(&run, frame));
        if let (Some(equivalence), Some(position)) = (&self.equivalence, position) {
            verdict = equivalence.judge(position, &run, verdict);
        }
        verdict = self.plan.by_tree(self.at, &run, verdict);
        let mut reads = run.reads.clone().map(|reads| self::reads(&self.plan, reads));
        self.changed_by(&run);
        self.outside.extend(outside(&run));
        let checker = self.servers.as_mut().and_then(|servers| servers.checker.as_mut());
        let Some(server) = checker.filter(|_| verdict.is_pass()) else {
            self.last = Some(run);
            return Ok(Observation { verdict, reads });
        };
        if let Some(commands) = &mut self.commands {
            commands.left_alone();
        }
        let check = server.run(&self.slot, &self.plan.limits)?;
        let verdict = self.plan.oracle.judge_named(&run, Some(&check), &|frame| self.names.of(&check, frame));
        // What the checker read of lines that recovery had written depends on the crash image through what recovery
        // read; to name these lines as well is on the safe side.
        reads = match (reads, &check.reads) {
            (Some(mut reads), Some(more)) => {
                reads.extend(more);
                Some(reads)
            }
            _ => None,
        };
        self.changed_by(&check);
        self.outside.extend(outside(&check));
        self.last = Some(check);
        Ok(Observation { verdict, reads })
    }

    /// The uninstrumented program on what the slot holds.
    fn natively(&mut self, position: Option<CrashPosition>) -> Result<Observation, RunnerError> {
        self.stale = true;
        let recovery = match &self.plan.served {
            Some(served) => served.native.clone(),
            None => self.command(position),
        };
        let native = self.native.get_or_insert_with(|| native(&self.plan));
        let mut session = native.session_with(&pool_files(&self.slot), &self.slot.space)?;
        let run = session.run(&recovery, &self.plan.limits)?;
        let mut verdict = self.plan.oracle.judge(&run);
        if let (Some(equivalence), Some(position)) = (&self.equivalence, position) {
            verdict = match verdict {
                Verdict::Pass => equivalence.judge_native(position, &run),
                Verdict::Fail(_) if equivalence.fails_rightly_native(position, &run) => Verdict::Pass,
                Verdict::Fail(symptom) => Verdict::fail(somewhere(*symptom)),
            };
        }
        verdict = self.plan.by_tree(self.at, &run, verdict);
        let check = match self.plan.checker.as_ref().filter(|_| verdict.is_pass()) {
            Some(command) => Some(session.run(command, &self.plan.limits)?),
            None => None,
        };
        if let Some(check) = &check {
            verdict = self.plan.oracle.judge_named(&run, Some(check), &|_| None);
        }
        self.last = Some(check.unwrap_or(run));
        Ok(Observation { verdict, reads: None })
    }

    /// One run in native mode, whatever the plan says.
    pub fn confirm(&mut self, image: &CrashImage<'_>) -> Result<Verdict, RunnerError> {
        self.stale = true;
        self.show(image)?;
        let position = self.position(image);
        self.at = image.guaranteed().at();
        let answer = self.natively(position)?;
        Ok(self.credible(answer)?.verdict)
    }

    /// The command that recovers, with the operations that it is asked after a crash in this position.
    pub fn command(&self, position: Option<CrashPosition>) -> Command {
        let mut command = self.plan.recovery.clone();
        if let (Some(equivalence), Some(position)) = (&self.equivalence, position) {
            match &equivalence.asking {
                Asking::Fed => {
                    let text = Arc::clone(equivalence.workload.text());
                    command.stdin =
                        Input::Operations(Operations { text, byte_ranges: equivalence.byte_ranges(position) });
                }
                Asking::Resumed(templates) => {
                    let end = equivalence.expected.asked(position).end;
                    command = self.of_words(&templates.resume(position, self.pool(), end));
                }
            }
        }
        command
    }

    fn is_resumed(&self) -> bool {
        self.equivalence.as_ref().is_some_and(|equivalence| equivalence.asking != Asking::Fed)
    }

    /// The first pool, for commands.
    pub fn pool(&self) -> &std::path::Path {
        self.plan.pools.first().map_or(std::path::Path::new(""), |(path, _)| path)
    }

    /// A command in the surroundings of the recovery.
    pub fn of_words(&self, words: &[String]) -> Command {
        let (program, args) = words.split_first().map_or(("", &[][..]), |(program, args)| (program.as_str(), args));
        let args = args.iter().map(std::ffi::OsString::from).collect();
        Command { program: program.into(), args, ..self.plan.recovery.clone() }
    }

    /// Bytes of a run's output that are kept.
    pub fn kept_output(&self) -> u64 {
        self.plan.limits.output
    }

    /// The fork server's commands, and the slot that they work on. It must be shown something before it is used again.
    pub fn stage(&mut self) -> Option<(&mut Server, &Slot, &RecoveryPlan)> {
        self.stale = true;
        if let Some(commands) = &mut self.commands {
            commands.left_alone();
        }
        Some((&mut self.servers.as_mut()?.recovery, &self.slot, &self.plan))
    }

    /// One run of the uninstrumented program with these operations on what the slot holds.
    pub fn native_run(&mut self, operations: Operations) -> Result<RunReport, RunnerError> {
        let command = Command { stdin: Input::Operations(operations), ..self.plan.recovery.clone() };
        self.native_command(&command)
    }

    /// One run of the uninstrumented command on what the slot holds.
    pub fn native_command(&mut self, command: &Command) -> Result<RunReport, RunnerError> {
        self.stale = true;
        let native = self.native.get_or_insert_with(|| native(&self.plan));
        Ok(native.session_with(&pool_files(&self.slot), &self.slot.space)?.run(command, &self.plan.limits)?)
    }
}

impl Recovery for Runner {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        self.observe(image).map_err(|error| match error.is_cancelled() {
            true => RecoveryError::new(Cancelled),
            false => RecoveryError::new(error),
        })
    }
}

fn native(plan: &RecoveryPlan) -> Native {
    let mut native = Native::new();
    native.cancel = plan.cancel.clone();
    native
}

fn pool_files(slot: &Slot) -> Vec<PoolFile<'_>> {
    slot.paths().map(|(path, content)| PoolFile { path: path.to_owned(), content }).collect()
}

/// Files that a run has changed where the next one sees it; sockets of drivers are never used again.
fn outside(run: &RunReport) -> impl Iterator<Item = PathBuf> {
    run.outside.iter().filter(|path| !drive::address::is_own(path)).cloned()
}

/// Every recovery may look at the lengths of its pools.
fn reads(plan: &RecoveryPlan, reads: Vec<Read>) -> Vec<Read> {
    let lengths = (0..plan.pools.len() as u32).map(|pool| Read::Length(PoolId(pool)));
    lengths.chain(reads).collect()
}
