//! Debian's cloud kernel: fetched from the machine's package sources and unpacked; nothing is installed.

use std::env;
use std::fs as files;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Depends on the newest image.
const PACKAGE: &str = "linux-image-cloud-amd64";
/// What `--kernel debian` stands for.
pub const NAME: &str = "debian";

#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error(
        "`{command}` cannot be started: {source}; fetching a kernel needs a Debian machine. Name a kernel image of your own with --kernel"
    )]
    Start { command: String, source: io::Error },
    #[error("`{command}` failed: {said}")]
    Failed { command: String, said: String },
    #[error(
        "the package sources have no {PACKAGE}; run `apt-get update`, or name a kernel image of your own with --kernel"
    )]
    NoPackage,
    #[error("{path}: {source}")]
    File { path: String, source: io::Error },
    #[error("there is no kernel in {0}; `fencepost fs kernel` fetches one")]
    NotFetched(String),
    #[error("there is no home directory to keep a kernel in; say where with --to")]
    NoHome,
}

/// A kernel image and its modules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    pub kernel: PathBuf,
    pub modules: PathBuf,
}

/// Where a kernel is kept if the user does not say.
pub fn folder() -> Result<PathBuf, FetchError> {
    let cache = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| env::home_dir().map(|home| home.join(".cache")));
    cache.map(|cache| cache.join("fencepost/kernel")).ok_or(FetchError::NoHome)
}

/// What was fetched into a folder.
pub fn find(folder: &Path) -> Result<Fetched, FetchError> {
    let missing = || FetchError::NotFetched(folder.display().to_string());
    let newest = |folder: PathBuf| {
        let names = files::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
        names.max()
    };
    let modules = newest(folder.join("lib/modules")).ok_or_else(missing)?;
    let version = modules.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let kernel = folder.join(format!("boot/vmlinuz-{version}"));
    if kernel.is_file() { Ok(Fetched { kernel, modules }) } else { Err(missing()) }
}

/// Fetches the newest one into a folder, in place of what was there.
pub fn fetch(folder: &Path) -> Result<Fetched, FetchError> {
    let file = |path: &Path| {
        let path = path.display().to_string();
        move |source| FetchError::File { path, source }
    };
    let package = newest()?;
    let scratch = tempfile::tempdir().map_err(file(Path::new("a temporary folder")))?;
    run(Command::new("apt-get").args(["download", &package]).current_dir(scratch.path()))?;
    let archives = files::read_dir(scratch.path()).map_err(file(scratch.path()))?;
    let archive = archives
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|end| end == "deb"));
    let archive = archive.ok_or(FetchError::NoPackage)?;
    if folder.exists() {
        files::remove_dir_all(folder).map_err(file(folder))?;
    }
    files::create_dir_all(folder).map_err(file(folder))?;
    run(Command::new("dpkg-deb").arg("-x").arg(&archive).arg(folder))?;
    find(folder)
}

/// The package with the newest image.
fn newest() -> Result<String, FetchError> {
    let said = run(Command::new("apt-cache").args(["depends", PACKAGE]))?;
    let depends = said.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
    depends.map(|name| name.trim().to_owned()).ok_or(FetchError::NoPackage)
}

fn run(command: &mut Command) -> Result<String, FetchError> {
    let shown = format!("{command:?}").replace('"', "");
    let output = command.output().map_err(|source| FetchError::Start { command: shown.clone(), source })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
    Err(FetchError::Failed { command: shown, said })
}
