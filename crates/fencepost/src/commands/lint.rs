//! `fencepost lint`: finds misuse of persistent memory in a recording.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use check::code_path;
use clap::Args;
use finding::pmdk::Library;
use lint::lint::{Active, Options};
use lint::registry;
use persistency::model::{Fences, ModelKind};
use record::request::Request;
use report::human::Human;
use supervise::temporary::Temporary;
use trace::TraceReader;

use super::crash::printed;
use super::options::files::FileOptions;
use super::options::gate::{Gate, GateOptions, Judged};
use super::options::rule::RuleOptions;
use super::output::code_path::{say_choice, warn_of_msync};
use super::output::document::Document;
use super::record::summary::say_failure;
use super::record::{backend, beside_documents, outcome, recorded};
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost lint -- ./kv pool                        record a program and lint the recording
  fencepost lint run.fptrace                         lint a recording
  fencepost lint --allow FP0301 run.fptrace          without that rule
  fencepost lint --fail-on performance run.fptrace   exit with 1 on needless flushes and fences too
  fencepost explain FP0101                           what a rule means

`fencepost explain` lists all rules. Rules about PMDK transactions need the calls of pmemobj_tx_*,
which `lint -- CMD` records; for a recording of your own, see `fencepost record --watch`.";

/// Find misuse of persistent memory: missing and needless flushes and fences, broken transactions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Lint {
    /// The recording to lint.
    #[arg(value_name = "TRACE", required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,
    /// What survives a power failure: `adr`, the memory controller's queues; `eadr`, the caches as well.
    #[arg(long, default_value = "adr", value_name = "MODEL")]
    model: ModelKind,
    /// Count only sfence and mfence as fences, not locked instructions.
    #[arg(long)]
    strict_fences: bool,
    /// Output format of findings.
    #[arg(long, value_enum, default_value_t = FindingFormat::Human, value_name = "FORMAT")]
    message_format: FindingFormat,
    /// Treat files that match this glob as pools; `*` matches `/` too. Repeatable.
    /// [default: every file mapped shared and writable]
    #[arg(long = "pm", value_name = "GLOB", requires = "command")]
    pm: Vec<String>,
    /// The program to record and lint, and its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
    #[command(flatten)]
    files: FileOptions,
    #[command(flatten)]
    rules: RuleOptions,
    #[command(flatten)]
    gate: GateOptions,
}

/// Everything that the options say.
struct LintPlan {
    rules: Vec<Active>,
    options: Options,
    gate: Gate,
}

impl Lint {
    pub fn run(&self) -> Exit {
        let plan = match self.plan() {
            Ok(plan) => plan,
            Err(text) => {
                render::error(text);
                return Exit::Usage;
            }
        };
        match &self.trace {
            Some(path) => self.check(path, plan),
            None => self.record_and_check(plan),
        }
    }

    fn plan(&self) -> Result<LintPlan, String> {
        self.files.can_be_written()?;
        Ok(LintPlan {
            rules: self.rules.activate()?,
            options: Options {
                model: self.model,
                fences: if self.strict_fences { Fences::Strict } else { Fences::All },
                libraries: self.rules.libraries(),
            },
            gate: self.gate.open()?,
        })
    }

    fn record_and_check(&self, plan: LintPlan) -> Exit {
        let folder = match Temporary::new("lint") {
            Ok(folder) => folder,
            Err(error) => {
                render::error(format_args!("cannot make a temporary folder for the trace: {error}"));
                return Exit::Usage;
            }
        };
        let trace = folder.path().join("lint.fptrace");
        let mut request = Request::new(self.command.clone(), &trace);
        request.options.pm.clone_from(&self.pm);
        request.options.watch = registry::watches(&plan.rules);
        request.backend = backend();
        say_choice(code_path::choose_for(&self.command, &mut request.env));
        if self.message_format.is_document() {
            request.stdout = beside_documents();
        }
        let recorded = recorded(request, false).map_or_else(|exit| exit, |recording| outcome(&recording));
        if matches!(recorded, Exit::Clean | Exit::NoActivity)
            && let Ok(reader) = TraceReader::open(&trace)
        {
            say_failure(&reader);
        }
        match recorded {
            Exit::Clean => self.check(&trace, plan),
            Exit::NoActivity => {
                render::warning("no persistent-memory activity: there is nothing to check");
                render::help("run `fencepost record` on the same command for details");
                Exit::NoActivity
            }
            failed => failed,
        }
    }

    fn check(&self, path: &Path, plan: LintPlan) -> Exit {
        let watched = !registry::watches(&plan.rules).is_empty();
        let failed = |error: &dyn std::fmt::Display| {
            render::error(error);
            Exit::Usage
        };
        let reader = match TraceReader::open(path) {
            Ok(reader) => reader,
            Err(error) => {
                if is_program(path) {
                    render::help(format_args!(
                        "this is a program: write `fencepost lint -- {}` to record and check it",
                        path.display()
                    ));
                }
                return failed(&error);
            }
        };
        let report = match lint::lint::lint(&reader, plan.rules, &plan.options) {
            Ok(report) => report,
            Err(error) => return failed(&error),
        };
        let (unjudged, events) = (report.unjudged, report.events);
        let (findings, inside_libraries) = self.rules.shown(report.findings, &report.inside_libraries);
        let judged = plan.gate.judge(findings, inside_libraries);
        let exit = if judged.any_fails() { Exit::Findings } else { Exit::Clean };
        let document = Document::of(&reader, &judged, exit, &[]);
        let result = match self.message_format {
            FindingFormat::Human => show(&reader, &judged, events),
            format => document.print(format),
        };
        explain_limits(&reader, unjudged, watched);
        printed(result, self.files.write(&document, judged.finish(events, exit)))
    }
}

/// For people.
fn show(reader: &TraceReader, judged: &Judged, events: u64) -> io::Result<()> {
    let folders = [PathBuf::from(&reader.tables().meta.cwd), env::current_dir().unwrap_or_default()];
    // The stream that this goes through removes colours where they are not wanted.
    let mut human = Human::new(true, folders.into());
    let news = judged.news();
    for finding in &news {
        render::result(format_args!("{}\n", human.finding(finding)))?;
    }
    render::result(human.summary(&news, &judged.summary(events)))
}

/// Whether somebody has forgotten the `--` before a program.
fn is_program(path: &Path) -> bool {
    let mut start = [0; 4];
    let read = std::fs::File::open(path).and_then(|mut file| io::Read::read_exact(&mut file, &mut start));
    read.is_ok() && (start == *b"\x7fELF" || start.starts_with(b"#!"))
}

/// What the user may take for a clean result and is not.
fn explain_limits(reader: &TraceReader, unjudged: Option<&'static str>, watched: bool) {
    if let Some(why) = unjudged {
        render::warning(format_args!("{why}: stores that were not durable yet were not judged"));
    }
    let tables = reader.tables();
    if watched
        && code_path::loaded(reader, |library| library == Library::Pmemobj)
        && !tables.watches.iter().any(|symbol| symbol == "pmemobj_tx_begin")
    {
        render::note("the trace does not hold the calls of pmemobj_tx_*: rules FP04xx had nothing to look at");
        render::help("record with `fencepost lint -- CMD`, which watches them");
    }
    warn_of_msync(reader);
}
