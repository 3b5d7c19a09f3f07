//! A pool, an image and commands for the tests of native mode.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::{Duration, Instant};

use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::native::{Native, PoolFile, Session};
use recover::report::RunReport;
use verdict::end::End;

/// Uid and gid of "nobody" and its like.
const NOBODY: u32 = 65534;

/// Limits that no well-behaved script reaches.
pub fn quick() -> Limits {
    Limits { wall: Duration::from_secs(60), ..Limits::default() }
}

pub fn crash(signal: i32) -> End {
    End::Signalled { signal, path: Vec::new() }
}

/// `DIR/public/pool` (the original), `DIR/public/other/file`, `DIR/image`.
#[derive(Debug)]
pub struct World {
    dir: PathBuf,
    native: Native,
    temporary: Option<tempfile::TempDir>,
}

impl World {
    pub fn new() -> World {
        World::with(Native::new())
    }

    pub fn with(native: Native) -> World {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path().canonicalize().unwrap();
        fs::create_dir_all(dir.join("public/other")).unwrap();
        fs::write(dir.join("public/pool"), b"original\n").unwrap();
        fs::write(dir.join("public/other/file"), b"file\n").unwrap();
        fs::write(dir.join("image"), b"image\n").unwrap();
        World { dir, native, temporary: Some(temporary) }
    }

    /// That of another process.
    pub fn at(dir: &Path, native: Native) -> World {
        World { dir: dir.into(), native, temporary: None }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn pool(&self) -> PathBuf {
        self.dir.join("public/pool")
    }

    pub fn image(&self) -> PathBuf {
        self.dir.join("image")
    }

    fn marker(&self) -> PathBuf {
        self.dir.join("marker")
    }

    /// A shell script that runs in the pool's directory.
    pub fn shell(&self, script: &str) -> Command {
        Command {
            program: "sh".into(),
            args: ["-c", script].map(OsString::from).into(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into()), ("MARKER".into(), self.marker().into())],
            dir: self.dir.join("public"),
            stdin: Input::Empty,
        }
    }

    pub fn session(&self) -> Session {
        self.native.session(&[PoolFile { path: self.pool(), content: &self.image() }]).unwrap()
    }

    pub fn run(&self, script: &str, limits: &Limits) -> RunReport {
        self.run_command(&self.shell(script), limits)
    }

    pub fn run_command(&self, command: &Command, limits: &Limits) -> RunReport {
        self.run_with(command, &[(self.pool(), self.image())], limits)
    }

    pub fn run_with(&self, command: &Command, pools: &[(PathBuf, PathBuf)], limits: &Limits) -> RunReport {
        let pools: Vec<_> = pools.iter().map(|(path, content)| PoolFile { path: path.clone(), content }).collect();
        self.native.run(command, &pools, limits).unwrap()
    }

    /// The pool and its neighbours are as they were, and nothing was left lying about.
    pub fn assert_untouched(&self) {
        assert_eq!(fs::read(self.pool()).unwrap(), b"original\n");
        assert_eq!(fs::read(self.dir.join("public/other/file")).unwrap(), b"file\n");
        for dir in [&self.dir, &self.dir.join("public"), &self.dir.join("public/other")] {
            for entry in fs::read_dir(dir).unwrap() {
                let name = entry.unwrap().file_name();
                assert!(!name.to_string_lossy().contains("fencepost"), "left behind: {name:?} in {dir:?}");
            }
        }
    }

    /// Processes with this world's directory in their environment.
    pub fn processes_that_know_it(&self) -> usize {
        let marker = self.marker();
        let marker = marker.to_str().unwrap().as_bytes();
        let knows = |text: Vec<u8>| text.windows(marker.len()).any(|part| part == marker);
        fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().bytes().all(|byte| byte.is_ascii_digit()))
            .filter(|entry| fs::read(entry.path().join("environ")).is_ok_and(knows))
            .count()
    }

    pub fn wait_for_marker(&self) {
        wait_until("the run has begun", || self.marker().exists());
    }

    pub fn wait_until_journal_is_gone(&self) {
        let journal = self.pool().with_file_name(".pool.fencepost-swap");
        wait_until("the pool is back", || !journal.exists());
    }

    pub fn wait_until_forgotten(&self) {
        wait_until("no process of the run is left", || self.processes_that_know_it() == 0);
    }
}

impl Drop for World {
    /// A host that was killed leaves an overlay's work directory, which its owner may not enter.
    fn drop(&mut self) {
        fn open_up(dir: &Path) {
            let _ = fs::set_permissions(dir, fs::Permissions::from_mode(0o700));
            for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    open_up(&entry.path());
                }
            }
        }
        if self.temporary.is_some() {
            open_up(&self.dir);
        }
    }
}

/// Waits for another process; the time is only there to make a failure visible.
fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::yield_now();
    }
}

pub fn script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// This test program with one test of `native.rs` to run.
pub fn this_test(name: &str) -> process::Command {
    let mut command = process::Command::new(env::current_exe().unwrap());
    command.args(["--exact", &format!("native::{name}")]);
    command
}

/// This test program again as an ordinary user, in a copy that such a user may execute.
pub fn as_nobody(arguments: &[&str]) -> Result<process::Output, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).map_err(|error| error.to_string())?;
    let copy = dir.path().join("native");
    fs::copy(env::current_exe().unwrap(), &copy).map_err(|error| error.to_string())?;
    let mut command = process::Command::new(&copy);
    command.args(arguments).env("NATIVE_TEST_ORDINARY", "1").current_dir("/").uid(NOBODY).gid(NOBODY);
    loop {
        match command.output() {
            // A process that another test has just forked still has our descriptor of the copy; it is gone with its exec.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => thread::yield_now(),
            ran => return ran.map_err(|error| format!("cannot run {} as user {NOBODY}: {error}", copy.display())),
        }
    }
}
