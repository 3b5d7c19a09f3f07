//! The host's side of the probe backend, tested against a stand-in for the probe.

use std::ffi::OsString;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use record::probe_host::{HostError, ProbeRecorder};
use record::recorder::RecordOptions;
use record::recording::Recording;
use record::stop::StopRequest;
use record::target::Target;
use supervise::probe::ProbeImage;
use tempfile::TempDir;
use trace::event::{EventKind, ExitStatus, FlushTarget, Place, PoolId, PoolOffset};
use trace::{Meta, TraceReader, TraceWriter};

/// The stand-in, built once.
fn fake_probe() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let out = directory.join("fake-probe");
        let fresh = directory.join(format!("fake-probe-{}", std::process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake_probe/probe.c");
        let version = format!("-DWIRE_VERSION={}", wire::control::WIRE_VERSION);
        let status = Command::new("cc").args(["-O1", "-static", &version, "-o"]).arg(&fresh).arg(source).status();
        assert!(status.expect("cc is installed").success());
        // Renamed when whole: other test processes may be using or building it.
        fs::rename(&fresh, &out).expect("the same directory");
        out
    })
}

struct Script {
    directory: TempDir,
    stop: StopRequest,
    namespaces: bool,
}

impl Script {
    fn new() -> Script {
        Script {
            directory: tempfile::tempdir().expect("temporary directory"),
            stop: StopRequest::new(),
            namespaces: true,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn play(&self, arguments: &[&str]) -> Result<Recording, HostError> {
        let mut command = vec![OsString::from("/bin/true")];
        command.extend(arguments.iter().map(OsString::from));
        let target = Target::resolve(&command).expect("/bin/true is there");
        let writer = TraceWriter::create(&self.path("t.fptrace"), Meta::default()).expect("writable");
        let mut recorder = ProbeRecorder::new(&self.stop);
        recorder.probe = ProbeImage::File(fake_probe().to_owned());
        recorder.namespaces = self.namespaces;
        recorder.run(&target, &RecordOptions::default(), writer)
    }

    fn trace(&self) -> TraceReader {
        TraceReader::open(&self.path("t.fptrace")).expect("a trace")
    }
}

fn at(offset: u64) -> Place {
    Place { pool: PoolId(0), offset: PoolOffset(offset) }
}

#[test]
fn stores_and_flushes_become_places_in_the_pool() {
    let script = Script::new();
    let pool = script.path("pool");
    let recording = script.play(&["store", pool.to_str().expect("text")]).expect("recorded");
    assert_eq!(recording.target, ExitStatus::Code(0));
    assert_eq!(recording.pools.len(), 1);
    assert_eq!((recording.activity.stores, recording.activity.flushes), (1, 1));

    let trace = script.trace();
    assert!(trace.is_complete());
    assert_eq!(trace.tables().instructions_seen, ["clwb", "mov"]);
    let mut events = trace.events();
    let mut stores = 0;
    let mut targets = Vec::new();
    while let Some(event) = events.next().expect("readable") {
        match event.kind {
            EventKind::Store { place, bytes, .. } => {
                assert_eq!((place, bytes), (at(64), 0x1122_3344_5566_7788_u64.to_le_bytes().as_slice()));
                stores += 1;
            }
            EventKind::Flush { target, .. } => targets.push(target),
            _ => {}
        }
    }
    assert_eq!(stores, 1);
    assert_eq!(targets, [FlushTarget::Pool(at(64)), FlushTarget::Volatile(0x20000)]);
}

#[test]
fn more_records_than_the_ring_holds_all_arrive_in_order() {
    let script = Script::new();
    let pool = script.path("pool");
    script.play(&["many", pool.to_str().expect("text"), "200000"]).expect("recorded");
    let trace = script.trace();
    let mut events = trace.events();
    let mut next = 0_u64;
    while let Some(event) = events.next().expect("readable") {
        if let EventKind::Store { bytes, .. } = event.kind {
            assert_eq!(bytes, next.to_le_bytes());
            next += 1;
        }
    }
    assert_eq!(next, 200_000);
}

#[test]
fn a_killed_process_gets_the_exit_it_could_not_announce() {
    for namespaces in [true, false] {
        let script = Script { namespaces, ..Script::new() };
        let pool = script.path("pool");
        let recording = script.play(&["die", pool.to_str().expect("text")]).expect("recorded");
        assert_eq!(recording.target, ExitStatus::Signal(libc::SIGKILL));
        let trace = script.trace();
        let mut events = trace.events();
        let mut last = None;
        while let Some(event) = events.next().expect("readable") {
            last = Some(format!("{:?}", event.kind));
        }
        assert_eq!(last.as_deref(), Some("ProcessExit { status: Signal(9) }"));
    }
}

#[test]
fn the_exit_code_comes_through() {
    let recording = Script::new().play(&["exit"]).expect("recorded");
    assert_eq!(recording.target, ExitStatus::Code(7));
    assert!(!recording.activity.any());
}

#[test]
fn what_the_probe_refuses_ends_the_recording_with_its_words() {
    let script = Script::new();
    let error = script.play(&["refuse"]).expect_err("refused");
    assert_eq!(error.to_string(), "this program holds 32-bit code");
}

#[test]
fn damaged_records_end_the_recording() {
    let error = Script::new().play(&["damage"]).expect_err("damaged");
    assert!(matches!(error, HostError::Damaged { .. }), "{error}");
}

/// The grandchild holds a lock on a file as long as it lives.
fn is_locked(path: &Path) -> bool {
    let file = File::open(path).expect("the grandchild made it");
    // SAFETY: a zeroed `flock` is valid; F_GETLK only asks.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as i16;
    // SAFETY: a live descriptor and structure.
    let asked = unsafe { libc::fcntl(std::os::fd::AsRawFd::as_raw_fd(&file), libc::F_GETLK, &raw mut lock) };
    assert_eq!(asked, 0);
    lock.l_type != libc::F_UNLCK as i16
}

#[test]
fn an_interrupted_recording_leaves_no_orphan() {
    for namespaces in [true, false] {
        let script = Script { namespaces, ..Script::new() };
        let lock = script.path("lock");
        let recording = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !lock.exists() || !is_locked(&lock) {
                    std::thread::yield_now();
                }
                // Twice: the first asks the target to end, the second kills what did not.
                script.stop.interrupt();
                script.stop.interrupt();
            });
            script.play(&["orphan", lock.to_str().expect("text")])
        })
        .expect("what was recorded is whole");
        assert!(recording.interrupted);
        assert!(!is_locked(&lock), "the grandchild still lives");
    }
}

#[test]
fn two_equal_runs_give_equal_files() {
    let record = || {
        let script = Script::new();
        // The path of the pool is part of the trace: use one that both runs share.
        let pool = Path::new("/proc/self/cwd").join(format!("fake-{}.pool", std::process::id()));
        script.play(&["store", std::str::from_utf8(pool.as_os_str().as_bytes()).expect("text")]).expect("recorded");
        fs::remove_file(pool).expect("made by the script");
        fs::read(script.path("t.fptrace")).expect("readable")
    };
    assert!(record() == record());
}
