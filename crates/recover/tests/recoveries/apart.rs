//! What a recovery creates, deletes, renames or changes is gone before the next one runs: in the fork server and natively.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process;

use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::native::{Method, Native, PoolFile};
use recover::server::Server;
use recover::slot::Slot;
use trace::event::PoolId;
use verdict::end::End;

const POOL_BYTES: u64 = 4096;

/// `DIR/public/{pool,neighbour,sub/}` and `DIR/outside`.
struct World {
    dir: PathBuf,
    program: PathBuf,
    _temporary: tempfile::TempDir,
}

impl World {
    fn new() -> World {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("public/sub")).unwrap();
        fs::write(dir.join("public/pool"), vec![0; POOL_BYTES as usize]).unwrap();
        fs::write(dir.join("public/neighbour"), b"neighbour").unwrap();
        fs::write(dir.join("outside"), b"outside").unwrap();
        let program = dir.join("apart");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apart/apart.c");
        let built = process::Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(source).status();
        assert!(built.expect("cc is installed").success());
        World { dir, program, _temporary: temporary }
    }

    fn pool(&self) -> PathBuf {
        self.dir.join("public/pool")
    }

    fn command(&self, act: &str) -> Command {
        Command {
            program: self.program.clone(),
            args: [act, "pool"].map(OsString::from).into(),
            env: vec![("OUTSIDE".into(), self.dir.join("outside").into())],
            dir: self.dir.join("public"),
            stdin: Input::Empty,
        }
    }

    /// Everything in the public directory, with its content.
    fn public(&self) -> Vec<(String, Vec<u8>)> {
        let mut all: Vec<_> = fs::read_dir(self.dir.join("public"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap_or_default()))
            .collect();
        all.sort();
        all
    }
}

/// Act, and whether a server can go on after it.
const ACTS: [(&str, bool); 15] = [
    ("create", true),
    ("log", true),
    ("position", true),
    ("lock", true),
    ("delete", false),
    ("rename", false),
    ("change", false),
    ("mode", false),
    ("pool-mode", true),
    ("pool-attribute", true),
    ("record-lock", true),
    ("file-lock", true),
    ("descriptor-lock", true),
    ("late-lock", true),
    ("reserve", true),
];

fn expected(act: &str) -> i32 {
    if act == "lock" { libc::SIGABRT } else { 0 }
}

fn outcome(end: &End) -> i32 {
    match end {
        End::Exited(code) => *code,
        End::Signalled { signal, .. } => *signal,
        other => panic!("{other:?}"),
    }
}

/// Whether this system lets runs have private folders; elsewhere there is nothing to test here.
fn has_overlays() -> bool {
    let overlays = Native::new().isolation().method == Method::Overlay;
    if !overlays {
        targets::skip("no private mounts here");
    }
    overlays
}

#[test]
fn forked_runs_do_not_see_each_other() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    let before = world.public();
    for (act, goes_on) in ACTS {
        let mut slot = Slot::create(&[(world.pool(), POOL_BYTES)]).unwrap();
        let mut server = Server::new(&world.command(act), &slot).unwrap();
        for round in 0..3 {
            let report = server.run(&slot, &Limits::default()).unwrap();
            let said = String::from_utf8_lossy(&report.stderr).into_owned();
            assert_eq!(outcome(&report.end), expected(act), "{act}, run {round}: {said}");
            assert!(report.outside.is_empty(), "{act}: {:?}", report.outside);
            if report.pools_replaced {
                slot.renew(|_: PoolId| POOL_BYTES).unwrap();
            }
        }
        assert_eq!(server.not_private, None, "{act}");
        assert_eq!(server.starts, if goes_on { 1 } else { 3 }, "{act}");
        assert_eq!(world.public(), before, "{act}");
    }
}

#[test]
fn native_runs_do_not_see_each_other() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    let before = world.public();
    let native = Native::new();
    for (act, _) in ACTS {
        let mut slot = Slot::create(&[(world.pool(), POOL_BYTES)]).unwrap();
        for round in 0..3 {
            slot.renew(|_: PoolId| POOL_BYTES).unwrap();
            let image = slot.paths().next().unwrap().1.to_owned();
            let pools = [PoolFile { path: world.pool(), content: &image }];
            let report = native.run(&world.command(act), &pools, &Limits::default()).unwrap();
            assert_eq!(outcome(&report.end), expected(act), "{act}, run {round}");
        }
        assert_eq!(world.public(), before, "{act}");
    }
}

#[test]
fn a_working_directory_that_holds_no_pool_is_private_too() {
    if !has_overlays() {
        return;
    }
    let world = World::new();
    let work = world.dir.join("work");
    fs::create_dir_all(work.join("sub")).unwrap();
    fs::write(work.join("neighbour"), b"neighbour").unwrap();
    let mut command = world.command("create");
    command.dir = work.clone();
    command.args[1] = world.pool().into();
    let slot = Slot::create(&[(world.pool(), POOL_BYTES)]).unwrap();
    let mut server = Server::new(&command, &slot).unwrap();
    let native = Native::new();
    for _ in 0..2 {
        assert_eq!(server.run(&slot, &Limits::default()).unwrap().end, End::Exited(0));
        let image = slot.paths().next().unwrap().1.to_owned();
        let pools = [PoolFile { path: world.pool(), content: &image }];
        assert_eq!(native.run(&command, &pools, &Limits::default()).unwrap().end, End::Exited(0));
    }
    assert_eq!(fs::read_dir(&work).unwrap().count(), 2);
}

#[test]
fn a_file_that_is_written_elsewhere_is_named() {
    let world = World::new();
    let slot = Slot::create(&[(world.pool(), POOL_BYTES)]).unwrap();
    let mut server = Server::new(&world.command("outside"), &slot).unwrap();
    for _ in 0..2 {
        let report = server.run(&slot, &Limits::default()).unwrap();
        assert_eq!(report.end, End::Exited(0));
        assert!(report.outside.contains(&world.dir.join("outside")), "{:?}", report.outside);
    }
}
