//! `cargo xtask vm-kit`: builds what `fencepost fs check --kernel` needs beside QEMU: our plugin (GPL, so an artefact of its own) and the
//! guest's agent, and puts both beside the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, ensure};

/// Where the program looks for them: beside itself.
const KIT: &str = "vm-kit";
const PLUGIN: &str = "libfencepost_qemu.so";
const AGENT: &str = "vm-agent";
const HOST: &str = "x86_64-unknown-linux-gnu";

/// Builds both; the folder.
pub fn build() -> anyhow::Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let own = target.join("vm");
    let run = |folder: &Path, words: &[&str]| {
        let mut command = Command::new(&cargo);
        command.current_dir(folder).args(words).arg("--target-dir").arg(&own);
        let status = command.status().with_context(|| format!("cannot start {command:?}"))?;
        ensure!(status.success(), "{command:?} failed");
        anyhow::Ok(())
    };
    run(&root.join("crates/vm/plugin"), &["build", "--quiet", "--release", "--locked"])?;
    // The only program of the guest: it must not need any library. Set for this target alone, so that build scripts are as usual.
    let flags = format!("target.{HOST}.rustflags=[\"-Ctarget-feature=+crt-static\", \"-Cstrip=symbols\"]");
    let words = ["build", "--quiet", "--release", "--locked", "-p", AGENT, "--target", HOST, "--config", &flags];
    run(root, &words)?;
    let kit = target.join("release").join(KIT);
    fs::create_dir_all(&kit)?;
    for (from, name) in
        [(own.join("release").join(PLUGIN), PLUGIN), (own.join(HOST).join("release").join(AGENT), AGENT)]
    {
        // A file that a guest has open must not change.
        let _ = fs::remove_file(kit.join(name));
        fs::copy(&from, kit.join(name)).with_context(|| format!("cannot copy {}", from.display()))?;
    }
    Ok(kit)
}

/// The chore.
pub fn run() -> anyhow::Result<ExitCode> {
    println!("{}", build()?.display());
    Ok(ExitCode::SUCCESS)
}
