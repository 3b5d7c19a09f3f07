//! Explorations of `programs/solver_cases.c`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::cli_support::{Ran, Sandbox};
use serde_json::Value;

/// The line of the bug.
pub const GUILTY: u64 = 30;

pub fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/solver_cases.c");
        let text = fs::read_to_string(&source).expect("there");
        let line = text.lines().position(|line| line.contains("/* the bug */")).expect("there is one");
        assert_eq!(line as u64 + 1, GUILTY);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let (out, fresh) = (folder.join("solver-cases"), folder.join(format!("solver-cases-{}", std::process::id())));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g", "-pthread", "-o"]).arg(&fresh).arg(source);
        assert!(cc.status().expect("cc is installed").success());
        // Renamed when whole: other test processes may be using it.
        fs::rename(&fresh, &out).expect("the same folder");
        out
    })
}

pub fn explore(sandbox: &Sandbox, mode: &str, options: &[&str]) -> Ran {
    let program = program().display().to_string();
    let own = ["explore", "--time", "100", "--bytes", "8", "--solver", "embedded"];
    let own = if options.contains(&"--solver") { &own[..5] } else { &own[..] };
    sandbox.run_limited(&[own, options, &["--", &program, "pool", mode]].concat())
}

/// The summary, and rule and line of each finding.
pub fn told(ran: &Ran) -> (Value, Vec<(String, u64)>) {
    let lines: Vec<Value> = ran.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let (last, findings) = lines.split_last().unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    let of = |finding: &Value| {
        let line = finding["locations"][0]["line"].as_u64().unwrap_or(0);
        (finding["rule"].as_str().unwrap_or_default().to_owned(), line)
    };
    (last.clone(), findings.iter().map(of).collect())
}
