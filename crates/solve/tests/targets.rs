//! `targets/solve`: bugs behind conditions that random mutations do not meet. `explore` reaches each bug in time, lint names the
//! line, and the twin is clean on every path.
//!
//! One test per program: `cargo test --release -p solve --test targets -- magic32`.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use lint::lint::Options;
use lint::registry::Settings;
use persistency::model::{Fences, ModelKind};
use solve::explore::{Explorer, Strategy};
use solve::input::Shape;
use solve::run::Runner;
use solve::session::{Limits, Session};
use solve::solver::{Embedded, Stages};
use targets::solve::{SolveTarget, all};
use trace::TraceReader;

/// What the issue allows; on an idle machine it takes seconds.
const SECONDS: u64 = 300;
/// Paths of the twin that are looked at.
const TWIN_RUNS: u64 = 40;

fn shape(program: &SolveTarget, command: &[OsString]) -> Result<Shape, String> {
    let mut shape = Shape::default();
    shape.add_arguments(command).map_err(|error| error.to_string())?;
    let mut words = program.explore.iter();
    let mut lines = Vec::new();
    while let Some(word) = words.next() {
        let value = words.next().ok_or("an option without a value")?;
        match word.as_str() {
            "--bytes" => shape.add_free(&vec![b'1'; value.parse().map_err(|_| "not a number")?]),
            "--symbolic" => lines.push(value.clone()),
            other => return Err(format!("`{other}` is not known here")),
        }
    }
    shape.add_lines(&lines).map_err(|error| error.to_string())?;
    Ok(shape)
}

/// Lines that lint finds guilty, of all paths; ends with the first if `first`.
fn explore(program: &SolveTarget, repaired: bool) -> Result<(Vec<(u32, String)>, u64), String> {
    let space = tempfile::tempdir().map_err(|error| error.to_string())?;
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("solve");
    let binary = program.build(repaired, &built).map_err(|error| error.to_string())?;
    let mut command: Vec<OsString> = vec![binary.into(), space.path().join("pool").into()];
    command.extend(program.command.iter().cloned());
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let runner = Runner::new(&command, shape(program, &command)?, &[], &[], space.path(), Duration::from_secs(60))
        .map_err(|error| text(&error))?;
    let stages = Stages::new(vec![Box::new(Embedded::default())], Duration::from_secs(20));
    let explorer = Explorer::new(Strategy::PmAware, stages, 1, Vec::new());
    let limits = Limits { time: Duration::from_secs(SECONDS), runs: if repaired { TWIN_RUNS } else { u64::MAX } };
    let mut session = Session::new(runner, explorer, limits, None);
    let mut guilty = Vec::new();
    let mut failed = None;
    let ended = session.run(|found| {
        let options = Options { model: ModelKind::X86Adr, fences: Fences::All, libraries: Default::default() };
        let rules = Settings::default().activate(Vec::new());
        let report = rules.map_err(|error| text(&error)).and_then(|rules| {
            let reader = TraceReader::open(&found.ran.trace).map_err(|error| text(&error))?;
            lint::lint::lint(&reader, rules, &options).map_err(|error| text(&error))
        });
        match report {
            Ok(report) => {
                let of =
                    |finding: &finding::finding::Finding| (finding.guilty().line.unwrap_or(0), finding.rule.clone());
                guilty.extend(report.findings.iter().map(of));
            }
            Err(error) => failed = Some(error),
        }
        guilty.is_empty() && failed.is_none()
    });
    let ended = ended.map_err(|error| text(&error))?;
    eprintln!("{}: {ended:?} after {} runs, {:?}", program.name, session.totals.runs, session.explorer.stages());
    match failed {
        Some(error) => Err(error),
        None => Ok((guilty, session.totals.runs)),
    }
}

fn check(program: &SolveTarget) -> Result<(), Failed> {
    let (guilty, runs) = explore(program, false)?;
    if guilty != [(program.guilty, "FP0101".to_owned())] {
        let expected = program.guilty;
        return Err(format!("line {expected} was expected to be guilty, found {guilty:?} after {runs} runs").into());
    }
    let (guilty, _) = explore(program, true)?;
    if !guilty.is_empty() {
        return Err(format!("the twin is not clean: {guilty:?}").into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let programs = match all() {
        Ok(programs) => programs,
        Err(error) => {
            eprintln!("error: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut trials: Vec<Trial> =
        programs.into_iter().map(|program| Trial::test(program.name.clone(), move || check(&program))).collect();
    let count = trials.len();
    trials.push(Trial::test(
        "there are at least 20 programs",
        move || if count >= 20 { Ok(()) } else { Err("fewer".into()) },
    ));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
