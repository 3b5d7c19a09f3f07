//! `fencepost check` with operations finds the silent bug of every variant of `targets/ops`, with its class, a guilty line in
//! the expected function and the kind of operation, and nothing in any correct twin, whatever the seed. Without operations, looking at recovery alone, it
//! finds nothing: that is what makes these bugs silent.
//!
//! One test per variant: `cargo test --release -p fencepost --test ops_targets -- c/queue`.

mod ops_support;
mod target_support;

use std::process::ExitCode;

use libtest_mimic::Arguments;
use targets::crash::{TWIN, with_operations};

use ops_support::{Bench, check_silence, check_twin, check_variant};
use target_support::{enough_bugs, trial};

/// Seeded bugs that there must be at least.
const SEEDED: u32 = 45;
/// Workloads that no twin may fail on.
const SEEDS: [u32; 3] = [1, 2, 3];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
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
            trials.push(trial(target, format!("0 seed {seed}"), move |target| check_twin(target, seed)));
        }
        for variant in target.variants() {
            trials.push(trial(target, variant.to_string(), move |target| check_variant(target, variant)));
        }
        if Bench::is_server(target) {
            continue;
        }
        let silent: Vec<_> = std::iter::once(TWIN).chain(target.variants()).collect();
        trials.push(trial(target, "is silent".to_owned(), move |target| check_silence(target, &silent)));
    }
    trials.push(enough_bugs(&targets, SEEDED));
    libtest_mimic::run(&arguments, trials).exit_code()
}
