//! Tiers of tests: `quick` is what one runs while working, `./test` is the whole.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

/// Test binaries of the command line that check whole sets of targets, or need minutes.
const LONG: [&str; 8] =
    ["conformance", "crash_targets", "found", "lint_pmdk", "lint_targets", "many_bugs", "ops_luck", "ops_targets"];

/// Run a tier of the tests.
#[derive(Args, Debug)]
pub struct Test {
    #[arg(value_enum, default_value_t = Tier::Quick)]
    tier: Tier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// The unit and integration tests of all crates, and the command line without its sets of targets.
    Quick,
    /// Everything that `./test` runs.
    Whole,
}

impl Test {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the project")?;
        if self.tier == Tier::Whole {
            return end(Command::new("./test").current_dir(root));
        }
        let mut crates = cargo(root);
        crates.args(["--workspace", "--exclude", "fencepost", "--exclude", "report", "--lib", "--bins", "--tests"]);
        let mut command_line = cargo(root);
        command_line.args(["--package", "fencepost", "--bins"]);
        for name in short(root)? {
            command_line.args(["--test", &name]);
        }
        for command in [&mut crates, &mut command_line] {
            let ended = end(command)?;
            if ended != ExitCode::SUCCESS {
                return Ok(ended);
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["test", "--release", "--locked", "--no-fail-fast"]);
    cargo
}

/// The test binaries of the command line that do not take long.
fn short(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join("crates/fencepost/tests");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let is_test = path.extension().is_some_and(|extension| extension == "rs") || path.join("main.rs").exists();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        if is_test && !LONG.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn end(command: &mut Command) -> anyhow::Result<ExitCode> {
    let status = command.status().with_context(|| format!("{command:?} cannot be started"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_tests_exist_and_short_ones_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let tests = root.join("crates/fencepost/tests");
        for name in LONG {
            assert!(tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists(), "{name}");
        }
        let short = short(root).unwrap();
        assert!(short.contains(&"cli_help".to_owned()) && !short.contains(&"conformance".to_owned()));
    }
}
