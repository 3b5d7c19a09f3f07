//! Which findings fail a command: the options that `lint`, `check` and `crash` share.
//!
//! Suppressed findings are removed. Findings in the baseline are known: they are counted and are part of machine-readable output, but do
//! not fail the command. Other findings fail it if their severity is at least that of `--fail-on`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use finding::finding::Finding;
use finding::merge::merge;
use finding::severity::Severity;
use finding::suppress::Suppressions;
use report::baseline::Baseline;
use report::human::Summary;
use report::json;
use report::number::counted;

use crate::exit::Exit;
use crate::render;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Exit code")]
pub struct GateOptions {
    /// Exit with 1 on findings of this severity or worse.
    #[arg(long, value_enum, value_name = "LEVEL", default_value_t = FailOn::Error)]
    fail_on: FailOn,
    /// File of findings to ignore, each with a reason (TOML).
    #[arg(long, value_name = "FILE")]
    suppressions: Option<PathBuf>,
    /// Fail only on findings that are not in this file, which an earlier run wrote as `json` or `sarif`.
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,
    /// Write this run's findings to FILE, for --baseline.
    #[arg(long, value_name = "FILE")]
    write_baseline: Option<PathBuf>,
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
    fn least(self) -> Option<Severity> {
        match self {
            FailOn::Error => Some(Severity::Error),
            FailOn::Performance => Some(Severity::Performance),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Note => Some(Severity::Note),
            FailOn::Never => None,
        }
    }
}

impl GateOptions {
    /// Reads the files, so that what is wrong with them is said before anything runs.
    pub fn open(&self) -> Result<Gate, String> {
        let suppressions = self.suppressions.as_deref().map(Suppressions::read).transpose();
        let baseline = self.baseline.as_deref().map(Baseline::read).transpose();
        Ok(Gate {
            least: self.fail_on.least(),
            suppressions: suppressions.map_err(|error| error.to_string())?.unwrap_or_default(),
            baseline: baseline.map_err(|error| error.to_string())?,
            write: self.write_baseline.clone(),
        })
    }
}

/// What the options say, read.
#[derive(Debug)]
pub struct Gate {
    /// Findings below this fail nothing; none: no finding does.
    least: Option<Severity>,
    suppressions: Suppressions,
    baseline: Option<Baseline>,
    write: Option<PathBuf>,
}

impl Gate {
    /// Findings that are suppressed are gone.
    /// Those about one bug are one. `inside_libraries`: how many lie wholly inside libraries and are not among them.
    pub fn judge(mut self, mut findings: Vec<Finding>, inside_libraries: u64) -> Judged {
        let suppressed = self.suppressions.apply(&mut findings);
        let findings = merge(findings);
        if let Some(baseline) = &mut self.baseline {
            baseline.compare(&findings);
        }
        Judged { findings, suppressed, inside_libraries, gate: self }
    }
}

/// The findings of a run, with what fails.
#[derive(Debug)]
pub struct Judged {
    pub findings: Vec<Finding>,
    pub suppressed: u64,
    inside_libraries: u64,
    gate: Gate,
}

impl Judged {
    pub fn fails(&self, finding: &Finding) -> bool {
        self.gate.least.is_some_and(|least| finding.severity >= least) && !self.knows(finding)
    }

    pub fn any_fails(&self) -> bool {
        self.findings.iter().any(|finding| self.fails(finding))
    }

    /// Can a finding fail the command at all?
    pub fn may_fail(&self) -> bool {
        self.gate.least.is_some()
    }

    fn knows(&self, finding: &Finding) -> bool {
        self.gate.baseline.as_ref().is_some_and(|baseline| baseline.knows(finding))
    }

    pub fn baseline(&self) -> Option<&Baseline> {
        self.gate.baseline.as_ref()
    }

    /// The findings that people want to see.
    pub fn news(&self) -> Vec<Finding> {
        self.findings.iter().filter(|finding| !self.knows(finding)).cloned().collect()
    }

    pub fn summary(&self, events: u64) -> Summary {
        let known = self.findings.iter().filter(|finding| self.knows(finding)).count() as u64;
        Summary {
            suppressed: self.suppressed,
            inside_libraries: self.inside_libraries,
            known: self.gate.baseline.is_some().then_some(known),
            events,
            open: false,
        }
    }

    /// Says what the files have too much, and writes the new baseline. `exit` is how the command would end otherwise.
    pub fn finish(&self, events: u64, exit: Exit) -> Exit {
        if self.inside_libraries > 0 {
            render::note(format_args!(
                "{} wholly inside libpmemobj not shown (--library-findings)",
                counted(self.inside_libraries, "performance remark")
            ));
        }
        for unused in self.gate.suppressions.unused() {
            render::note(format_args!("a suppression matched nothing (\"{}\"); its cause may be gone", unused.reason));
        }
        let gone = self.baseline().map_or(0, Baseline::gone);
        if gone > 0 {
            let plural = if gone == 1 { "" } else { "s" };
            render::note(format_args!("not found again: {gone} finding{plural} of the baseline (--write-baseline)"));
        }
        let retold = self.baseline().map_or(0, Baseline::retold);
        if retold > 0 {
            render::note(format_args!(
                "known by their stores, though told in another way: {} of the baseline (--write-baseline)",
                counted(retold as u64, "finding")
            ));
        }
        let Some(path) = &self.gate.write else { return exit };
        let mut text = String::new();
        for finding in &self.findings {
            text += &json::finding(finding);
            text.push('\n');
        }
        let summary = Summary { known: None, ..self.summary(events) };
        text += &json::summary(&self.findings, &summary);
        text.push('\n');
        match fs::write(path, text) {
            Ok(()) => exit,
            Err(error) => {
                render::error(format_args!("cannot write the baseline {}: {error}", path.display()));
                Exit::Usage
            }
        }
    }
}
