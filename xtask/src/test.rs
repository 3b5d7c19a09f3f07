//! Tiers of tests: `quick` is what one runs while working, `./test` is the whole of what every commit must pass, `nightly` is what would only repeat it
//! on further variants and workloads.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use clap::{Args, ValueEnum};

/// Test binaries that check whole sets of targets or need minutes for other reasons, and one that needs a feature that nothing else has (cargo refuses
/// to be asked for it without).
const LONG_BINARIES: [(&str, &str); 11] = [
    ("fencepost", "checks"),
    ("fencepost", "conformance"),
    ("fencepost", "crash_targets"),
    ("fencepost", "fs_targets"),
    ("fencepost", "kernel_fs"),
    ("fencepost", "lint_targets"),
    ("fencepost", "ops_targets"),
    ("fencepost", "searches"),
    ("fleet", "tls"),
    ("record", "recorders"),
    ("solve", "targets"),
];

/// Tests of other binaries that compare with a slow reference, or open a browser: each takes more processor time than most binaries.
const LONG_TESTS: [(&str, &str); 9] = [
    ("crash", "concluded_verdicts_are_those_of_runs"),
    ("crash", "recovery_sees_every_image_that_adr_can_leave"),
    ("crash", "recovery_sees_every_image_that_eadr_can_leave"),
    ("crash", "visible_tries_each_distinguishable_state_once"),
    ("fuzz", "the_maps_are_those_of_the_reference"),
    ("persistency", "all_reachable_states_and_no_other"),
    ("report", "browser"),
    ("solve", "every_branch_tried_means_every_path_of_every_input"),
    ("solve", "expressions_are_what_the_processor_does"),
];

/// Suites whose ignored tests belong to the night. (Those of others are ignored because the processor lacks something.)
const NIGHTLY_BINARIES: [&str; 3] = ["crash_targets", "kernel_fs", "ops_targets"];
/// Altered inputs for each parser go on for so many seconds.
const NIGHTLY_FUZZ_SECONDS: &str = "60";

/// Run a tier of the tests.
#[derive(Args, Debug)]
pub struct Test {
    #[arg(value_enum, default_value_t = Tier::Quick)]
    tier: Tier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Tier {
    /// All tests except the target suites, comparisons with slow references, and those that open a browser.
    Quick,
    /// Everything that `./test` runs.
    Whole,
    /// What `./test` leaves out: further variants and workloads of the target suites, conformance programs that are linked dynamically, and
    /// many more altered inputs for parsers.
    Nightly,
}

impl Test {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask lies in the project")?;
        match self.tier {
            Tier::Quick => quick(root),
            Tier::Whole => end(Command::new("./test").current_dir(root)),
            Tier::Nightly => nightly(root),
        }
    }
}

/// One call for the whole workspace, as in `./test`: for other sets of packages, cargo would build dependencies again.
fn cargo_test(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root).args(["test", "--release", "--locked", "--no-fail-fast", "--workspace"]);
    cargo
}

fn quick(root: &Path) -> anyhow::Result<ExitCode> {
    let mut cargo = cargo_test(root);
    cargo.args(["--lib", "--bins"]);
    for name in short_binaries(root)? {
        cargo.args(["--test", &name]);
    }
    cargo.arg("--");
    for (_, name) in LONG_TESTS {
        cargo.args(["--skip", name]);
    }
    // As in `./test`: many tests wait.
    cargo.env("RUST_TEST_THREADS", targets::checks_at_once().to_string());
    end(&mut cargo)
}

fn nightly(root: &Path) -> anyhow::Result<ExitCode> {
    let mut suites = cargo_test(root);
    for name in NIGHTLY_BINARIES {
        suites.args(["--test", name]);
    }
    suites.args(["--", "--ignored"]);
    let mut conformance = cargo_test(root);
    conformance.args(["--test", "conformance"]).env("FENCEPOST_SUITE_LINKAGE", "dynamic");
    let mut parsers = cargo_test(root);
    parsers.args(["--lib", "--bins", "--tests", "--", "altered"]).env("FENCEPOST_FUZZ_SECONDS", NIGHTLY_FUZZ_SECONDS);
    let mut all = ExitCode::SUCCESS;
    for command in [&mut suites, &mut conformance, &mut parsers] {
        if end(command)? != ExitCode::SUCCESS {
            all = ExitCode::FAILURE;
        }
    }
    Ok(all)
}

/// The names of all test binaries that do not take long.
fn short_binaries(root: &Path) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for krate in folder(&root.join("crates"))? {
        let tests = root.join("crates").join(&krate).join("tests");
        if !tests.is_dir() {
            continue;
        }
        for entry in folder(&tests)? {
            let path = tests.join(&entry);
            let is_test = entry.ends_with(".rs") || path.join("main.rs").exists();
            let name = entry.trim_end_matches(".rs").to_owned();
            if is_test && !LONG_BINARIES.contains(&(&krate, &name)) {
                names.push(name);
            }
        }
    }
    names.sort();
    names.dedup();
    Ok(names)
}

fn folder(path: &Path) -> anyhow::Result<Vec<String>> {
    let entries = std::fs::read_dir(path).with_context(|| path.display().to_string())?;
    let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    names.collect::<std::io::Result<Vec<String>>>().with_context(|| path.display().to_string())
}

fn end(command: &mut Command) -> anyhow::Result<ExitCode> {
    let status = command.status().with_context(|| format!("{command:?} cannot be started"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a file in this folder or below have this text?
    fn has(path: &Path, text: &str) -> bool {
        if !path.is_dir() {
            return std::fs::read_to_string(path).unwrap_or_default().contains(text);
        }
        folder(path).unwrap().iter().any(|entry| has(&path.join(entry), text))
    }

    #[test]
    fn tests_that_are_left_out_exist() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates");
        for (krate, name) in LONG_TESTS {
            let tests = crates.join(krate).join("tests");
            let is_there = ["fn", "mod"].iter().any(|keyword| has(&tests, &format!("{keyword} {name}")));
            assert!(is_there, "{krate} has no {name}");
        }
    }

    #[test]
    fn long_tests_exist_and_short_ones_are_found() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for (krate, name) in LONG_BINARIES {
            let tests = root.join("crates").join(krate).join("tests");
            assert!(tests.join(format!("{name}.rs")).exists() || tests.join(name).join("main.rs").exists(), "{name}");
        }
        for name in NIGHTLY_BINARIES {
            assert!(LONG_BINARIES.contains(&("fencepost", name)), "{name}");
        }
        let short = short_binaries(root).unwrap();
        assert!(short.contains(&"cli".to_owned()) && short.contains(&"recoveries".to_owned()), "{short:?}");
        for (_, long) in LONG_BINARIES {
            assert!(!short.contains(&long.to_owned()), "{long} is also the name of a short one");
        }
    }
}
