//! Builds small programs, records them with the reference recorder and shows their streams as text.
#![allow(dead_code, clippy::allow_attributes, reason = "each test file uses a part of this")]

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use record::recorder::{RecordOptions, Recorded, Recorder};
use record::step::StepRecorder;
use record::target::Target;
use tempfile::TempDir;
use trace::event::*;
use trace::{Meta, TraceReader, TraceWriter};

/// What every program begins with: `pm` is 64 KiB of a pool file that was all `0xee`.
pub const PRELUDE: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <immintrin.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static int fd;
static volatile uint8_t *pm;
static void map_pool(const char *path) {
    fd = open(path, O_RDWR);
    pm = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (pm == MAP_FAILED) _exit(99);
}
"#;

/// A recorded run.
pub struct Run {
    pub recorded: Recorded,
    /// One line per event, without those of processes and mappings unless asked for.
    pub lines: Vec<String>,
    pub pool: Vec<u8>,
    _directory: TempDir,
}

/// Compiles `main` behind the prelude, records it, and checks that replaying the events gives the final pool.
pub fn run(body: &str, flags: &[&str], options: &RecordOptions) -> Run {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    fs::write(at("p.c"), format!("{PRELUDE}{body}")).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-w", "-o"])
        .arg(at("p"))
        .arg(at("p.c"))
        .args(flags)
        .args((!flags.contains(&"-pie")).then_some("-static"))
        .status()
        .unwrap();
    assert!(built.success(), "the program does not compile");
    fs::write(at("a.pool"), vec![0xee; 65536]).unwrap();
    let command: Vec<OsString> = vec![at("p").into(), at("a.pool").into()];
    let target = Target::resolve(&command).unwrap();
    let writer = TraceWriter::create(&at("t"), Meta::default()).unwrap();
    let recorded = StepRecorder.record(&target, options, writer).unwrap();
    let report = trace::verify(&at("t")).unwrap();
    assert!(report.is_same(), "replaying the events does not give the final pool: {report:?}");
    let lines = lines(&at("t"));
    let pool = fs::read(at("a.pool")).unwrap();
    Run { recorded, lines, pool, _directory: directory }
}

/// As [`run`], with the body of `main` only.
pub fn run_main(body: &str, flags: &[&str]) -> Vec<String> {
    run_main_with("", body, flags)
}

/// As [`run_main`], with declarations before `main`.
pub fn run_main_with(declarations: &str, body: &str, flags: &[&str]) -> Vec<String> {
    let program = format!("{declarations}\nint main(int argc, char **argv) {{ map_pool(argv[1]); {body}; _exit(0); }}");
    let run = run(&program, flags, &RecordOptions::default());
    assert_eq!(run.recorded.status, ExitStatus::Code(0));
    run.lines.into_iter().filter(|line| !is_frame(line)).collect()
}

/// Events that every run has.
pub fn is_frame(line: &str) -> bool {
    ["map ", "process", "exit"].iter().any(|word| line.split_once(' ').is_some_and(|(_, rest)| rest.starts_with(word)))
}

fn lines(path: &Path) -> Vec<String> {
    let reader = TraceReader::open(path).unwrap();
    assert!(reader.is_complete());
    let mut events = reader.events();
    let mut lines = Vec::new();
    while let Some(event) = events.next().unwrap() {
        lines.push(format!("t{} {}", event.thread.0, show(&event.kind)));
    }
    lines
}

fn hex(bytes: &[u8]) -> String {
    if bytes.len() > 64 {
        return format!("{} bytes", bytes.len());
    }
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn show(kind: &EventKind<'_>) -> String {
    match kind {
        EventKind::Store { place, kind, bytes } => format!("{kind:?} {:#x} {}", place.offset.0, hex(bytes)),
        EventKind::Rmw { place, old, new } => format!("rmw {:#x} {} -> {}", place.offset.0, hex(old), hex(new)),
        EventKind::Flush { kind, target: FlushTarget::Pool(place) } => format!("{kind:?} {:#x}", place.offset.0),
        EventKind::Flush { kind, target: FlushTarget::Volatile(_) } => format!("{kind:?} volatile"),
        EventKind::Fence { kind } => format!("{kind:?}"),
        EventKind::Load { place, len } => format!("load {:#x} {len}", place.offset.0),
        EventKind::Map { place, len, .. } => format!("map {:#x} {len:#x}", place.offset.0),
        EventKind::Unmap { place, len, .. } => format!("unmap {:#x} {len:#x}", place.offset.0),
        EventKind::Msync { place, len } => format!("msync {:#x} {len:#x}", place.offset.0),
        EventKind::Fsync { data_only, .. } => format!("fsync data_only={data_only}"),
        EventKind::KernelWrite { place, bytes } => format!("kernel {:#x} {}", place.offset.0, hex(bytes)),
        EventKind::FileWrite { place, bytes } => format!("file {:#x} {}", place.offset.0, hex(bytes)),
        EventKind::FileZero { place, len } => format!("zero {:#x} {len:#x}", place.offset.0),
        EventKind::Resize { len, .. } => format!("resize {len:#x}"),
        EventKind::ThreadStart => "thread start".to_owned(),
        EventKind::ThreadEnd => "thread end".to_owned(),
        EventKind::ProcessStart { process, parent } => format!("process {} of {:?}", process.0, parent.map(|p| p.0)),
        EventKind::ProcessExit { status } => format!("exit {status:?}"),
        EventKind::File(change) => format!("file {}", change.name()),
        EventKind::Exec { .. } => "exec".to_owned(),
        EventKind::OperationBegin { index } => format!("begin {index}"),
        EventKind::OperationEnd { index } => format!("end {index}"),
        EventKind::Call { watch, args } => format!("call {} {:?}", watch.0, &args[..2]),
        EventKind::Return { watch, value } => format!("return {} {value}", watch.0),
    }
}
