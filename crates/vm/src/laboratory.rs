//! Where a kernel file system runs without a crash and is recorded: one guest, and a copy of the freshly made file system.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use drive::fuse::UNMOUNTED;
use fs::campaign::Transition;
use fs::workload::Step;
use fuse::reference::{Reference, ReferenceError, script};
use supervise::cancel::Cancel;
use trace::WriteError;
use wire::guest::{GuestRecordKind, Mark};

use crate::debug_info::{DebugInfoError, Sources};
use crate::guest::Guest;
use crate::machine::{Fall, Machine, MachineError};
use crate::recipe::{DEVICE, Prepared, Recipe, RecipeError};
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
    #[error(
        "the guest has no {DEVICE}: its kernel has no support for PM regions (CONFIG_X86_PMEM_LEGACY, CONFIG_BLK_DEV_PMEM), neither built in nor as modules; name its modules with --modules"
    )]
    NoDevice,
    #[error(
        "the kernel knows no file system `{0}`; name its modules with --modules, or the file of your module with --module"
    )]
    NoFileSystem(String),
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
    DebugInfo(#[from] DebugInfoError),
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
        // First: a module that lacks something is missed here, and not by an error number of mount(2).
        if said(machine, &format!("device {DEVICE}\n"))? != "ok\n" {
            return Err(LaboratoryError::NoDevice);
        }
        let known = said(machine, "filesystems\n")?;
        if !known.lines().any(|line| line.split_whitespace().next_back() == Some(&recipe.fs)) {
            return Err(LaboratoryError::NoFileSystem(recipe.fs.clone()));
        }
        if let Some(words) = recipe.mkfs_words()? {
            let program = Path::new(&words[0]).file_name().unwrap_or_default().to_string_lossy().into_owned();
            let reply = said(machine, &format!("exec /bin/{program} {}\n", words[1..].join(" ")))?;
            if reply.lines().next_back() != Some("exit 0") {
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
        let (symbols, symbol_files) = names(machine, recipe, prepared, folder)?;
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

    /// Which edges of the file system's code each step takes.
    pub fn coverage(&mut self, steps: &[Step]) -> Result<Vec<Vec<Transition>>, LaboratoryError> {
        let code = self.symbols.code_of(&self.recipe.under_test());
        self.guest.machine()?.set_code(&code);
        let lines: String = steps.iter().map(|step| format!("{}\n", step.op)).collect();
        self.ask(&format!("cover\nmount {}\n{lines}unmount\nquiet\n", self.recipe.mount_words()))?;
        let mut edges = vec![Vec::new(); steps.len()];
        let mut step = None;
        for record in self.guest.machine()?.records() {
            match (record.kind, Mark::of(record.subject())) {
                (GuestRecordKind::Mark, Some((Mark::OperationBegin, number))) => step = Some(number as usize),
                (GuestRecordKind::Mark, _) => step = None,
                (GuestRecordKind::Edge, _) => {
                    let edges = step.and_then(|step| edges.get_mut(step));
                    edges.into_iter().for_each(|edges| edges.push(Transition(record.subject())));
                }
                _ => {}
            }
        }
        Ok(edges)
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

/// The names of kernel functions, with their lines where they are known, as files in `folder`.
pub fn names(
    machine: &mut Machine,
    recipe: &Recipe,
    prepared: &Prepared,
    folder: &Path,
) -> Result<(Symbols, BTreeMap<String, PathBuf>), LaboratoryError> {
    let symbols = Symbols::parse(&said(machine, "symbols\n")?);
    let sources = Sources { loaded: &prepared.modules, folder: recipe.debug_info.as_deref() };
    let debug = sources.find(&symbols, |module| sections(machine, module))?;
    let symbol_files = symbols.write(folder, &debug).map_err(LaboratoryError::Symbols)?;
    Ok((symbols, symbol_files))
}

/// Where the sections of a module lie.
fn sections(machine: &mut Machine, module: &str) -> Result<BTreeMap<String, u64>, LaboratoryError> {
    let reply = said(machine, &format!("sections {module}\n"))?;
    let section = |line: &str| {
        let (name, address) = line.split_once(' ')?;
        Some((name.to_owned(), u64::from_str_radix(address.trim_start_matches("0x"), 16).ok()?))
    };
    Ok(reply.lines().filter_map(section).collect())
}

fn said(machine: &mut Machine, request: &str) -> Result<String, LaboratoryError> {
    match machine.ask(request, BATCH, &Cancel::default())? {
        Ok(reply) => Ok(reply),
        Err(Fall::Hung) => Err(LaboratoryError::Hung),
        Err(Fall::Panicked(text)) => Err(LaboratoryError::Panicked(text.lines().next().unwrap_or_default().to_owned())),
    }
}
