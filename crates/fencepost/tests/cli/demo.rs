//! `fencepost demo`, as somebody runs it who has just installed Fencepost.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::cli_support::{Ran, Sandbox, pool_program};

#[test]
fn the_demonstration_finds_its_bug_and_can_be_repeated() {
    let sandbox = Sandbox::new();
    // What the user has set for other programs does no harm.
    fs::write(sandbox.path("fencepost.toml"), "strategy = 'random:1:1'\n").unwrap();
    for _ in 0..2 {
        let mut command = sandbox.command(&["demo"]);
        let ran: Ran = command.env("FENCEPOST_FAIL_ON", "never").output().expect("fencepost starts").into();
        ran.expect(0, &["reproduced: recovery ended with exit code 1"]);
        for words in ["$ fencepost check --recover", "error[FP0602]", "kv.c:60", "nothing found in"] {
            assert!(ran.out.contains(words), "`{words}` is not in:\n{}", ran.out);
        }
    }
    assert!(sandbox.path("fencepost-demo/report.html").is_file());
    // A changed program is the user's.
    fs::write(sandbox.path("fencepost-demo/kv.c"), "int main(void) { return 0; }\n").unwrap();
    sandbox.run(&["demo"]).golden("demonstration-changed");
    sandbox.run(&["demo", "--folder", "fencepost.toml"]).golden("demonstration-in-a-file");
}

#[test]
fn without_a_compiler_it_says_what_to_install() {
    let sandbox = Sandbox::new();
    let demo = |compiler: &str| -> Ran {
        let mut command = sandbox.command(&["demo"]);
        command.env("PATH", sandbox.path("empty")).env("CC", compiler).output().expect("fencepost starts").into()
    };
    demo("").golden("no-c-compiler");
    demo("no-such-cc -m64").golden("no-such-c-compiler");
    let not_a_compiler = pool_program().to_str().expect("text");
    demo(not_a_compiler).golden("demonstration-not-compiled");
}

#[test]
fn a_rust_that_is_too_old_is_named_before_anything_is_built() {
    let sandbox = Sandbox::new();
    let tools = sandbox.path("tools");
    fs::create_dir(&tools).unwrap();
    for (name, text) in [("cargo", "exit 1"), ("rustc", "echo 'rustc 1.70.0 (90c541806 2023-05-31)'")] {
        fs::write(tools.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/rust");
    let path = format!("{}:/usr/bin:/bin", tools.display());
    let output = std::process::Command::new(script).env("PATH", path).output().expect("a shell script");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("Rust 1.95 or newer") && said.contains("1.70.0") && said.contains("rustup"), "{said}");
}
