//! `fencepost check` with operations finds the silent bug of every variant of `targets/ops`, with its class, a guilty line in
//! the expected function and the kind of operation, and nothing in any correct twin, whatever the seed. Without operations, looking at recovery alone, it
//! finds nothing: that is what makes these bugs silent.
//!
//! One test per variant: `cargo test --release -p fencepost --test ops_targets -- c/queue`. `cargo xtask test nightly` runs those that are ignored.

mod ops_support;
mod target_support;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use targets::checks_at_once;
use targets::crash::{TWIN, Variant, with_operations};

use ops_support::{Bench, check_silence, check_twin, check_variant};
use target_support::{enough_bugs, trial};

/// Seeded bugs that there must be at least.
const SEEDED: u32 = 45;
/// Workloads that no twin may fail on: the first every time, the others every night.
const SEEDS: [u32; 3] = [1, 2, 3];
/// So many variants, the twin among them, are looked at without operations; every night the others, too.
const SILENT: usize = 2;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(checks_at_once());
    let targets = match with_operations() {
        Ok(targets) => targets,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials = Vec::new();
    for target in &targets {
        for seed in SEEDS {
            let trial = trial(target, format!("0 seed {seed}"), move |target| check_twin(target, seed));
            trials.push(trial.with_ignored_flag(seed != SEEDS[0]));
        }
        for variant in target.variants() {
            trials.push(trial(target, variant.to_string(), move |target| check_variant(target, variant)));
        }
        if Bench::is_server(target) {
            continue;
        }
        let variants: Vec<Variant> = std::iter::once(TWIN).chain(target.variants()).collect();
        let (usual, others) = variants.split_at(variants.len().min(SILENT));
        for (what, variants, nightly) in [("is silent", usual, false), ("is silent in the others", others, true)] {
            let variants = variants.to_vec();
            let trial = trial(target, what.to_owned(), move |target| check_silence(target, &variants));
            trials.push(trial.with_ignored_flag(nightly));
        }
    }
    trials.push(enough_bugs(&targets, SEEDED));
    libtest_mimic::run(&arguments, trials).exit_code()
}
