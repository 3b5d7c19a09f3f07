//! Runs one test case after the other: the fork server of the crate `recover`, with coverage, on a starting pool of each case.
//!
//! What the slot holds is put right before each run: lines that the run before has changed, if the starting pool is the same, or all
//! of it. A case without a starting pool finds no file and makes it.
//!
//! Runs with the same starting pool and the same first operations can share those: a run stops behind them, and is forked for each of the
//! others ([`Executor::run_after`]). Its pools then hold what the shared part left; what a run changes of it is put right as above.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use recover::command::{Command, Input, Operations};
use recover::limits::Limits;
use recover::pages::{Content, PAGE};
use recover::report::RunReport;
use recover::server::{Arrival, Server, ServerError};
use recover::slot::{Slot, SlotError};
use trace::event::PoolId;
use verdict::end::{End, Frame};

use crate::coverage::Trail;
use crate::image::{Image, ImageId};

const LINE: u64 = 64;

/// How the input reaches the target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Operations on standard input, one line per read.
    Operations,
    /// Bytes on standard input.
    Stdin,
    /// Bytes in a file whose path replaces `@@` among the arguments.
    File(PathBuf),
    /// Each line is one more argument.
    Arguments,
}

/// How far a run goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    End,
    /// The program has read all of its operations: what it does then is left out.
    InputRead,
}

/// What is fuzzed.
#[derive(Clone, Debug)]
pub struct Subject {
    pub command: Command,
    pub delivery: Delivery,
    /// Absolute paths of the pools.
    pub pools: Vec<PathBuf>,
    pub limits: Limits,
}

#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Slot(#[from] SlotError),
}

/// What one run did.
#[derive(Clone, Debug)]
pub struct Execution {
    pub report: RunReport,
    pub trail: Trail,
}

impl Execution {
    /// Ended by itself, with any exit code.
    pub fn is_orderly(&self) -> bool {
        matches!(self.report.end, End::Exited(_))
    }
}

/// One target process that is forked again and again.
#[derive(Debug)]
pub struct Executor {
    subject: Subject,
    slot: Slot,
    server: Option<Server>,
    /// What the slot holds, but for these lines; none: anything.
    holds: Option<ImageId>,
    dirtied: Vec<(PoolId, u64)>,
    /// A run that has stopped behind the first part of its input.
    stopped: Option<Stopped>,
    passes: Passes,
    /// Runs so far, and those of them that were forked behind a beginning that they share.
    pub executions: u64,
    pub shared: u64,
}

/// A run that serves others.
#[derive(Debug)]
struct Stopped {
    start: ImageId,
    /// What it has read of its input.
    prefix: Vec<u8>,
    /// What the pools held when it stopped.
    pools: Image,
    /// What differs from the starting pool; none: anything.
    dirtied: Option<Vec<(PoolId, u64)>>,
}

/// Runs that did not stop where they should have. A pool that cannot be opened, or an operation that ends the program, concerns the runs that have
/// it; programs that have several threads between operations, or read ahead, never stop.
#[derive(Debug, Default)]
struct Passes {
    /// In a row, with different beginnings.
    count: u32,
    /// The beginning of the last of them.
    last: Option<(ImageId, Vec<u8>)>,
    asked: u32,
}

impl Passes {
    /// After so many in a row, only one in so many beginnings is tried.
    const MOST: u32 = 16;
    const RETRY: u32 = 16;

    /// Is it worth trying to stop behind this beginning?
    fn may_stop(&mut self, start: ImageId, prefix: &[u8]) -> bool {
        if self.last.as_ref().is_some_and(|(image, passed)| *image == start && passed == prefix) {
            return false;
        }
        self.asked = self.asked.wrapping_add(1);
        self.count < Passes::MOST || self.asked.is_multiple_of(Passes::RETRY)
    }

    fn passed(&mut self, start: ImageId, prefix: &[u8]) {
        self.count = self.count.saturating_add(1);
        self.last = Some((start, prefix.to_vec()));
    }
}

impl Executor {
    pub fn new(subject: Subject) -> Result<Executor, ExecuteError> {
        let mut files: Vec<(PathBuf, u64)> = subject.pools.iter().map(|path| (path.clone(), 0)).collect();
        if let Delivery::File(path) = &subject.delivery {
            // Not a pool, but the same holds for it: another content in each run, and a fork before its first use.
            files.push((path.clone(), 0));
        }
        let slot = Slot::create(&files)?;
        Ok(Executor {
            subject,
            slot,
            server: None,
            holds: None,
            dirtied: Vec::new(),
            stopped: None,
            passes: Passes::default(),
            executions: 0,
            shared: 0,
        })
    }

    /// Runs the target with this input on this starting pool, from its beginning.
    pub fn run(&mut self, input: &[u8], start: &Image) -> Result<Execution, ExecuteError> {
        self.leave()?;
        self.put(start)?;
        let mut server = self.fed(input)?;
        server.ends_with_input = false;
        let report = server.run(&self.slot, &self.subject.limits)?;
        Ok(self.done(server, report, start))
    }

    /// Can a run end where its input does?
    pub fn can_cut(&self) -> bool {
        self.subject.delivery == Delivery::Operations
    }

    /// As [`run`](Self::run); what was done up to the first `prefix` bytes of the input is done once for all runs in a row that have them,
    /// and the starting pool, in common. Where that cannot be it is [`run`](Self::run). The output is that behind the prefix.
    pub fn run_after(
        &mut self,
        input: &[u8],
        prefix: usize,
        start: &Image,
        until: Until,
    ) -> Result<Execution, ExecuteError> {
        let prefix = match self.subject.delivery {
            Delivery::Operations => prefix,
            // Nobody knows how much of it a program reads at once.
            Delivery::Stdin => 0,
            Delivery::File(_) | Delivery::Arguments => return self.run(input, start),
        };
        let shared = &input[..prefix];
        if self.stopped.as_ref().is_none_or(|stopped| stopped.start != start.id() || stopped.prefix != shared) {
            if !self.passes.may_stop(start.id(), shared) {
                return self.run(input, start);
            }
            self.leave()?;
            self.put(start)?;
            let mut server = self.fed(input)?;
            server.ends_with_input = until == Until::InputRead;
            match server.run_to(&self.slot, &self.subject.limits, prefix as u64)? {
                Arrival::Ended(report) => {
                    self.passes.passed(start.id(), shared);
                    return Ok(self.done(server, *report, start));
                }
                Arrival::Stopped { dirtied, pools_replaced } => {
                    self.passes = Passes::default();
                    self.server = Some(server);
                    self.slot.adopt()?;
                    let is_known = !pools_replaced && !start.is_none();
                    let lines = dirtied.iter().map(|line| (line.pool, line.line.0)).collect();
                    self.dirtied = lines;
                    let pools = if is_known { self.changed(start)? } else { self.content()? };
                    let dirtied = is_known.then(|| std::mem::take(&mut self.dirtied));
                    self.dirtied.clear();
                    self.stopped = Some(Stopped { start: start.id(), prefix: shared.to_vec(), pools, dirtied });
                }
            }
            self.executions -= 1;
        }
        let Some(stopped) = &self.stopped else { return self.run(input, start) };
        write_lines(&mut self.slot, &stopped.pools, &std::mem::take(&mut self.dirtied))?;
        let mut server = self.fed(input)?;
        server.ends_with_input = until == Until::InputRead;
        let report = server.run(&self.slot, &self.subject.limits)?;
        self.shared += 1;
        self.dirtied = report.dirtied.iter().map(|line| (line.pool, line.line.0)).collect();
        let trail = Trail::of(server.maps());
        let is_stopped = server.is_stopped();
        self.server = Some(server);
        if report.pools_replaced || !is_stopped {
            self.leave()?;
            self.holds = None;
        }
        Ok(Execution { report, trail })
    }

    /// Ends the run that has stopped.
    fn leave(&mut self) -> Result<(), ExecuteError> {
        let Some(stopped) = self.stopped.take() else { return Ok(()) };
        if let Some(server) = &mut self.server {
            server.leave()?;
        }
        match stopped.dirtied {
            Some(dirtied) => self.dirtied.extend(dirtied),
            None => self.holds = None,
        }
        Ok(())
    }

    /// The server, with this input.
    fn fed(&mut self, input: &[u8]) -> Result<Server, ExecuteError> {
        if self.subject.delivery == Delivery::Arguments {
            self.server = None;
        }
        if let Delivery::File(_) = self.subject.delivery {
            self.slot.put(PoolId(self.subject.pools.len() as u32), &Content::of_bytes(input))?;
        }
        let mut server = match self.server.take() {
            Some(server) => server,
            None => self.start(input)?,
        };
        if matches!(self.subject.delivery, Delivery::Operations | Delivery::Stdin) {
            server.feed(input)?;
        }
        self.executions += 1;
        Ok(server)
    }

    fn done(&mut self, server: Server, report: RunReport, start: &Image) -> Execution {
        let trail = Trail::of(server.maps());
        self.server = Some(server);
        match report.pools_replaced || start.is_none() {
            true => self.holds = None,
            false => self.dirtied.extend(report.dirtied.iter().map(|line| (line.pool, line.line.0))),
        }
        Execution { report, trail }
    }

    /// Where the last run was when a signal or its time ended it; innermost frame first.
    pub fn broke_down_at(&self) -> &[Frame] {
        self.server.as_ref().map_or(&[], |server| &server.broke_down_at)
    }

    /// The maps of the last run, edges first.
    pub fn maps(&self) -> &[u8] {
        self.server.as_ref().map_or(&[], Server::maps)
    }

    /// What the last run, which was not one of those that share their beginning, left.
    pub fn left(&self) -> Result<Image, ExecuteError> {
        self.content()
    }

    fn content(&self) -> Result<Image, ExecuteError> {
        let content = |pool: usize| self.slot.content(PoolId(pool as u32));
        let pools = (0..self.subject.pools.len()).map(content).collect::<Result<_, SlotError>>()?;
        Ok(Image::new(pools))
    }

    /// The starting pool, with the lines that were changed.
    fn changed(&self, start: &Image) -> Result<Image, ExecuteError> {
        let mut pools = start.pools().to_vec();
        for (pool, line) in &self.dirtied {
            let Some(Some(content)) = pools.get_mut(pool.0 as usize) else { continue };
            let mut bytes = [0; LINE as usize];
            self.slot.read(*pool, line * LINE, &mut bytes)?;
            content.put(line * LINE, &bytes);
        }
        Ok(Image::new(pools))
    }

    fn start(&self, input: &[u8]) -> Result<Server, ExecuteError> {
        let mut command = self.subject.command.clone();
        command.stdin = match self.subject.delivery {
            Delivery::Operations => Input::Operations(Operations { text: Arc::from(input), byte_ranges: Vec::new() }),
            Delivery::Stdin => Input::Bytes(input.to_vec()),
            Delivery::File(_) | Delivery::Arguments => Input::Empty,
        };
        if let Delivery::File(path) = &self.subject.delivery {
            for word in &mut command.args {
                if word == "@@" {
                    *word = path.clone().into();
                }
            }
        }
        if self.subject.delivery == Delivery::Arguments {
            command.args.extend(arguments(input));
        }
        let mut server = Server::new(&command, &self.slot)?;
        server.count_coverage();
        Ok(server)
    }

    /// Makes the slot hold the starting pool.
    fn put(&mut self, start: &Image) -> Result<(), SlotError> {
        let id = start.id();
        let dirtied = std::mem::take(&mut self.dirtied);
        if start.is_none() {
            self.holds = None;
            return self.slot.remove();
        }
        if self.holds == Some(id) {
            return write_lines(&mut self.slot, start, &dirtied);
        }
        self.slot.remove()?;
        for (number, pool) in start.pools().iter().enumerate() {
            if let Some(content) = pool {
                self.slot.put(PoolId(number as u32), content)?;
            }
        }
        self.holds = Some(id);
        Ok(())
    }
}

/// Puts these lines of an image into the slot.
fn write_lines(slot: &mut Slot, image: &Image, lines: &[(PoolId, u64)]) -> Result<(), SlotError> {
    const LINES: u64 = PAGE as u64 / LINE;
    for (pool, line) in lines {
        let Some(content) = image.pool(pool.0 as usize) else { continue };
        let within = (line % LINES * LINE) as usize;
        slot.write(*pool, line * LINE, &content.page(line / LINES)[within..within + LINE as usize])?;
    }
    Ok(())
}

/// One argument per line, without what no argument can hold.
pub fn arguments(input: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    use std::os::unix::ffi::OsStringExt;
    let lines = input.strip_suffix(b"\n").unwrap_or(input).split(|byte| *byte == b'\n');
    lines.map(|line| OsString::from_vec(line.iter().copied().filter(|byte| *byte != 0).collect()))
}
