//! `targets/ops/windows` for `cargo xtask bench infer`: operations at the same time, which no grammar makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

pub const NAME: &str = "windows/accounts";

/// As in `crates/fencepost/tests/ops_windows.rs`: three at the same time show the bug.
const OPERATIONS: &str = "a 1 5\na 2 1 || a 3 2 || a 1 7\nb 3\na 1 1 || a 1 2\na 3 4\n";
const TAIL: &str = "b 1\nb 2\nb 3\n";

/// Builds a variant. The options and the command that check it.
pub fn prepare(folder: &Path, variant: u32) -> anyhow::Result<(Vec<String>, [String; 2])> {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets");
    let program = folder.join("accounts");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-mclwb", &format!("-DBUG={variant}"), "-pthread", "-I"]).arg(targets.join("ops/include"));
    cc.arg("-I").arg(targets.join("crash/include")).arg("-o").arg(&program);
    let status = cc.arg(targets.join("ops/windows/accounts.c")).status()?;
    ensure!(status.success(), "{cc:?}: {status}");
    let (operations, tail) = (folder.join("operations"), folder.join("tail"));
    fs::write(&operations, OPERATIONS)?;
    fs::write(&tail, TAIL)?;
    let [operations, tail] = [operations, tail].map(|path| path.display().to_string());
    let options = ["--jobs", "1", "--window-separator", "||", "--ops", &operations, "--tail", &tail];
    let command = [program, folder.join("pool")].map(|path| path.display().to_string());
    Ok((options.map(str::to_owned).to_vec(), command))
}
