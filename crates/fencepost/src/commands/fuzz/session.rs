//! A campaign, from the options to its report.

use std::env;
use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use check::code_path;
use check::settings::oracle;
use finding::finding::Finding;
use fleet::program::UnitFolder;
use fuzz::campaign::findings::Found;
use fuzz::campaign::helper::Helper;
use fuzz::campaign::run::{CampaignError, FuzzCampaign};
use fuzz::campaign::state::{Budget, State};
use fuzz::corpus;
use fuzz::examine::{Examination, search_options};
use fuzz::execute::{Delivery, Subject};
use fuzz::inputs::Inputs;
use fuzz::inputs::bytes::Bytes;
use fuzz::inputs::operations::Operations;
use fuzz::random::Random;
use lint::registry;
use oracle::command_line::command_line;
use record::stop::StopRequest;
use recover::command::Command;
use recover::limits::Limits;
use report::human::Human;
use report::json;
use solve::campaign::Solving;

use super::super::options::operation::{grammar, read};
use super::super::output::code_path::say_choice;
use super::super::output::html::can_be_written;
use super::super::output::progress::ProgressStyle;
use super::FuzzOptions;
use super::discover::{Pools, pools};
use super::elsewhere::{SLICE, Slices};
use super::ending::Ending;
use super::screen::Screen;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

/// Runs that compute for longer than this, and do not end, hang.
const MEMORY: u64 = 1 << 30;

pub fn run(options: &FuzzOptions) -> Exit {
    let prepared = match Prepared::new(options) {
        Ok(prepared) => prepared,
        Err(text) => {
            render::error(text);
            return Exit::Usage;
        }
    };
    prepared.run()
}

/// Says why a campaign ended.
fn failed(error: CampaignError) -> Exit {
    match error {
        CampaignError::NoPm(_) => {
            render::warning(error);
            render::help("run `fencepost record` on the same command for details");
            Exit::NoActivity
        }
        CampaignError::NothingRuns(_) => {
            render::error(error);
            Exit::TargetFailed
        }
        error => {
            render::error(error);
            Exit::Usage
        }
    }
}

/// Performs a unit of a campaign in slices.
fn performed(campaign: &FuzzCampaign<'_>, folder: UnitFolder) -> Exit {
    let unit = match folder.what() {
        Ok(unit) => unit,
        Err(error) => {
            render::error(error);
            return Exit::Usage;
        }
    };
    campaign.perform(&unit, &folder.done()).map_or_else(failed, |()| Exit::Clean)
}

/// Of one query, with --solve.
const QUERY_LIMIT: Duration = Duration::from_secs(2);
/// Runs to find the pools in.
const FIRST_RUNS: usize = 4;

/// Everything that the options say, read and understood.
struct Prepared<'a> {
    options: &'a FuzzOptions,
    subject: Subject,
    inputs: Box<dyn Inputs>,
    seeds: Vec<Vec<u8>>,
    out: PathBuf,
    /// That folder as the user knows it.
    shown: PathBuf,
}

impl Prepared<'_> {
    fn new(options: &FuzzOptions) -> Result<Prepared<'_>, String> {
        let shown = env::current_dir().map_err(|error| error.to_string())?.join(&options.out);
        let out = options.unit.as_ref().map_or_else(|| shown.clone(), |unit| UnitFolder(unit.clone()).given());
        let words = options.driver.driven(&options.command, None)?;
        let mut command = Command::here(&words).ok_or("there is no command")?;
        say_choice(match &options.driver.op_command {
            Some(line) => code_path::choose_for_line(line, &mut command.env),
            None => code_path::choose_for(&options.command, &mut command.env),
        });
        if command.executable().is_none_or(|file| !file.exists()) {
            return Err(format!("the program `{}` is not found", command.program.display()));
        }
        let mut seeds = match options.seeds.as_ref().filter(|_| options.unit.is_none()) {
            Some(folder) => corpus::seeds(folder).map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let text = options.ops.as_deref().map(|path| read("operations", path)).transpose()?;
        let inputs: Box<dyn Inputs> = match (&options.grammar, &text) {
            (Some(path), _) => Box::new(Operations::new(grammar(path)?)),
            (None, Some(text)) => {
                let none = || format!("there is not one operation in {:?}", options.ops);
                Box::new(Operations::like(text).ok_or_else(none)?)
            }
            (None, None) => {
                let words = options.dict.as_deref().map(|path| read("dictionary", path)).transpose()?;
                let words = words.map(|words| String::from_utf8_lossy(&words).into_owned()).unwrap_or_default();
                Box::new(Bytes::parse(&words).map_err(|error| error.to_string())?)
            }
        };
        seeds.extend(text);
        let has_operations = options.grammar.is_some() || options.ops.is_some();
        if options.driver.any() && !has_operations {
            return Err("--op-command and --op-socket need operations; give --grammar FILE or --ops FILE".into());
        }
        let is_file = command.args.iter().any(|word| word == "@@");
        let delivery = match (has_operations, options.arguments, is_file) {
            (_, true, _) => Delivery::Arguments,
            (_, false, true) => Delivery::File(out.join("input")),
            (true, false, false) => Delivery::Operations,
            (false, false, false) => Delivery::Stdin,
        };
        let limits = Limits {
            wall: options.timeout,
            cpu: options.timeout * 2 + Duration::from_secs(1),
            memory: MEMORY,
            ..Limits::default()
        };
        let subject = Subject { command, delivery, pools: Vec::new(), limits };
        Ok(Prepared { options, subject, inputs, seeds, out, shown })
    }

    fn run(mut self) -> Exit {
        let told = |text: String| {
            render::error(text);
            Exit::Usage
        };
        if let Err(text) = can_be_written(self.options.html.as_deref()) {
            return told(text);
        }
        let gate = match self.options.gate.open() {
            Ok(gate) => gate,
            Err(text) => return told(text),
        };
        // What is wrong with the rules is said before the program runs; each case then gets fresh ones.
        let rules = match self.options.rules.activate() {
            Ok(rules) => rules,
            Err(text) => return told(text),
        };
        let watch: Vec<String> = if self.options.no_lint { Vec::new() } else { registry::watches(&rules) };
        if let Err(error) = fs::create_dir_all(&self.out) {
            return told(format!("cannot make {}: {error}", self.out.display()));
        }
        let root = match self.find_pools() {
            Ok(root) => root,
            Err(exit) => return exit,
        };
        let examination = match self.examination() {
            Ok(examination) => examination,
            Err(text) => return told(text),
        };
        let libraries = self.options.rules.libraries();
        let stop = StopRequest::from_signals();
        let before = stop.count();
        let stopped = AtomicBool::new(false);
        let interrupted = AtomicBool::new(false);
        let is_unit = self.options.unit.is_some();
        let screen = Screen::new(if is_unit { ProgressStyle::Never } else { self.options.progress });
        let on_progress = |state: &State, found: Option<&Found>| {
            if stop.count() > before {
                interrupted.store(true, Ordering::Relaxed);
                stopped.store(true, Ordering::Relaxed);
            }
            if let Some(found) = found {
                screen.clear();
                let shown = self.print(&found.finding);
                if shown && self.options.until_found {
                    stopped.store(true, Ordering::Relaxed);
                }
            }
            screen.show(state);
        };
        let make_rules =
            || if self.options.no_lint { Vec::new() } else { self.options.rules.activate().unwrap_or_default() };
        let solving = self.options.solve.then(|| Mutex::new(Solving::new(self.options.seed, QUERY_LIMIT, true)));
        let jobs = self.options.jobs.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let mut slices = match if is_unit { Ok(None) } else { Slices::open(self.options, jobs) } {
            Ok(slices) => slices,
            Err(text) => return told(text),
        };
        let campaign = FuzzCampaign {
            subject: &self.subject,
            inputs: self.inputs.as_ref(),
            examination: (self.options.check_share > 0.0).then_some(&examination),
            rules: &make_rules,
            watch,
            libraries: &libraries,
            folder: self.out.clone(),
            shown: self.shown.clone(),
            seed: self.options.seed,
            jobs,
            budget: Budget {
                time: self.options.executions.is_none().then_some(self.options.time),
                executions: self.options.executions,
                check_share: self.options.check_share,
            },
            seeds: self.seeds.clone(),
            root,
            helper: solving.as_ref().map(|solving| solving as &Mutex<dyn Helper>),
            stop: &stopped,
            on_progress: &on_progress,
        };
        if let Some(folder) = &self.options.unit {
            return performed(&campaign, UnitFolder(folder.clone()));
        }
        let result = match &mut slices {
            Some(slices) => campaign.run_rounds(self.options.slice.unwrap_or(SLICE), slices),
            None => campaign.run(),
        };
        screen.clear();
        let fleet = slices.and_then(Slices::into_fleet);
        let state = match result {
            Ok(state) => state,
            Err(error) => {
                // Nobody shall wait for units of a campaign that has failed.
                if let Some(fleet) = fleet {
                    fleet.abandon();
                }
                return failed(error);
            }
        };
        let command = std::iter::once(self.subject.command.program.as_os_str())
            .chain(self.subject.command.args.iter().map(|word| word.as_os_str()));
        let ending = Ending {
            options: self.options,
            state: &state,
            folder: self.subject.command.dir.display().to_string(),
            command: command.map(|word| word.to_string_lossy().into_owned()).collect(),
            pools: self.subject.pools.iter().map(|pool| pool.display().to_string()).collect(),
            interrupted: interrupted.load(Ordering::Relaxed),
        };
        ending.tell(gate, fleet)
    }

    /// Runs the first input to see which files are pools. What they hold is the root of all images.
    fn find_pools(&mut self) -> Result<fuzz::image::Image, Exit> {
        if let Ok(about) = corpus::Corpus::about(&self.out) {
            // A campaign that is gone on with knows them.
            self.subject.pools = about.pools;
            return Ok(fuzz::image::Image::none(self.subject.pools.len()));
        }
        // The very first input may be one that the program breaks down on.
        for input in self.first_inputs() {
            let (Pools { paths, root }, recorded) = pools(&self.subject, &input, &self.options.pm).map_err(|text| {
                render::error(text);
                Exit::TargetFailed
            })?;
            if !paths.is_empty() && recorded.recording.activity.any() {
                self.subject.pools = paths;
                return Ok(root);
            }
        }
        render::warning("no persistent-memory activity in the first runs: there is nothing to fuzz");
        render::help("run `fencepost record` on the same command for details; --pm names files that are pools");
        Err(Exit::NoActivity)
    }

    fn first_inputs(&self) -> Vec<Vec<u8>> {
        if !self.seeds.is_empty() {
            return self.seeds.iter().take(FIRST_RUNS).cloned().collect();
        }
        let mut random = Random::new(self.options.seed);
        let mut inputs = vec![self.inputs.first(&mut random)];
        while inputs.len() < FIRST_RUNS {
            let next = self.inputs.mutate(&inputs[inputs.len() - 1], b"", &mut random);
            inputs.push(next);
        }
        inputs
    }

    fn examination(&self) -> Result<Examination, String> {
        let directory = self.subject.command.dir.clone();
        let environment = self.subject.command.env.clone();
        let recovery =
            self.options.recover.as_deref().map(|line| command_line(line, directory, environment)).transpose();
        let expectation =
            evidence::bundle::Expectation { exit_codes: self.options.exit_ok.clone(), ..Default::default() };
        Ok(Examination {
            subject: self.subject.clone(),
            recovery: recovery.map_err(|error| error.to_string())?,
            checker: None,
            oracle: oracle(&expectation).map_err(|error| error.to_string())?,
            expectation,
            search: search_options(&self.options.strategy).map_err(|error| error.to_string())?,
            libraries: self.options.rules.libraries(),
            limits: Limits {
                wall: Duration::from_secs(10),
                cpu: Duration::from_secs(21),
                ..self.subject.limits.clone()
            },
            budget: self.options.check_budget,
            bundles: self.options.out.join("findings"),
        })
    }

    /// As soon as it is found; whether it is new.
    fn print(&self, finding: &Finding) -> bool {
        // The files were read before; nobody wants to see what is suppressed.
        let Ok(gate) = self.options.gate.open() else { return true };
        let judged = gate.judge(vec![finding.clone()], 0);
        let text = match self.options.message_format {
            _ if judged.findings.is_empty() => return false,
            FindingFormat::Human if judged.news().is_empty() => return false,
            FindingFormat::Human => Human::new(true, vec![self.subject.command.dir.clone()]).finding(finding),
            FindingFormat::Json => json::finding_against(finding, judged.baseline()),
            // One document, at the end.
            FindingFormat::Sarif | FindingFormat::Junit => return !judged.news().is_empty(),
        };
        let mut out = anstream::stdout().lock();
        let _ = writeln!(out, "{}", text.trim_end()).and_then(|()| out.flush());
        !judged.news().is_empty()
    }
}
