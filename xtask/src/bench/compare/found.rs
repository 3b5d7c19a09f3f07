//! Which tool says anything about programs with a seeded bug, and about their correct twins.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use targets::crash::{self, CrashTarget, TWIN, Variant};

use super::costs::{PMEMPOOL, pmempool};
use super::peers::Peers;
use super::run::{self, Ran, words};
use super::way::{Summary, Way, memcheck};
use crate::build;
use crate::scratch::Scratch;

/// A program, its bug, and what the bug is.
type Case = (&'static str, Variant, &'static str);

/// Of `targets/crash`: their recovery notices the damage.
const NOTICED: [Case; 9] = [
    ("c/queue", Variant(1), "ordering"),
    ("pmdk/tx_list", Variant(1), "atomicity: a field outside the transaction"),
    ("c/redo", Variant(6), "durability"),
    ("c/radix", Variant(5), "atomicity"),
    ("cpp/level_hash", Variant(10), "recovery: crashes"),
    ("rust/append_log", Variant(1), "ordering"),
    ("pmdk/atomic_map", Variant(3), "ordering"),
    ("c/queue", TWIN, "none: the correct twin"),
    ("pmdk/tx_list", TWIN, "none: the correct twin"),
];

/// Of `targets/ops`: only the answers of the recovered program show the damage.
const SILENT: [Case; 3] = [
    ("c/critbit", Variant(5), "silent: an old value is back"),
    ("pmdk/list", Variant(1), "silent: a key is lost"),
    ("c/critbit", TWIN, "none: the correct twin"),
];

const OPERATIONS: &str = "120";
const BUDGET: &str = "5s";

/// Everything that the cases need.
struct Bench<'a> {
    peers: &'a Peers,
    fencepost: String,
    folder: PathBuf,
    limit: Duration,
}

/// Prints the table.
pub fn run(quick: bool, peers: &Peers, fencepost: &Path, scratch: &Scratch, limit: Duration) -> anyhow::Result<()> {
    println!("## Seeded bugs\n");
    println!(
        "| program | bug | its own test | memcheck | `pmempool check` | `fencepost lint`, errors | `fencepost check`, errors |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    let folder = scratch.fresh("found")?;
    let bench = Bench { peers, fencepost: fencepost.display().to_string(), folder, limit };
    let (noticed, silent) = (crash::all()?, crash::with_operations()?);
    let some = if quick { 2 } else { usize::MAX };
    for case in NOTICED.iter().take(some) {
        bench.row(case, named(&noticed, case.0)?)?;
    }
    for case in SILENT.iter().take(some - 1) {
        bench.row(case, named(&silent, case.0)?)?;
    }
    println!();
    Ok(())
}

fn named<'a>(targets: &'a [CrashTarget], name: &str) -> anyhow::Result<&'a CrashTarget> {
    targets.iter().find(|target| target.name == name).with_context(|| format!("there is no target {name}"))
}

impl Bench<'_> {
    fn row(&self, &(name, variant, bug): &Case, target: &CrashTarget) -> anyhow::Result<()> {
        let suite = if target.grammar.is_some() { "ops" } else { "crash" };
        let program = target.build(variant, &build::targets_folder()?.join(suite))?;
        let workload = target.run_command(&program, Path::new("pool"));
        let input = target.grammar.as_deref().map(|grammar| self.operations(grammar)).transpose()?;
        let input = input.as_deref();
        self.fresh()?;
        let native = self.run(&workload, input)?;
        ensure!(native.exit_code == 0, "{name} {variant} fails by itself: {}{}", native.stdout, native.stderr);
        let pool = match (name.starts_with("pmdk/"), self.peers.pmempool) {
            (true, true) => pmempool(&self.run(&words(&PMEMPOOL), None)?),
            (true, false) => "not installed",
            (false, _) => "only for PMDK's pools",
        };
        let recovered = match input {
            // A program with operations has no other recovery than its next start.
            Some(_) => self.run(&workload, None)?,
            None => self.run(&target.recover_command(&program, Path::new("pool")), None)?,
        };
        let test = if recovered.exit_code == 0 { "passes" } else { "fails" };
        self.fresh()?;
        let valgrind = if self.peers.have(Way::Memcheck) {
            memcheck(&self.run(&Way::Memcheck.command(Path::new(""), &workload), input)?.stderr)
        } else {
            "not installed".to_owned()
        };
        self.fresh()?;
        let lint = self.run(&self.fencepost(&["lint"], &workload), input)?;
        self.fresh()?;
        let mut options = words(&["check", "--no-lint", "--budget", BUDGET]);
        match &target.grammar {
            Some(grammar) => options.extend(words(&[
                "--no-select",
                "--grammar",
                &grammar.display().to_string(),
                "--count",
                OPERATIONS,
            ])),
            None => {
                options.extend(words(&["--recover", &target.recover_command(&program, Path::new("pool")).join(" ")]))
            }
        }
        options.extend(target.options.iter().cloned());
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let check = self.run(&self.fencepost(&options, &workload), None)?;
        println!(
            "| {suite}/{name} | {bug} | {test} | {valgrind} | {pool} | {} | {} |",
            errors(&lint, target, variant)?,
            errors(&check, target, variant)?
        );
        Ok(())
    }

    fn fencepost(&self, options: &[&str], workload: &[String]) -> Vec<String> {
        let mut command = words(&[&self.fencepost]);
        command.extend(words(options));
        command.extend(words(&["--message-format", "json", "--"]));
        command.extend_from_slice(workload);
        command
    }

    /// The operations, without the queries at their end, as `check --grammar` makes them.
    fn operations(&self, grammar: &Path) -> anyhow::Result<PathBuf> {
        let grammar = grammar.display().to_string();
        let ran = self
            .run(&words(&[&self.fencepost, "ops", "generate", "--count", OPERATIONS, "--grammar", &grammar]), None)?;
        ensure!(ran.exit_code == 0, "no operations: {}", ran.stderr);
        let file = self.folder.join("operations");
        fs::write(&file, ran.stdout)?;
        Ok(file)
    }

    fn fresh(&self) -> anyhow::Result<()> {
        let pool = self.folder.join("pool");
        if pool.exists() {
            fs::remove_file(pool)?;
        }
        Ok(())
    }

    fn run(&self, command: &[String], input: Option<&Path>) -> anyhow::Result<Ran> {
        run::run(command, &self.folder, input, self.limit)
    }
}

/// How many errors Fencepost found, and if one of them points into the function of a guilty line, which is what the
/// tests of the targets ask for.
fn errors(ran: &Ran, target: &CrashTarget, variant: Variant) -> anyhow::Result<String> {
    let summary = Summary::parse(&ran.stdout);
    let summary =
        summary.with_context(|| format!("Fencepost ended with exit code {}: {}", ran.exit_code, ran.stderr))?;
    if summary.errors == 0 {
        return Ok("nothing".to_owned());
    }
    let file = target.source.file_name().unwrap_or_default().display();
    let is_error = |line: &&str| line.contains("\"type\":\"finding\"") && line.contains("\"severity\":\"error\"");
    let points_at = |line: u32| {
        let place = format!("{file}\",\"line\":{line},");
        ran.stdout.lines().filter(is_error).any(|finding| finding.contains(&place))
    };
    let hits = target.expected(variant).any(|guilty| guilty.function.lines.clone().any(points_at));
    Ok(format!("{}, {}", summary.errors, if hits { "at the bug" } else { "elsewhere" }))
}
