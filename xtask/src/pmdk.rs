//! `cargo xtask pmdk-verify`: Debian's libpmemobj map examples, recorded and verified.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context as _, ensure};
use clap::Args;
use targets::pmdk;

use crate::build;
use crate::scratch::Scratch;

#[derive(Args, Debug)]
pub struct PmdkVerify {
    /// Operations per map.
    #[arg(long, default_value_t = 15_000)]
    operations: u32,
    /// Only these maps.
    #[arg(long = "map", value_name = "NAME")]
    maps: Vec<String>,
    /// The recorder: probe or step.
    #[arg(long, default_value = "probe")]
    backend: String,
}

impl PmdkVerify {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        let fencepost = build::fencepost()?;
        let mapcli = pmdk::build_mapcli(&build::targets_folder()?)?;
        let scratch = Scratch::new("pmdk")?;
        let workload = scratch.path().join("workload");
        fs::write(&workload, pmdk::workload(self.operations))?;
        let mut failed = 0;
        for map in pmdk::MAPS.iter().filter(|map| self.maps.is_empty() || self.maps.iter().any(|name| name == *map)) {
            let folder = scratch.fresh(map)?;
            match self.verify(map, &fencepost, &mapcli, &workload, &folder) {
                Ok(told) => println!("{map:<16} {told}"),
                Err(error) => {
                    failed += 1;
                    println!("{map:<16} FAILED: {error:#}");
                }
            }
            fs::remove_dir_all(&folder)?;
        }
        println!("{failed} failed");
        Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    /// Records natively equal output, then lets `trace verify` replay the events.
    fn verify(
        &self,
        map: &str,
        fencepost: &Path,
        mapcli: &Path,
        workload: &Path,
        folder: &Path,
    ) -> anyhow::Result<String> {
        let expected = output(Command::new(mapcli).args([map, "native.pool", "1"]), workload, folder)?;
        let mut record = Command::new(fencepost);
        record.args(["record", "--quiet", "--exit-with-target", "--backend", &self.backend, "-o", "trace", "--"]);
        let recorded = output(record.arg(mapcli).args([map, "recorded.pool", "1"]), workload, folder)?;
        ensure!(expected == recorded, "the program printed something else than natively");
        let told = output(Command::new(fencepost).args(["trace", "verify", "trace"]), workload, folder)?;
        let size = fs::metadata(folder.join("trace"))?.len();
        Ok(format!("{:>6} KiB of trace; {}", size / 1024, told.lines().last().unwrap_or_default()))
    }
}

fn output(command: &mut Command, stdin: &Path, folder: &Path) -> anyhow::Result<String> {
    command.current_dir(folder).stdin(File::open(stdin)?).stderr(Stdio::piped());
    // On a file system without DAX libpmem would call msync instead of flushing.
    command.env("PMEM_IS_PMEM_FORCE", "1");
    let done = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let (stdout, stderr) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    ensure!(done.status.success(), "{command:?}: {}\n{stdout}{stderr}", done.status);
    Ok(stdout.into_owned())
}
