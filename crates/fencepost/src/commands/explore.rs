//! `fencepost explore`: solves for inputs that reach code that changes persistent memory.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use check::code_path;
use clap::{Args, ValueEnum};
use lint::lint::{Active, Options};
use lint::registry;
use operation::generate::generate;
use persistency::model::{Fences, ModelKind};
use record::stop::StopRequest;
use report::human::Human;
use report::json;
use solve::explore::{Explorer, Strategy};
use solve::input::Shape;
use solve::reach::SourceLine;
use solve::run::Runner;
use solve::session::{Ended, Found, Limits, Session, SessionError};
use solve::smt::Process;
use solve::solver::{Embedded, Solver, Stages};
use trace::TraceReader;

use super::options::crash::duration;
use super::options::driver::DriverOptions;
use super::options::operation::grammar;
use super::options::rule::RuleOptions;
use super::output::code_path::say_choice;
use crate::cli::MessageFormat;
use crate::exit::Exit;
use crate::render;

mod cpu;
mod crash_search;
mod words;

use cpu::cpu_seconds;

const EXAMPLES: &str = "\
Examples:
  fencepost explore -- ./kv pool                       64 symbolic bytes on standard input
  fencepost explore --seed ops.txt -- ./kv pool        start from a file; all its bytes are symbolic
  fencepost explore --symbolic 'put {key:sym} {value:sym:4}' -- ./kv pool
  fencepost explore -- ./import pool @@                symbolic bytes in a file
  fencepost explore -- ./tool pool 'set={name:sym}'    symbolic parts of an argument
  fencepost explore --reach kv.c:123 -- ./kv pool      find an input that executes a line

Fencepost lints each path that executes new code; with --check it tests its crash states too. Every
finding comes with an input that shows it.";

/// Find inputs with a solver: track what depends on the input, and take the other side of branches.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Explore {
    /// A line of standard input with symbolic parts: `{NAME:sym}` or `{NAME:sym:BYTES}`. Repeatable.
    #[arg(long, value_name = "TEMPLATE", conflicts_with_all = ["seed", "ops", "grammar"])]
    symbolic: Vec<String>,
    /// Operations to start from, one per line: first words stay, letters and digits behind them are symbolic.
    #[arg(long, value_name = "FILE", conflicts_with = "seed")]
    ops: Option<PathBuf>,
    /// Generate the operations to start from (see `fencepost ops generate --help`).
    #[arg(long, value_name = "FILE", conflicts_with_all = ["seed", "ops"])]
    grammar: Option<PathBuf>,
    /// Number of operations to generate.
    #[arg(long, value_name = "N", default_value_t = 12, requires = "grammar")]
    count: usize,
    /// Input to start from, for standard input or `@@`; all its bytes are symbolic.
    #[arg(long, value_name = "FILE")]
    seed: Option<PathBuf>,
    /// Number of symbolic bytes without --symbolic and --seed.
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    bytes: u32,
    /// Stop at the first input that executes this line.
    #[arg(long, value_name = "FILE:LINE")]
    reach: Option<SourceLine>,
    /// Which branch to solve next.
    #[arg(long, value_enum, value_name = "STRATEGY", default_value_t = Search::PmAware)]
    search: Search,
    /// How long to explore: 30s, 5m, 2h.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = duration)]
    time: Duration,
    /// Stop after so many seconds of CPU time, for benchmarks.
    #[arg(long, value_name = "SECONDS", hide = true)]
    cpu_time: Option<f64>,
    /// Stop after N runs of the program.
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    runs: u64,
    /// Stop at the first finding.
    #[arg(long)]
    until_found: bool,
    /// Seed for random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    random_seed: u64,
    /// Time limit of one solver query, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2000)]
    query_limit: u64,
    /// Time limit of one run.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    run_limit: Duration,
    /// `embedded`, or an SMT-LIB 2 solver to ask if the embedded one gives up: z3, cvc5, bitwuzla, or a path.
    /// [default: one that is installed]
    #[arg(long, value_name = "SOLVER")]
    solver: Option<String>,
    /// Run `fencepost check` on each input that executes new PM instructions.
    #[arg(long)]
    check: bool,
    /// Time that --check spends on one input, as in 30s.
    #[arg(long, value_name = "TIME", default_value = "20s", requires = "check")]
    budget: String,
    /// Recovery command for --check.
    #[arg(long, value_name = "CMD", requires = "check")]
    recover: Option<String>,
    /// Treat files that match this glob as pools; `*` matches `/` too. Repeatable.
    /// [default: every file mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB")]
    pm: Vec<String>,
    /// Folder for inputs that executed new code or show a finding.
    #[arg(short, long, value_name = "FOLDER", default_value = "fencepost-explore")]
    output: PathBuf,
    /// Output format of findings and the summary.
    #[arg(long, value_enum, default_value_t = MessageFormat::Human, value_name = "FORMAT")]
    message_format: MessageFormat,
    /// The program and its arguments; `@@` stands for a file with the input.
    #[arg(last = true, required_unless_present = "op_command", value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    driver: DriverOptions,
    #[command(flatten)]
    rules: RuleOptions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Search {
    /// The branch that leads to the most PM code that never ran.
    PmAware,
    /// The oldest branch first.
    Breadth,
    Random,
}

/// What is told at the end.
#[derive(Default)]
struct ExploreOutcome {
    begun: Option<Instant>,
    /// The whole command, with the driver.
    command: Vec<OsString>,
    findings: BTreeSet<String>,
    /// When something new was found, for plots: seconds, runs, blocks, PM instructions, CPU seconds.
    progress: Vec<(f64, u64, usize, usize, f64)>,
    reached: Option<PathBuf>,
    failed: Option<String>,
    /// Crash searches that could not be made, and why the first.
    unchecked: u64,
    unchecked_why: Option<String>,
}

impl ExploreOutcome {
    /// Since the first run began.
    fn elapsed(&self) -> Duration {
        self.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }
}

impl Explore {
    pub fn run(&self) -> Exit {
        match self.explore() {
            Ok(exit) => exit,
            Err((text, exit)) => {
                render::error(text);
                exit
            }
        }
    }

    fn explore(&self) -> Result<Exit, (String, Exit)> {
        let usage = |error: &dyn std::fmt::Display| (error.to_string(), Exit::Usage);
        self.rules.activate().map_err(|text| (text, Exit::Usage))?;
        let command = self.command_line().map_err(|text| (text, Exit::Usage))?;
        let shape = self.shape(&command)?;
        let folder = tempfile::Builder::new().prefix("fencepost-explore-").tempdir();
        let folder = folder.map_err(|error| usage(&format_args!("cannot make a temporary folder: {error}")))?;
        fs::create_dir_all(&self.output)
            .map_err(|error| usage(&format_args!("cannot make {}: {error}", self.output.display())))?;
        let watch = registry::watches(&self.active());
        let limit = self.run_limit.max(Duration::from_secs(1));
        let mut runner =
            Runner::new(&command, shape, &self.pm, &watch, folder.path(), limit).map_err(|error| usage(&error))?;
        say_choice(code_path::choose_for(&self.command, &mut runner.env));
        runner.driven = self.driver.any();
        runner.stop = Some(StopRequest::from_signals());
        let stages = Stages::new(self.solvers(), Duration::from_millis(self.query_limit));
        let strategy = match self.search {
            Search::PmAware => Strategy::PmAware,
            Search::Breadth => Strategy::Breadth,
            Search::Random => Strategy::Random,
        };
        let explorer = Explorer::new(strategy, stages, self.random_seed, Vec::new());
        let limits = Limits { time: self.time, runs: self.runs };
        let mut session = Session::new(runner, explorer, limits, self.reach.clone());
        let mut outcome = ExploreOutcome { command, begun: Some(Instant::now()), ..ExploreOutcome::default() };
        let start = Instant::now();
        let (mut blocks, mut pm) = (0, 0);
        let mut templates = self.templates(&session);
        let ended = session.run(|found| {
            blocks += found.news.blocks;
            pm += found.news.pm;
            if found.news != solve::explore::News::default() {
                let wall = start.elapsed().as_secs_f64();
                outcome.progress.push((wall, found.number, blocks, pm, cpu_seconds()));
            }
            let in_time = self.cpu_time.is_none_or(|most| cpu_seconds() < most);
            self.each(found, &mut templates, &mut outcome) && in_time
        });
        session.runner.restore();
        let ended = ended.map_err(|error| {
            let exit = match error {
                SessionError::Run(solve::run::RunError::Host(..)) => Exit::TargetFailed,
                _ => Exit::Usage,
            };
            (error.to_string(), exit)
        })?;
        if let Some(text) = outcome.failed.take() {
            return Err((text, Exit::Internal));
        }
        Ok(self.end(&session, ended, &outcome, start.elapsed()))
    }

    fn active(&self) -> Vec<Active> {
        self.rules.activate().unwrap_or_default()
    }

    /// The program, or the driver that passes operations on to it.
    fn command_line(&self) -> Result<Vec<OsString>, String> {
        if !self.driver.any() {
            return Ok(self.command.clone());
        }
        if self.symbolic.is_empty() && !self.has_operations() {
            return Err("--op-command and --op-socket need operations; give --ops, --grammar or --symbolic".to_owned());
        }
        self.driver.driven(&self.command, None)
    }

    fn has_operations(&self) -> bool {
        self.ops.is_some() || self.grammar.is_some()
    }

    fn shape(&self, command: &[OsString]) -> Result<Shape, (String, Exit)> {
        let usage = |error: &dyn std::fmt::Display| (error.to_string(), Exit::Usage);
        let mut shape = Shape::default();
        shape.add_arguments(command).map_err(|error| usage(&error))?;
        if let Some(path) = &self.seed {
            let content = fs::read(path).map_err(|error| usage(&format_args!("{}: {error}", path.display())))?;
            shape.add_free(&content);
        } else if let Some(path) = &self.ops {
            let content = fs::read(path).map_err(|error| usage(&format_args!("{}: {error}", path.display())))?;
            shape.add_operations(&content);
        } else if let Some(path) = &self.grammar {
            let grammar = grammar(path).map_err(|text| (text, Exit::Usage))?;
            shape.add_operations(generate(&grammar, self.count, self.random_seed).operations.as_bytes());
        } else if !self.symbolic.is_empty() {
            shape.add_lines(&self.symbolic).map_err(|error| usage(&error))?;
        } else if shape.arguments.is_empty() {
            let mut content = vec![b'1'; self.bytes as usize];
            if let Some(last) = content.last_mut() {
                *last = b'\n';
            }
            shape.add_free(&content);
        }
        Ok(shape)
    }

    fn solvers(&self) -> Vec<Box<dyn Solver>> {
        let mut solvers: Vec<Box<dyn Solver>> = vec![Box::new(Embedded::default())];
        match self.solver.as_deref() {
            Some("embedded") => {}
            Some(name) => {
                let process = Process::named(name);
                if !process.is_there() {
                    render::warning(format_args!("the solver `{name}` is not found: only the embedded one is used"));
                    return solvers;
                }
                solvers.push(Box::new(process));
            }
            None => {
                if let Some(process) = Process::installed() {
                    solvers.push(Box::new(process));
                }
            }
        }
        solvers
    }

    /// How inputs become files: the same as runs get them.
    fn templates(&self, session: &Session) -> Shape {
        session.runner.shape().clone()
    }

    fn each(&self, found: &Found<'_>, shape: &mut Shape, outcome: &mut ExploreOutcome) -> bool {
        if found.reached && self.reach.is_some() {
            outcome.reached = self.save(found, shape, "reach", outcome);
            return false;
        }
        if found.news.blocks == 0 && found.news.pm == 0 && found.news.edges == 0 {
            return true;
        }
        if found.news.pm > 0 || found.news.blocks > 0 {
            self.save(found, shape, &format!("path-{:05}", found.number), outcome);
        }
        if self.lint(found, shape, outcome).is_none() {
            return false;
        }
        if self.check && found.news.pm > 0 {
            self.crash_search(found, shape, outcome);
        }
        outcome.failed.is_none() && (!self.until_found || outcome.findings.is_empty())
    }

    /// Writes the input, as the program gets it.
    fn save(&self, found: &Found<'_>, shape: &Shape, name: &str, outcome: &mut ExploreOutcome) -> Option<PathBuf> {
        let path = self.output.join(format!("{name}.input"));
        let command = shape.render_command(&outcome.command, found.input, &path);
        let written = fs::write(&path, shape.render_file(found.input)).and_then(|()| {
            let line: Vec<String> = command.iter().map(|word| words::quoted(&word.to_string_lossy())).collect();
            let reads = shape.file.is_empty() || self.command.iter().any(|word| word == solve::input::FILE_ARGUMENT);
            let input =
                if reads { String::new() } else { format!(" < {}", words::quoted(&path.display().to_string())) };
            fs::write(path.with_extension("sh"), format!("{}{input}\n", line.join(" ")))
        });
        if let Err(error) = written {
            outcome.failed = Some(format!("cannot write {}: {error}", path.display()));
            return None;
        }
        Some(path)
    }

    /// Lints the path; none: it could not be.
    fn lint(&self, found: &Found<'_>, shape: &Shape, outcome: &mut ExploreOutcome) -> Option<()> {
        let options = Options { model: ModelKind::X86Adr, fences: Fences::All, libraries: self.rules.libraries() };
        let reader = match TraceReader::open(&found.ran.trace) {
            Ok(reader) => reader,
            Err(error) => {
                outcome.failed = Some(error.to_string());
                return None;
            }
        };
        let report = match lint::lint::lint(&reader, self.active(), &options) {
            Ok(report) => report,
            Err(error) => {
                outcome.failed = Some(error.to_string());
                return None;
            }
        };
        let mut human = Human::new(true, vec![std::env::current_dir().unwrap_or_default()]);
        for finding in report.findings {
            if !outcome.findings.insert(finding.id.0.clone()) {
                continue;
            }
            let path = self.save(found, shape, &format!("finding-{}", finding.id.0), outcome)?;
            let shown = match self.message_format {
                MessageFormat::Human => format!("{}\n   input: {}\n", human.finding(&finding), path.display()),
                MessageFormat::Json => words::with_input(&json::finding(&finding), &path, outcome.elapsed()),
            };
            if render::result(shown).is_err() {
                return None;
            }
        }
        Some(())
    }

    fn end(&self, session: &Session, ended: Ended, outcome: &ExploreOutcome, took: Duration) -> Exit {
        match ended {
            Ended::NoInput => {
                render::error("the program never read its input");
                render::help(
                    "free are: standard input, the file `@@` and arguments with {NAME:sym}; name what it reads",
                );
                return Exit::TargetFailed;
            }
            Ended::NoBranch => {
                render::warning("no branch depends on the input: there is nothing to solve");
                if let Some((places, _)) = words::concrete(session).first() {
                    render::note(format_args!("the input became concrete: {places}"));
                }
            }
            _ => {}
        }
        let printed = match self.message_format {
            MessageFormat::Human => render::result(words::summary(session, ended, &outcome.findings, took)),
            MessageFormat::Json => render::result(words::summary_json(session, ended, outcome, took)),
        };
        words::warn(session);
        if let Some(why) = &outcome.unchecked_why {
            render::warning(format_args!("{} crash searches could not be made; the first: {why}", outcome.unchecked));
        }
        if printed.is_err() {
            return Exit::Internal;
        }
        if ended == Ended::Interrupted {
            return Exit::Interrupted;
        }
        if let Some(place) = &self.reach {
            return match &outcome.reached {
                Some(path) => {
                    let _ =
                        render::result(format_args!("reached {}:{} with {}", place.file, place.line, path.display()));
                    Exit::Clean
                }
                None => {
                    render::warning(format_args!("{}:{} was not reached", place.file, place.line));
                    Exit::Incomplete
                }
            };
        }
        if outcome.findings.is_empty() { Exit::Clean } else { Exit::Findings }
    }
}
