//! Runs one test case after the other: the fork server of the crate `recover`, with coverage, on a starting pool of each case.
//!
//! What the slot holds is put right before each run: lines that the run before has changed, if the starting pool is the same, or all
//! of it. A case without a starting pool finds no file and makes it.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use recover::command::{Command, Input, Operations};
use recover::limits::Limits;
use recover::report::RunReport;
use recover::server::{Server, ServerError};
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
    /// Runs so far.
    pub executions: u64,
}

impl Executor {
    pub fn new(subject: Subject) -> Result<Executor, ExecuteError> {
        let mut files: Vec<(PathBuf, u64)> = subject.pools.iter().map(|path| (path.clone(), 0)).collect();
        if let Delivery::File(path) = &subject.delivery {
            // Not a pool, but the same holds for it: another content in each run, and a fork before its first use.
            files.push((path.clone(), 0));
        }
        let slot = Slot::create(&files)?;
        Ok(Executor { subject, slot, server: None, holds: None, dirtied: Vec::new(), executions: 0 })
    }

    /// Runs the target with this input on this starting pool.
    pub fn run(&mut self, input: &[u8], start: &Image) -> Result<Execution, ExecuteError> {
        self.put(start)?;
        if self.subject.delivery == Delivery::Arguments {
            self.server = None;
        }
        if let Delivery::File(_) = self.subject.delivery {
            self.slot.put(PoolId(self.subject.pools.len() as u32), input)?;
        }
        let mut server = match self.server.take() {
            Some(server) => server,
            None => self.start(input)?,
        };
        if matches!(self.subject.delivery, Delivery::Operations | Delivery::Stdin) {
            server.feed(input)?;
        }
        self.executions += 1;
        let report = server.run(&self.slot, &self.subject.limits)?;
        let trail = Trail::of(server.maps());
        self.server = Some(server);
        match report.pools_replaced || start.is_none() {
            true => self.holds = None,
            false => self.dirtied.extend(report.dirtied.iter().map(|line| (line.pool, line.line.0))),
        }
        Ok(Execution { report, trail })
    }

    /// Where the last run was when a signal or its time ended it; innermost frame first.
    pub fn broke_down_at(&self) -> &[Frame] {
        self.server.as_ref().map_or(&[], |server| &server.broke_down_at)
    }

    /// The maps of the last run, edges first.
    pub fn maps(&self) -> &[u8] {
        self.server.as_ref().map_or(&[], Server::maps)
    }

    /// What the last run left.
    pub fn left(&self) -> Result<Image, ExecuteError> {
        let content = |pool: usize| Ok(self.slot.content(PoolId(pool as u32))?.map(Arc::from));
        let pools = (0..self.subject.pools.len()).map(content).collect::<Result<_, SlotError>>()?;
        Ok(Image::new(pools))
    }

    fn start(&self, input: &[u8]) -> Result<Server, ExecuteError> {
        let mut command = self.subject.command.clone();
        command.stdin = match self.subject.delivery {
            Delivery::Operations => Input::Operations(Operations { text: Arc::from(input), stretches: Vec::new() }),
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
            for (pool, line) in dirtied {
                let Some(Some(bytes)) = start.pools().get(pool.0 as usize) else { continue };
                let from = (line * LINE) as usize;
                let to = (from + LINE as usize).min(bytes.len());
                if from < to {
                    self.slot.write(pool, from as u64, &bytes[from..to])?;
                }
            }
            return Ok(());
        }
        self.slot.remove()?;
        for (number, pool) in start.pools().iter().enumerate() {
            if let Some(bytes) = pool {
                self.slot.put(PoolId(number as u32), bytes)?;
            }
        }
        self.holds = Some(id);
        Ok(())
    }
}

/// One argument per line, without what no argument can hold.
pub fn arguments(input: &[u8]) -> impl Iterator<Item = OsString> + '_ {
    use std::os::unix::ffi::OsStringExt;
    let lines = input.strip_suffix(b"\n").unwrap_or(input).split(|byte| *byte == b'\n');
    lines.map(|line| OsString::from_vec(line.iter().copied().filter(|byte| *byte != 0).collect()))
}
