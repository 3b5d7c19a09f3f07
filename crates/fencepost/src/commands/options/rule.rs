//! Which rules look for misuse, with their severities and parameters: the options that `lint` and `check` share.

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use finding::blame::Libraries;
use finding::finding::Finding;
use finding::severity::{Level, Severity};
use lint::explain::PAGES;
use lint::lint::Active;
use lint::registry::Settings;
use lint::rule::Rule;
use lint::script::Script;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Rules")]
pub struct RuleOptions {
    /// Disable a rule. Repeatable.
    #[arg(long, value_name = "RULE", value_parser = RuleName, hide_possible_values = true)]
    allow: Vec<String>,
    /// Report a rule's findings as errors. Repeatable.
    #[arg(long, value_name = "RULE", value_parser = RuleName, hide_possible_values = true)]
    deny: Vec<String>,
    /// Change a rule's severity: error, performance, warning, note or allow. Repeatable.
    #[arg(long, value_name = "RULE=LEVEL")]
    severity: Vec<String>,
    /// Set a rule's parameter: FP0403.types=NUMBER,... Repeatable.
    #[arg(long, value_name = "RULE.NAME=VALUE")]
    set: Vec<String>,
    /// File of your own rules (Rhai). Repeatable.
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Never blame code in libraries whose file name matches. Repeatable.
    #[arg(long = "library", alias = "libraries", value_name = "GLOB")]
    libraries: Vec<String>,
    /// Blame the callers of functions whose name matches; functions that only flush and fence are known without it. Repeatable.
    #[arg(long = "wrapper", alias = "wrappers", value_name = "NAME")]
    wrappers: Vec<String>,
    /// Show performance findings that are entirely inside libpmemobj.
    #[arg(long)]
    library_findings: bool,
}

/// The id or name of a rule, which may be one of the user's own; shells complete those that are built in.
#[derive(Clone, Copy, Debug)]
pub struct RuleName;

impl TypedValueParser for RuleName {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let rules = PAGES.iter().map(|(id, _)| PossibleValue::new(*id));
        Some(Box::new(rules))
    }
}

impl RuleOptions {
    /// The rules that are on, each at its level.
    pub fn activate(&self) -> Result<Vec<Active>, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut settings = Settings::default();
        // The severities first: they are what a configuration usually sets, and the other two shall change it.
        self.severity.iter().try_for_each(|pair| settings.parse_level(pair)).map_err(|e| text(&e))?;
        self.allow.iter().for_each(|rule| settings.level(rule, Level::Allow));
        self.deny.iter().for_each(|rule| settings.level(rule, Level::Report(Severity::Error)));
        self.set.iter().try_for_each(|pair| settings.parse_setting(pair)).map_err(|e| text(&e))?;
        let mut custom: Vec<Box<dyn Rule>> = Vec::new();
        for path in &self.rules {
            custom.push(Box::new(Script::read(path).map_err(|e| text(&e))?));
        }
        settings.activate(custom).map_err(|e| text(&e))
    }

    /// The code that is not blamed.
    pub fn libraries(&self) -> Libraries {
        let mut libraries = Libraries::default();
        libraries.modules.extend(self.libraries.iter().cloned());
        libraries.wrappers.extend(self.wrappers.iter().cloned());
        libraries
    }

    /// The findings to show, and how many are not shown because they lie wholly inside libraries.
    pub fn shown(&self, mut findings: Vec<Finding>, inside_libraries: &[Finding]) -> (Vec<Finding>, u64) {
        if !self.library_findings {
            return (findings, inside_libraries.len() as u64);
        }
        findings.extend(inside_libraries.iter().cloned());
        (findings, 0)
    }
}
