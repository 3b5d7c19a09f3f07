//! Runs a program on an input under the engine, in values mode, and follows the input.

use std::ffi::OsString;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::{self, BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use record::flow::{FlowHandle, InputFile};
use record::probe_host::{HostError, ProbeRecorder};
use record::recorder::RecordOptions;
use record::recording::Recording;
use record::stop::StopRequest;
use record::target::{Target, TargetError};
use rustc_hash::{FxHashSet, FxHasher};
use trace::event::{EventKind, FlushTarget};
use trace::{Meta, ReadError, TraceReader, TraceWriter, WriteError};

use crate::follow::{Follow, Followed};
use crate::input::Shape;

/// Why a program could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error(transparent)]
    Target(#[from] TargetError),
    #[error("cannot run `{0}` under the engine: {1}")]
    Host(String, #[source] HostError),
    #[error("{path}: {source}; the files of a run go to a temporary folder, check its space")]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// Runs one command on many inputs, each time from the same files.
#[derive(Debug)]
pub struct Runner {
    command: Vec<OsString>,
    shape: Shape,
    pm: Vec<String>,
    watch: Vec<String>,
    folder: PathBuf,
    /// Time that one run gets.
    limit: Duration,
    kept: Vec<Kept>,
    begun: SystemTime,
    /// The program's whole environment; that of this process to begin with.
    pub env: Vec<(OsString, OsString)>,
    /// The command is a driver, which passes the input on to the program.
    pub driven: bool,
    /// The user's wish to end.
    pub stop: Option<&'static StopRequest>,
}

/// A file that is put back before each run: its content, or that there was none.
#[derive(Debug)]
struct Kept {
    path: PathBuf,
    content: Option<PathBuf>,
}

/// What came of a run.
#[derive(Debug)]
pub struct Ran {
    pub followed: Followed,
    pub recording: Recording,
    /// Of the run; overwritten by the next.
    pub trace: PathBuf,
    /// PM instructions that ran, as numbers that are the same in every run.
    pub pm: Vec<u64>,
    /// It did not end in its time.
    pub stopped: bool,
}

impl Runner {
    /// Files that the command's arguments name are the same before each run, and so are pools that runs create.
    pub fn new(
        command: &[OsString],
        shape: Shape,
        pm: &[String],
        watch: &[String],
        folder: &Path,
        limit: Duration,
    ) -> Result<Runner, RunError> {
        let mut runner = Runner {
            command: command.to_vec(),
            shape,
            pm: pm.to_vec(),
            watch: watch.to_vec(),
            folder: folder.to_owned(),
            limit,
            kept: Vec::new(),
            begun: SystemTime::now(),
            env: std::env::vars_os().collect(),
            driven: false,
            stop: None,
        };
        for argument in command.iter().skip(1) {
            let path = Path::new(argument);
            let inside = path.parent().is_some_and(|parent| parent.as_os_str().is_empty() || parent.is_dir());
            if inside && (!path.exists() || path.is_file()) {
                runner.keep(path)?;
            }
        }
        Ok(runner)
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    fn keep(&mut self, path: &Path) -> Result<(), RunError> {
        if self.kept.iter().any(|kept| kept.path == path) {
            return Ok(());
        }
        let content = if path.is_file() {
            let copy = self.folder.join(format!("kept{}", self.kept.len()));
            fs::copy(path, &copy).map_err(|source| RunError::File { path: path.to_owned(), source })?;
            Some(copy)
        } else {
            None
        };
        self.kept.push(Kept { path: path.to_owned(), content });
        Ok(())
    }

    /// Puts the files back that the last run changed. What cannot be put back stays as it is: the next run says what is wrong with it.
    pub fn restore(&self) {
        for Kept { path, content } in &self.kept {
            let _ = match content {
                Some(copy) => put_back(copy, path),
                None if path.is_file() => fs::remove_file(path),
                None => Ok(()),
            };
        }
    }

    /// The files for an input: what standard input (or the input file) has, and the command.
    pub fn rendered(&self, input: &[u8]) -> (Vec<u8>, Vec<OsString>) {
        (self.shape.render_file(input), self.shape.render_command(&self.command, input, &self.input_path()))
    }

    fn input_path(&self) -> PathBuf {
        self.folder.join("input")
    }

    pub fn run(&mut self, input: &[u8]) -> Result<Ran, RunError> {
        self.restore();
        let (content, command) = self.rendered(input);
        let path = self.input_path();
        let failed = |source| RunError::File { path: path.clone(), source };
        fs::write(&path, &content).map_err(failed)?;
        let file = File::open(&path).map_err(failed)?;
        let identity = file.metadata().map_err(failed)?;
        let null = File::options().read(true).write(true).open("/dev/null").map_err(failed)?;
        let follow = Arc::new(Mutex::new(Follow::new(input, self.shape.free(), self.driven)));
        let options = RecordOptions {
            pm: self.pm.clone(),
            watch: self.watch.clone(),
            flow: Some(FlowHandle::new(Arc::clone(&follow))),
            values: Some(InputFile { device: identity.dev(), inode: identity.ino() }),
            ..RecordOptions::default()
        };
        let mut target = Target::resolve_in(&command, &self.env, None)?;
        let trace = self.folder.join("run.fptrace");
        // A writer does not overwrite.
        let _ = fs::remove_file(&trace);
        let words = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let cwd = std::env::current_dir().map(|cwd| cwd.display().to_string()).unwrap_or_default();
        let meta = Meta { command: words, cwd, recorder: "probe".to_owned(), options: Vec::new() };
        let writer = TraceWriter::create(&trace, meta)?;
        let stop = StopRequest::new();
        let recorder = ProbeRecorder::new(&stop);
        target.streams = Some([file.as_raw_fd(), null.as_raw_fd(), null.as_raw_fd()]);
        let over = AtomicBool::new(false);
        let (recorded, stopped) = std::thread::scope(|scope| {
            let watchdog = scope.spawn(|| watch(&stop, self.stop, &over, self.limit));
            let recorded = recorder.run(&target, &options, writer);
            over.store(true, Ordering::Release);
            watchdog.thread().unpark();
            (recorded, watchdog.join().unwrap_or(false))
        });
        drop(options);
        let name = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let recording = recorded.map_err(|error| RunError::Host(name, error))?;
        self.keep_pools(&recording);
        let follow = std::mem::take(&mut *follow.lock().unwrap_or_else(PoisonError::into_inner));
        let reader = TraceReader::open(&trace)?;
        Ok(Ran { followed: follow.into_followed(), recording, pm: pm_instructions(&reader)?, trace, stopped })
    }

    /// Pools that the first run made are removed before the next.
    fn keep_pools(&mut self, recording: &Recording) {
        for pool in &recording.pools {
            let path = PathBuf::from(&pool.path);
            let known = self.kept.iter().any(|kept| same_file(&kept.path, &path));
            let made = fs::metadata(&path).and_then(|m| m.created()).is_ok_and(|made| made >= self.begun);
            if !known && made {
                self.kept.push(Kept { path, content: None });
            }
        }
    }
}

/// Gives `path` the content of `copy` again, if it has another one. A file that did not change is not written: it may be the program itself, which
/// other processes execute. The new file takes its place as a whole, so that nothing is lost if this process is killed.
fn put_back(copy: &Path, path: &Path) -> io::Result<()> {
    if same_content(copy, path).unwrap_or(false) {
        return Ok(());
    }
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut name = real.file_name().unwrap_or_default().to_owned();
    name.push(format!(".fencepost-{}", std::process::id()));
    let fresh = real.with_file_name(name);
    let moved = fs::copy(copy, &fresh).and_then(|_| fs::rename(&fresh, &real));
    moved.or_else(|_| {
        let _ = fs::remove_file(&fresh);
        // A folder in which no file can be made.
        fs::copy(copy, &real).map(drop)
    })
}

fn same_content(a: &Path, b: &Path) -> io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::with_capacity(1 << 16, a), BufReader::with_capacity(1 << 16, b));
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let common = left.len().min(right.len());
        if left[..common] != right[..common] {
            return Ok(false);
        }
        if common == 0 {
            return Ok(left.len() == right.len());
        }
        a.consume(common);
        b.consume(common);
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Ends a run that does not end by itself; true if it had to.
fn watch(stop: &StopRequest, user: Option<&StopRequest>, over: &AtomicBool, limit: Duration) -> bool {
    const LOOK: Duration = Duration::from_millis(200);
    let start = std::time::Instant::now();
    let mut asked = false;
    while !over.load(Ordering::Acquire) {
        let late = start.elapsed() >= limit;
        if late || user.is_some_and(|user| user.count() > 0) {
            // Once asks, twice insists.
            stop.interrupt();
            asked |= late;
        }
        std::thread::park_timeout(LOOK.min(limit));
    }
    asked
}

/// Instructions that stored to PM, flushed it or fenced.
pub(crate) fn pm_instructions(reader: &TraceReader) -> Result<Vec<u64>, ReadError> {
    let mut seen = FxHashSet::default();
    let mut list = Vec::new();
    let mut events = reader.events();
    while let Some(event) = events.next()? {
        let pm = match event.kind {
            EventKind::Store { .. } | EventKind::Rmw { .. } | EventKind::Fence { .. } => true,
            EventKind::Flush { target, .. } => !matches!(target, FlushTarget::Volatile(_)),
            _ => false,
        };
        if pm && seen.insert(event.pc) {
            let mut hasher = FxHasher::default();
            (&reader.tables().module(event.pc.module).path, event.pc.addr).hash(&mut hasher);
            list.push(hasher.finish());
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_put_back_only_if_they_changed() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let (program, data) = (folder.path().join("program"), folder.path().join("data"));
        for path in [&program, &data] {
            fs::write(path, vec![7; 100_000])?;
        }
        let before = fs::metadata(&program)?;
        let command: Vec<OsString> = ["driver".into(), program.clone().into(), data.clone().into()].to_vec();
        let kept = tempfile::tempdir()?;
        let shape = Shape::default();
        let runner = Runner::new(&command, shape, &[], &[], kept.path(), Duration::from_secs(1))
            .map_err(|error| io::Error::other(error.to_string()))?;
        let mut changed = vec![7; 100_000];
        changed[99_999] = 8;
        fs::write(&data, changed)?;
        runner.restore();
        let after = fs::metadata(&program)?;
        assert_eq!((before.ino(), before.modified()?), (after.ino(), after.modified()?), "the program was written");
        assert_eq!(fs::read(&data)?, vec![7; 100_000]);
        assert_eq!(fs::read_dir(folder.path())?.count(), 2, "a file was left");
        Ok(())
    }
}
