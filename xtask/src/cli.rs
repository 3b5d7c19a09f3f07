//! The chores and their options.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::{
    bench, bench_lint, blind, book, build, conformance, file_systems, fs_bugs, fuzz_maps, fuzz_targets, licences, pmdk,
    real_programs, slurm, solve_targets, test, vm_kit,
};

/// Chores of the Fencepost project.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
pub struct Cli {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Debug, Subcommand)]
enum Chore {
    /// Build the conformance programs and PMDK's map examples.
    Targets,
    /// Run the conformance suite; arguments go to the test harness (for example `isa/`).
    Conformance {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Record PMDK's map examples and check that the events explain the final pools.
    PmdkVerify(pmdk::PmdkVerify),
    /// Run real programs natively and under the recorder: same output, same exit code, same files.
    RealPrograms(real_programs::RealPrograms),
    /// Build the plugin for QEMU and the agent that `fencepost fs check --kernel` needs.
    VmKit,
    /// Fuzz every program of `targets/fuzz`: each bug is found, each twin stays clean.
    FuzzTargets(fuzz_targets::FuzzTargets),
    /// Fuzz PMDK's maps for the bugs that PMFuzz found in them.
    FuzzMaps(fuzz_maps::FuzzMaps),
    /// Find every bug of `targets/solve` by solving, beside fuzzing without it. Takes many minutes.
    SolveTargets(solve_targets::SolveTargets),
    /// Which technique finds which seeded bug of our file system. Takes many minutes.
    FsBugs(fs_bugs::FsBugs),
    FsOthers(file_systems::FsOthers),
    /// Run a campaign of three workers in a Slurm of one node that is made for it. Needs root.
    Slurm(slurm::SlurmTest),
    /// Run a tier of the tests: `quick` while working, `whole` before submitting.
    Test(test::Test),
    /// Check programs with several bugs at once, with default options, and count what is reported.
    Blind(blind::Blind),
    /// Render the documentation as a small static book.
    Book(book::Book),
    /// Check the licences and sources of all dependencies against deny.toml: the part of `cargo deny check` that needs no network.
    Licences,
    /// Measure.
    #[command(subcommand)]
    Bench(Bench),
}

#[derive(Debug, Subcommand)]
enum Bench {
    /// What recording costs, beside the peers that are installed.
    Record(bench::RecordBench),
    /// Events per second of the lint, and its memory for longer and longer traces.
    Lint(bench_lint::LintBench),
    /// What a recovery costs, whether the size of a pool matters, and Mumak's workload from start to report.
    Crash(bench::CrashBench),
    /// States possible, inferred and visible, and what each finds, on programs with operations and PMDK's maps.
    Infer(bench::InferBench),
    /// PM transitions that Fencepost and AFL++ reach in PMDK's maps.
    Fuzz(bench::FuzzBench),
    /// What coverage costs: PMDK's maps as the fuzzer runs them, against native runs.
    Cover(bench::CoverBench),
    /// PM-aware search beside others, the cost of following the input, and misuse in PMDK's examples.
    Solve(bench::SolveBench),
    /// Our file system on seq-1 and a sample of seq-2: states per second, what equivalence saves, and that nothing is found.
    Fs(file_systems::FsBench),
    /// Campaigns with 1, 2 and 4 workers beside one machine: findings, CPU time, recoveries.
    Fleet(bench::FleetBench),
    /// Units per second that one Redis takes from many workers.
    FleetScale(bench::ScaleBench),
    /// Time, memory and findings of Fencepost beside Valgrind, QEMU and PMDK's tools, on the same programs.
    Compare(bench::CompareBench),
}

impl Cli {
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.chore {
            Chore::Targets => build::targets(),
            Chore::Conformance { args } => conformance::run(&args),
            Chore::PmdkVerify(chore) => chore.run(),
            Chore::RealPrograms(chore) => chore.run(),
            Chore::VmKit => vm_kit::run(),
            Chore::FuzzTargets(chore) => chore.run(),
            Chore::FuzzMaps(chore) => chore.run(),
            Chore::SolveTargets(chore) => chore.run(),
            Chore::FsBugs(chore) => chore.run(),
            Chore::FsOthers(chore) => chore.run(),
            Chore::Slurm(chore) => chore.run(),
            Chore::Test(chore) => chore.run(),
            Chore::Blind(chore) => chore.run(),
            Chore::Book(chore) => chore.run(),
            Chore::Licences => licences::check(),
            Chore::Bench(Bench::Record(chore)) => chore.run(),
            Chore::Bench(Bench::Lint(chore)) => chore.run(),
            Chore::Bench(Bench::Crash(chore)) => chore.run(),
            Chore::Bench(Bench::Infer(chore)) => chore.run(),
            Chore::Bench(Bench::Fuzz(chore)) => chore.run(),
            Chore::Bench(Bench::Cover(chore)) => chore.run(),
            Chore::Bench(Bench::Solve(chore)) => chore.run(),
            Chore::Bench(Bench::Fs(chore)) => chore.run(),
            Chore::Bench(Bench::Fleet(chore)) => chore.run(),
            Chore::Bench(Bench::FleetScale(chore)) => chore.run(),
            Chore::Bench(Bench::Compare(chore)) => chore.run(),
        }
    }
}
