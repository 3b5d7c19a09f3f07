//! Files that were cut, altered or made by another version: never a panic, never a wrong event.

use std::path::Path;

use crate::support::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use trace::*;

fn sample(count: usize) -> Vec<Owned> {
    let mut runner = TestRunner::deterministic();
    prop::collection::vec(event(), count).new_tree(&mut runner).unwrap().current()
}

/// Everything that reads, on one file. Returns the events that could be read.
fn use_all(path: &Path) -> Option<Vec<Owned>> {
    // Whatever it answers, it answers.
    stat(path).ok();
    verify(path).ok();
    dump(path, &DumpOptions { call_paths: true, ..DumpOptions::default() }, &mut std::io::sink()).ok();
    let reader = TraceReader::open(path).ok()?;
    reader.operation(3).ok();
    collect(reader.events_of_thread(ThreadId(1)));
    collect(reader.events_of_context(ContextId(2)));
    Some(collect(reader.events()).0.into_iter().map(|(_, event)| event).collect())
}

#[test]
fn cut_anywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, cut) = (dir.path().join("whole"), dir.path().join("cut"));
    let mut events = sample(60);
    // The file is opened once per byte of it.
    events.retain(|event| !matches!(&event.kind, Kind::Store(_, _, b) | Kind::Rmw(_, b, _) if b.len() > 64));
    events.retain(|event| !matches!(&event.kind, Kind::KernelWrite(_, b) | Kind::FileWrite(_, b) if b.len() > 64));
    write(&whole, &events);
    let bytes = std::fs::read(&whole).unwrap();
    let mut lengths_seen = std::collections::BTreeSet::new();
    for len in 0..bytes.len() {
        std::fs::write(&cut, &bytes[..len]).unwrap();
        let reader = TraceReader::open(&cut).expect("a cut trace opens");
        assert!(matches!(reader.ending(), Ending::Cut { .. }), "{len}: {:?}", reader.ending());
        assert!(!stat(&cut).unwrap().complete);
        assert!(!verify(&cut).unwrap().is_same());
        let (read, error) = collect(reader.events());
        assert!(error.is_none());
        let read: Vec<_> = read.into_iter().map(|(_, event)| event).collect();
        assert_eq!(read, events[..read.len()]);
        lengths_seen.insert(read.len());
    }
    assert_eq!(lengths_seen.into_iter().collect::<Vec<_>>(), [0, events.len()]);
}

/// A file of several blocks that is cut inside a late one still gives the earlier ones.
#[test]
fn cut_between_blocks() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let some = sample(64);
    let events: Vec<Owned> = some.iter().cycle().take(150_000).cloned().collect();
    write(&path, &events);
    let len = std::fs::metadata(&path).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len - 2000).unwrap();
    let reader = TraceReader::open(&path).unwrap();
    assert!(!reader.is_complete());
    assert!((60_000..150_000).contains(&reader.event_count()), "{}", reader.event_count());
    let mut cursor = reader.events();
    let mut wanted = events.iter();
    while let Some(event) = cursor.next().unwrap() {
        assert_eq!(&Owned::of(&event), wanted.next().unwrap());
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

/// A smoke run by default; `FENCEPOST_FUZZ_ROUNDS` makes it longer.
fn rounds(default: usize) -> usize {
    std::env::var("FENCEPOST_FUZZ_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(default)
}

/// With checksums as they are, hardly any altered byte goes unnoticed, and none makes a wrong event.
#[test]
fn altered_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, altered) = (dir.path().join("whole"), dir.path().join("altered"));
    let events = sample(60);
    write(&whole, &events);
    let bytes = std::fs::read(&whole).unwrap();
    let mut random = Random(1);
    for _ in 0..rounds(400) {
        let mut bytes = bytes.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
        }
        std::fs::write(&altered, &bytes).unwrap();
        if let Some(read) = use_all(&altered) {
            assert_eq!(read, events[..read.len()]);
        }
    }
}

/// The checksums are put right again, as an attacker (or a broken writer) would: then what is read may be wrong, but
/// reading must not panic nor ask for absurd amounts of memory.
#[test]
fn altered_content_with_right_checksums() {
    let dir = tempfile::tempdir().unwrap();
    let (whole, altered) = (dir.path().join("whole"), dir.path().join("altered"));
    write(&whole, &sample(60));
    let bytes = std::fs::read(&whole).unwrap();
    let mut random = Random(2);
    for _ in 0..rounds(2000) {
        let mutated = fuzzing::alter(&bytes, |limit| random.below(limit));
        std::fs::write(&altered, mutated).unwrap();
        use_all(&altered);
    }
}

#[test]
fn not_a_trace() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    std::fs::write(&path, b"#!/bin/sh\necho hello, this is a script\n").unwrap();
    let error = TraceReader::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::NotATrace { .. }), "{error}");
    assert!(matches!(TraceReader::open(&dir.path().join("none")).unwrap_err(), ReadError::Io { .. }));
    assert!(matches!(TraceReader::open(dir.path()).unwrap_err(), ReadError::Io { .. }));
}

#[test]
fn newer_version() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    write(&path, &[]);
    let mut bytes = std::fs::read(&path).unwrap();
    let known = u32::from_le_bytes(bytes[8..12].try_into().unwrap());
    bytes[8..12].copy_from_slice(&(known + 1).to_le_bytes());
    std::fs::write(&path, bytes).unwrap();
    let error = TraceReader::open(&path).unwrap_err();
    assert!(matches!(error, ReadError::Version { found, .. } if found == known + 1));
    let text = error.to_string();
    assert!(text.contains("version 3") && text.contains("record again"), "{text}");
}

#[test]
fn something_after_the_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    write(&path, &sample(5));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.push(0);
    std::fs::write(&path, bytes).unwrap();
    assert!(!TraceReader::open(&path).unwrap().is_complete());
}

/// `/dev/full` refuses every write, like a disk that is full.
#[test]
fn disk_full() {
    let full = Path::new("/dev/full");
    let failed = TraceWriter::create(full, meta()).and_then(|writer| writer.finish(&mut [], Outcome::Failed));
    let error = failed.unwrap_err().to_string();
    assert!(error.contains("/dev/full") && error.contains("free some space"), "{error}");
}

/// A pool whose content nobody can have.
struct Unreadable;

impl PoolContent for Unreadable {
    fn len(&mut self) -> std::io::Result<u64> {
        Ok(4096)
    }

    fn data_after(&mut self, from: u64) -> std::io::Result<Option<std::ops::Range<u64>>> {
        Ok((from < 4096).then_some(from..4096))
    }

    fn read_at(&mut self, _: u64, _: &mut [u8]) -> std::io::Result<()> {
        Err(std::io::ErrorKind::PermissionDenied.into())
    }
}

#[test]
fn a_pool_that_cannot_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = start(&dir.path().join("t"));
    let info = PoolInfo { path: "/mnt/pmem/pool".into(), len: 4096 };
    let error = writer.pool(info, &mut Unreadable).map(|_| ()).expect_err("there is no content");
    assert_eq!(
        error.to_string(),
        "cannot read the content of pool /mnt/pmem/pool for the trace: permission denied; make the file readable for the user who records"
    );
}
