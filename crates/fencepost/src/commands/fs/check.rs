//! `fencepost fs check`: records a file system's daemon while it serves a workload of system calls, simulates crashes, mounts the crash
//! images, and compares the trees with what must be there.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use check::checked::Checked;
use check::search::SearchFailed;
use check::session::SessionError;
use clap::{Args, FromArgMatches};
use finding::finding::{Finding, Location, Role};
use finding::note::RunNote;
use fs::ace::Set;
use fs::campaign::RandomWorkloads;
use fs::generate::Generator;
use fs::oracle::Promises;
use fs::usable::Growth;
use fs::workload::FsWorkload;
use record::stop::StopRequest;
use report::words;

use super::amount::{Amount, amount};
use super::guest::{GuestLaboratory, GuestOptions, GuestSettings};
use super::screening::Screening;
use super::session::{Batch, Batched, FileSystem, FileSystemKind, Laboratory};
use super::shorten::Shorten;
use super::staged::Staged;
use super::workloads::AceSet;
use crate::cli::FindingFormat;
use crate::commands::crash::{JobFailed, printed, say_search_failed};
use crate::commands::options::crash::CrashOptions;
use crate::commands::options::fleet::FleetOptions;
use crate::commands::options::gate::GateOptions;
use crate::commands::output::findings::print;
use crate::commands::output::html::{HtmlInput, can_be_written};
use crate::exit::Exit;
use crate::render;

/// Two lines of a few blocks that are written in place: more states than the limit that `few-lines:2` has of its own.
const FEW_LINES: &str = ",few-lines:2:16384";

const EXAMPLES: &str = "\
Examples:
  fencepost fs check --mkfs 'myfs --mkfs {pool}' --fuse 'myfs {pool} -f -s {mount}'
  fencepost fs check --ace seq-2 --budget none --mkfs ... --fuse ...
  fencepost fs check --ops operations --mkfs ... --fuse ...
  fencepost fs check --fuzz 10m --mkfs ... --fuse ...
  fencepost fs check --ace seq-2 --fleet redis://main/nightly --mkfs ... --fuse ...
  fencepost fs check --preload ./libmyfs.so --env MYFS_POOL={pool} --env MYFS_ROOT={mount}

The daemon must stay in the foreground (libfuse: -f) and should have one thread (-s). {pool} is the
file that it maps and {mount} the directory where it mounts; Fencepost chooses both, in a mount
namespace of its own. docs/file-systems.md says what must hold after a crash.";

/// Check a user-space file system: crash it inside system calls, mount what is left, compare the trees.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct FsCheck {
    /// Command that starts the daemon, with {pool} and {mount}.
    #[arg(long, value_name = "CMD", required_unless_present_any = ["kernel", "preload"], conflicts_with = "kernel")]
    pub(super) fuse: Option<String>,
    /// Library that intercepts system calls, preloaded into the process that makes them.
    #[arg(long, value_name = "LIB", conflicts_with_all = ["fuse", "kernel"])]
    pub(super) preload: Option<PathBuf>,
    /// Environment variable for the library; {pool} and {mount} are replaced in its value. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", requires = "preload")]
    env: Vec<String>,
    /// Check a kernel file system: boot this kernel image in a virtual machine. `debian`: what `fencepost fs kernel` fetched.
    #[arg(long, value_name = "IMAGE")]
    pub(super) kernel: Option<PathBuf>,
    #[command(flatten)]
    guest: GuestOptions,
    /// Size of the PM region of the virtual machine, in MiB.
    #[arg(long, value_name = "MIB", default_value_t = 64, requires = "kernel", value_parser = clap::value_parser!(u64).range(1..=1024))]
    size: u64,
    /// Keep the recording of the last batch in FILE, for `fencepost trace`; names of kernel functions go into a folder beside it.
    #[arg(long, value_name = "FILE", requires = "kernel")]
    trace: Option<PathBuf>,
    /// Command that makes the file system in {pool} (with --kernel: {device}, in the guest). [default: mounting makes it]
    #[arg(long, value_name = "CMD")]
    pub(super) mkfs: Option<String>,
    /// Test a bounded exhaustive set of workloads. [default: seq-1]
    #[arg(long, value_name = "SET", conflicts_with_all = ["ops", "fuzz"])]
    ace: Option<AceSet>,
    /// Test the workloads in this file (`fencepost fs workloads` prints some).
    #[arg(long, value_name = "FILE", conflicts_with = "fuzz")]
    pub(super) ops: Option<PathBuf>,
    /// Generate N random workloads, or as many as TIME allows (5m), and test those that reach new code.
    #[arg(long, value_name = "N|TIME", value_parser = amount)]
    pub(super) fuzz: Option<Amount>,
    /// Seed for random workloads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Number of operations in a random workload.
    #[arg(long, value_name = "N", default_value_t = 12)]
    length: usize,
    /// Number of workloads per recording. [default: 56; with --fuzz 16]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    batch: Option<u64>,
    /// The file system promises atomic writes: a crash leaves all of a write or nothing of it.
    #[arg(long)]
    atomic_writes: bool,
    /// The file system guarantees only what fsync, fdatasync or sync covered.
    #[arg(long)]
    needs_fsync: bool,
    /// Do not require that a file that grows is zero behind its old end.
    #[arg(long)]
    no_growth: bool,
    /// Crash states to test at each crash point (see `fencepost check --help`).
    /// [default: program-order,guaranteed-only,few-lines:2:16384; the first two for ext4 and xfs]
    #[arg(long, value_name = "LIST")]
    strategy: Option<String>,
    /// How long to search for failing states in each batch: 30s, 5m, 2h, or `none`.
    #[arg(long, value_name = "TIME", default_value = "none")]
    budget: String,
    /// Number of recoveries to run in parallel. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// Treat a recovery that runs longer as hung. [default: 10s; with --kernel 2m]
    #[arg(long, value_name = "TIME")]
    timeout: Option<String>,
    /// How to run recoveries: as forks of a warm daemon (`fork-server`), or a new one each time (`native`).
    #[arg(long, value_name = "ENGINE", default_value = "fork-server")]
    engine: String,
    /// Run recovery on every state, even if an earlier run shows that it cannot tell the two apart.
    #[arg(long)]
    no_equivalence: bool,
    /// What survives a power failure: `adr`, the memory controller's queues; `eadr`, the caches as well.
    #[arg(long, value_name = "MODEL", default_value = "adr")]
    model: String,
    /// Count only sfence and mfence as fences, not locked instructions.
    #[arg(long)]
    strict_fences: bool,
    /// Folder for findings, for `fencepost replay`.
    #[arg(long, value_name = "FOLDER", default_value = evidence::bundle::FOLDER)]
    pub(super) bundles: PathBuf,
    /// Write an HTML report to FILE: one self-contained page.
    #[arg(long, value_name = "FILE")]
    pub(super) html: Option<PathBuf>,
    /// How to show progress on standard error.
    #[arg(long, value_name = "STYLE", default_value = "auto")]
    progress: String,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    pub(super) message_format: FindingFormat,
    #[command(flatten)]
    gate: GateOptions,
    #[command(flatten)]
    pub(super) fleet: FleetOptions,
    /// Perform a unit of a campaign.
    #[arg(long, value_name = "FOLDER", hide = true)]
    unit: Option<PathBuf>,
}

impl FsCheck {
    pub fn run(&self) -> Exit {
        match self.check() {
            Ok(exit) | Err(Failed::Told(exit)) => exit,
            Err(Failed::Usage(text)) => {
                render::error(text);
                Exit::Usage
            }
            Err(Failed::Target(text)) => {
                render::error(text);
                Exit::TargetFailed
            }
        }
    }

    fn check(&self) -> Result<Exit, Failed> {
        if let Some(folder) = &self.unit {
            return self.perform(folder);
        }
        can_be_written(self.html.as_deref()).map_err(Failed::Usage)?;
        let gate = self.gate.open().map_err(Failed::Usage)?;
        let mut options = self.crash_options()?;
        if self.fleet.is_given() {
            return self.check_elsewhere(gate, &options);
        }
        let mut workloads = self.workloads().map_err(Failed::Usage)?.peekable();
        let mut place = self.place()?;
        if matches!(&place, Place::Fuse(laboratory) if laboratory.is_in_the_open()) {
            options.jobs = Some(1);
        }
        let mut all: Option<(Checked, trace::TraceReader)> = None;
        let generator = Generator { seed: self.seed, operations: self.length, fsync: self.needs_fsync };
        let mut campaign = self.fuzz.map(|_| RandomWorkloads::new(generator));
        let mut screening = match (&place, &campaign) {
            (Place::Fuse(laboratory), Some(_)) => Screening::new(laboratory.screen(self.growth(), &options)?),
            _ => Screening::new(None),
        };
        let deadline = self.fuzz.and_then(Amount::deadline);
        let budget = options.budget;
        let share = self.fuzz.and_then(Amount::share);
        let stop = StopRequest::from_signals();
        let before = stop.count();
        let is_stopped = || stop.count() > before;
        let is_over = || is_stopped() || deadline.is_some_and(|end| Instant::now() >= end);
        let (mut count, mut interrupted) = (0, false);
        // Parts of a batch that could not be checked as a whole, and what each may take.
        let mut parts: Vec<(Vec<FsWorkload>, Option<Duration>)> = Vec::new();
        while !interrupted && (!parts.is_empty() || workloads.peek().is_some()) {
            let (batch, share) = match (parts.pop(), &mut campaign) {
                (Some(part), _) => part,
                (None, Some(campaign)) => {
                    let wanted = workloads.by_ref().take(self.per_batch()).count();
                    match kept(campaign, &mut screening, &mut place, wanted) {
                        // What was found before is told.
                        Err(_) if is_stopped() && all.is_some() => {
                            interrupted = true;
                            break;
                        }
                        kept => (kept?, share),
                    }
                }
                (None, None) => (workloads.by_ref().take(self.per_batch()).collect(), share),
            };
            if batch.is_empty() {
                continue;
            }
            let end = deadline.zip(share).map(|(end, share)| end.min(Instant::now() + share));
            options.budget = budget.until(end);
            // Known bugs must neither hide others from random workloads nor take their time. The bounded sets are checked batch by batch.
            let found: &[Finding] = all.as_ref().map_or(&[], |(checked, _)| &checked.findings);
            let repaired = if campaign.is_some() { lost_stores(found) } else { Vec::new() };
            let staged = Staged::new(&options)?;
            let checked = place.check(&Batch { repaired, ..self.batch_of(&batch) }, &staged.options(&options));
            let Batched { mut checked, reader, boundaries, interrupted: stopped } = match checked {
                Err(_) if is_stopped() && all.is_some() => {
                    interrupted = true;
                    break;
                }
                // Among random workloads there may be some that fail without a crash: the others are as good as before.
                Err(Failed::Target(text)) if campaign.is_some() => {
                    match batch.len() {
                        1 => render::warning(format_args!(
                            "a random workload is left out: {text}; it is, for --ops:\n{}",
                            batch[0].to_string().trim_end()
                        )),
                        count => {
                            let halves = [&batch[count / 2..], &batch[..count / 2]];
                            parts.extend(halves.map(|half| (half.to_vec(), share.map(|share| share / 2))));
                        }
                    }
                    continue;
                }
                checked => checked?,
            };
            count += batch.len();
            interrupted = stopped;
            let known: &[Finding] = all.as_ref().map_or(&[], |(checked, _)| &checked.findings);
            for finding in checked.findings.iter().filter(|new| known.iter().all(|known| known.id != new.id)) {
                staged.keep(&finding.id)?;
            }
            if campaign.is_some() && !interrupted {
                let (place, is_over) = (&mut place, &is_over);
                let mut shorten = Shorten { place, options: &options, check: self, known, is_over, time: share };
                shorten.all(&mut checked, &batch, &boundaries)?;
                interrupted = is_stopped();
            }
            all = Some(match all {
                None => (checked, reader),
                Some((mut before, first)) => {
                    before.absorb(checked);
                    (before, first)
                }
            });
        }
        let Some((mut checked, reader)) = all else {
            return Err(Failed::Usage(
                "there is no workload to check; give --fuzz a number above 0, or more time".into(),
            ));
        };
        screening.tell();
        if let Some(campaign) = &campaign {
            render::note(format_args!(
                "made {} workloads; {count} of them reached new code of the file system and were crashed ({} {})",
                campaign.made(),
                campaign.transitions(),
                if self.kernel.is_some() { "edges of its code" } else { "transitions between PM operations" }
            ));
        }
        let (states, saved) = (checked.coverage.states_decided, checked.coverage.runs_saved);
        checked.notes.insert(0, RunNote::Workloads { count: count as u64, states, saved });
        let judged = gate.judge(checked.findings.clone(), 0);
        let exit = options.end(&judged, interrupted, &checked);
        let outcome = HtmlInput { reader: &reader, checked: &checked, judged: &judged, options: &options, interrupted };
        Ok(printed(
            print(&reader, &checked, &judged, self.message_format, exit),
            outcome.write(judged.finish(checked.events, exit)),
        ))
    }

    pub(super) fn place(&self) -> Result<Place, Failed> {
        if let Some(kernel) = &self.kernel {
            let settings = GuestSettings {
                size: self.size << 20,
                trace: self.trace.as_deref(),
                equivalence: !self.no_equivalence,
            };
            let laboratory = GuestLaboratory::open(kernel, &self.guest, self.mkfs.as_deref(), &settings)?;
            return Ok(Place::Guest(Box::new(laboratory)));
        }
        let kind = match (&self.preload, &self.fuse) {
            (Some(library), _) => FileSystemKind::Preload { library, env: &self.env },
            (None, daemon) => FileSystemKind::Fuse(daemon.as_deref().unwrap_or_default()),
        };
        let file_system = FileSystem { kind, mkfs: self.mkfs.as_deref() };
        Ok(Place::Fuse(Laboratory::open(&file_system)?))
    }

    pub(super) fn workloads(&self) -> Result<Box<dyn Iterator<Item = FsWorkload>>, String> {
        if let Some(file) = &self.ops {
            let text =
                std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
            let workloads = FsWorkload::parse_all(&text).map_err(|error| format!("{}: {error}", file.display()))?;
            return Ok(Box::new(workloads.into_iter()));
        }
        if let Some(amount) = self.fuzz {
            // Only their number: they are made when it is known what those before them reached.
            return Ok(Box::new(amount.numbers().map(|_| FsWorkload::default())));
        }
        let default = if self.needs_fsync { Set::Fsync } else { Set::Seq1 };
        Ok(self.ace.map_or(default, Set::from).workloads())
    }

    pub(super) fn batch_of(&self, workloads: &[FsWorkload]) -> Batch {
        Batch {
            steps: FsWorkload::chain(workloads),
            promises: Promises {
                atomic_writes: self.atomic_writes,
                // A preloaded library and a kernel get a write as the program makes it.
                page: self.fuse.is_some().then_some(fuse::PAGE),
            },
            needs_fsync: self.needs_fsync,
            growth: self.growth(),
            repaired: Vec::new(),
        }
    }

    /// Random workloads learn from one batch what to make in the next, so those are small.
    pub(super) fn per_batch(&self) -> usize {
        self.batch.unwrap_or(if self.fuzz.is_some() { 16 } else { 56 }) as usize
    }

    fn growth(&self) -> Growth {
        if self.no_growth { Growth::Anything } else { Growth::Zero }
    }

    /// As `fencepost crash` would take them.
    pub(super) fn crash_options(&self) -> Result<CrashOptions, Failed> {
        let mut words: Vec<String> = vec!["fs".into(), "--every".into()];
        let default = if self.kernel.is_some() { "2m" } else { "10s" }.to_owned();
        // A file system over the block layer takes it that a sector is written whole: `few-lines` would tear it.
        let over_blocks = self.kernel.is_some() && self.guest.is_over_blocks();
        let few = if over_blocks { "" } else { FEW_LINES };
        let strategy = format!("program-order,guaranteed-only{few}");
        let named = [
            ("--strategy", self.strategy.as_ref().unwrap_or(&strategy)),
            ("--budget", &self.budget),
            ("--timeout", self.timeout.as_ref().unwrap_or(&default)),
            ("--engine", &self.engine),
            ("--model", &self.model),
            ("--progress", &self.progress),
        ];
        words.extend(named.into_iter().flat_map(|(name, value)| [name.to_owned(), value.clone()]));
        words.extend(["--bundles".into(), self.bundles.display().to_string()]);
        words.extend(self.jobs.into_iter().flat_map(|jobs| ["--jobs".into(), jobs.to_string()]));
        words.extend(self.html.iter().flat_map(|html| ["--html".into(), html.display().to_string()]));
        words.extend(self.no_equivalence.then(|| "--no-equivalence".into()));
        // In the kernel, locked instructions are everywhere and hide missing fences.
        words.extend((self.strict_fences || self.kernel.is_some()).then(|| "--strict-fences".into()));
        let command = CrashOptions::augment_args(clap::Command::new("fs"));
        let matches = command.try_get_matches_from(words).and_then(|matches| CrashOptions::from_arg_matches(&matches));
        matches.map_err(|error| {
            let text = error.to_string();
            Failed::Usage(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
        })
    }
}

/// The code whose stores were lost in these findings.
pub(super) fn lost_stores<'f>(findings: impl IntoIterator<Item = &'f Finding>) -> Vec<Location> {
    let locations = findings.into_iter().flat_map(|finding| &finding.locations);
    locations.filter(|location| location.role == Role::Missing).cloned().collect()
}

/// Of so many new workloads, those that reach new code.
fn kept(
    campaign: &mut RandomWorkloads,
    screening: &mut Screening,
    place: &mut Place,
    count: usize,
) -> Result<Vec<FsWorkload>, Failed> {
    let made = screening.screened(campaign.next(count))?;
    if made.is_empty() {
        return Ok(made);
    }
    let covered = match place {
        Place::Fuse(laboratory) => laboratory.coverage(&made)?,
        Place::Guest(laboratory) => laboratory.coverage(&made)?,
    };
    Ok(campaign.keep(made.into_iter().zip(covered).collect()))
}

/// Where the file system runs.
#[derive(Debug)]
pub enum Place {
    Fuse(Laboratory),
    Guest(Box<GuestLaboratory>),
}

impl Place {
    /// Records a batch and searches for states that break a promise.
    pub fn check(&mut self, batch: &Batch, options: &CrashOptions) -> Result<Batched, Failed> {
        match self {
            Place::Fuse(laboratory) => laboratory.check(batch, options),
            Place::Guest(laboratory) => laboratory.check(batch, options),
        }
    }
}

/// Why nothing was checked.
#[derive(Debug)]
pub enum Failed {
    /// The user knows.
    Told(Exit),
    Usage(String),
    Target(String),
}

impl Failed {
    /// A file system that is not as before after it was mounted again fails without a crash.
    pub fn of_search(failed: JobFailed) -> Failed {
        match failed {
            JobFailed::Usage(text) => Failed::Usage(text),
            JobFailed::Search(SearchFailed::Session(SessionError::NeverRecovers(symptom))) => Failed::Target(format!(
                "mounted again without any crash, the file system is not as in a run that was not recorded: {}",
                words::symptom(&symptom)
            )),
            JobFailed::Search(failed) => Failed::Told(say_search_failed(failed)),
        }
    }

    pub fn text(self) -> String {
        match self {
            Failed::Told(exit) => format!("{exit:?}"),
            Failed::Usage(text) | Failed::Target(text) => text,
        }
    }
}
