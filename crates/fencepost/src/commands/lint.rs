//! `fencepost lint`: finds misuse of persistent memory in a recording.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, FromArgMatches, ValueEnum};
use finding::blame::Libraries;
use finding::finding::Finding;
use finding::severity::{Level, Severity};
use finding::suppress::Suppressions;
use lint::lint::{Active, Options, Report};
use lint::registry::{self, Settings};
use lint::rule::Rule;
use lint::script::Script;
use persistency::model::{Fences, ModelKind};
use report::human::{Human, Summary};
use report::json;
use trace::TraceReader;

use super::aside::Aside;
use super::crash::printed;
use super::document::Document;
use super::lint_config::LintConfig;
use super::record::Record;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost lint run.fptrace                         check a recording
  PMEM_IS_PMEM_FORCE=1 fencepost lint -- ./kv pool   record a program and check it
  fencepost lint --severity FP0301=allow run.fptrace without that rule
  fencepost lint --fail-on performance run.fptrace   exit with 1 on waste, too
  fencepost explain FP0101                           what a rule means

Rules about PMDK transactions need the calls of pmemobj_tx_*: `lint -- CMD` watches them by itself.";

/// Find misuse of persistent memory: missing and needless flushes and fences, broken transactions.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Lint {
    /// The recording to check.
    #[arg(value_name = "TRACE", required_unless_present = "command", conflicts_with = "command")]
    trace: Option<PathBuf>,
    /// What survives a power failure: `adr` (the memory controller) or `eadr` (the caches, too).
    #[arg(long, default_value = "adr", value_name = "MODEL")]
    model: ModelKind,
    /// Take only sfence and mfence for fences, not locked instructions that happen to be there.
    #[arg(long)]
    strict_fences: bool,
    /// Exit with 1 on findings of this severity or worse. [default: error]
    #[arg(long, value_enum, value_name = "LEVEL")]
    fail_on: Option<FailOn>,
    /// Switch a rule off. Repeatable.
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Count a rule's findings as errors. Repeatable.
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Change a rule's severity: error, performance, warning, note or allow. Repeatable.
    #[arg(long, value_name = "RULE=LEVEL")]
    severity: Vec<String>,
    /// Give a rule what it needs to know: FP0403.types=NUMBER,... Repeatable.
    #[arg(long, value_name = "RULE.NAME=VALUE")]
    set: Vec<String>,
    /// Findings that are intended, with reasons (TOML).
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// Rules of your own (rhai). Repeatable.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Never blame code in such a library; a pattern over its file name. Repeatable.
    #[arg(long = "library", value_name = "GLOB")]
    libraries: Vec<String>,
    /// The configuration. [default: fencepost.toml, if it is there]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    #[arg(long, value_enum, default_value_t = FindingFormat::Human)]
    message_format: FindingFormat,
    /// As for `fencepost record`: files that are pools.
    #[arg(long = "pm", value_name = "GLOB", requires = "command")]
    pm: Vec<String>,
    /// The program to record and check, and its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Error,
    Performance,
    Warning,
    Note,
    Never,
}

impl FailOn {
    fn fails(self, finding: &Finding) -> bool {
        let least = match self {
            FailOn::Error => Severity::Error,
            FailOn::Performance => Severity::Performance,
            FailOn::Warning => Severity::Warning,
            FailOn::Note => Severity::Note,
            FailOn::Never => return false,
        };
        finding.severity >= least
    }
}

/// Everything that the options and the configuration say.
struct Plan {
    rules: Vec<Active>,
    options: Options,
    suppressions: Suppressions,
    fail_on: FailOn,
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

    fn plan(&self) -> Result<Plan, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let config = LintConfig::read(self.config.as_deref()).map_err(|e| text(&e))?;
        let mut settings = Settings::default();
        for (rule, level) in &config.severity {
            settings.parse_level(&format!("{rule}={level}")).map_err(|e| text(&e))?;
        }
        self.allow.iter().for_each(|rule| settings.level(rule, Level::Allow));
        self.deny.iter().for_each(|rule| settings.level(rule, Level::Report(Severity::Error)));
        self.severity.iter().try_for_each(|pair| settings.parse_level(pair)).map_err(|e| text(&e))?;
        config.set.iter().chain(&self.set).try_for_each(|pair| settings.parse_setting(pair)).map_err(|e| text(&e))?;
        let mut custom: Vec<Box<dyn Rule>> = Vec::new();
        for path in config.rules.iter().chain(&self.rules) {
            custom.push(Box::new(Script::read(path).map_err(|e| text(&e))?));
        }
        let suppressions = match self.suppressions.as_ref().or(config.suppressions.as_ref()) {
            Some(path) => Suppressions::read(path).map_err(|e| text(&e))?,
            None => Suppressions::default(),
        };
        let mut libraries = Libraries::default();
        libraries.modules.extend(config.libraries.iter().chain(&self.libraries).cloned());
        let fail_on = match (self.fail_on, &config.fail_on) {
            (Some(given), _) => given,
            (None, Some(name)) => FailOn::from_str(name, false)
                .map_err(|_| format!("fail-on = \"{name}\": it is one of error, performance, warning, note, never"))?,
            (None, None) => FailOn::Error,
        };
        Ok(Plan {
            rules: settings.activate(custom).map_err(|e| text(&e))?,
            options: Options {
                model: self.model,
                fences: if self.strict_fences { Fences::Strict } else { Fences::All },
                libraries,
            },
            suppressions,
            fail_on,
        })
    }

    fn record_and_check(&self, plan: Plan) -> Exit {
        let folder = match tempfile::Builder::new().prefix("fencepost-lint-").tempdir() {
            Ok(folder) => folder,
            Err(error) => {
                render::error(format_args!("cannot make a temporary folder for the trace: {error}"));
                return Exit::Usage;
            }
        };
        let trace = folder.path().join("lint.fptrace");
        let mut arguments: Vec<OsString> =
            vec!["record".into(), "--quiet".into(), "--output".into(), trace.clone().into()];
        for glob in &self.pm {
            arguments.extend(["--pm".into(), glob.into()]);
        }
        for symbol in registry::watches(&plan.rules) {
            arguments.extend(["--watch".into(), symbol.into()]);
        }
        arguments.push("--".into());
        arguments.extend(self.command.iter().cloned());
        let matches = Record::augment_args(Command::new("record")).get_matches_from(arguments);
        let record = Record::from_arg_matches(&matches).expect("the arguments are those of `record`");
        // If there is no standard output, there is nothing to keep clean.
        let aside = self.message_format.is_document().then(|| Aside::begin().ok());
        let recorded = record.run();
        drop(aside);
        match recorded {
            Exit::Clean => self.check(&trace, plan),
            Exit::NoActivity => {
                render::warning("no persistent-memory activity: there is nothing to check");
                render::help("`fencepost record` on the same command says more");
                Exit::NoActivity
            }
            failed => failed,
        }
    }

    fn check(&self, path: &Path, mut plan: Plan) -> Exit {
        let watched = !registry::watches(&plan.rules).is_empty();
        let failed = |error: &dyn std::fmt::Display| {
            render::error(error);
            Exit::Usage
        };
        let reader = match TraceReader::open(path) {
            Ok(reader) => reader,
            Err(error) => return failed(&error),
        };
        let mut report = match lint::lint::lint(&reader, plan.rules, &plan.options) {
            Ok(report) => report,
            Err(error) => return failed(&error),
        };
        let suppressed = plan.suppressions.apply(&mut report.findings);
        let summary = Summary { suppressed, events: report.events };
        let fails = |finding: &Finding| plan.fail_on.fails(finding);
        let exit = if report.findings.iter().any(fails) { Exit::Findings } else { Exit::Clean };
        let result = if self.message_format.is_document() {
            let document = Document {
                reader: &reader,
                findings: &report.findings,
                fails: &fails,
                exit,
                notes: &[],
                suppressed,
                crash: None,
            };
            if self.message_format == FindingFormat::Sarif { document.print_sarif() } else { document.print_junit() }
        } else {
            self.print(&reader, &report, &summary)
        };
        explain_limits(&reader, &report, watched);
        for unused in plan.suppressions.unused() {
            render::note(format_args!("a suppression matched nothing (\"{}\"); its cause may be gone", unused.reason));
        }
        printed(result, exit)
    }

    fn print(&self, reader: &TraceReader, report: &Report, summary: &Summary) -> io::Result<()> {
        if self.message_format == FindingFormat::Json {
            for finding in &report.findings {
                render::result(json::finding(finding))?;
            }
            return render::result(json::summary(&report.findings, summary));
        }
        let folders = [PathBuf::from(&reader.tables().meta.cwd), env::current_dir().unwrap_or_default()];
        // The stream that this goes through removes colours where they are not wanted.
        let mut human = Human::new(true, folders.into());
        for finding in &report.findings {
            render::result(format_args!("{}\n", human.finding(finding)))?;
        }
        render::result(human.summary(&report.findings, summary))
    }
}

/// What the user may take for a clean result and is not.
fn explain_limits(reader: &TraceReader, report: &Report, watched: bool) {
    if let Some(why) = report.unjudged {
        render::warning(format_args!("{why}: stores that were not durable yet were not judged"));
    }
    let tables = reader.tables();
    let loaded = |name: &str| {
        tables.modules.iter().any(|module| module.path.rsplit('/').next().unwrap_or_default().starts_with(name))
    };
    if watched && loaded("libpmemobj.so") && !tables.watches.iter().any(|symbol| symbol == "pmemobj_tx_begin") {
        render::note("the trace does not hold the calls of pmemobj_tx_*: rules FP04xx had nothing to look at");
        render::help("record with `fencepost lint -- CMD`, which watches them");
    }
    let flushes = ["clwb", "clflush", "clflushopt", "movnt"];
    let flushed = tables.instructions_seen.iter().any(|name| flushes.iter().any(|flush| name.contains(flush)));
    if loaded("libpmem.so") && !flushed {
        render::warning(
            "libpmem took the pool for an ordinary file: it called msync and executed no flush. \
             This is not the code that runs on persistent memory",
        );
        render::help("set PMEM_IS_PMEM_FORCE=1 to make it use the PM code path");
    }
}
