//! What the sweeps over `targets/crash` and `targets/ops` share: where a variant is built and run, and what a check says of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Failed, Trial};
use serde_json::Value;
use targets::crash::{CrashTarget, Expectation, Variant};

/// Enough for the slowest variant on a busy machine.
const TIME_LIMIT_SECONDS: &str = "300";
/// How long a recovery, and what it is asked, may take: those that hang do so a few times.
pub const RECOVERY_LIMIT: &str = "1s";
/// What every check is asked for: JSON, within a time that no variant needs, and the same in every run.
pub const CHECK: [&str; 8] = ["check", "--no-lint", "--message-format", "json", "--budget", "120s", "--jobs", "1"];

/// A recovery of libpmemobj takes more than ten milliseconds even natively: fewer states must do.
pub fn is_pmdk(target: &CrashTarget) -> bool {
    target.name.starts_with("pmdk/")
}

/// A built variant and a folder of its own.
pub struct Workshop<'t> {
    pub target: &'t CrashTarget,
    pub program: PathBuf,
    pub folder: PathBuf,
}

impl<'t> Workshop<'t> {
    /// `suite` and `purpose` name the folder, so that sweeps do not meet.
    pub fn new(target: &'t CrashTarget, variant: Variant, suite: &str, purpose: &str) -> Result<Workshop<'t>, String> {
        let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join(suite);
        let program = target.build(variant, &space.join("built")).map_err(|error| error.to_string())?;
        let folder = space.join("run").join(purpose).join(format!("{}-{variant}", target.name));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Workshop { target, program, folder })
    }

    /// The program's own command.
    pub fn run_command(&self) -> Vec<String> {
        self.target.run_command(&self.program, &self.pool())
    }

    pub fn pool(&self) -> PathBuf {
        self.folder.join("pool")
    }

    /// What it printed; it must not have failed.
    pub fn fencepost(&self, arguments: &[&str], input: Stdio) -> Result<String, String> {
        let output = Command::new("timeout")
            .args([TIME_LIMIT_SECONDS, env!("CARGO_BIN_EXE_fencepost")])
            .args(arguments)
            .envs(self.target.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .stdin(input)
            .output()
            .map_err(|error| format!("timeout: {error}"))?;
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        if matches!(output.status.code(), Some(0 | 1)) {
            return Ok(stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        Err(format!("fencepost {arguments:?}: {}\n{stdout}\n{stderr}", output.status))
    }

    /// All went well: nobody wants to look at what is there.
    pub fn remove(self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The lines that a check printed: findings, and the summary.
pub struct Checked {
    pub findings: Vec<Value>,
    pub summary: Value,
    output: String,
}

impl Checked {
    /// The program's own output is among the lines.
    pub fn parse(output: String) -> Result<Checked, String> {
        let mut findings = Vec::new();
        for line in output.lines().filter(|line| line.starts_with('{')) {
            findings.push(serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?);
        }
        let summary = findings.pop().filter(|last| last["type"] == "summary").ok_or("there is no summary")?;
        Ok(Checked { findings, summary, output })
    }

    pub fn insist(&self, is_so: bool, complaint: &str) -> Result<(), String> {
        if is_so { Ok(()) } else { Err(format!("{complaint}\n{}", self.output)) }
    }

    pub fn insist_on_silence(&self) -> Result<(), String> {
        self.insist(self.findings.is_empty(), "the twin is correct, but there are findings")
    }

    pub fn insist_on_all_points(&self) -> Result<(), String> {
        self.insist(self.summary["points_decided"] == self.summary["points_wanted"], "not all was decided")
    }

    /// The findings that are what is expected of the variant; there must be one.
    pub fn expected(
        &self,
        target: &CrashTarget,
        variant: Variant,
        is_class: impl Fn(&Value, &Expectation) -> bool,
    ) -> Result<Vec<&Value>, String> {
        let expected: Vec<&Expectation> = target.expected(variant).collect();
        let fits = |finding: &&Value| {
            expected.iter().any(|wanted| is_class(&finding["class"], wanted) && is_inside(finding, wanted, target))
        };
        let fitting: Vec<&Value> = self.findings.iter().filter(fits).collect();
        let wanted = expected.iter().map(|e| format!("{} at line {} in {}", e.class, e.line, e.function.name));
        self.insist(!fitting.is_empty(), &format!("expected {}", wanted.collect::<Vec<_>>().join(" or ")))?;
        Ok(fitting)
    }
}

/// Is a location inside the function of the guilty line?
fn is_inside(finding: &Value, wanted: &Expectation, target: &CrashTarget) -> bool {
    let file = target.source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let inside = |location: &Value| {
        let line = location["line"].as_u64().unwrap_or(0) as u32;
        location["file"].as_str().is_some_and(|path| path.ends_with(file)) && wanted.function.lines.contains(&line)
    };
    finding["locations"].as_array().is_some_and(|locations| locations.iter().any(inside))
}

/// One test about one program.
pub fn trial(
    target: &CrashTarget,
    what: String,
    check: impl FnOnce(&CrashTarget) -> Result<(), String> + Send + 'static,
) -> Trial {
    let target = target.clone();
    Trial::test(format!("{} {what}", target.name), move || check(&target).map_err(Failed::from))
}

pub fn enough_bugs(targets: &[CrashTarget], least: u32) -> Trial {
    let seeded: u32 = targets.iter().map(|target| target.variants).sum();
    Trial::test(format!("at least {least} bugs are seeded"), move || {
        if seeded >= least { Ok(()) } else { Err(format!("there are only {seeded}").into()) }
    })
}
