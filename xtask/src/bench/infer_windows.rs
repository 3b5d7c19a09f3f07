//! `targets/ops/windows` for `cargo xtask bench infer`: operations at the same time, which no grammar makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::ensure;

pub const NAME: &str = "windows/accounts";

/// Sixteen windows of four on different accounts, with operations that come alone between them.
fn operations() -> String {
    let mut text = String::new();
    for round in 0..16 {
        let account = |part: u32| (round * 5 + part * 3) % ACCOUNTS + 1;
        let window: Vec<String> = (0..4).map(|part| format!("a {} {}", account(part), round + part + 2)).collect();
        text += &format!("a {} {}\n{}\nb {}\n", account(0), round + 1, window.join(" || "), account(1));
    }
    text
}

const ACCOUNTS: u32 = 7;

fn tail() -> String {
    (1..=ACCOUNTS).map(|account| format!("b {account}\n")).collect()
}

/// Builds a variant. The options and the command that check it.
pub fn prepare(folder: &Path, variant: u32) -> anyhow::Result<(Vec<String>, [String; 2])> {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../targets");
    let program = folder.join("accounts");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-g", "-mclwb", &format!("-DBUG={variant}"), "-pthread", "-I"]).arg(targets.join("ops/include"));
    cc.arg("-I").arg(targets.join("crash/include")).arg("-o").arg(&program);
    let status = cc.arg(targets.join("ops/windows/accounts.c")).status()?;
    ensure!(status.success(), "{cc:?}: {status}");
    let [operations, tail] = [("operations", operations()), ("tail", tail())].map(|(name, text)| {
        let path = folder.join(name);
        fs::write(&path, text).map(|()| path.display().to_string())
    });
    let (operations, tail) = (operations?, tail?);
    let options = ["--jobs", "1", "--window-separator", "||", "--ops", &operations, "--readback", &tail];
    let command = [program, folder.join("pool")].map(|path| path.display().to_string());
    Ok((options.map(str::to_owned).to_vec(), command))
}
