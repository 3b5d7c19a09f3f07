//! Where a kernel file system is tried without a crash, and recorded: one guest, with the file system as it was made at hand.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drive::fuse::UNMOUNTED;
use fs::workload::Step;
use fuse::reference::{Reference, ReferenceError, script};
use supervise::cancel::Cancel;
use trace::WriteError;

use crate::guest::Guest;
use crate::machine::{Fall, Machine, MachineError};
use crate::recipe::{Prepared, Recipe, RecipeError};
use crate::recorder::Recorded;
use crate::symbols::Symbols;

/// A batch without a crash takes seconds; on a loaded machine many.
const BATCH: Duration = Duration::from_secs(900);

#[derive(Debug, thiserror::Error)]
pub enum LaboratoryError {
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    #[error("--mkfs: `{command}` failed in the guest{said}")]
    Mkfs { command: String, said: String },
    #[error(
        "the file system cannot be mounted without any crash ({errno}){said}; is the type right, and the mount options?"
    )]
    Mount { errno: String, said: String },
    #[error("the kernel panicked without any crash: {0}")]
    Panicked(String),
    #[error("the guest did not answer within {} seconds, without any crash", BATCH.as_secs())]
    Hung,
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error("{0}")]
    Trace(#[from] WriteError),
    #[error("cannot write the names of kernel functions: {0}")]
    Symbols(io::Error),
}

/// A guest with a fresh file system.
#[derive(Debug)]
pub struct Laboratory {
    recipe: Recipe,
    guest: Guest,
    fresh: Vec<u8>,
    symbols: Symbols,
    symbol_files: BTreeMap<String, PathBuf>,
    /// The words that go into traces: how to recover natively.
    command: Vec<String>,
}

impl Laboratory {
    /// Boots, makes the file system, and reads the names of functions into files in `folder`.
    pub fn open(
        recipe: &Recipe,
        prepared: &Arc<Prepared>,
        folder: &Path,
        command: Vec<String>,
    ) -> Result<Laboratory, LaboratoryError> {
        let mut guest = Guest::new(prepared.spec.clone(), recipe.mount_words(), true);
        let machine = guest.machine()?;
        if let Some(words) = recipe.mkfs_words()? {
            let program = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let reply = said(machine, &format!("exec /bin/{program} {}\n", words[1..].join(" ")))?;
            if !reply.ends_with("exit 0\n") {
                let said = reply.lines().filter_map(|line| line.strip_prefix("| ")).map(|line| format!("\n  {line}"));
                return Err(LaboratoryError::Mkfs { command: words.join(" "), said: said.collect() });
            }
        }
        // A file system that is made by mounting is made now, and what mounting once changes is in the image.
        let mounted = format!("log\nmount {}\n", recipe.mount_words());
        let reply = said(machine, &mounted)?;
        let errno = reply.lines().last().unwrap_or_default().to_owned();
        if errno != "ok" {
            let log = said(machine, "log\n")?;
            let complaints = log.lines().filter(|line| line.starts_with(['0', '1', '2', '3', '4']));
            let said = complaints.filter_map(|line| Some(format!("\n  {}", line.split_once(' ')?.1))).collect();
            return Err(LaboratoryError::Mount { errno, said });
        }
        said(machine, "unmount\ndrop\n")?;
        let fresh = machine.memory().pm_image();
        let symbols = Symbols::parse(&said(machine, "symbols\n")?);
        let symbol_files = symbols.write(folder).map_err(LaboratoryError::Symbols)?;
        Ok(Laboratory { recipe: recipe.clone(), guest, fresh, symbols, symbol_files, command })
    }

    /// The file system as it was made.
    pub fn fresh(&self) -> &[u8] {
        &self.fresh
    }

    /// The steps without a crash: answers and trees.
    pub fn reference(&mut self, steps: &[Step]) -> Result<Reference, LaboratoryError> {
        let request = format!("mount {}\n{}unmount\n", self.recipe.mount_words(), script(steps));
        let reply = self.ask(&request)?;
        Ok(Reference::parse(steps, &reply)?)
    }

    /// Records the steps; the answers.
    pub fn record(&mut self, steps: &[Step], pool: &Path, trace: &Path) -> Result<String, LaboratoryError> {
        let lines: String = steps.iter().map(|step| format!("{}\n", step.op)).collect();
        let request = format!("record\nmount {}\n{lines}unmount\nquiet\n", self.recipe.mount_words());
        let reply = self.ask(&request)?;
        let machine = self.guest.machine()?;
        let records = machine.records();
        let last = machine.memory().pm_image();
        let recorded = Recorded {
            command: self.command.clone(),
            pool,
            initial: &self.fresh,
            last: &last,
            records: &records,
            symbols: &self.symbols,
            symbol_files: &self.symbol_files,
        };
        recorded.write(trace)?;
        Ok(reply)
    }

    /// On a fresh file system; what follows the answer to mounting.
    fn ask(&mut self, request: &str) -> Result<String, LaboratoryError> {
        let machine = self.guest.machine()?;
        machine.memory().set_pm(&self.fresh);
        said(machine, "drop\n")?;
        let reply = said(machine, request)?;
        let (mounted, rest) = reply.split_once('\n').unwrap_or((&reply, ""));
        if mounted != "ok" {
            return Err(LaboratoryError::Mount { errno: mounted.to_owned(), said: String::new() });
        }
        debug_assert!(rest.contains(UNMOUNTED) || rest.contains("unmount "));
        Ok(rest.to_owned())
    }
}

fn said(machine: &mut Machine, request: &str) -> Result<String, LaboratoryError> {
    match machine.ask(request, BATCH, &Cancel::default())? {
        Ok(reply) => Ok(reply),
        Err(Fall::Hung) => Err(LaboratoryError::Hung),
        Err(Fall::Panicked(text)) => Err(LaboratoryError::Panicked(text.lines().next().unwrap_or_default().to_owned())),
    }
}
