//! Servers of Debian under `check --op-socket`: what keeps nothing in PM is not judged, and what does is judged by its answers.

use std::fs;
use std::process::{Command, Stdio};

use crate::cli_support::{Ran, Sandbox};

/// Is the program here? `./test` installs it.
fn is_here(program: &str) -> bool {
    let here = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !here {
        assert!(std::env::var_os("FENCEPOST_TESTS_MUST_RUN").is_none(), "{program} is not installed");
        eprintln!("skipped: {program} is not installed");
    }
    here
}

fn check(sandbox: &Sandbox, protocol: &str, operations: &str, server: &[&str]) -> Ran {
    fs::write(sandbox.path("ops"), operations).expect("writable");
    let quick = ["check", "--no-lint", "--budget", "none", "--strategy", "program-order,guaranteed-only"];
    let fed = ["--ops", "ops", "--op-protocol", protocol, "--op-socket", "{socket}", "--"];
    sandbox.run_limited(&[&quick[..], &fed, server].concat())
}

#[test]
fn redis_keeps_nothing_in_pm() {
    if is_here("redis-server") {
        let server = ["redis-server", "--save", "", "--port", "0", "--unixsocket", "{socket}"];
        let ran = check(&Sandbox::new(), "redis", "set a hello\nget a\ndel a\nget a\n", &server);
        ran.expect(4, &["no persistent-memory activity"]);
    }
}

#[test]
fn memcached_keeps_nothing_in_pm() {
    if is_here("memcached") {
        let server = ["memcached", "-u", "root", "-s", "{socket}"];
        let ran = check(&Sandbox::new(), "memcached", "set a 0 0 * hello\nget a\n", &server);
        ran.expect(4, &["no persistent-memory activity"]);
    }
}

/// It keeps its items in a file and finds them again only if SIGUSR1 ended it: a crash loses what it has answered for. Nothing is ever flushed, so
/// that hundreds of thousands of lines are pending.
#[test]
fn memcached_with_a_memory_file_loses_what_it_stored() {
    if is_here("memcached") {
        let server = ["memcached", "-u", "root", "-t", "1", "-m", "40", "-s", "{socket}", "-e", "memory"];
        let ran = check(&Sandbox::new(), "memcached", "set a 0 0 * hello\nget a\n", &server);
        assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
        let answer = "operation 1 (`get a`) returned `END`; expected `VALUE a 0 5 / hello / END`";
        assert!(ran.out.contains(answer), "{}{}", ran.out, ran.err);
        for title in ran.out.lines().filter_map(|line| line.split_once(" belong together")) {
            let sides = title.0.split_once(": ").and_then(|(_, sides)| sides.split_once(" and "));
            assert!(sides.is_none_or(|(one, other)| one != other), "{}", title.0);
        }
    }
}
