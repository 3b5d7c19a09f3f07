//! A recovery program, its pool and a slot for the tests of the fork server.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::OnceLock;
use std::time::Duration;

use persistency::line::LineId;
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::report::RunReport;
use recover::server::{Server, ServerError};
use recover::slot::Slot;
use trace::event::{LineNo, PoolId};
use verdict::end::Frame;
use verdict::read::Read;

pub const POOL_BYTES: u64 = 8192;
pub const ORIGINAL: &[u8] = b"original";

/// Limits that no well-behaved recovery reaches.
pub fn quick() -> Limits {
    Limits { wall: Duration::from_secs(60), cpu: Duration::from_secs(60), ..Limits::default() }
}

/// For runs that hang.
pub fn brief() -> Limits {
    Limits { wall: Duration::from_millis(300), ..Limits::default() }
}

/// `DIR/public/pool` and `DIR/public/second` (the originals), and a slot for both.
#[derive(Debug)]
pub struct World {
    dir: PathBuf,
    slot: Slot,
    _temporary: tempfile::TempDir,
}

impl World {
    pub fn new() -> World {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        fs::create_dir(dir.join("public")).unwrap();
        let pools = ["pool", "second"].map(|name| dir.join("public").join(name));
        pools.iter().for_each(|pool| fs::write(pool, ORIGINAL).unwrap());
        let slot = Slot::create(&pools.map(|pool| (pool, POOL_BYTES))).unwrap();
        let mut world = World { dir, slot, _temporary: temporary };
        world.put(0, 0, b"image");
        world.put(1, 0, b"more");
        world
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn pool(&self) -> PathBuf {
        self.dir.join("public/pool")
    }

    /// Puts bytes into the crash image.
    pub fn put(&mut self, pool: u32, offset: u64, bytes: &[u8]) {
        self.slot.write(PoolId(pool), offset, bytes).expect("there is room for a small pool");
    }

    /// The slot as at the beginning, after a run that changed the files.
    pub fn renew(&mut self) {
        self.slot.renew(|_| POOL_BYTES).unwrap();
        self.put(0, 0, b"image");
    }

    /// What the slot holds of a pool now.
    pub fn content(&self, pool: usize) -> Vec<u8> {
        fs::read(self.slot.paths().nth(pool).unwrap().1).unwrap()
    }

    /// The recovery program with these words; it runs in the pools' directory.
    pub fn command(&self, words: &[&str]) -> Command {
        self.command_of(program(), words)
    }

    pub fn command_of(&self, program: &Path, words: &[&str]) -> Command {
        Command {
            program: program.into(),
            args: words.iter().map(OsString::from).collect(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("WORLD".into(), self.dir.clone().into())],
            dir: self.dir.join("public"),
            stdin: Input::Empty,
        }
    }

    /// A server for `recovery ACT pool second`.
    pub fn serve(&self, act: &str) -> Server {
        self.serve_command(&self.command(&[act, "pool", "second"]))
    }

    pub fn serve_command(&self, command: &Command) -> Server {
        Server::new(command, &self.slot).unwrap()
    }

    pub fn run(&self, server: &mut Server) -> RunReport {
        self.run_within(server, &quick())
    }

    pub fn run_within(&self, server: &mut Server, limits: &Limits) -> RunReport {
        self.try_run(server, limits).unwrap()
    }

    pub fn try_run(&self, server: &mut Server, limits: &Limits) -> Result<RunReport, ServerError> {
        server.run(&self.slot, limits)
    }

    /// One run of one act.
    pub fn once(&self, act: &str, limits: &Limits) -> RunReport {
        self.run_within(&mut self.serve(act), limits)
    }

    #[track_caller]
    pub fn assert_untouched(&self) {
        for name in ["pool", "second"] {
            assert_eq!(fs::read(self.dir.join("public").join(name)).unwrap(), ORIGINAL, "{name}");
        }
        assert_eq!(fs::read_dir(self.dir.join("public")).unwrap().count(), 2);
    }

    /// Processes with this world's directory in their environment or command line.
    pub fn processes_that_know_it(&self) -> usize {
        let dir = self.dir.as_os_str().as_bytes();
        let knows = |text: Vec<u8>| text.windows(dir.len()).any(|part| part == dir);
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|entry| entry.file_name().to_string_lossy() != process::id().to_string())
            .filter(|entry| {
                ["environ", "cmdline"].iter().any(|file| fs::read(entry.path().join(file)).is_ok_and(knows))
            })
            .count()
    }
}

/// The lines of the first pool among the reads, in their order.
#[track_caller]
pub fn lines(report: &RunReport) -> Vec<u64> {
    let reads = report.reads.as_ref().expect("the reads are known");
    reads.iter().map(|read| if let Read::Line(line) = read { line.line.0 } else { panic!("{read:?}") }).collect()
}

pub fn line(pool: u32, line: u64) -> Read {
    Read::Line(LineId { pool: PoolId(pool), line: LineNo(line) })
}

/// `recovery.c`, built once per test program.
pub fn program() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let out = folder.join("recovery");
        let fresh = folder.join(format!("recovery-{}", process::id()));
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server_world/recovery.c");
        let mut cc = process::Command::new("cc");
        let status =
            cc.args(["-O1", "-g", "-pthread", "-fno-omit-frame-pointer", "-o"]).arg(&fresh).arg(source).status();
        assert!(status.expect("cc is installed").success());
        // Renamed when whole: other test processes may be using or building it.
        fs::rename(&fresh, &out).unwrap();
        out
    })
}

/// Is this function of the recovery program among the frames?
pub fn passes_through(path: &[Frame], function: &str) -> bool {
    let nm = process::Command::new("nm").arg("-S").arg(program()).output().expect("nm is installed");
    let symbols = String::from_utf8(nm.stdout).unwrap();
    let words = symbols.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = words.into_iter().find(|words| words.len() == 4 && words[3] == function);
    let found = found.unwrap_or_else(|| panic!("no function {function}"));
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let (start, size) = (number(found[0]), number(found[1]));
    let in_it = |frame: &Frame| {
        // A return address may be the first one behind a function that does not return.
        Path::new(&frame.module).ends_with("recovery") && (start..=start + size).contains(&frame.address)
    };
    path.iter().any(in_it)
}
