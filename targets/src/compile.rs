//! Running a compiler, unless the same command line made the output from the same sources before.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;
use std::{fs, process};

use crate::TargetError;

/// Runs `command` with `-o output`. `sources` are all files whose change makes the output stale.
///
/// Several test processes may build the same file at once: each writes a file of its own and renames it.
pub(crate) fn compile(mut command: Command, output: &Path, sources: &[PathBuf]) -> Result<(), TargetError> {
    let line = format!("{command:?}");
    let stamp = with_suffix(output, "command");
    if fs::read_to_string(&stamp).is_ok_and(|before| before == line) && is_newer(output, sources) {
        return Ok(());
    }
    if let Some(folder) = output.parent() {
        fs::create_dir_all(folder).map_err(TargetError::io(folder))?;
    }
    // Threads of one process as well.
    static BUILDS: AtomicU32 = AtomicU32::new(0);
    let own = format!("{}-{}", process::id(), BUILDS.fetch_add(1, Ordering::Relaxed));
    // No dot before it: rustc names its object files after what comes before the last one.
    let mut name = output.file_name().unwrap_or(OsStr::new("out")).to_owned();
    name.push(format!("-{own}"));
    let fresh = output.with_file_name(name);
    command.arg("-o").arg(&fresh).stdin(Stdio::null());
    let compiler = command.get_program().to_string_lossy().into_owned();
    let result = command.output().map_err(|source| TargetError::NoCompiler { compiler, source })?;
    if !result.status.success() {
        let stderr = String::from_utf8_lossy(&result.stderr).into_owned();
        return Err(TargetError::Compile { command: line, stderr });
    }
    fs::rename(&fresh, output).map_err(TargetError::io(output))?;
    let fresh_stamp = with_suffix(&fresh, "command");
    fs::write(&fresh_stamp, &line).map_err(TargetError::io(&fresh_stamp))?;
    fs::rename(&fresh_stamp, &stamp).map_err(TargetError::io(&stamp))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or(OsStr::new("out")).to_owned();
    name.push(".");
    name.push(suffix);
    path.with_file_name(name)
}

fn is_newer(output: &Path, sources: &[PathBuf]) -> bool {
    let modified = |path: &Path| -> Option<SystemTime> { fs::metadata(path).ok()?.modified().ok() };
    let Some(built) = modified(output) else { return false };
    sources.iter().all(|source| modified(source).is_some_and(|changed| changed < built))
}
