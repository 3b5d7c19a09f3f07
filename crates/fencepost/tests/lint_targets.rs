//! `fencepost lint` says about every program of `targets/lint` what the program's `//~` comments say, and nothing else.
//!
//! One test per program: `cargo test -p fencepost --test lint_targets -- FP0101`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use object::{Object, ObjectSection};
use serde_json::Value;
use targets::{Cpu, Program, checks_at_once, lint_programs};

/// Linted once more with a C library whose inner functions have no names, whatever debug files are installed.
const NAMELESS: [&str; 2] = ["FP0101/locks_repaired", "FP0301/mutex_repaired"];

/// Enough for the slowest program on a busy machine.
const TIME_LIMIT_SECONDS: &str = "120";

/// What is reported under eADR as well; the other rules are about flushes, which stores do not need there.
const OTHER_RULES: [&str; 7] = ["FP0103", "FP0204", "FP0205", "FP0401", "FP0402", "FP0403", "FP0404"];

/// A finding, as far as it is compared: `line` in the program's own source and the rule. Ordered by line.
type Findings = BTreeSet<(u64, String)>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(checks_at_once());
    let cpu = Cpu::here();
    let programs = match lint_programs() {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let trial = |program: &Program, library: Library| {
        let program = program.clone();
        let missing = program.missing_feature(&cpu).map(str::to_owned);
        let skipped = missing.as_ref().map(|feature| format!(" (SKIP: this CPU has no {feature})"));
        let name = format!("{}{}{}", program.name, library.suffix(), skipped.unwrap_or_default());
        Trial::test(name, move || run(&program, library).map_err(Failed::from)).with_ignored_flag(missing.is_some())
    };
    let mut trials: Vec<Trial> = programs.iter().map(|program| trial(program, Library::Installed)).collect();
    let nameless = programs.iter().filter(|program| NAMELESS.contains(&program.name.as_str()));
    trials.extend(nameless.map(|program| trial(program, Library::Nameless)));
    trials.push(Trial::test("every rule has a program and a repaired twin", move || Ok(coverage(&programs)?)));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// The C library that a program runs with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Library {
    Installed,
    Nameless,
}

impl Library {
    fn suffix(self) -> &'static str {
        match self {
            Library::Installed => "",
            Library::Nameless => ".nameless",
        }
    }

    /// The folder that it is found in, if it is not the system's: a copy with another build id, which no debug file has.
    fn folder(self, space: &Path) -> Result<Option<PathBuf>, String> {
        if self == Library::Installed {
            return Ok(None);
        }
        let printed =
            Command::new("cc").arg("-print-file-name=libc.so.6").output().map_err(|error| format!("cc: {error}"))?;
        let installed = String::from_utf8_lossy(&printed.stdout).trim().to_owned();
        let mut bytes = fs::read(&installed).map_err(|error| format!("{installed}: {error}"))?;
        let file = object::File::parse(&*bytes).map_err(|error| format!("{installed}: {error}"))?;
        let note = file.section_by_name(".note.gnu.build-id").and_then(|section| section.file_range());
        let (start, len) = note.ok_or_else(|| format!("{installed} has no build id"))?;
        let last = usize::try_from(start + len).map_err(|error| error.to_string())? - 1;
        bytes[last] ^= 0xff;
        let to = |error| format!("{}: {error}", space.display());
        fs::create_dir_all(space).map_err(to)?;
        fs::write(space.join("libc.so.6"), bytes).map_err(to)?;
        Ok(Some(space.to_owned()))
    }
}

/// One program: under ADR exactly the expected findings, under eADR the same ones without those about flushes.
fn run(program: &Program, library: Library) -> Result<(), String> {
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("lint");
    let executable = program.build(&space.join("built")).map_err(|error| error.to_string())?;
    let folder = space.join("run").join(format!("{}{}", program.name, library.suffix()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let library = library.folder(&folder)?;

    let expected: Findings = program
        .expectations()
        .map_err(|error| error.to_string())?
        .into_iter()
        .map(|expectation| (u64::from(expectation.line), expectation.rule))
        .collect();
    let without_flushes: Findings =
        expected.iter().filter(|(_, rule)| OTHER_RULES.contains(&rule.as_str())).cloned().collect();
    let mut complaints = Vec::new();
    for (model, expected) in [("adr", &expected), ("eadr", &without_flushes)] {
        let output = lint(program, &executable, &folder, library.as_deref(), model)?;
        complaints.extend(compare(program, expected, &output)?.into_iter().map(|text| format!("{model}: {text}")));
    }
    if complaints.is_empty() {
        let _ = fs::remove_dir_all(&folder);
        return Ok(());
    }
    Err(complaints.join("\n"))
}

/// What `fencepost lint` printed: JSON Lines.
fn lint(
    program: &Program,
    executable: &Path,
    folder: &Path,
    library: Option<&Path>,
    model: &str,
) -> Result<String, String> {
    let _ = fs::remove_file(folder.join("pool"));
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", TIME_LIMIT_SECONDS]).arg(env!("CARGO_BIN_EXE_fencepost"));
    command.args(["lint", "--message-format", "json", "--model", model]).args(program.record_args());
    command.arg("--").arg(executable).arg("pool").current_dir(folder).stdin(Stdio::null());
    // On a file system without DAX libpmem would call msync instead of flushing.
    command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C").env("PMEM_IS_PMEM_FORCE", "1");
    command.envs(library.map(|folder| ("LD_LIBRARY_PATH", folder)));
    let output = command.output().map_err(|error| format!("cannot run `timeout`: {error}"))?;
    match output.status.code() {
        // 0: clean, 1: findings that fail.
        Some(0 | 1) => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        _ => Err(format!("lint: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr))),
    }
}

/// Findings that are missing, extra or at another place than expected.
fn compare(program: &Program, expected: &Findings, output: &str) -> Result<Vec<String>, String> {
    let mut complaints = Vec::new();
    let mut found = Findings::new();
    let mut has_summary = false;
    for text in output.lines() {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("not JSON ({error}): {text}"))?;
        match value["type"].as_str() {
            Some("summary") => has_summary = true,
            Some("finding") => {
                let rule = value["rule"].as_str().ok_or_else(|| format!("no rule: {text}"))?;
                let guilty = &value["locations"][0];
                let file = Path::new(guilty["file"].as_str().unwrap_or("?"));
                if !program.is_about(rule) {
                    continue;
                }
                match guilty["line"].as_u64() {
                    Some(line) if file.ends_with(short(program)) => drop(found.insert((line, rule.to_owned()))),
                    _ => complaints.push(format!("extra, outside the program: {text}")),
                }
            }
            _ => return Err(format!("neither a finding nor the summary: {text}")),
        }
    }
    if !has_summary {
        complaints.push("the output has no summary".to_owned());
    }
    let name = short(program).display().to_string();
    complaints.extend(expected.difference(&found).map(|(line, rule)| format!("missing: {name}:{line}: {rule}")));
    complaints.extend(found.difference(expected).map(|(line, rule)| format!("extra: {name}:{line}: {rule}")));
    Ok(complaints)
}

/// Folder and file name of the program's source.
fn short(program: &Program) -> &Path {
    let source = program.source();
    let suite = source.parent().and_then(Path::parent).unwrap_or(source);
    source.strip_prefix(suite).unwrap_or(source)
}

/// Every rule of the lint that `fencepost explain` knows has a folder here with a program that triggers it alone, and each such program a
/// twin without findings.
fn coverage(programs: &[Program]) -> Result<(), String> {
    let mut triggered = BTreeSet::new();
    let names: BTreeSet<&str> = programs.iter().map(|program| program.name.as_str()).collect();
    for program in programs {
        let expectations = program.expectations().map_err(|error| error.to_string())?;
        let rules: BTreeSet<String> = expectations.into_iter().map(|expectation| expectation.rule).collect();
        let folder = program.name.split('/').next().unwrap_or_default();
        if program.name.ends_with("_repaired") {
            if !rules.is_empty() {
                return Err(format!("{} is a repaired twin and expects findings", program.name));
            }
        } else if rules.iter().map(String::as_str).ne([folder]) {
            return Err(format!("{} must expect {folder} and nothing else", program.name));
        } else if !names.contains(format!("{}_repaired", program.name).as_str()) {
            return Err(format!("{} has no repaired twin", program.name));
        } else {
            triggered.extend(rules);
        }
    }
    let known = rules()?;
    let missing: Vec<&String> = known.difference(&triggered).collect();
    let unknown: Vec<&String> = triggered.difference(&known).collect();
    if missing.is_empty() && unknown.is_empty() && !known.is_empty() {
        return Ok(());
    }
    Err(format!("rules without a program: {missing:?}; programs without a rule: {unknown:?}"))
}

/// The rules that there are, as the command line lists them. What begins with FP06 is found by crashes (`targets/crash`), with FP07 by fuzzing (`targets/fuzz`).
fn rules() -> Result<BTreeSet<String>, String> {
    let output = Command::new(env!("CARGO_BIN_EXE_fencepost")).arg("explain").output();
    let output = output.map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let is_rule = |word: &&str| {
        word.len() == 6 && word.starts_with("FP") && !word.starts_with("FP06") && !word.starts_with("FP07")
    };
    Ok(words.filter(is_rule).map(str::to_owned).collect())
}
