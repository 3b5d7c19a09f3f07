//! `cargo xtask bench fs --kernel`: kernel file systems in virtual machines: our module on seq-1 and a sample of seq-2, with and without
//! equivalence, and ext4 and xfs with DAX on a sample of the fsync set.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context as _, ensure};
use targets::kmod;

use crate::file_systems::{Bed, FsCheckOutcome};
use crate::vm_kit;

const EXT4: &str = "mkfs.ext4 -q -b 4096 {device}";
/// Newer ones refuse less than 300 MB.
const XFS: &str = "mkfs.xfs -q -m reflink=0 {device}";
const XFS_MIB: &str = "320";

/// What the checks of kernel file systems have in common: Debian's kernel, and our module for it.
pub struct Guest {
    kernel: String,
    modules: String,
    /// Our own file system.
    module: String,
}

impl Guest {
    /// Fetches the kernel and builds what is missing.
    pub fn new(bed: &Bed) -> anyhow::Result<Guest> {
        if !bed.fencepost.with_file_name("vm-kit").exists() {
            vm_kit::build()?;
        }
        let folder = bed.scratch.fresh("kernel")?;
        let output = Command::new(&bed.fencepost).args(["fs", "kernel", "--to"]).arg(&folder).output()?;
        ensure!(output.status.success(), "fs kernel: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let (kernel, modules) = said.trim().split_once('\n').context("`fs kernel` names no kernel")?;
        let version = Path::new(modules).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let headers = Path::new("/usr/src").join(format!("linux-headers-{version}"));
        let module = kmod::build(&bed.scratch.fresh("kmod")?, &headers)?.display().to_string();
        Ok(Guest { kernel: kernel.to_owned(), modules: modules.to_owned(), module })
    }

    /// Checks the file system that these words name.
    fn check(&self, bed: &Bed, fs: &[&str], workloads: &[&str]) -> anyhow::Result<FsCheckOutcome> {
        bed.fs_check(&[&["--kernel", &self.kernel, "--modules", &self.modules], fs, workloads].concat())
    }

    /// Our own, with one of its bugs; 0 is the correct one.
    pub fn check_stonefs(&self, bed: &Bed, bug: u32, workloads: &[&str]) -> anyhow::Result<FsCheckOutcome> {
        let module = format!("{} bug={bug}", self.module);
        self.check(bed, &["--fs", "stonefs", "--module", &module, "--size", "8"], workloads)
    }
}

/// Nothing may be found, and everything must be decided.
pub fn bench(bed: &Bed, seq_2: usize, fsync: usize, seed: u64) -> anyhow::Result<ExitCode> {
    let guest = Guest::new(bed)?;
    let of_seq_2 = bed.sample("seq-2", seq_2, seed)?.display().to_string();
    let of_fsync = bed.sample("fsync", fsync, seed)?.display().to_string();
    let stonefs = ["--fs", "stonefs", "--module", &guest.module, "--size", "8"];
    let ext4 = ["--fs", "ext4", "--mkfs", EXT4, "--needs-fsync", "--ops", &of_fsync];
    let xfs = ["--fs", "xfs", "--mkfs", XFS, "--size", XFS_MIB, "--needs-fsync", "--ops", &of_fsync];
    let seq_2_name = format!("stonefs, {seq_2} of seq-2, seed {seed}");
    let fsync_name = |fs: &str| format!("{fs}, {fsync} of the fsync set, seed {seed}");
    let (ext4_name, xfs_name) = (fsync_name("ext4"), fsync_name("xfs"));
    let rows: [(&str, &[&str], &[&str]); 5] = [
        ("stonefs, seq-1", &stonefs, &["--ace", "seq-1"]),
        ("stonefs, seq-1, every state run", &stonefs, &["--ace", "seq-1", "--no-equivalence", "--budget", "5m"]),
        (&seq_2_name, &stonefs, &["--ops", &of_seq_2]),
        (&ext4_name, &ext4, &[]),
        (&xfs_name, &xfs, &[]),
    ];
    println!("| workloads | crash points | states | mounts | saved | wall s | CPU s | states/CPU s | findings |");
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut clean = true;
    for (name, fs, workloads) in rows {
        let FsCheckOutcome { findings, summary, seconds, cpu } = guest.check(bed, fs, workloads)?;
        let number = |key: &str| summary[key].as_u64().unwrap_or(0);
        let states = number("states_decided");
        println!(
            "| {name} | {} of {} | {states} | {} | {:.1} % | {seconds:.0} | {cpu:.0} | {:.0} | {} |",
            number("points_decided"),
            number("points_wanted"),
            number("recovery_runs"),
            100.0 * number("runs_saved") as f64 / states.max(1) as f64,
            states as f64 / cpu.max(0.001),
            findings.len()
        );
        clean &= findings.is_empty() && states > 0;
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
