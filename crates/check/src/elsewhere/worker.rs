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
        if pass.answers.as_ref().is_some_and(|answers| !answers.is_sound()) {
            return Err("the operations of the campaign and their answers do not belong together".to_owned());
        }
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
        let done = UnitDone { points, outside, native: runner.refused.clone(), reuse_differs: runner.reuse_differs };
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

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use operation::answers::Answers;
    use operation::boundaries::OperationBoundaries;
    use operation::equivalence::Asking;
    use operation::expected::Expected;
    use operation::workload::Workload;
    use parser_tests::hammer::hammer;
    use recover::report::RunReport;
    use trace::event::{EventId, ExitStatus};
    use trace::{Meta, Outcome, TraceWriter};
    use verdict::end::End;
    use verdict::position::CrashPosition;
    use verdict::verdict::Verdict;

    use super::super::sent::SentCommand;
    use super::*;

    /// The trace of a run without any event.
    fn trace() -> Vec<u8> {
        let folder = Temporary::new("trace").expect("a folder");
        let path = folder.path().join("trace");
        let writer = TraceWriter::create(&path, Meta::default()).expect("begun");
        writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).expect("written");
        fs::read(path).expect("a trace")
    }

    fn job(trace: &[u8]) -> Job {
        let recovery = SentCommand {
            program: "/bin/true".to_owned(),
            args: vec!["verify".to_owned()],
            dir: "/".to_owned(),
            stdin: None,
            env: vec![("LANG".to_owned(), "C".to_owned())],
        };
        Job {
            trace: BlobId::of(trace),
            conditions: None,
            options: SearchOptions::default(),
            equivalence: true,
            checker: Some(recovery.clone()),
            recovery,
            exit_codes: vec![0],
            patterns: vec!["error|bad".to_owned()],
            wall: std::time::Duration::from_secs(10),
            cpu: std::time::Duration::from_secs(10),
            memory: 1 << 30,
            output: 1 << 20,
            processes: 64,
            native: false,
            real_time: false,
            pools: vec![("/tmp/pool".to_owned(), 4096)],
            names: vec!["pool".to_owned()],
            folders: vec!["/tmp".to_owned()],
            same: Vec::new(),
        }
    }

    fn opened(job: &[u8], trace: &[u8]) -> Result<Post, String> {
        let id = BlobId::of(job);
        let mut fetch = |wanted| match wanted == id {
            true => Ok(job.to_vec()),
            false if wanted == BlobId::of(trace) => Ok(trace.to_vec()),
            false => Err("there is no such blob".to_owned()),
        };
        Post::open(id, &mut fetch)
    }

    fn answers(texts: &[&str]) -> Answers {
        let mut answers = Answers::default();
        texts.iter().for_each(|text| answers.push(text.as_bytes()));
        answers
    }

    /// Three operations, one of them a window, and two queries.
    fn equivalence() -> Equivalence {
        let workload =
            Workload::new(b"put 1 10\nput 2 20 === put 3 30\ndel 1\n", b"get 1\nget 2\n").expect("operations");
        let workload = workload.with_windows("===").expect("a window");
        let mut expected = Expected::new(&workload, 2);
        expected.whole = answers(&["ok\n", "ok\n", "ok\n"]);
        expected.readbacks = vec![Some(answers(&["10\n", "20\n"])); 4];
        expected.without = vec![Some(answers(&["ok\n", "none\n"])), None, Some(answers(&["10\n", "20\n"]))];
        expected.fails_without = BTreeMap::from([(1, End::Exited(3))]);
        expected.unknown = BTreeSet::from([1]);
        expected.at_boundary = vec![answers(&["ok\n", "20\n"])];
        expected.orders = BTreeMap::from([(3, vec![answers(&["ok\n", "30\n"])])]);
        let boundaries = OperationBoundaries::default();
        Equivalence { workload, boundaries, expected, asking: Asking::Fed, forgiven: BTreeMap::new() }
    }

    /// As runs of recoveries use it, at every position.
    fn use_all(answers: &Equivalence) {
        let run = RunReport {
            end: End::Exited(3),
            stdout: b"ok\n10\n20\n".to_vec(),
            stderr: Vec::new(),
            boundaries: vec![0, 3, 6, 9],
            output_cut: false,
            cpu: Default::default(),
            wall: Default::default(),
            reads: None,
            dirtied: Vec::new(),
            pools_replaced: false,
            tree_changed: false,
            outside: Vec::new(),
        };
        let all = (0..5).flat_map(|number| [CrashPosition::During(number), CrashPosition::After(number)]);
        for position in all.chain([CrashPosition::Before, answers.position(EventId(7))]) {
            for range in answers.byte_ranges(position) {
                let _ = &answers.workload.text()[range.start as usize..range.end as usize];
            }
            answers.allowed(position);
            answers.judge(position, &run, Verdict::Pass);
            answers.judge_native(position, &run);
            answers.wrong_answers(position, &run);
            answers.fails_rightly_native(position, &run);
        }
    }

    /// They are refused, or made ready for.
    #[test]
    fn altered_jobs() {
        let trace = trace();
        let job = json(&job(&trace));
        opened(&job, &trace).expect("a post").plan(None).expect("a plan");
        hammer("check-job", &[job], &|input| {
            if let Ok(post) = opened(input, &trace) {
                post.plan(None);
            }
        });
    }

    /// They are refused, or judged by.
    #[test]
    fn altered_passes() {
        let trace = trace();
        let post = opened(&json(&job(&trace)), &trace).expect("a post");
        let pass = |answers| {
            let (assumed, positions) = (AssumedRepairs::default(), CrashPositions::new(vec![EventId(3), EventId(5)]));
            json(&Pass { assumed, positions, answers, native: None })
        };
        let take = |input: &[u8]| {
            let known = post.pass(BlobId::of(input), &mut |_| Ok(input.to_vec()))?;
            post.search(&known);
            post.plan(known.answers.as_deref());
            known.answers.iter().for_each(|answers| use_all(answers));
            Ok::<(), String>(())
        };
        let passes = [pass(Some(equivalence())), pass(None)];
        passes.iter().for_each(|pass| take(pass).expect("a pass"));
        hammer("check-pass", &passes, &|input| drop(take(input)));
    }
}
