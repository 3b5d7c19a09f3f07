//! Input that cannot be used: a clear message and the documented exit code, before anything is started.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cli_support::Sandbox;

#[test]
fn a_program_that_is_not_there() {
    let sandbox = Sandbox::new();
    sandbox.run(&["record", "--", "./nowhere"]).golden("no-such-file");
    sandbox.run(&["record", "--", "no-such-program-at-all"]).golden("not-in-path");
    assert!(!sandbox.path("fencepost.fptrace").exists());
    assert!(!sandbox.path("fencepost.fptrace.partial").exists());
}

#[test]
fn no_program_at_all() {
    Sandbox::new().run(&["record"]).golden("no-program");
}

#[test]
fn files_that_are_no_programs() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("text"), "hello").expect("writable");
    sandbox.run(&["record", "--", "./text"]).golden("not-executable");
    fs::set_permissions(sandbox.path("text"), fs::Permissions::from_mode(0o755)).expect("ours");
    sandbox.run(&["record", "--", "./text"]).golden("no-program-file");
    sandbox.run(&["record", "--", "./"]).golden("a-directory");
}

/// The start of an ELF header.
fn elf(class: u8, machine: u16, kind: u16) -> Vec<u8> {
    let mut head = vec![0; 64];
    head[..7].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1, 1]);
    head[16..18].copy_from_slice(&kind.to_le_bytes());
    head[18..20].copy_from_slice(&machine.to_le_bytes());
    head
}

#[test]
fn programs_of_another_architecture() {
    const EXECUTABLE: u16 = 2;
    const OBJECT: u16 = 1;
    let sandbox = Sandbox::new();
    for (head, name) in [
        (elf(2, 183, EXECUTABLE), "aarch64"),
        (elf(1, 3, EXECUTABLE), "i386"),
        (elf(1, 62, EXECUTABLE), "x32"),
        (elf(2, 62, OBJECT), "object-file"),
    ] {
        fs::write(sandbox.path("program"), head).expect("writable");
        fs::set_permissions(sandbox.path("program"), fs::Permissions::from_mode(0o755)).expect("ours");
        sandbox.run(&["record", "--", "./program"]).golden(name);
    }
}

#[test]
fn a_trace_that_cannot_be_written() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["record", "-o", "no/such/folder/t.fptrace", "--", "/bin/true"]);
    ran.golden("trace-cannot-be-written");
}

#[test]
fn files_that_are_no_traces() {
    let sandbox = Sandbox::new();
    fs::write(sandbox.path("text"), "this is not a trace, but long enough to be one").expect("writable");
    for command in ["stat", "dump", "verify"] {
        sandbox.run(&["trace", command, "nowhere"]).golden("no-such-trace");
        sandbox.run(&["trace", command, "text"]).golden("not-a-trace");
    }
}

#[test]
fn help_is_there_for_every_command() {
    let sandbox = Sandbox::new();
    for command in [&["--help"][..], &["record", "--help"], &["trace", "--help"], &["trace", "stat", "--help"]] {
        let ran = sandbox.run(command);
        assert_eq!(ran.code, Some(0));
        assert!(ran.out.contains("Usage:"), "{}", ran.out);
    }
    assert!(sandbox.run(&["--help"]).out.contains("Exit codes:"));
    assert!(sandbox.run(&["record", "--help"]).out.contains("Examples:"));
}

#[test]
fn colours_only_where_they_are_wanted() {
    let sandbox = Sandbox::new();
    let line = ["trace", "stat", "nowhere"];
    assert!(!sandbox.run(&line).err.contains('\x1b'));
    assert!(sandbox.run(&["--color", "always", "trace", "stat", "nowhere"]).err.contains('\x1b'));
    let from_environment = sandbox.command(&line).env("FENCEPOST_COLOR", "always").output().expect("fencepost starts");
    assert!(from_environment.stderr.contains(&0x1b));
}
