//! One measured run under a time limit.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::super::measure;

/// What `timeout` ends with when the time is up: by SIGTERM, and by the SIGKILL after it.
const TIME_IS_UP: [i32; 2] = [124, 137];

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Ran {
    pub wall: Duration,
    /// Of all processes of the run.
    pub cpu: Duration,
    /// The largest resident set of a process.
    pub peak_kib: i64,
    pub exit_code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ran {
    pub fn is_cut_short(&self) -> bool {
        TIME_IS_UP.contains(&self.exit_code)
    }
}

/// Runs a command in `folder`; `input` is its standard input.
pub fn run(command: &[String], folder: &Path, input: Option<&Path>, limit: Duration) -> anyhow::Result<Ran> {
    // coreutils' timeout ends the whole process group, and counts as an ancestor: wait4 on it tells of all below.
    let mut limited = Command::new("timeout");
    limited.args(["--kill-after=5", &limit.as_secs().to_string()]).args(command).current_dir(folder);
    // On a file system without DAX libpmem would call msync instead of flushing.
    limited.env("PMEM_IS_PMEM_FORCE", "1");
    limited.stdin(match input {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    });
    let (stdout, stderr) = (folder.join("stdout"), folder.join("stderr"));
    limited.stdout(File::create(&stdout)?).stderr(File::create(&stderr)?);
    let start = Instant::now();
    let cost = measure::run(&mut limited)?;
    let wall = start.elapsed();
    let text = |path: &Path| -> anyhow::Result<String> { Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()) };
    let (cpu, peak_kib, exit_code) = (cost.cpu, cost.peak_kib, cost.exit_code);
    Ok(Ran { wall, cpu, peak_kib, exit_code, stdout: text(&stdout)?, stderr: text(&stderr)? })
}

/// The words of a command.
pub fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_and_exit_code_are_kept_and_an_endless_run_is_cut_short() {
        let folder = tempfile::tempdir().expect("a folder");
        let limit = Duration::from_secs(60);
        let ran = run(&words(&["sh", "-c", "echo out; echo err >&2; exit 3"]), folder.path(), None, limit);
        let ran = ran.expect("sh runs");
        assert_eq!((ran.exit_code, ran.stdout.as_str(), ran.stderr.as_str()), (3, "out\n", "err\n"));
        assert!(!ran.is_cut_short());
        let endless = run(&words(&["tail", "-f", "/dev/null"]), folder.path(), None, Duration::from_secs(1));
        assert!(endless.expect("tail runs").is_cut_short());
    }
}
