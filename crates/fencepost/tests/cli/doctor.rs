//! The commands about Fencepost itself: doctor, completions, man; and the page of exit codes.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;

use crate::cli_support::{Ran, Sandbox};
use serde_json::Value;

#[test]
fn doctor_records_and_says_so() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["doctor"]);
    ran.expect(0, &[]);
    for words in [
        "engine (probe): recorded /bin/true",
        "ptrace (step): ",
        "namespaces: ",
        "processor: ",
        "Fencepost works on this machine",
    ] {
        assert!(ran.out.contains(words), "`{words}` is not in:\n{}", ran.out);
    }
    let left: Vec<_> = fs::read_dir(sandbox.path(".")).expect("readable").collect();
    assert!(left.is_empty(), "doctor left {left:?}");
}

#[test]
fn doctor_tells_programs_too() {
    let ran = Sandbox::new().run(&["doctor", "--message-format", "json"]);
    ran.expect(0, &[]);
    let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).expect("JSON Lines")).collect();
    let (summary, checks) = lines.split_last().expect("a summary");
    assert_eq!(summary["type"], "summary");
    assert_eq!(summary["works"], true);
    let counted: u64 = ["ok", "fallback", "missing"].iter().filter_map(|status| summary[status].as_u64()).sum();
    assert_eq!(counted, checks.len() as u64);
    for check in checks {
        assert_eq!(check["type"], "check");
        for field in ["name", "status", "found", "consequence"] {
            let text = check[field].as_str().unwrap_or_default();
            assert!(!text.is_empty() && !text.contains('\n'), "{field} of {check}");
        }
    }
}

#[test]
fn doctor_fails_if_the_engine_does_not_run() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["doctor"]);
    // Enough descriptors to start, too few for the engine.
    let limit = libc::rlimit { rlim_cur: 6, rlim_max: 6 };
    // SAFETY: `setrlimit` is async-signal-safe and binds only the child.
    unsafe {
        command.pre_exec(move || match libc::setrlimit(libc::RLIMIT_NOFILE, &limit) {
            0 => Ok(()),
            _ => Err(std::io::Error::last_os_error()),
        });
    }
    let ran: Ran = command.output().expect("fencepost starts").into();
    // Between the first check and the conclusion are things of this machine.
    ran.golden_lines("engine-does-not-run", ran.out.lines().take(2).chain(ran.out.lines().last()));
}

#[test]
fn a_missing_temporary_directory_is_no_reason_to_give_up() {
    let sandbox = Sandbox::new();
    let ran: Ran =
        sandbox.command(&["doctor"]).env("TMPDIR", "/nonexistent").output().expect("fencepost starts").into();
    ran.expect(0, &[]);
    assert!(ran.out.contains("fallback huge sparse files: none"), "{}", ran.out);
}

#[test]
fn every_shell_completes_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = sandbox.run(&["completions", shell]);
        ran.expect(0, &[]);
        for command in ["record", "check", "lint", "doctor", "completions"] {
            assert!(ran.out.contains(command), "{shell} does not know {command}");
        }
    }
    sandbox.run(&["completions", "csh"]).golden("no-such-shell");
}

#[test]
fn manual_pages() {
    let sandbox = Sandbox::new();
    for (arguments, words) in [
        (&["man"][..], ["fencepost\\-check(1)", "Exit codes"]),
        (&["man", "record"], ["fencepost\\-record", ".SH EXTRA\n.nf\nExamples:"]),
        (&["man", "trace", "dump"], ["fencepost\\-trace\\-dump", "OPTIONS"]),
    ] {
        let ran = sandbox.run(arguments);
        ran.expect(0, &[]);
        let title = ran.out.lines().find(|line| line.starts_with(".TH fencepost")).expect("a title");
        assert!(title.contains(concat!("fencepost ", env!("CARGO_PKG_VERSION"))), "{title}");
        for word in words {
            assert!(ran.out.contains(word), "`{word}` is not in:\n{}", ran.out);
        }
    }
    sandbox.run(&["man", "trace", "dmup"]).golden("no-such-manual-page");
}

#[test]
fn a_full_disk_is_noticed() {
    let sandbox = Sandbox::new();
    for arguments in [&["man", "check"][..], &["completions", "fish"], &["doctor"]] {
        let full = File::options().write(true).open("/dev/full").expect("every Linux has it");
        let ran: Ran = sandbox.command(arguments).stdout(full).output().expect("fencepost starts").into();
        ran.golden("standard-output-full");
    }
}

/// The numbers that `exit.rs` gives out are the rows of the page, no more and no less.
#[test]
fn the_page_of_exit_codes_is_complete() {
    let source = include_str!("../../src/exit.rs");
    let page = include_str!("../../../../docs/exit-codes.md");
    let in_source: Vec<u8> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("Exit::")?.split_once(" => "))
        .filter_map(|(_, code)| code.trim_end_matches(',').parse().ok())
        .collect();
    let in_page: Vec<u8> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.split_once(" |"))
        .filter_map(|(code, _)| code.trim().parse().ok())
        .collect();
    assert!(in_source.len() >= 7, "exit.rs is written differently: {in_source:?}");
    assert_eq!(in_page, in_source);
}
