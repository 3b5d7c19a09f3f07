//! Units that a program performs: one run per unit, each in its own process.
//!
//! The program gets `--unit FOLDER`. In that folder, `unit` says what to do and `given/` has the files that the unit needs; the program
//! writes its result to `done/`. It must end with exit code 0; otherwise the last lines of its standard error say why it failed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::blob::BlobId;
use crate::dispatch::{Campaign, CampaignError, Dispatch, Fate, Watch};
use crate::same::SameFile;
use crate::threads::{Threads, Work};
use crate::{folder, text};

/// The kind of campaigns whose units these are.
pub const KIND: &str = "runs";

/// The option that gives the program its folder.
pub const OPTION: &str = "--unit";

/// Between two looks at whether a run has ended, or is not wanted any more.
const LOOK: Duration = Duration::from_millis(10);
/// Of what a failed run said.
const MOST_SAID: usize = 600;

/// What all units have in common: the command line of the program, without its own name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramJob {
    /// The option goes behind them.
    command: Vec<String>,
    args: Vec<String>,
    dir: String,
    /// Beside the worker's own.
    env: Vec<(String, String)>,
    same: Vec<SameFile>,
}

impl ProgramJob {
    pub fn new(
        command: &[OsString],
        args: &[OsString],
        dir: &Path,
        env: &[(OsString, OsString)],
        same: Vec<SameFile>,
    ) -> ProgramJob {
        let sent = |word: &OsString| text::of(word.as_bytes());
        ProgramJob {
            command: command.iter().map(sent).collect(),
            args: args.iter().map(sent).collect(),
            dir: text::of(dir.as_os_str().as_bytes()),
            env: env.iter().map(|(name, value)| (sent(name), sent(value))).collect(),
            same,
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data has a form in JSON")
    }
}

/// One unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramUnit {
    /// Packed folders; what a later one has goes over what an earlier one has.
    pub given: Vec<BlobId>,
    /// What to do, for the program.
    pub what: serde_json::Value,
}

impl ProgramUnit {
    pub fn bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain data has a form in JSON")
    }
}

/// The folder of a unit, as the program sees it.
#[derive(Debug)]
pub struct UnitFolder(pub PathBuf);

impl UnitFolder {
    pub fn given(&self) -> PathBuf {
        self.0.join("given")
    }

    pub fn done(&self) -> PathBuf {
        self.0.join("done")
    }

    fn unit(&self) -> PathBuf {
        self.0.join("unit")
    }

    /// What to do.
    pub fn what<T: serde::de::DeserializeOwned>(&self) -> io::Result<T> {
        serde_json::from_slice(&fs::read(self.unit())?).map_err(io::Error::other)
    }
}

/// Where a worker gets what a unit names.
pub type Fetch<'f> = dyn FnMut(BlobId) -> Result<Vec<u8>, String> + Send + 'f;

/// Runs a program for units.
#[derive(Debug)]
pub struct ProgramRuns {
    program: PathBuf,
    job: ProgramJob,
    /// For the folders of units, and packed folders that several of them need.
    folder: PathBuf,
    next: AtomicU64,
}

impl ProgramRuns {
    /// Gets ready. The message says why this machine is not fit for it.
    pub fn open(program: PathBuf, job: &[u8], folder: &Path) -> Result<ProgramRuns, String> {
        let job: ProgramJob = serde_json::from_slice(job).map_err(|error| error.to_string())?;
        SameFile::agree(&job.same)?;
        Ok(ProgramRuns { program, job, folder: folder.to_owned(), next: AtomicU64::new(0) })
    }

    /// Performs a unit. Its result is the packed folder `done/`.
    pub fn perform(&self, unit: &[u8], unwanted: &AtomicBool, fetch: &mut Fetch<'_>) -> Result<Vec<u8>, String> {
        let unit: ProgramUnit = serde_json::from_slice(unit).map_err(|error| error.to_string())?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let place = Place(UnitFolder(self.folder.join(format!("unit-{number}"))));
        let result = self.performed(&place.0, &unit, unwanted, fetch);
        drop(place);
        result
    }

    fn performed(
        &self,
        place: &UnitFolder,
        unit: &ProgramUnit,
        unwanted: &AtomicBool,
        fetch: &mut Fetch<'_>,
    ) -> Result<Vec<u8>, String> {
        let failed = |error: io::Error| format!("cannot write in {}: {error}", self.folder.display());
        fs::create_dir_all(place.given()).map_err(failed)?;
        fs::create_dir_all(place.done()).map_err(failed)?;
        for id in &unit.given {
            let packed = self.kept(*id, fetch)?;
            folder::unpack(&packed, &place.given()).map_err(failed)?;
        }
        fs::write(place.unit(), unit.what.to_string()).map_err(failed)?;
        let said = place.0.join("said");
        let errors = File::create(&said).map_err(failed)?;
        let mut command = self.command(&place.0).ok_or("the command of the campaign makes no sense")?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
        let run = command.spawn().map_err(|error| format!("cannot run {}: {error}", self.program.display()))?;
        match Run(run).wait(unwanted).map_err(failed)? {
            None => Err("stopped: the unit is not wanted any more".into()),
            Some(status) if status.success() => folder::pack(&place.done()).map_err(failed),
            Some(status) => Err(format!("{status}: {}", last_lines(&fs::read(&said).unwrap_or_default()))),
        }
    }

    fn command(&self, place: &Path) -> Option<Command> {
        let received = |text: &String| text::bytes(text).map(OsString::from_vec);
        let mut command = Command::new(&self.program);
        let leading: Option<Vec<OsString>> = self.job.command.iter().map(received).collect();
        let args: Option<Vec<OsString>> = self.job.args.iter().map(received).collect();
        command.args(leading?).arg(OPTION).arg(place).args(args?).current_dir(received(&self.job.dir)?);
        // Those of the worker are about the worker.
        let own: BTreeMap<OsString, OsString> =
            std::env::vars_os().filter(|(name, _)| !name.as_bytes().starts_with(b"FENCEPOST_")).collect();
        command.env_clear().envs(own);
        for (name, value) in &self.job.env {
            command.env(received(name)?, received(value)?);
        }
        // Ctrl-C is for the worker, which lets units under way end.
        command.process_group(0);
        let parent = std::process::id();
        // SAFETY: only system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                // It may have died before.
                if libc::getppid() as u32 != parent {
                    libc::_exit(1);
                }
                Ok(())
            });
        }
        Some(command)
    }

    /// A packed folder, fetched once.
    fn kept(&self, id: BlobId, fetch: &mut Fetch<'_>) -> Result<Vec<u8>, String> {
        let path = self.folder.join(format!("given-{id}"));
        if let Some(packed) = fs::read(&path).ok().filter(|packed| BlobId::of(packed) == id) {
            return Ok(packed);
        }
        let packed = fetch(id)?;
        // Without room for it, it is fetched again the next time.
        let _ = fs::write(&path, &packed);
        Ok(packed)
    }
}

/// Goes away with what is in it.
struct Place(UnitFolder);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.0);
    }
}

/// Does not outlive its unit.
struct Run(Child);

impl Run {
    /// None: it was not wanted any more.
    fn wait(mut self, unwanted: &AtomicBool) -> io::Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.0.try_wait()? {
                return Ok(Some(status));
            }
            if unwanted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            thread::sleep(LOOK);
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A campaign whose units this machine performs, some at a time.
#[derive(Debug)]
pub struct RunsHere {
    program: PathBuf,
    folder: PathBuf,
    jobs: usize,
    blobs: HashMap<BlobId, Vec<u8>>,
    runs: Option<ProgramRuns>,
}

impl RunsHere {
    pub fn new(program: PathBuf, folder: &Path, jobs: usize) -> RunsHere {
        RunsHere { program, folder: folder.to_owned(), jobs, blobs: HashMap::new(), runs: None }
    }
}

/// A unit failed, and there is nobody else to perform it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct RunFailed(String);

impl Campaign for RunsHere {
    fn put(&mut self, bytes: Vec<u8>) -> Result<BlobId, CampaignError> {
        let id = BlobId::of(&bytes);
        self.blobs.insert(id, bytes);
        Ok(id)
    }

    fn put_file(&mut self, path: &Path) -> Result<BlobId, CampaignError> {
        self.put(fs::read(path)?)
    }

    fn begin(&mut self, job: BlobId) -> Result<(), CampaignError> {
        let job = self.blobs.get(&job).ok_or_else(|| RunFailed(format!("there is no job {job}")))?;
        self.runs = Some(ProgramRuns::open(self.program.clone(), job, &self.folder).map_err(RunFailed)?);
        Ok(())
    }

    fn exchanged(&mut self, _take: &mut dyn FnMut(&[u8])) -> Result<(), CampaignError> {
        Ok(())
    }
}

impl Dispatch<Vec<u8>, Vec<u8>> for RunsHere {
    type Error = CampaignError;

    fn dispatch(&mut self, units: &[Vec<u8>], watch: &Watch<'_, Vec<u8>, CampaignError>) -> Result<(), CampaignError> {
        let Some(runs) = &self.runs else { return Ok(()) };
        let unwanted = AtomicBool::new(false);
        let blobs = &self.blobs;
        let mut workers: Vec<Here<'_>> =
            (0..self.jobs.max(1)).map(|_| Here { runs, blobs, unwanted: &unwanted }).collect();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    unwanted.store((watch.is_stopped)(), Ordering::Relaxed);
                    thread::sleep(LOOK);
                }
            });
            let take = |number: usize, fate: Fate<Option<Vec<u8>>>| match fate {
                Fate::Done(Some(done)) => (watch.take)(number, Fate::Done(done)),
                Fate::Done(None) => Ok(()),
                Fate::SetAside(why) => (watch.take)(number, Fate::SetAside(why)),
            };
            let result = Threads(&mut workers).dispatch(units, &Watch { is_stopped: watch.is_stopped, take: &take });
            is_over.store(true, Ordering::Relaxed);
            result
        })
    }
}

/// One job.
struct Here<'r> {
    runs: &'r ProgramRuns,
    blobs: &'r HashMap<BlobId, Vec<u8>>,
    unwanted: &'r AtomicBool,
}

impl Work<Vec<u8>> for Here<'_> {
    /// None: it was stopped.
    type Done = Option<Vec<u8>>;
    type Error = CampaignError;

    fn work(&mut self, unit: &Vec<u8>) -> Result<Option<Vec<u8>>, CampaignError> {
        let blobs = self.blobs;
        let mut fetch = |id: BlobId| blobs.get(&id).cloned().ok_or_else(|| format!("there is no blob {id}"));
        match self.runs.perform(unit, self.unwanted, &mut fetch) {
            Ok(done) => Ok(Some(done)),
            Err(_) if self.unwanted.load(Ordering::Relaxed) => Ok(None),
            Err(why) => Err(RunFailed(why).into()),
        }
    }
}

fn last_lines(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let text = lines.join("; ");
    let from = text.char_indices().rev().nth(MOST_SAID).map_or(0, |(at, _)| at);
    text[from..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(folder: &Path, script: &str) -> ProgramRuns {
        // `sh -c SCRIPT --unit FOLDER`: $0 is the option, $1 the folder.
        let job = ProgramJob::new(&["-c".into(), script.into()], &[], Path::new("/"), &[], Vec::new());
        ProgramRuns::open("/bin/sh".into(), &job.bytes(), folder).unwrap()
    }

    fn unit(given: Vec<BlobId>) -> Vec<u8> {
        ProgramUnit { given, what: serde_json::json!({ "number": 7 }) }.bytes()
    }

    #[test]
    fn a_run_gets_its_unit_and_leaves_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("name"), "seven").unwrap();
        let packed = folder::pack(here.path()).unwrap();
        let id = BlobId::of(&packed);
        let runs = runs(folder.path(), "cat $1/unit $1/given/name > $1/done/all");
        let mut fetched = 0;
        for _ in 0..2 {
            let mut fetch = |wanted: BlobId| {
                fetched += 1;
                if wanted == id { Ok(packed.clone()) } else { Err("nothing else".to_owned()) }
            };
            let done = runs.perform(&unit(vec![id]), &AtomicBool::new(false), &mut fetch).unwrap();
            let out = tempfile::tempdir().unwrap();
            folder::unpack(&done, out.path()).unwrap();
            assert_eq!(fs::read_to_string(out.path().join("all")).unwrap(), "{\"number\":7}seven");
        }
        assert_eq!(fetched, 1);
        assert!(!folder.path().join("unit-0").exists());
    }

    #[test]
    fn a_run_that_fails_says_why() {
        let folder = tempfile::tempdir().unwrap();
        let runs = runs(folder.path(), "echo 'error: the disk is full' >&2; exit 3");
        let why = runs.perform(&unit(Vec::new()), &AtomicBool::new(false), &mut |_| Err(String::new())).unwrap_err();
        assert_eq!(why, "exit status: 3: error: the disk is full");
    }

    #[test]
    fn a_run_that_nobody_wants_ends() {
        let folder = tempfile::tempdir().unwrap();
        let runs = runs(folder.path(), "sleep 1000");
        let why = runs.perform(&unit(Vec::new()), &AtomicBool::new(true), &mut |_| Err(String::new())).unwrap_err();
        assert!(why.contains("not wanted"), "{why}");
    }
}
