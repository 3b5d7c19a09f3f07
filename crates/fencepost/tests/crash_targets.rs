//! `fencepost check` finds the seeded bug of every variant of `targets/crash`, with its class and a guilty line in the expected
//! function, and nothing in any correct twin, nor in programs that show what can be missed. And what it decides without running recovery is what a run would have said.
//!
//! One test per variant: `cargo test --release -p fencepost --test crash_targets -- c/queue`. `cargo xtask test nightly` runs those that are ignored.

mod target_support;

use std::fs;
use std::process::{ExitCode, Stdio};

use libtest_mimic::Arguments;
use serde_json::Value;
use targets::checks_at_once;
use targets::crash::{CrashTarget, TWIN, Variant, all};

use target_support::{CHECK, Checked, RECOVERY_LIMIT, Workshop, enough_bugs, is_pmdk, trial};

const FEW_STATES: [&str; 4] = ["--occurrences", "2", "--strategy", "program-order,guaranteed-only,visible:12"];
/// All states are run of so many variants, the twin among them; every night of the others, too.
const EVERY_STATE: usize = 3;
/// Seeded bugs that there must be at least.
const SEEDED: u32 = 80;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(checks_at_once());
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
            trials.push(trial(target, variant.to_string(), move |target| check_variant(target, variant)));
        }
        let variants: Vec<Variant> = std::iter::once(TWIN).chain(target.variants()).collect();
        let (usual, others) = variants.split_at(variants.len().min(EVERY_STATE));
        for (what, variants, nightly) in [("every state", usual, false), ("every state of the others", others, true)] {
            let variants = variants.to_vec();
            let trial = trial(target, what.to_owned(), move |target| equivalence(target, &variants));
            trials.push(trial.with_ignored_flag(nightly));
        }
    }
    trials.push(enough_bugs(&targets, SEEDED));
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn check_variant(target: &CrashTarget, variant: Variant) -> Result<(), String> {
    let workshop = Workshop::new(target, variant, "crash", "check")?;
    let (recovery, run) = (recovery(&workshop), workshop.run_command());
    let mut arguments = CHECK.to_vec();
    arguments.extend(target.options.iter().map(String::as_str));
    if is_pmdk(target) {
        arguments.extend(FEW_STATES);
    }
    arguments.extend(["--timeout", RECOVERY_LIMIT, "--recover", &recovery, "--"]);
    arguments.extend(run.iter().map(String::as_str));
    let checked = Checked::parse(workshop.fencepost(&arguments, Stdio::null())?)?;
    if variant == TWIN || target.missed.is_some() {
        checked.insist_on_silence()?;
    } else {
        checked.expected(target, variant, |class, wanted| class == wanted.class.name())?;
    }
    checked.insist_on_all_points()?;
    workshop.remove();
    Ok(())
}

fn recovery(workshop: &Workshop<'_>) -> String {
    let words = workshop.target.recover_command(&workshop.program, &workshop.pool());
    words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
}

/// The equivalence rule gives the verdicts that running every state gives.
fn equivalence(target: &CrashTarget, variants: &[Variant]) -> Result<(), String> {
    let (mut decided, mut runs) = (0, 0);
    for &variant in variants {
        let hangs = target.expected(variant).any(|expectation| expectation.class.name() == "recovery");
        if hangs || (is_pmdk(target) && variant != TWIN) {
            // Each hanging state would cost its whole time limit.
            continue;
        }
        let workshop = Workshop::new(target, variant, "crash", "every")?;
        let run = workshop.run_command();
        let mut arguments = vec!["record", "--quiet", "--output", "trace", "--"];
        arguments.extend(run.iter().map(String::as_str));
        workshop.fencepost(&arguments, Stdio::null())?;
        let recovery = recovery(&workshop);
        // Strategies that do not depend on what recovery reads: both searches name the same states.
        let journal = |name: &str, more: &[&str]| {
            let mut arguments = vec!["crash", "trace", "--message-format", "json", "--journal", name, "--jobs", "1"];
            arguments.extend(["--budget", "none", "--occurrences", "1", "--timeout", RECOVERY_LIMIT]);
            arguments.extend(["--strategy", "program-order,guaranteed-only,few-lines:1:16,random:1:8"]);
            arguments.extend(["--recover", &recovery]);
            arguments.extend(more);
            let Checked { summary, .. } = Checked::parse(workshop.fencepost(&arguments, Stdio::null())?)?;
            let text = fs::read_to_string(workshop.folder.join(name)).map_err(|error| error.to_string())?;
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
        workshop.remove();
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
