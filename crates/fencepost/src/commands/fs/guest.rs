//! `fencepost fs check --kernel`: a kernel file system in a virtual machine.

use std::env;
use std::ffi::OsString;
use std::fs as files;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use fs::campaign::Reached;
use fs::workload::FsWorkload;
use fuse::judge::TreeJudge;
use operation::boundaries::{BoundarySource, OperationBoundaries};
use recover::command::Command;
use runner::plan::ServedTree;
use tempfile::TempDir;
use trace::TraceReader;
use vm::debian;
use vm::debugger::Debugger;
use vm::guest::Guest;
use vm::kit::Kit;
use vm::laboratory::{Laboratory, LaboratoryError, names};
use vm::machine::GuestSpec;
use vm::machines::Guests;
use vm::recipe::{ExtraModule, Prepared, Recipe};

use super::check::Failed;
use super::session::{Batch, Batched};
use crate::commands::crash::Job;
use crate::commands::options::crash::CrashOptions;
use crate::exit::Exit;
use crate::render;

/// The guest of a recovery, as `fs check` and `drive guest` take it.
#[derive(Args, Clone, Debug)]
pub struct GuestOptions {
    /// The modules of the kernel: its folder lib/modules/VERSION.
    #[arg(long, value_name = "DIR", requires = "kernel")]
    modules: Option<PathBuf>,
    /// A module that lies elsewhere, such as your file system, with its parameters, if any ('my.ko debug=1'). Repeatable.
    #[arg(long = "module", value_name = "FILE", requires = "kernel")]
    module: Vec<String>,
    /// The type of the file system.
    #[arg(long, value_name = "TYPE", default_value = "ext4", requires = "kernel")]
    fs: String,
    /// Options for mounting it. [default: for ext4 and xfs dax=always, else none]
    #[arg(long, value_name = "OPTIONS", requires = "kernel")]
    mount_options: Option<String>,
    /// Debug information of the kernel: a vmlinux, or a folder with one and with modules that have it.
    #[arg(long, value_name = "PATH", requires = "kernel")]
    debug_info: Option<PathBuf>,
    /// QEMU, at least version 9.2. [default: qemu-system-x86_64]
    #[arg(long, value_name = "PROGRAM", requires = "kernel")]
    qemu: Option<PathBuf>,
}

/// File systems that keep their metadata by the block layer, and have to be asked for DAX.
const OVER_BLOCKS: [&str; 2] = ["ext4", "xfs"];

impl GuestOptions {
    pub fn is_over_blocks(&self) -> bool {
        OVER_BLOCKS.contains(&self.fs.as_str())
    }

    fn recipe(&self, kernel: &Path, mkfs: Option<&str>) -> Result<Recipe, Failed> {
        let absolute = |path: &Path| {
            files::canonicalize(path).map_err(|error| Failed::Usage(format!("{}: {error}", path.display())))
        };
        let default = if self.is_over_blocks() { "dax=always" } else { "" };
        let (mut kernel, mut modules) = (kernel.to_owned(), self.modules.clone());
        if kernel.as_os_str() == debian::NAME {
            let fetched = debian::folder().and_then(|folder| debian::find(&folder));
            let fetched = fetched.map_err(|error| Failed::Usage(error.to_string()))?;
            kernel = fetched.kernel;
            modules = modules.or(Some(fetched.modules));
        }
        Ok(Recipe {
            kernel: absolute(&kernel)?,
            modules: modules.as_deref().map(absolute).transpose()?,
            extra: self
                .module
                .iter()
                .map(|words| {
                    let (path, parameters) = words.split_once(' ').unwrap_or((words, ""));
                    Ok(ExtraModule { path: absolute(Path::new(path))?, parameters: parameters.to_owned() })
                })
                .collect::<Result<_, Failed>>()?,
            fs: self.fs.clone(),
            mount_options: self.mount_options.clone().unwrap_or_else(|| default.to_owned()),
            mkfs: mkfs.map(str::to_owned),
            debug_info: self.debug_info.as_deref().map(absolute).transpose()?,
        })
    }
}

/// Recover an image in a freshly booted guest.
#[derive(Args, Debug)]
pub struct Recovery {
    #[arg(long)]
    kernel: PathBuf,
    #[command(flatten)]
    guest: GuestOptions,
    /// Have this debugger stop the guest before it mounts.
    #[arg(long)]
    gdb: Option<PathBuf>,
    /// The content of the PM region.
    pool: PathBuf,
    /// Further arguments for the debugger.
    #[arg(last = true)]
    gdb_arguments: Vec<OsString>,
}

impl Recovery {
    /// The exit code says how it went; standard output has the tree.
    pub fn run(&self) -> Result<u8, String> {
        let image = files::read(&self.pool).map_err(|error| format!("{}: {error}", self.pool.display()))?;
        let recipe = self.guest.recipe(&self.kernel, None).map_err(Failed::text)?;
        let kit = Kit::find(self.guest.qemu.as_deref()).map_err(|error| error.to_string())?;
        let prepared = recipe.prepare(&kit, image.len() as u64).map_err(|error| error.to_string())?;
        if let Some(gdb) = &self.gdb {
            return self.debug(gdb, &recipe, &prepared, &image);
        }
        let mut guest = Guest::new(prepared.spec.clone(), recipe.mount_words(), false);
        guest.machine().map_err(|error| error.to_string())?.memory().set_pm(&image);
        let run = guest.run(FOR_EVER).map_err(|error| error.to_string())?;
        let written = io::stdout().write_all(&run.stdout).and_then(|()| io::stderr().write_all(&run.stderr));
        written.map_err(|error| error.to_string())?;
        match run.end {
            verdict::end::End::Exited(code) => Ok(code as u8),
            _ => Err("the guest hangs".into()),
        }
    }

    /// The debugger's exit code.
    fn debug(&self, gdb: &Path, recipe: &Recipe, prepared: &Prepared, image: &[u8]) -> Result<u8, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("cannot make a temporary folder: {error}"))?;
        let debugger = Debugger { gdb, folder: folder.path(), arguments: &self.gdb_arguments };
        let spec = GuestSpec { debugger: Some(debugger.socket()), ..prepared.spec.clone() };
        let mut guest = Guest::new(spec, recipe.mount_words(), false);
        let machine = guest.machine().map_err(|error| error.to_string())?;
        machine.memory().set_pm(image);
        let (symbols, files) = names(machine, recipe, prepared, folder.path()).map_err(|error| error.to_string())?;
        let started = debugger.start(&symbols, &files).map_err(|error| format!("{}: {error}", gdb.display()))?;
        let Some(mut child) = started else { return Err(format!("{} could not connect to the guest", gdb.display())) };
        // The keys are the debugger's.
        // SAFETY: ignoring a signal has no conditions.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_IGN) };
        let over = guest.cancel.clone();
        let waiting = std::thread::spawn(move || {
            let status = child.wait();
            over.cancel();
            status
        });
        let run = guest.run(FOR_EVER);
        let status = waiting.join().map_err(|_| "the thread that waits for the debugger has ended".to_owned())?;
        if let Ok(run) = run {
            // Who has left the debugger early sees nothing of it.
            let _ = io::stdout().write_all(&run.stdout).and_then(|()| io::stderr().write_all(&run.stderr));
        }
        let status = status.map_err(|error| format!("{}: {error}", gdb.display()))?;
        Ok(status.code().unwrap_or(128) as u8)
    }
}

/// The file that stands for the PM region, and its folder.
const POOLS: &str = "pools";
const POOL: &str = "pmem0";
/// Whoever starts this command has a limit of their own.
const FOR_EVER: std::time::Duration = std::time::Duration::from_secs(24 * 3600);

/// How they are checked.
#[derive(Clone, Copy, Debug)]
pub struct GuestSettings<'a> {
    /// Of the PM region.
    pub size: u64,
    /// Where the recording is kept.
    pub trace: Option<&'a Path>,
    /// Images that a mount cannot tell apart are mounted once.
    pub equivalence: bool,
}

/// The place where kernel file systems are checked.
#[derive(Debug)]
pub struct GuestLaboratory {
    folder: TempDir,
    trace: PathBuf,
    laboratory: Laboratory,
    machines: Arc<Guests>,
    native: Command,
}

impl GuestLaboratory {
    /// Boots a guest and makes the file system in it.
    pub fn open(
        kernel: &Path,
        options: &GuestOptions,
        mkfs: Option<&str>,
        settings: &GuestSettings<'_>,
    ) -> Result<GuestLaboratory, Failed> {
        let usage = |error: &dyn std::fmt::Display| Failed::Usage(error.to_string());
        let recipe = options.recipe(kernel, mkfs)?;
        let kit = Kit::find(options.qemu.as_deref()).map_err(|error| usage(&error))?;
        let prepared = Arc::new(recipe.prepare(&kit, settings.size).map_err(|error| usage(&error))?);
        let folder = tempfile::Builder::new().prefix("fencepost-fs-").tempdir();
        let folder = folder.map_err(|error| Failed::Usage(format!("cannot make a temporary folder: {error}")))?;
        let trace = match settings.trace {
            Some(kept) => std::path::absolute(kept).map_err(|error| Failed::Usage(format!("--trace: {error}")))?,
            None => folder.path().join("check.fptrace"),
        };
        let symbols = trace.with_extension("symbols");
        for folder in [&folder.path().join(POOLS), &symbols] {
            files::create_dir_all(folder)
                .map_err(|error| Failed::Usage(format!("cannot make {}: {error}", folder.display())))?;
        }
        let pool = folder.path().join(POOLS).join(POOL);
        let own = env::current_exe().map_err(|error| usage(&error))?;
        let native = native_words(&own, &recipe, &kit, &pool);
        let words = native.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let laboratory = Laboratory::open(&recipe, &prepared, &symbols, words).map_err(failed)?;
        files::write(&pool, laboratory.fresh()).map_err(|error| usage(&error))?;
        let machines = Arc::new(Guests::new(prepared, recipe.mount_words(), settings.equivalence));
        let native = Command::here(&native).ok_or_else(|| Failed::Usage("the program has no name".into()))?;
        Ok(GuestLaboratory { folder, trace, laboratory, machines, native })
    }

    fn pool(&self) -> PathBuf {
        self.folder.path().join(POOLS).join(POOL)
    }

    /// Records a batch and searches for states that break a promise.
    pub fn check(&mut self, batch: &Batch, options: &CrashOptions) -> Result<Batched, Failed> {
        let reference = self.laboratory.reference(&batch.steps).map_err(failed)?;
        let trace = self.trace.clone();
        let answers = self.laboratory.record(&batch.steps, &self.pool(), &trace).map_err(failed)?;
        reference.agrees(&batch.steps, &answers).map_err(|error| Failed::Target(error.to_string()))?;
        let verified = trace::verify(&trace).map_err(|error| Failed::Usage(error.to_string()))?;
        if !verified.is_same() {
            let bytes = verified.differing_bytes();
            return Err(Failed::Target(format!(
                "{bytes} bytes of the PM region were changed by no store that was seen; crash states would be wrong (is anything but the guest's processor writing there?)"
            )));
        }
        let reader = TraceReader::open(&trace).map_err(|error| Failed::Usage(error.to_string()))?;
        let boundaries = OperationBoundaries::of(&reader, &BoundarySource::Events);
        let boundaries = boundaries.map_err(|error| Failed::Usage(error.to_string()))?;
        let Batch { steps, promises, needs_fsync, .. } = batch;
        let judge = TreeJudge {
            boundaries: boundaries.clone(),
            steps: steps.clone(),
            reference,
            promises: *promises,
            needs_fsync: *needs_fsync,
            mount: None,
            // A replay needs a place for the pool.
            folders: vec![self.folder.path().to_owned(), self.folder.path().join(POOLS)],
        };
        let served = ServedTree {
            judge: Arc::new(judge),
            daemon: self.native.clone(),
            attendant: Vec::new(),
            native: self.native.clone(),
            machines: Some(Arc::clone(&self.machines) as Arc<dyn runner::machine::Machines>),
        };
        let job = Job {
            options,
            env: env::vars_os().collect(),
            trace: &trace,
            shard: None,
            journal: None,
            merge: &[],
            served: Some(served),
            fleet: None,
            repaired: &batch.repaired,
        };
        let (checked, interrupted) = job.search(&reader).map_err(Failed::of_search)?;
        Ok(Batched { checked, reader, boundaries, interrupted })
    }

    /// Which edges of the file system's code each of these workloads takes.
    pub fn coverage(&mut self, workloads: &[FsWorkload]) -> Result<Vec<Reached>, Failed> {
        let edges = self.laboratory.coverage(&FsWorkload::chain(workloads)).map_err(failed)?;
        // Not by step: what the kernel does later for an earlier step is counted for another.
        let of = |steps: std::ops::Range<usize>| Reached::Whole(edges.get(steps).unwrap_or_default().concat());
        Ok(FsWorkload::places(workloads).into_iter().map(of).collect())
    }
}

fn failed(error: LaboratoryError) -> Failed {
    match error {
        LaboratoryError::Machine(_)
        | LaboratoryError::Recipe(_)
        | LaboratoryError::NoDevice
        | LaboratoryError::NoFileSystem(_)
        | LaboratoryError::DebugInfo(_) => Failed::Usage(error.to_string()),
        _ => Failed::Target(error.to_string()),
    }
}

/// The command that recovers an image in a fresh guest, without the plugin.
fn native_words(own: &Path, recipe: &Recipe, kit: &Kit, pool: &Path) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec![own.into(), "drive".into(), "guest".into()];
    let mut option = |name: &str, value: OsString| words.extend([name.into(), value]);
    option("--kernel", recipe.kernel.clone().into());
    option("--qemu", kit.qemu.clone().into());
    option("--fs", recipe.fs.clone().into());
    option("--mount-options", recipe.mount_options.clone().into());
    if let Some(modules) = &recipe.modules {
        option("--modules", modules.into());
    }
    if let Some(debug_info) = &recipe.debug_info {
        option("--debug-info", debug_info.into());
    }
    for module in &recipe.extra {
        let mut words = module.path.clone().into_os_string();
        if !module.parameters.is_empty() {
            words.push(" ");
            words.push(&module.parameters);
        }
        option("--module", words);
    }
    words.push(pool.into());
    words
}

/// The words of a recovery in a guest, with a debugger; none: it is no such recovery.
pub fn debugged(args: &[OsString], gdb: &Path, arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (first, rest) = args.split_at_checked(2)?;
    if first != ["drive", "guest"] {
        return None;
    }
    let mut words = first.to_vec();
    words.extend(["--gdb".into(), gdb.into()]);
    words.extend(rest.iter().cloned());
    words.push("--".into());
    words.extend(arguments.iter().cloned());
    Some(words)
}

/// How the process ends.
pub fn ended(run: Result<u8, String>) -> Exit {
    match run {
        Ok(0) => Exit::Clean,
        Ok(code) => Exit::Target(code),
        Err(text) => {
            render::error(text);
            Exit::Target(125)
        }
    }
}
