//! Recoveries that make every system call with its pointers into the pool (which are made, a test of `syscalls` knows): each answer is the
//! native one.

use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, process};

use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::server::Server;
use recover::slot::Slot;
use verdict::end::End;

const POOL_BYTES: u64 = 256 << 10;

fn build(source: &str, name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", process::id()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cc = process::Command::new("cc");
    let status = cc
        .args(["-O1", "-I"])
        .arg(root.join("targets/conformance"))
        .arg("-o")
        .arg(&out)
        .arg(root.join(source))
        .status();
    assert!(status.expect("cc is installed").success());
    out
}

#[test]
fn every_call_of_a_recovery_is_answered_as_natively() {
    answers_as_natively("targets/conformance/syscalls/each_call.c", "each_call");
}

#[test]
fn calls_that_need_rights_or_new_kernels_are_answered_as_natively() {
    answers_as_natively("targets/conformance/syscalls/other_calls.c", "other_calls");
}

fn answers_as_natively(source: &str, name: &str) {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().canonicalize().unwrap();
    let pool = dir.join("pool");
    fs::write(&pool, vec![0; POOL_BYTES as usize]).unwrap();
    let program = build(source, name);
    let slot = Slot::create(&[(pool, POOL_BYTES)]).unwrap();
    let command = Command {
        program: program.clone(),
        args: ["pool", "recover"].map(Into::into).to_vec(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        dir,
        stdin: Input::Empty,
    };
    let mut server = Server::new(&command, &slot).unwrap();
    let limits = Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..Limits::default() };
    let report = server.run(&slot, &limits).unwrap();
    fs::remove_file(program).unwrap();
    assert_eq!(report.end, End::Exited(0), "{report:?}");
}
