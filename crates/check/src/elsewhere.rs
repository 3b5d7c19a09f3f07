//! A check whose crash points are judged on other machines: what they are told, and what they do with it.
//!
//! The coordinator records, runs the operations without a crash, analyses and confirms. Workers get the trace, the plan of recoveries and,
//! for every pass, what it assumes; they judge crash points and send the outcomes back.

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crash::assumed::AssumedRepairs;
use crash::chosen::Chosen;
use crash::elsewhere::{PointsDone, PointsUnit, Station, StationWorker, Unjudged};
use crash::read_tree::{KnownRuns, ReadTree};
use crash::search::{Found, Search, SearchOptions};
use crash::strategy::inferred::KnownConditions;
use crash::survey::Survey;
use evidence::bundle::Expectation;
use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, CampaignError, Dispatch, Fate, Watch};
use fleet::same::{SameFile, is_taken_over};
use infer::Conditions;
use operation::boundaries::BoundarySource;
use operation::equivalence::Equivalence;
use recover::command::{Command, Input};
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};
use runner::runner::Runner;
use serde::{Deserialize, Serialize};
use supervise::temporary::Temporary;
use trace::TraceReader;
use verdict::position::CrashPositions;

use crate::code_path::choose_as_recorded;
use crate::session::{CheckSession, SessionError, survey};
use crate::settings::oracle;

/// What kind of campaign this is.
pub const KIND: &str = "crash points";

/// Machines that judge crash points.
#[derive(Debug)]
pub struct Fleet<C: ?Sized = dyn Campaign> {
    /// Names of more variables of the environment that recoveries need.
    pub variables: Vec<String>,
    campaign: Mutex<C>,
}

impl<C: Campaign> Fleet<C> {
    pub fn new(campaign: C, variables: Vec<String>) -> Self {
        Fleet { variables, campaign: Mutex::new(campaign) }
    }

    pub fn into_campaign(self) -> C {
        self.campaign.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fleet {
    fn campaign(&self) -> MutexGuard<'_, dyn Campaign + 'static> {
        self.campaign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn takes_over(&self, name: &str) -> bool {
        is_taken_over(name, &self.variables)
    }
}

/// A command as it is sent. Texts are bytes, see [`fleet::text`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SentCommand {
    program: String,
    args: Vec<String>,
    dir: String,
    stdin: Option<String>,
    /// Beside the worker's own.
    env: Vec<(String, String)>,
}

fn sent(bytes: impl AsRef<std::ffi::OsStr>) -> String {
    fleet::text::of(bytes.as_ref().as_bytes())
}

fn received(text: &str) -> Option<OsString> {
    fleet::text::bytes(text).map(OsString::from_vec)
}

impl SentCommand {
    fn of(command: &Command, takes_over: impl Fn(&str) -> bool) -> SentCommand {
        let taken = command.env.iter().filter(|(name, _)| name.to_str().is_some_and(&takes_over));
        SentCommand {
            program: sent(&command.program),
            args: command.args.iter().map(sent).collect(),
            dir: sent(&command.dir),
            stdin: match &command.stdin {
                Input::File(path) => Some(sent(path)),
                // Those of operations depend on the crash.
                Input::Empty | Input::Bytes(_) | Input::Operations(_) => None,
            },
            env: taken.map(|(name, value)| (sent(name), sent(value))).collect(),
        }
    }

    fn command(&self, own: &[(OsString, OsString)]) -> Option<Command> {
        let given: Option<Vec<(OsString, OsString)>> =
            self.env.iter().map(|(name, value)| Some((received(name)?, received(value)?))).collect();
        let given = given?;
        let mut env: Vec<(OsString, OsString)> =
            own.iter().filter(|(name, _)| given.iter().all(|(other, _)| other != name)).cloned().collect();
        env.extend(given);
        Some(Command {
            program: received(&self.program)?.into(),
            args: self.args.iter().map(|arg| received(arg)).collect::<Option<_>>()?,
            env,
            dir: received(&self.dir)?.into(),
            stdin: match &self.stdin {
                Some(path) => Input::File(received(path)?.into()),
                None => Input::Empty,
            },
        })
    }
}

/// What all units of a check have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    trace: BlobId,
    conditions: Option<BlobId>,
    options: SearchOptions,
    equivalence: bool,
    recovery: SentCommand,
    checker: Option<SentCommand>,
    exit_codes: Vec<i32>,
    patterns: Vec<String>,
    wall: Duration,
    cpu: Duration,
    memory: u64,
    output: u64,
    processes: u32,
    native: bool,
    real_time: bool,
    pools: Vec<(String, u64)>,
    names: Vec<String>,
    folders: Vec<String>,
    same: Vec<SameFile>,
}

/// What the units of a pass have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Pass {
    assumed: AssumedRepairs,
    positions: CrashPositions,
    answers: Option<Equivalence>,
    /// Why the fork server cannot be used.
    native: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Unit {
    pass: BlobId,
    points: PointsUnit,
}

/// What came of a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct UnitDone {
    points: PointsDone,
    /// Files that recoveries have changed where later ones see it.
    outside: Vec<String>,
    /// Why the fork server was not used, if it should have been.
    native: Option<String>,
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data has a form in JSON")
}

impl CheckSession<'_> {
    /// Tells the workers what this check is about.
    pub(crate) fn begin(&self, fleet: &Fleet, trace: &Path) -> Result<(), SessionError> {
        self.sent_job(fleet, trace).map_err(|CampaignError(error)| SessionError::Fleet(error))
    }

    fn sent_job(&self, fleet: &Fleet, trace: &Path) -> Result<(), CampaignError> {
        let mut campaign = fleet.campaign();
        let conditions = match self.options.conditions.as_ref().and_then(KnownConditions::get) {
            Some(conditions) => {
                let folder = Temporary::new("conditions")?;
                let file = folder.path().join("conditions");
                conditions.save(&file)?;
                Some(campaign.put(fs::read(&file)?)?)
            }
            None => None,
        };
        let takes_over = |name: &str| fleet.takes_over(name);
        let plan = self.plan;
        let job = Job {
            trace: campaign.put_file(trace)?,
            conditions,
            options: self.options.clone(),
            equivalence: self.equivalence,
            recovery: SentCommand::of(&plan.recovery, takes_over),
            checker: plan.checker.as_ref().map(|checker| SentCommand::of(checker, takes_over)),
            exit_codes: self.expectation.exit_codes.clone(),
            patterns: self.expectation.patterns.clone(),
            wall: plan.limits.wall,
            cpu: plan.limits.cpu,
            memory: plan.limits.memory,
            output: plan.limits.output,
            processes: plan.limits.processes,
            native: plan.engine == EngineChoice::Native,
            real_time: plan.real_time,
            pools: plan.pools.iter().map(|(path, len)| (sent(path), *len)).collect(),
            names: plan.names.clone(),
            folders: plan.folders.iter().map(sent).collect(),
            same: self.same_files(),
        };
        let job = campaign.put(json(&job))?;
        campaign.begin(job)
    }

    /// Programs, libraries and scripts that verdicts depend on.
    fn same_files(&self) -> Vec<SameFile> {
        let plan = self.plan;
        let mut paths: Vec<PathBuf> = Vec::new();
        for command in [Some(&plan.recovery), plan.checker.as_ref()].into_iter().flatten() {
            paths.extend(command.executable());
            paths.extend(command.args.iter().map(|arg| command.dir.join(arg)));
        }
        paths.extend(self.reader.tables().modules.iter().map(|module| PathBuf::from(&module.path)));
        let is_pool = |path: &Path| {
            plan.pools.iter().any(|(pool, _)| pool == path) || plan.names.iter().any(|name| Path::new(name) == path)
        };
        paths.retain(|path| {
            path.is_absolute() && path.is_file() && !is_pool(&path.canonicalize().unwrap_or_else(|_| path.clone()))
        });
        SameFile::of(paths)
    }

    pub(crate) fn run_elsewhere(
        &self,
        fleet: &Fleet,
        search: &Search<'_>,
        runner: &mut Runner,
        read_tree: Option<ReadTree>,
    ) -> Result<(Found, Vec<Unjudged>), SessionError> {
        let failed = |CampaignError(error): CampaignError| SessionError::Fleet(error);
        let mut campaign = fleet.campaign();
        let pass = Pass {
            assumed: (*search.assumed).clone(),
            positions: (*search.positions).clone(),
            answers: runner.equivalence.as_deref().cloned(),
            native: runner.refused.clone(),
        };
        let pass = campaign.put(json(&pass)).map_err(failed)?;
        let strange = Mutex::default();
        let mut points = Points { campaign: &mut *campaign, pass, strange: &strange };
        let (mut found, unjudged) = search.run_elsewhere(&mut points, read_tree).map_err(failed)?;
        let Strange { outside, native } = strange.into_inner().unwrap_or_else(PoisonError::into_inner);
        runner.outside.extend(outside);
        runner.refused = runner.refused.take().or(native);
        if let Some(tree) = &mut found.read_tree {
            let mut contradiction = None;
            let learn = |bytes: &[u8]| {
                if let Ok(runs) = serde_json::from_slice::<KnownRuns>(bytes) {
                    contradiction = contradiction.take().or(tree.learn(&runs).err());
                }
            };
            campaign.exchanged(&mut { learn }).map_err(failed)?;
            if contradiction.is_some() {
                found.read_tree = None;
                found.contradiction = found.contradiction.or(contradiction);
            }
        }
        Ok((found, unjudged))
    }
}

/// Crash points as units of a campaign.
struct Points<'c> {
    campaign: &'c mut dyn Campaign,
    pass: BlobId,
    strange: &'c Mutex<Strange>,
}

/// What workers met that the user must know.
#[derive(Debug, Default)]
struct Strange {
    outside: Vec<PathBuf>,
    native: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("a worker sent a result that makes no sense: {0}")]
struct Senseless(serde_json::Error);

impl Dispatch<PointsUnit, PointsDone> for Points<'_> {
    type Error = CampaignError;

    fn dispatch(
        &mut self,
        units: &[PointsUnit],
        watch: &Watch<'_, PointsDone, CampaignError>,
    ) -> Result<(), CampaignError> {
        let sent: Vec<Vec<u8>> =
            units.iter().map(|points| json(&Unit { pass: self.pass, points: points.clone() })).collect();
        let take = |number: usize, fate: Fate<Vec<u8>>| {
            let fate = match fate {
                Fate::Done(bytes) => {
                    let done: UnitDone = serde_json::from_slice(&bytes).map_err(Senseless)?;
                    let mut strange = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
                    strange.outside.extend(done.outside.iter().filter_map(|name| received(name)).map(PathBuf::from));
                    strange.native = strange.native.take().or(done.native);
                    Fate::Done(done.points)
                }
                Fate::SetAside(why) => Fate::SetAside(why),
            };
            (watch.take)(number, fate)
        };
        self.campaign.dispatch(&sent, &Watch { is_stopped: watch.is_stopped, take: &take })
    }
}

/// Where a worker gets what it is told.
pub type Fetch<'f> = dyn FnMut(BlobId) -> Result<Vec<u8>, String> + Send + 'f;

/// A check that this process judges crash points for.
#[derive(Debug)]
pub struct Post {
    job: Job,
    reader: TraceReader,
    survey: Survey,
    options: SearchOptions,
    station: Station,
    passes: Mutex<HashMap<BlobId, Arc<KnownPass>>>,
    _folder: Temporary,
}

#[derive(Debug)]
struct KnownPass {
    id: BlobId,
    assumed: Arc<AssumedRepairs>,
    positions: Arc<CrashPositions>,
    answers: Option<Arc<Equivalence>>,
    native: Option<String>,
    chosen: Arc<Chosen>,
}

impl Post {
    /// Gets ready. The message says why this machine is not fit for it.
    pub fn open(job: BlobId, fetch: &mut Fetch<'_>) -> Result<Post, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let job: Job = serde_json::from_slice(&fetch(job)?).map_err(|error| said(&error))?;
        SameFile::agree(&job.same)?;
        let folder = Temporary::new("worker").map_err(|error| said(&error))?;
        let trace = folder.path().join("trace");
        fs::write(&trace, fetch(job.trace)?).map_err(|error| format!("cannot keep the trace: {error}"))?;
        let reader = TraceReader::open(&trace).map_err(|error| said(&error))?;
        let mut options = job.options.clone();
        if let (Some(id), Some(known)) = (job.conditions, &options.conditions) {
            let file = folder.path().join("conditions");
            fs::write(&file, fetch(id)?).map_err(|error| format!("cannot keep the conditions: {error}"))?;
            options.conditions = Some(known.with(Conditions::load(&file).map_err(|error| said(&error))?));
        }
        let survey = survey(&reader, &options).map_err(|error| said(&error))?;
        let station = Station::new(job.equivalence);
        Ok(Post { job, reader, survey, options, station, passes: Mutex::default(), _folder: folder })
    }

    /// What another worker found out.
    pub fn learn(&self, exchanged: &[u8]) {
        if let Ok(runs) = serde_json::from_slice::<KnownRuns>(exchanged) {
            self.station.learn(&runs);
        }
    }

    fn pass(&self, id: BlobId, fetch: &mut Fetch<'_>) -> Result<Arc<KnownPass>, String> {
        let mut passes = self.passes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = passes.get(&id) {
            return Ok(Arc::clone(known));
        }
        let pass: Pass = serde_json::from_slice(&fetch(id)?).map_err(|error| error.to_string())?;
        let assumed = Arc::new(pass.assumed);
        let chosen =
            Chosen::of(&self.reader, &self.survey, &self.options, &assumed).map_err(|error| error.to_string())?;
        let known = Arc::new(KnownPass {
            id,
            assumed,
            positions: Arc::new(pass.positions),
            answers: pass.answers.map(Arc::new),
            native: pass.native,
            chosen: Arc::new(chosen),
        });
        // Units of the pass before may still be about.
        passes.retain(|_, other| Arc::strong_count(other) > 1);
        passes.insert(id, Arc::clone(&known));
        Ok(known)
    }

    fn search(&self, pass: &KnownPass) -> Search<'_> {
        let mut search = Search::new(&self.reader, &self.survey, &self.options);
        search.equivalence = self.job.equivalence;
        search.positions = Arc::clone(&pass.positions);
        search.assumed = Arc::clone(&pass.assumed);
        search
    }

    fn plan(&self, answers: Option<&Equivalence>) -> Option<RecoveryPlan> {
        let job = &self.job;
        let mut own = env::vars_os().collect();
        choose_as_recorded(&self.reader, &mut own);
        let operations = answers.map(|answers| {
            Arc::new(OperationPlan {
                workload: answers.workload.clone(),
                operations_after: answers.expected.operations_after,
                recorded: None,
                asking: answers.asking.clone(),
                boundaries: BoundarySource::Events,
            })
        });
        let expectation = Expectation {
            exit_codes: job.exit_codes.clone(),
            patterns: job.patterns.clone(),
            ..Expectation::default()
        };
        let path = |text: &String| received(text).map(PathBuf::from);
        Some(RecoveryPlan {
            recovery: job.recovery.command(&own)?,
            checker: match &job.checker {
                Some(checker) => Some(checker.command(&own)?),
                None => None,
            },
            oracle: oracle(&expectation).ok()?,
            limits: Limits {
                wall: job.wall,
                cpu: job.cpu,
                memory: job.memory,
                output: job.output,
                processes: job.processes,
            },
            pools: job.pools.iter().map(|(name, len)| Some((path(name)?, *len))).collect::<Option<_>>()?,
            engine: if job.native { EngineChoice::Native } else { EngineChoice::ForkServer },
            names: job.names.clone(),
            folders: job.folders.iter().map(path).collect::<Option<_>>()?,
            operations,
            served: None,
            cancel: Default::default(),
            real_time: job.real_time,
        })
    }
}

/// One job of a worker: a thread with a recovery of its own.
#[derive(Debug)]
pub struct Judge<'p> {
    post: &'p Post,
    at: Option<(Arc<KnownPass>, StationWorker<'p, Runner>)>,
}

/// What a unit brought: for the coordinator, for other workers, and whether it was stopped.
#[derive(Debug)]
pub struct Judged {
    pub done: Vec<u8>,
    pub exchanged: Option<Vec<u8>>,
    pub is_partial: bool,
}

impl<'p> Judge<'p> {
    pub fn new(post: &'p Post) -> Judge<'p> {
        Judge { post, at: None }
    }

    pub fn perform(&mut self, unit: &[u8], unwanted: &AtomicBool, fetch: &mut Fetch<'_>) -> Result<Judged, String> {
        let performed = self.judged(unit, unwanted, fetch);
        if performed.is_err() {
            // What failed may be the recovery's place: the next unit gets a new one.
            self.at = None;
        }
        performed
    }

    fn judged(&mut self, unit: &[u8], unwanted: &AtomicBool, fetch: &mut Fetch<'_>) -> Result<Judged, String> {
        let unit: Unit = serde_json::from_slice(unit).map_err(|error| error.to_string())?;
        let pass = self.post.pass(unit.pass, fetch)?;
        let search = self.post.search(&pass);
        let failed = |error: &dyn std::fmt::Display| error.to_string();
        let mut worker = match self.at.take() {
            Some((known, worker)) if known.id == pass.id => worker,
            Some((_, mut worker)) => {
                worker.turn_to(&search, &pass.chosen).map_err(|error| failed(&error))?;
                self.ready(worker.recovery(), &pass);
                worker
            }
            None => {
                let plan = self.post.plan(pass.answers.as_deref()).ok_or("the plan of recoveries makes no sense")?;
                let mut runner = Runner::new(plan).map_err(|error| failed(&error))?;
                runner.set_equivalence(self.post.job.equivalence);
                self.ready(&mut runner, &pass);
                StationWorker::new(&search, &pass.chosen, runner).map_err(|error| failed(&error))?
            }
        };
        let performed = worker.perform(&search, &self.post.station, &unit.points, unwanted);
        let (points, exchanged, is_partial) = performed.map_err(|error| failed(&error))?;
        let runner = worker.recovery();
        let outside = runner.outside.iter().map(sent).collect();
        let done = UnitDone { points, outside, native: runner.refused.clone() };
        self.at = Some((pass, worker));
        Ok(Judged { done: json(&done), exchanged: exchanged.map(|runs| json(&runs)), is_partial })
    }

    fn ready(&self, runner: &mut Runner, pass: &KnownPass) {
        runner.equivalence.clone_from(&pass.answers);
        if let Some(why) = pass.native.as_ref().filter(|_| runner.refused.is_none()) {
            runner.go_native(why.clone());
        }
    }
}
