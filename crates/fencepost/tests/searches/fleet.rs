//! Campaigns of several processes through a real Redis: the same findings as on one machine, whoever dies.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::cli_support::Ran;
use crate::crash_support::{Case, parse};

const RECORDS: &str = "6";

/// A server on a port of its own, that keeps nothing.
pub struct Redis {
    port: u16,
    server: Option<Child>,
}

impl Redis {
    /// None if there is no server on this machine, unless tests must run.
    pub fn start() -> Option<Redis> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let mut redis = Redis { port, server: None };
        match redis.restart() {
            Ok(()) => Some(redis),
            Err(error) if std::env::var_os("FENCEPOST_TESTS_MUST_RUN").is_some() => panic!("redis-server: {error}"),
            Err(_) => None,
        }
    }

    fn restart(&mut self) -> std::io::Result<()> {
        self.stop();
        let mut server = Command::new("redis-server");
        server.args(["--port", &self.port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
        self.server = Some(server.stdout(Stdio::null()).spawn()?);
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }

    pub fn url(&self, campaign: &str) -> String {
        format!("redis://127.0.0.1:{}/{campaign}", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        self.stop();
    }
}

fn worker(case: &Case, url: &str) -> Child {
    let mut worker = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    worker.args(["worker", url, "--jobs", "1", "--wait", "60s"]).current_dir(case.directory());
    worker.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn said(worker: Child) -> (Option<i32>, String) {
    let ended = worker.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn line<'a>(case: &'a Case, recovery: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let options = [&["--no-journal"], more].concat();
    case.crash_line(recovery, &options)
}

#[track_caller]
fn assert_same(here: &Ran, elsewhere: &Ran) {
    assert_eq!(elsewhere.code, here.code, "{}", elsewhere.err);
    let ((expected, summary), (found, other)) = (parse(here), parse(elsewhere));
    assert_eq!(found, expected);
    for field in ["points_decided", "states_decided", "states_failing", "complete"] {
        assert_eq!(other[field], summary[field], "{field}");
    }
}

#[test]
fn any_number_of_workers_finds_the_same() {
    let Some(redis) = Redis::start() else { return };
    let case = Case::new();
    case.record(RECORDS);
    let recovery = case.recovery("check");
    let here = case.run(&line(&case, &recovery, &[]));
    assert_eq!(here.code, Some(1), "{}", here.err);
    for count in [1, 2, 4] {
        let url = redis.url(&format!("same-{count}"));
        let workers: Vec<Child> = (0..count).map(|_| worker(&case, &url)).collect();
        let elsewhere = case.run(&line(&case, &recovery, &["--fleet", &url]));
        assert_same(&here, &elsewhere);
        for worker in workers {
            let (code, text) = said(worker);
            assert_eq!(code, Some(0), "{text}");
        }
        let results = case.run(&["fleet", "results", &url]);
        assert_eq!(results.code, here.code, "{}", results.err);
        assert_eq!(parse(&results).0, parse(&here).0);
    }
}

/// Waits until workers may come.
fn wait_until_begun(case: &Case, url: &str) {
    while case.run(&["fleet", "status", url]).code != Some(0) {
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn nothing_is_lost_with_a_worker_the_coordinator_or_redis() {
    let Some(mut redis) = Redis::start() else { return };
    let case = Case::new();
    case.record(RECORDS);
    let recovery = case.recovery("check");
    let here = case.run(&line(&case, &recovery, &[]));
    let url = redis.url("faults");
    let arguments = line(&case, &recovery, &["--fleet", &url, "--lease", "1s"]);
    let coordinator = case.start(&arguments);
    wait_until_begun(&case, &url);
    // Nobody works yet: everything that the campaign is would be lost.
    coordinator.signal(libc::SIGKILL);
    drop(coordinator);
    let coordinator = case.start(&arguments);
    redis.restart().unwrap();
    wait_until_begun(&case, &url);
    let mut first = worker(&case, &url);
    thread::sleep(Duration::from_millis(500));
    let _ = first.kill();
    let _ = first.wait();
    let mut second = worker(&case, &url);
    let elsewhere = coordinator.end();
    // It may have come when all was done.
    let _ = second.kill();
    let _ = second.wait();
    assert_same(&here, &elsewhere);
}

#[test]
fn a_worker_with_another_target_refuses() {
    let Some(redis) = Redis::start() else { return };
    let case = Case::new();
    case.record(RECORDS);
    let recovery = case.recovery("check");
    let url = redis.url("other");
    let coordinator = case.start(&line(&case, &recovery, &["--fleet", &url]));
    wait_until_begun(&case, &url);
    case.build(&["-O2"]);
    let (code, text) = said(worker(&case, &url));
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("is another file here"), "{text}");
    let cancelled = case.run(&["fleet", "cancel", &url]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    let ended = coordinator.end();
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.contains("was cancelled"), "{}", ended.err);
}

#[test]
fn a_worker_says_what_it_waits_for() {
    let Some(redis) = Redis::start() else { return };
    let case = Case::new();
    let early = case.run(&["worker", &redis.url("nothing"), "--wait", "1s"]);
    assert_eq!(early.code, Some(2), "{}", early.err);
    assert!(early.err.starts_with("note: waiting up to 1 s for redis://"), "{}", early.err);
    let alone = case.run(&["worker", "redis://127.0.0.1:1/nothing", "--wait", "1s"]);
    assert_eq!(alone.code, Some(2), "{}", alone.err);
    assert!(alone.err.starts_with("note: Redis at 127.0.0.1:1 cannot be reached yet ("), "{}", alone.err);
}

#[test]
fn passwords_are_not_taken_from_the_command_line() {
    let case = Case::new();
    let refused = case.run(&["worker", "redis://:s3cret@127.0.0.1/x"]);
    assert_eq!(refused.code, Some(2));
    assert!(!refused.err.contains("s3cret") && refused.err.contains("FENCEPOST_FLEET_PASSWORD"), "{}", refused.err);
}

#[test]
fn the_target_does_not_get_the_password() {
    let mut record = Command::new(env!("CARGO_BIN_EXE_fencepost"));
    let folder = tempfile::tempdir().unwrap();
    record.args(["record", "--", "/usr/bin/env"]).current_dir(folder.path());
    let ran =
        record.env("FENCEPOST_FLEET_PASSWORD", "s3cret").env("FENCEPOST_FLEET_USER", "s3cret-user").output().unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(text.contains("PATH="), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}
