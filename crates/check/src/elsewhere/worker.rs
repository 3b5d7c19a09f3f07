//! A worker's side: performs units of a check.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use cause::analyse::{Allowance, look_ahead};
use cause::verdict_cache::ForeignVerdicts;
use crash::assumed::AssumedRepairs;
use crash::chosen::Chosen;
use crash::elsewhere::{PointsDone, Station, StationWorker};
use crash::read_tree::KnownRuns;
use crash::search::{Search, SearchOptions};
use crash::survey::Survey;
use evidence::bundle::Expectation;
use fleet::blob::BlobId;
use fleet::same::SameFile;
use infer::Conditions;
use operation::boundaries::BoundarySource;
use operation::equivalence::Equivalence;
use recover::limits::Limits;
use runner::plan::{EngineChoice, OperationPlan, RecoveryPlan};
use runner::runner::Runner;
use supervise::temporary::Temporary;
use trace::TraceReader;
use verdict::position::CrashPositions;

use super::sent::{Job, Pass, Unit, UnitDone, Work, json, received, sent};
use crate::code_path::choose_as_recorded;
use crate::session::survey;
use crate::settings::oracle;

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
    /// What is known for the search for causes.
    verdicts: ForeignVerdicts,
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
        let verdicts = ForeignVerdicts::default();
        Ok(Post { job, reader, survey, options, station, verdicts, passes: Mutex::default(), _folder: folder })
    }

    /// What another worker found out.
    pub fn learn(&self, exchanged: &[u8]) {
        if let Ok(runs) = serde_json::from_slice::<KnownRuns>(exchanged) {
            self.station.learn(&runs);
            self.verdicts.learn(&runs);
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
        let (points, exchanged, is_partial) = match unit.work {
            Work::Points(points) => {
                let performed = worker.perform(&search, &self.post.station, &points, unwanted);
                let (points, exchanged, is_partial) = performed.map_err(|error| failed(&error))?;
                exchanged.iter().for_each(|runs| self.post.verdicts.learn(runs));
                (points, exchanged, is_partial)
            }
            Work::Causes(outcomes) => {
                let is_over = || unwanted.load(Ordering::Relaxed);
                let allowance = Allowance { is_over: &is_over, ..Allowance::default() };
                let memory = self.post.verdicts.cache(Arc::clone(&pass.positions), Arc::clone(&pass.assumed));
                let (reader, rules) = (&self.post.reader, self.post.options.rules);
                let looked = look_ahead(reader, rules, &outcomes, memory, worker.recovery(), allowance);
                looked.map_err(|error| failed(&error))?;
                let exchanged = self.post.verdicts.new_runs();
                exchanged.iter().for_each(|runs| self.post.station.learn(runs));
                (PointsDone::default(), exchanged, is_over())
            }
        };
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
