//! A program with a crash bug in a directory of its own, and `fencepost` on it.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::cli_support::{Ran, Sandbox};

/// `records` built in a sandbox, with a pool whose name occurs nowhere else.
pub struct Case {
    pub sandbox: Sandbox,
    pub pool: String,
    /// Elsewhere: native runs may show recoveries the pool's directory as it was.
    gate: Sandbox,
}

impl Case {
    pub fn new() -> Case {
        Case::of("records", &[])
    }

    /// Another program of `tests/programs`, with the same name.
    pub fn of(program: &str, flags: &[&str]) -> Case {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let pool = format!("pool-{}-{number}", std::process::id());
        let case = Case { sandbox: Sandbox::new(), pool, gate: Sandbox::new() };
        case.build_program(program, flags);
        case
    }

    /// Builds `records` over an older one.
    pub fn build(&self, flags: &[&str]) {
        self.build_program("records", flags);
    }

    fn build_program(&self, program: &str, flags: &[&str]) {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{program}.c"));
        let mut cc = Command::new("cc");
        cc.args(["-O1", "-g"]).args(flags).arg("-o").arg(self.sandbox.path(program)).arg(source);
        assert!(cc.status().expect("cc is installed").success());
    }

    /// `records` with this act as the recovery.
    pub fn recovery(&self, act: &str) -> String {
        format!("./records {} {act}", self.pool)
    }

    /// `check` as the recovery, with a gate.
    pub fn gated(&self) -> String {
        format!("{} {}", self.recovery("check"), self.gate().display())
    }

    /// What recoveries wait for.
    pub fn gate(&self) -> PathBuf {
        self.gate.path("gate")
    }

    /// `fencepost` under `timeout`.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.sandbox.run_limited(arguments)
    }

    pub fn directory(&self) -> PathBuf {
        self.sandbox.path("")
    }

    /// `fencepost check` with JSON output, on a workload of one record in a new pool.
    pub fn check(&self, options: &[&str]) -> Ran {
        let _ = fs::remove_file(self.sandbox.path(&self.pool));
        let mut arguments = vec!["check", "--no-lint", "--jobs", "1", "--message-format", "json"];
        arguments.extend(options);
        arguments.extend(["--", "./records", &self.pool, "run", "1"]);
        self.run(&arguments)
    }

    /// Records a workload of so many records as `trace`.
    pub fn record(&self, count: &str) {
        let ran = self.run(&["record", "--quiet", "-o", "trace", "--", "./records", &self.pool, "run", count]);
        assert_eq!(ran.code, Some(0), "{}", ran.err);
    }

    /// `fencepost crash` on `trace`: every state is run, in the order of the trace.
    pub fn crash_line<'a>(&self, recovery: &'a str, options: &[&'a str]) -> Vec<&'a str> {
        let mut arguments = vec!["crash", "trace", "--message-format", "json", "--budget", "none", "--jobs", "1"];
        arguments.extend(["--no-equivalence", "--strategy", "program-order,guaranteed-only,few-lines:1:24"]);
        arguments.extend(["--every", "--timeout", "100s", "--recover", recovery]);
        arguments.extend(options);
        arguments
    }

    /// From now on recoveries wait in the middle of the workload.
    pub fn close_gate(&self) {
        fs::write(self.gate(), "").expect("writable");
    }

    pub fn open_gate(&self) {
        fs::remove_file(self.gate()).expect("closed before");
    }

    pub fn start(&self, arguments: &[&str]) -> Started {
        let (out, err) = (self.sandbox.path("started.out"), self.sandbox.path("started.err"));
        let mut command = self.sandbox.command(arguments);
        command.env("CASE", self.directory()).stdin(Stdio::null()).process_group(0);
        command.stdout(File::create(&out).expect("writable")).stderr(File::create(&err).expect("writable"));
        Started { child: command.spawn().expect("fencepost starts"), out, err }
    }

    /// Waits until a recovery waits at the gate.
    pub fn wait_for_gate(&self, started: &mut Started) {
        let reached = self.gate.path("gate.reached");
        wait_until("a recovery is at the gate", || {
            assert_eq!(started.child.try_wait().expect("our child"), None, "it has ended too soon");
            reached.exists()
        });
        fs::remove_file(reached).expect("there");
    }

    /// Waits until no process has anything to do with this case.
    pub fn wait_until_forgotten(&self) {
        let directory = self.directory();
        let directory = directory.as_os_str().as_bytes();
        let directory = directory.strip_suffix(b"/").unwrap_or(directory);
        let knows = |text: Vec<u8>| text.windows(directory.len()).any(|part| part == directory);
        wait_until("no process is left", || {
            let processes = fs::read_dir("/proc").expect("readable").flatten();
            !processes
                .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
                .any(|entry| fs::read(entry.path().join("environ")).is_ok_and(knows))
        });
    }

    /// Slots of this case: their files have the pool's name.
    pub fn slots_left(&self) -> Vec<PathBuf> {
        let places = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let slots = places.filter(|entry| entry.file_name().to_string_lossy().starts_with("fencepost-slot-"));
        slots.map(|entry| entry.path()).filter(|slot| slot.join("0").join(&self.pool).exists()).collect()
    }
}

/// A `fencepost` that runs.
pub struct Started {
    pub child: Child,
    out: PathBuf,
    err: PathBuf,
}

impl Started {
    pub fn signal(&self, signal: i32) {
        // SAFETY: plain system call; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id() as i32, signal) }, 0);
    }

    /// To it and to all that it has started and left in its process group.
    pub fn signal_group(&self, signal: i32) {
        // SAFETY: plain system call; `start` made the group.
        assert_eq!(unsafe { libc::kill(-(self.child.id() as i32), signal) }, 0);
    }

    pub fn end(mut self) -> Ran {
        let mut code = None;
        wait_until("fencepost ends", || {
            let ended = self.child.try_wait().expect("our child");
            code = ended.and_then(|status| status.code());
            ended.is_some()
        });
        let text = |path: &Path| {
            let mut text = String::new();
            File::open(path).and_then(|mut file| file.read_to_string(&mut text)).expect("text");
            text
        };
        Ran { code, out: text(&self.out), err: text(&self.err) }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for another process; the time is only there to make a failure visible.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(120), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

/// The findings and the summary of a JSON report.
#[track_caller]
pub fn parse(ran: &Ran) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = ran
        .out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}\n{}", ran.err)))
        .collect();
    let summary = lines.pop().unwrap_or_else(|| panic!("no report: {:?} {}", ran.code, ran.err));
    assert_eq!(summary["type"], "summary");
    (lines, summary)
}

/// What a finding says that recovery did.
pub fn symptom(finding: &Value) -> &str {
    finding["symptom"]["text"].as_str().expect("a symptom")
}
