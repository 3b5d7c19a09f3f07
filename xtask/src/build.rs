//! Building what the chores run.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};

/// Cargo, as the one that runs this chore.
pub fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The folder of this profile's executables: that of this very program.
pub fn profile_folder() -> anyhow::Result<PathBuf> {
    let own = env::current_exe().context("cannot find this program's own path")?;
    Ok(own.parent().unwrap_or(Path::new(".")).to_owned())
}

/// Where the built targets are kept.
pub fn targets_folder() -> anyhow::Result<PathBuf> {
    Ok(profile_folder()?.join("targets"))
}

/// Builds Fencepost and returns its executable, or the one that `FENCEPOST_BUILT` names: `./test` has built it together with its
/// tests, with other features of the dependencies, and a second build would compile most crates again.
pub fn fencepost() -> anyhow::Result<PathBuf> {
    if let Some(built) = env::var_os("FENCEPOST_BUILT") {
        let built = PathBuf::from(built);
        return built.canonicalize().with_context(|| format!("FENCEPOST_BUILT names {}", built.display()));
    }
    let status = cargo().args(["build", "--release", "--package", "fencepost"]).status().context("cannot run cargo")?;
    ensure!(status.success(), "Fencepost does not build");
    let built = profile_folder()?.join("fencepost");
    ensure!(built.exists(), "{} is missing: run this chore as `cargo xtask`", built.display());
    Ok(built)
}

/// `cargo xtask targets`.
pub fn targets() -> anyhow::Result<ExitCode> {
    let folder = targets_folder()?;
    let programs = targets::conformance_programs()?;
    for program in &programs {
        program.build(&folder).with_context(|| program.name.clone())?;
    }
    println!("{} conformance programs in {}", programs.len(), folder.display());
    match targets::pmdk::build_mapcli(&folder) {
        Ok(path) => println!("PMDK's map examples: {}", path.display()),
        Err(error) => println!("PMDK's map examples are left out: {error}"),
    }
    Ok(ExitCode::SUCCESS)
}
