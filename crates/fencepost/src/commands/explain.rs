//! `fencepost explain`: explains a rule or a class of crash findings, with an example and its repair.

use clap::Args;
use finding::severity::{Level, Severity};
use lint::explain::CRASH_CLASSES;
use lint::registry::{Settings, built_in};

use super::options::rule::RuleName;
use crate::config::did_you_mean;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost explain                     every rule, with its severity
  fencepost explain FP0101              what it means, with a bad and a repaired example
  fencepost explain store-not-durable   the same, by its name";

/// Explain a rule; without one, list all rules.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Explain {
    /// The rule, by id (FP0101) or name (store-not-durable).
    #[arg(value_name = "RULE", value_parser = RuleName, hide_possible_values = true)]
    rule: Option<String>,
}

impl Explain {
    pub fn run(&self) -> Exit {
        let Some(wanted) = &self.rule else { return render::ended(list()) };
        let rules = built_in(&Settings::default());
        let id = rules.iter().map(|rule| rule.info()).find(|info| info.name == *wanted).map(|info| info.id.clone());
        match lint::explain::page(id.as_deref().unwrap_or(wanted)) {
            Some(page) => render::ended(render::result(page.trim_end())),
            None => {
                let known = rules.iter().flat_map(|rule| [&*rule.info().id, &*rule.info().name]);
                let known = known.chain(CRASH_CLASSES.iter().flat_map(|class| [class.id, class.name]));
                render::error(format_args!("there is no rule `{wanted}`{}", did_you_mean(wanted, known)));
                render::help("`fencepost explain` lists all rules");
                Exit::Usage
            }
        }
    }
}

fn list() -> std::io::Result<()> {
    let line = |id: &str, name: &str, severity: Severity, title: &str, off: &str| {
        render::result(format_args!("{id}  {name:<26} {:<12} {title}{off}", severity.name()))
    };
    for rule in built_in(&Settings::default()) {
        let info = rule.info();
        let off = if info.level == Level::Allow { " (off by default)" } else { "" };
        line(&info.id, &info.name, info.severity, &info.title, off)?;
    }
    for known in CRASH_CLASSES {
        line(known.id, known.name, known.severity, known.title, "")?;
    }
    Ok(())
}
