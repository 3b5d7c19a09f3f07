//! Every program of `targets/conformance` gives the same stream of events under the engine and under the reference.
//!
//! One test per program, so that they run in parallel and can be picked by name:
//! `cargo test -p fencepost --test conformance -- isa/`. `FENCEPOST_SUITE_BACKENDS=step` (or `probe`) tries one recorder alone.

mod backend;
mod compare;
mod files;
mod stream;
mod trial;

use libtest_mimic::{Arguments, Failed, Trial};
use targets::{Cpu, checks_at_once, conformance_programs};

fn main() -> std::process::ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads.get_or_insert(checks_at_once());
    let cpu = Cpu::here();
    let programs = match conformance_programs() {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("error: {error}");
            return std::process::ExitCode::FAILURE;
        }
    };
    let trials = programs
        .into_iter()
        .map(|program| {
            let missing = program.missing_feature(&cpu).map(str::to_owned);
            let name = match &missing {
                Some(feature) => format!("{} (SKIP: this CPU has no {feature})", program.name),
                None => program.name.clone(),
            };
            Trial::test(name, move || trial::run(&program).map_err(Failed::from)).with_ignored_flag(missing.is_some())
        })
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}
