//! A built variant, a folder of its own, and `fencepost` on it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use targets::crash::{CrashTarget, Variant};

/// Enough for the slowest variant on a busy machine.
const TIME_LIMIT_SECONDS: &str = "300";
/// How long a recovery and what it is asked may take: those that hang do so a few times.
const RECOVERY_LIMIT: &str = "1s";
/// Of a server, which is two processes more.
const SERVER_LIMIT: &str = "10s";
/// Enough for every table to grow and every log to be compacted.
const OPERATIONS: &str = "60";
/// A recovery of libpmemobj takes more than ten milliseconds even natively, and a server is started anew for each.
const OPERATIONS_OF_SLOW: &str = "20";
const STRATEGY: &str = "program-order,guaranteed-only,visible:8";

pub struct Bench<'t> {
    pub target: &'t CrashTarget,
    program: PathBuf,
    folder: PathBuf,
}

/// The lines that a check printed: findings, and the summary.
pub struct Checked {
    pub findings: Vec<Value>,
    pub summary: Value,
    pub output: String,
}

impl<'t> Bench<'t> {
    pub fn new(target: &'t CrashTarget, variant: Variant, purpose: &str) -> Result<Bench<'t>, String> {
        let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ops");
        let program = target.build(variant, &space.join("built")).map_err(|error| error.to_string())?;
        let folder = space.join("run").join(purpose).join(format!("{}-{variant}", target.name));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Bench { target, program, folder })
    }

    /// A server is asked through its socket, and does nothing without operations.
    pub fn is_server(target: &CrashTarget) -> bool {
        target.run.iter().any(|word| word == "{socket}")
    }

    /// With operations, and the tail of queries.
    pub fn check(&self, seed: u32) -> Result<Checked, String> {
        let seed = seed.to_string();
        let grammar = self.grammar()?;
        let mut options = vec!["--grammar", &grammar, "--count", self.operations(), "--seed", &seed];
        if Bench::is_server(self.target) {
            options.extend(["--op-socket", "{socket}"]);
        }
        self.run(&options, Stdio::null())
    }

    /// The same workload on standard input, and recovery alone to tell what went wrong.
    pub fn check_recovery_alone(&self, seed: u32) -> Result<Checked, String> {
        let workload = self.folder.join("operations");
        let grammar = self.grammar()?;
        let status = Command::new(env!("CARGO_BIN_EXE_fencepost"))
            .args(["ops", "generate", "--grammar", &grammar, "--count", self.operations()])
            .args(["--seed", &seed.to_string(), "--output"])
            .arg(&workload)
            .status()
            .map_err(|error| error.to_string())?;
        if !status.success() {
            return Err(format!("fencepost ops generate --grammar {grammar}: {status}"));
        }
        self.run(&[], File::open(&workload).map_err(|error| format!("{}: {error}", workload.display()))?.into())
    }

    pub fn remove(self) {
        let _ = fs::remove_dir_all(&self.folder);
    }

    fn is_slow(&self) -> bool {
        self.target.name.starts_with("pmdk/") || Bench::is_server(self.target)
    }

    fn operations(&self) -> &'static str {
        if self.is_slow() { OPERATIONS_OF_SLOW } else { OPERATIONS }
    }

    fn grammar(&self) -> Result<String, String> {
        let path = self.target.grammar.as_ref().ok_or("the program has no grammar")?;
        Ok(path.display().to_string())
    }

    fn run(&self, options: &[&str], input: Stdio) -> Result<Checked, String> {
        let mut arguments = vec!["check", "--no-lint", "--message-format", "json", "--budget", "120s", "--jobs", "1"];
        let limit = if Bench::is_server(self.target) { SERVER_LIMIT } else { RECOVERY_LIMIT };
        arguments.extend(["--timeout", limit, "--strategy", STRATEGY]);
        if self.target.name.starts_with("pmdk/") {
            arguments.extend(["--occurrences", "2"]);
        }
        arguments.extend(options);
        arguments.extend(self.target.options.iter().map(String::as_str));
        arguments.push("--");
        let pool = self.folder.join("pool");
        let output = Command::new("timeout")
            .args([TIME_LIMIT_SECONDS, env!("CARGO_BIN_EXE_fencepost")])
            .args(&arguments)
            .args(self.target.run_command(&self.program, &pool))
            .envs(self.target.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(input)
            .output()
            .map_err(|error| format!("timeout: {error}"))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        if !matches!(output.status.code(), Some(0 | 1)) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(format!("fencepost {arguments:?}: {}\n{stdout}\n{stderr}", output.status));
        }
        Checked::parse(&stdout)
    }
}

impl Checked {
    /// The program's own answers are among the lines when the workload is on standard input.
    fn parse(output: &str) -> Result<Checked, String> {
        let mut findings = Vec::new();
        for line in output.lines().filter(|line| line.starts_with('{')) {
            findings.push(serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?);
        }
        let summary = findings.pop().filter(|last| last["type"] == "summary").ok_or("there is no summary")?;
        Ok(Checked { findings, summary, output: output.to_owned() })
    }
}
