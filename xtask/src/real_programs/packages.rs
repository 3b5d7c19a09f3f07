//! What must be installed.

use std::collections::BTreeSet;
use std::env;
use std::process::Command;

use anyhow::{Context as _, ensure};

use super::case::Case;

/// The first program of the case that is not in PATH.
pub fn missing(case: &Case) -> Option<&'static str> {
    case.needs.iter().copied().find(|program| !is_in_path(program))
}

fn is_in_path(program: &str) -> bool {
    // Debian keeps servers in /usr/sbin, which the path of an ordinary user lacks.
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain(["/usr/sbin".into()]).any(|folder| folder.join(program).exists())
}

/// Installs the packages of the cases that lack a program. Needs root.
pub fn install(cases: &[&Case]) -> anyhow::Result<()> {
    let wanted: BTreeSet<&str> =
        cases.iter().filter(|case| missing(case).is_some()).flat_map(|case| case.packages.iter().copied()).collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let install = ["install", "-y", "--no-install-recommends"].into_iter().chain(wanted).collect();
    for arguments in [vec!["update"], install] {
        let mut command = Command::new("apt-get");
        command.args(&arguments).env("DEBIAN_FRONTEND", "noninteractive");
        let status = command.status().context("cannot run apt-get; install the packages by hand")?;
        ensure!(status.success(), "apt-get {} failed ({status}); --install needs root", arguments.join(" "));
    }
    Ok(())
}
