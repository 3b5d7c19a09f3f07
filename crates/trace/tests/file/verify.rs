//! `verify` says the truth about right and wrong recordings; `stat` and `dump` about their content.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::support::*;
use trace::*;

const POOL: PoolId = PoolId(0);

/// A recording of a program that keeps `file` mapped: events change the file as well.
struct Recording<'a> {
    writer: TraceWriter,
    file: &'a File,
}

impl<'a> Recording<'a> {
    fn start(trace: &Path, pool: &Path, file: &'a File) -> Recording<'a> {
        let mut writer = TraceWriter::create(trace, meta()).unwrap();
        let info = PoolInfo { path: pool.to_str().unwrap().into(), len: file.metadata().unwrap().len() };
        assert_eq!(writer.pool(info, &mut file.try_clone().unwrap()).unwrap(), POOL);
        Recording { writer, file }
    }

    fn event(&mut self, kind: EventKind<'_>) {
        let event = Event { thread: ThreadId(0), context: ContextId(0), pc: CodeAddr::default(), kind };
        self.writer.push(&event).unwrap();
    }

    fn missed_store(&mut self, offset: u64, bytes: &[u8]) {
        self.file.write_all_at(bytes, offset).unwrap();
    }

    fn store(&mut self, offset: u64, bytes: &[u8]) {
        self.missed_store(offset, bytes);
        let place = Place { pool: POOL, offset: PoolOffset(offset) };
        self.event(EventKind::Store { place, kind: StoreKind::Plain, bytes });
    }

    fn finish(self) {
        let mut content = self.file.try_clone().unwrap();
        self.writer.finish(&mut [(POOL, &mut content)], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    }
}

fn record(body: impl FnOnce(&mut Recording<'_>)) -> (tempfile::TempDir, VerifyReport) {
    let dir = tempfile::tempdir().unwrap();
    let (pool, trace) = (dir.path().join("pool"), dir.path().join("t.fptrace"));
    let file = File::options().read(true).write(true).create_new(true).open(&pool).unwrap();
    file.set_len(1 << 20).unwrap();
    file.write_all_at(&[5; 300], 4000).unwrap();
    let mut recording = Recording::start(&trace, &pool, &file);
    body(&mut recording);
    recording.finish();
    let report = verify(&trace).unwrap();
    (dir, report)
}

#[test]
fn right_recording() {
    let (_dir, report) = record(|recording| {
        recording.store(10, b"hello");
        recording.store(4090, b"across the boundary");
        recording.store(70_000, &[1; 64]);
        recording.store(70_000, &[0; 64]);
        let place = |offset| Place { pool: POOL, offset: PoolOffset(offset) };
        recording.missed_store(200, b"new!");
        recording.event(EventKind::Rmw { place: place(200), old: &[0; 4], new: b"new!" });
        recording.missed_store(300, b"kernel");
        recording.event(EventKind::KernelWrite { place: place(300), bytes: b"kernel" });
        recording.missed_store(9000, &[3; 2000]);
        recording.event(EventKind::FileWrite { place: place(9000), bytes: &[3; 2000] });
        recording.missed_store(9500, &[0; 500]);
        recording.event(EventKind::FileZero { place: place(9500), len: 500 });
        recording.file.set_len(5000).unwrap();
        recording.event(EventKind::Resize { pool: POOL, len: 5000 });
        recording.file.set_len(3 << 20).unwrap();
        recording.event(EventKind::Resize { pool: POOL, len: 3 << 20 });
    });
    assert!(report.is_same(), "{report:?}");
    assert_eq!((report.events, report.differing_bytes()), (10, 0));
}

#[test]
fn missing_store() {
    let (_dir, report) = record(|recording| {
        recording.store(10, b"hello");
        recording.missed_store(8192 + 100, b"abc");
        recording.missed_store(4002, &[6]);
    });
    assert!(!report.is_same());
    let verdict = &report.pools[0];
    assert!(verdict.exact);
    assert_eq!((verdict.differing_pages, verdict.differing_bytes), (2, 4));
    assert_eq!(verdict.first_difference, Some(PoolOffset(4002)));
}

#[test]
fn store_too_many() {
    let (_dir, report) = record(|recording| {
        let place = Place { pool: POOL, offset: PoolOffset(500_000) };
        recording.event(EventKind::Store { place, kind: StoreKind::NonTemporal, bytes: b"xy" });
    });
    assert_eq!(report.differing_bytes(), 2);
}

#[test]
fn missing_resize() {
    let (_dir, report) = record(|recording| recording.file.set_len(2 << 20).unwrap());
    assert_eq!(report.differing_bytes(), 0);
    assert!(!report.is_same(), "the length differs");
}

#[test]
fn pool_that_has_changed_since() {
    let (dir, report) = record(|recording| recording.missed_store(0, b"a"));
    assert_eq!(report.differing_bytes(), 1);
    std::fs::write(dir.path().join("pool"), b"something else").unwrap();
    let report = verify(&dir.path().join("t.fptrace")).unwrap();
    let verdict = &report.pools[0];
    assert_eq!((verdict.exact, verdict.differing_pages, verdict.differing_bytes), (false, 1, 4096));
}

#[test]
fn huge_sparse_pool_is_cheap() {
    let dir = tempfile::tempdir().unwrap();
    let (pool, trace) = (dir.path().join("pool"), dir.path().join("t.fptrace"));
    let file = File::options().read(true).write(true).create_new(true).open(&pool).unwrap();
    // Reading this through would take minutes.
    file.set_len(1 << 42).unwrap();
    file.write_all_at(&[5; 5000], 1 << 41).unwrap();
    let mut recording = Recording::start(&trace, &pool, &file);
    recording.store(1 << 40, b"here");
    recording.finish();
    let report = verify(&trace).unwrap();
    assert!(report.is_same(), "{report:?}");
    assert!(std::fs::metadata(&trace).unwrap().len() < 10_000);
}

#[test]
fn counts_and_text() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.fptrace");
    let mut writer = start(&path);
    let place = Place { pool: PoolId(1), offset: PoolOffset(0x40) };
    let kinds = [
        EventKind::ProcessStart { process: ProcessId(0), parent: None },
        EventKind::OperationBegin { index: 7 },
        EventKind::Store { place, kind: StoreKind::Plain, bytes: &[1, 2, 0xff] },
        EventKind::Store { place, kind: StoreKind::NonTemporal, bytes: &[0; 8] },
        EventKind::Rmw { place, old: &[1], new: &[2] },
        EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(place) },
        EventKind::Flush { kind: FlushKind::Clflush, target: FlushTarget::Volatile(0x7fff) },
        EventKind::Fence { kind: FenceKind::Sfence },
        EventKind::Load { place, len: 8 },
        EventKind::OperationEnd { index: 7 },
        EventKind::Call { watch: WatchId(0), args: [16, 0, 0, 0, 0, 0] },
        EventKind::ProcessExit { status: ExitStatus::Code(0) },
    ];
    for kind in kinds {
        let pc = CodeAddr { module: ModuleId(2), addr: 0x1234 };
        writer.push(&Event { thread: ThreadId(0), context: ContextId(2), pc, kind }).unwrap();
    }
    writer.instruction_seen("clwb");
    writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();

    let counted = stat(&path).unwrap();
    let wanted = Stat {
        events: 12,
        stores: 2,
        nt_stores: 1,
        rmws: 1,
        flushes: 2,
        volatile_flushes: 1,
        fences: 1,
        loads: 1,
        calls: 1,
        processes: 1,
        threads: 1,
        contexts: 1,
        operations: 1,
        pools: 2,
        instructions_seen: vec!["clwb".into()],
        bytes: std::fs::metadata(&path).unwrap().len(),
        complete: true,
        ..Stat::default()
    };
    assert_eq!(counted, wanted);

    let mut text = Vec::new();
    let options = DumpOptions { which: Which::Operation(7), call_paths: true, ..DumpOptions::default() };
    dump(&path, &options, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with(' ')).collect();
    assert_eq!(
        lines,
        [
            "1 t0 operation-begin 7  libpm.so+0x1234  c2",
            "2 t0 store b.pool+0x40 3 0102ff  libpm.so+0x1234  c2",
            "3 t0 nt-store b.pool+0x40 8 0000000000000000  libpm.so+0x1234  c2",
            "4 t0 rmw b.pool+0x40 1 01 -> 02  libpm.so+0x1234  c2",
            "5 t0 clwb b.pool+0x40  libpm.so+0x1234  c2",
            "6 t0 clflush volatile 0x7fff  libpm.so+0x1234  c2",
            "7 t0 sfence  libpm.so+0x1234  c2",
            "8 t0 load b.pool+0x40 8  libpm.so+0x1234  c2",
            "9 t0 operation-end 7  libpm.so+0x1234  c2",
        ]
    );
    let path_lines: Vec<&str> = text.lines().filter(|line| line.starts_with(' ')).take(2).collect();
    assert_eq!(path_lines, ["    from prog+0x20", "    from prog+0x10"]);
}

#[test]
fn a_fingerprint_tells_recordings_apart() {
    let fingerprint = |value: u8| {
        let (dir, _) = record(|r| r.store(64, &[value; 8]));
        TraceReader::open(&dir.path().join("t.fptrace")).unwrap().fingerprint()
    };
    // The path of the pool is part of the trace, and differs from one folder to the next.
    let (dir, _) = record(|r| r.store(64, &[1; 8]));
    let path = dir.path().join("t.fptrace");
    let twice = [0; 2].map(|_| TraceReader::open(&path).unwrap().fingerprint());
    assert_eq!(twice[0], twice[1]);
    assert_ne!(fingerprint(1), fingerprint(2));
}
