//! The two recorders, as `fencepost record` offers them, and the native run that they are measured against.

use std::fmt;
use std::path::Path;
use std::process::{Command, Stdio};

use targets::Program;

/// The pool's name, relative to the run's folder.
pub const POOL: &str = "test.pool";

/// Enough for the slowest program under single-stepping on a busy machine.
const TIME_LIMIT_SECONDS: &str = "400";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Probe,
    Step,
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Backend::Probe => "probe",
            Backend::Step => "step",
        })
    }
}

impl Backend {
    /// The recorders to try: both, unless the environment names one.
    pub fn wanted() -> Vec<Backend> {
        match std::env::var("FENCEPOST_SUITE_BACKENDS").as_deref() {
            Ok("step") => vec![Backend::Step],
            Ok("probe") => vec![Backend::Probe],
            _ => vec![Backend::Step, Backend::Probe],
        }
    }
}

/// One way to run a program in a folder of its own.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    pub program: &'a Program,
    pub executable: &'a Path,
    /// Where libraries of the suite lie.
    pub built: &'a Path,
    pub folder: &'a Path,
}

impl Run<'_> {
    /// Runs it without a recorder.
    pub fn natively(&self) -> Result<(), String> {
        self.finish("natively", self.command(self.executable))
    }

    /// Records it. The program's own exit code must come through as 0.
    pub fn recorded(&self, backend: Backend, trace: &Path) -> Result<(), String> {
        let mut command = self.command(Path::new(env!("CARGO_BIN_EXE_fencepost")));
        command.args(["record", "--quiet", "--exit-with-target", "--backend", &backend.to_string(), "-o"]);
        command.arg(trace).args(self.program.record_args()).arg("--").arg(self.executable);
        self.finish(&format!("under {backend}"), command)
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("timeout");
        command.args(["--kill-after=5", TIME_LIMIT_SECONDS]).arg(program);
        command
    }

    fn finish(&self, how: &str, mut command: Command) -> Result<(), String> {
        command.arg(POOL).arg(self.built).current_dir(self.folder).stdin(Stdio::null());
        // The environment lies on the stack: a fixed one gives fixed addresses.
        command.env_clear().env("PATH", "/usr/bin:/bin").env("LC_ALL", "C");
        let output = command.output().map_err(|error| format!("cannot run `timeout`: {error}"))?;
        if output.status.success() {
            return Ok(());
        }
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        Err(format!("{how}: {}\n{stdout}{stderr}", output.status))
    }
}
