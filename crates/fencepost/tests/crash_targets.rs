//! `fencepost check` finds the seeded bug of every variant of `targets/crash`, with its class and a guilty line in the expected
//! function, and nothing in any correct twin. And what it decides without running recovery is what a run would have said.
//!
//! One test per variant: `cargo test --release -p fencepost --test crash_targets -- c/queue`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;
use targets::crash::{CrashTarget, Expectation, TWIN, Variant, all};

/// Enough for the slowest variant on a busy machine.
const TIME_LIMIT_SECONDS: &str = "300";
/// How long a recovery may take: those that hang do so a few times.
const RECOVERY_LIMIT: &str = "1s";
/// A recovery of libpmemobj takes more than ten milliseconds even natively: fewer states will do.
const FEW_STATES: [&str; 4] = ["--occurrences", "2", "--strategy", "program-order,guaranteed-only,visible:12"];
/// Seeded bugs that there must be at least.
const SEEDED: u32 = 80;

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let targets = match all() {
        Ok(targets) => targets,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for target in &targets {
        for variant in std::iter::once(TWIN).chain(target.variants()) {
            let target = target.clone();
            trials.push(Trial::test(format!("{} {variant}", target.name), move || {
                check_variant(&target, variant).map_err(Failed::from)
            }));
        }
        let target = target.clone();
        trials.push(Trial::test(format!("{} every state", target.name), move || {
            equivalence(&target).map_err(Failed::from)
        }));
    }
    let seeded: u32 = targets.iter().map(|target| target.variants).sum();
    trials.push(Trial::test(format!("at least {SEEDED} bugs are seeded"), move || {
        if seeded >= SEEDED { Ok(()) } else { Err(format!("there are only {seeded}").into()) }
    }));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// A built variant and a folder of its own.
struct Bench<'t> {
    target: &'t CrashTarget,
    program: PathBuf,
    folder: PathBuf,
}

impl<'t> Bench<'t> {
    fn new(target: &'t CrashTarget, variant: Variant, purpose: &str) -> Result<Bench<'t>, String> {
        let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("crash");
        let program = target.build(variant, &space.join("built")).map_err(|error| error.to_string())?;
        let folder = space.join("run").join(purpose).join(format!("{}-{variant}", target.name));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Bench { target, program, folder })
    }

    fn pool(&self) -> PathBuf {
        self.folder.join("pool")
    }

    fn recovery(&self) -> String {
        let words = self.target.recover_command(&self.program, &self.pool());
        words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
    }

    fn fencepost(&self, arguments: &[&str]) -> Result<String, String> {
        let output = Command::new("timeout")
            .args([TIME_LIMIT_SECONDS, env!("CARGO_BIN_EXE_fencepost")])
            .args(arguments)
            .envs(self.target.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("timeout: {error}"))?;
        if matches!(output.status.code(), Some(0 | 1)) {
            return String::from_utf8(output.stdout).map_err(|error| error.to_string());
        }
        Err(format!("fencepost {arguments:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
    }

    fn check(&self) -> Result<String, String> {
        let recovery = self.recovery();
        let run = self.target.run_command(&self.program, &self.pool());
        let mut arguments = vec!["check", "--no-lint", "--message-format", "json", "--budget", "120s", "--jobs", "1"];
        arguments.extend(self.target.options.iter().map(String::as_str));
        if is_slow(self.target) {
            arguments.extend(FEW_STATES);
        }
        arguments.extend(["--timeout", RECOVERY_LIMIT, "--recover", &recovery, "--"]);
        arguments.extend(run.iter().map(String::as_str));
        self.fencepost(&arguments)
    }
}

fn is_slow(target: &CrashTarget) -> bool {
    target.name.starts_with("pmdk/")
}

fn check_variant(target: &CrashTarget, variant: Variant) -> Result<(), String> {
    let bench = Bench::new(target, variant, "check")?;
    let output = bench.check()?;
    let (findings, summary) = parse(&output)?;
    let expected: Vec<&Expectation> = target.expected(variant).collect();
    let complaint = if variant == TWIN {
        (!findings.is_empty()).then(|| "the twin is correct, but there are findings".to_owned())
    } else if findings.iter().any(|finding| expected.iter().any(|expectation| fits(finding, expectation, target))) {
        None
    } else {
        let wanted = expected.iter().map(|e| format!("{} at line {} in {}", e.class, e.line, e.function.name));
        Some(format!("expected {}", wanted.collect::<Vec<_>>().join(" or ")))
    };
    match complaint {
        Some(complaint) => Err(format!("{complaint}\n{output}")),
        None if summary["points_decided"] != summary["points_wanted"] => Err(format!("not all was decided\n{output}")),
        None => {
            let _ = fs::remove_dir_all(&bench.folder);
            Ok(())
        }
    }
}

/// The class, and a location inside the function of the guilty line.
fn fits(finding: &Value, expectation: &Expectation, target: &CrashTarget) -> bool {
    let file = target.source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let inside = |location: &Value| {
        let line = location["line"].as_u64().unwrap_or(0) as u32;
        location["file"].as_str().is_some_and(|path| path.ends_with(file)) && expectation.function.lines.contains(&line)
    };
    let locations = finding["locations"].as_array().map_or(&[][..], Vec::as_slice);
    finding["class"] == expectation.class.name() && locations.iter().any(inside)
}

fn parse(output: &str) -> Result<(Vec<Value>, Value), String> {
    let mut lines = Vec::new();
    for line in output.lines() {
        lines.push(serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?);
    }
    let summary = lines.pop().filter(|last| last["type"] == "summary").ok_or("there is no summary")?;
    Ok((lines, summary))
}

/// All variants of a target: the equivalence rule gives the verdicts that running every state gives.
fn equivalence(target: &CrashTarget) -> Result<(), String> {
    let (mut decided, mut runs) = (0, 0);
    for variant in std::iter::once(TWIN).chain(target.variants()) {
        let hangs = target.expected(variant).any(|expectation| expectation.class.name() == "recovery");
        if hangs || (is_slow(target) && variant != TWIN) {
            // Each hanging state would cost its whole time limit.
            continue;
        }
        let bench = Bench::new(target, variant, "every")?;
        let run = target.run_command(&bench.program, &bench.pool());
        let mut arguments = vec!["record", "--quiet", "--output", "trace", "--"];
        arguments.extend(run.iter().map(String::as_str));
        bench.fencepost(&arguments)?;
        let recovery = bench.recovery();
        // Strategies that do not depend on what recovery reads: both searches name the same states.
        let journal = |name: &str, more: &[&str]| {
            let mut arguments = vec!["crash", "trace", "--message-format", "json", "--journal", name, "--jobs", "1"];
            arguments.extend(["--budget", "none", "--occurrences", "1", "--timeout", RECOVERY_LIMIT]);
            arguments.extend(["--strategy", "program-order,guaranteed-only,few-lines:1:16,random:1:8"]);
            arguments.extend(["--recover", &recovery]);
            arguments.extend(more);
            let (_, summary) = parse(&bench.fencepost(&arguments)?)?;
            let text = fs::read_to_string(bench.folder.join(name)).map_err(|error| error.to_string())?;
            Ok::<_, String>((summary, verdicts(&text)?))
        };
        let (summary, deduced) = journal("deduced", &[])?;
        let (_, all) = journal("all", &["--no-equivalence"])?;
        if deduced != all {
            let differ = deduced.iter().zip(&all).find(|(a, b)| a != b);
            return Err(format!("variant {variant}: other verdicts when every state is run: {differ:?}"));
        }
        decided += summary["states_decided"].as_u64().unwrap_or(0);
        runs += summary["recovery_runs"].as_u64().unwrap_or(0);
        let _ = fs::remove_dir_all(&bench.folder);
    }
    let share = 100 - runs * 100 / decided.max(1);
    println!("{}: {decided} states decided by {runs} recoveries, {share} % saved", target.name);
    Ok(())
}

/// The outcomes of a journal, without what says how they were decided.
fn verdicts(journal: &str) -> Result<Vec<Value>, String> {
    let mut outcomes = Vec::new();
    for line in journal.lines().skip(1) {
        let mut outcome: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        let object = outcome.as_object_mut().ok_or("an outcome is an object")?;
        for counted in ["runs", "saved"] {
            object.remove(counted);
        }
        outcomes.push(outcome);
    }
    outcomes.sort_by_key(|outcome| outcome["point"]["index"].as_u64());
    Ok(outcomes)
}
