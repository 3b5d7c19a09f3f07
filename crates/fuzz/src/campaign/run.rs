//! The workers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use finding::blame::Libraries;
use finding::note::{Note, StartingPool};
use lint::lint::Active;
use verdict::end::End;

use super::checks::CheckError;
use super::findings::Found;
use super::helper::{Asked, Helper, Known};
use super::misbehaviour;
use super::state::{Budget, State, TriedCase, Unit};
use crate::case::{CaseId, FoundBy, Origin};
use crate::corpus::{About, CorpusError, failed};
use crate::coverage::{Priority, Trail};
use crate::crashes::crash_images;
use crate::examine::Examination;
use crate::execute::{Delivery, ExecuteError, Execution, Executor, Subject, Until};
use crate::image::{Image, ImageId};
use crate::inputs::Inputs;
use crate::random::Random;
use crate::recorded::{RecordCaseError, record_case};
use crate::tails::Length;

/// Between two looks at how things stand.
const LOOK: Duration = Duration::from_millis(250);
/// Lines of a short input for a pool that others have filled.
const SHORT: usize = 8;
/// Parts of an input that follow the opening of a crash image.
const AFTER_OPENING: usize = 3;

/// A campaign.
pub struct FuzzCampaign<'a> {
    pub subject: &'a Subject,
    pub inputs: &'a dyn Inputs,
    /// None: nothing is checked.
    pub examination: Option<&'a Examination>,
    /// Makes the rules of the lint anew for each case: they keep what they saw.
    pub rules: &'a (dyn Fn() -> Vec<Active> + Sync),
    /// Functions that rules want to know of.
    pub watch: Vec<String>,
    pub libraries: &'a Libraries,
    pub folder: PathBuf,
    /// That folder as the user knows it.
    pub shown: PathBuf,
    pub seed: u64,
    pub jobs: usize,
    pub budget: Budget,
    pub seeds: Vec<Vec<u8>>,
    /// What the pools held before the first case; by default they are not there.
    pub root: Image,
    /// Asked where mutation is stuck.
    pub helper: Option<&'a Mutex<dyn Helper>>,
    pub stop: &'a AtomicBool,
    /// Called now and then, and whenever there is a new finding.
    pub on_progress: &'a (dyn Fn(&State, Option<&Found>) + Sync),
}

impl std::fmt::Debug for FuzzCampaign<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Campaign({})", self.folder.display())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    #[error(transparent)]
    Corpus(#[from] CorpusError),
    #[error(transparent)]
    Execute(#[from] ExecuteError),
    #[error(transparent)]
    Record(#[from] RecordCaseError),
    #[error(transparent)]
    Check(#[from] CheckError),
    /// Units of a round.
    #[error("{0}")]
    Elsewhere(String),
    /// Nothing was covered at all.
    #[error("the program never touched a pool in any of {0} runs")]
    NoPm(u64),
    #[error("none of the first {0} inputs was run to its end: the program crashes or hangs each time")]
    NothingRuns(u64),
}

pub(super) struct Shared<'a> {
    pub campaign: &'a FuzzCampaign<'a>,
    pub state: Mutex<State>,
    /// A worker has failed: the others end.
    pub failed: AtomicBool,
}

impl Shared<'_> {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stopped(&self) -> bool {
        self.campaign.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }
}

impl FuzzCampaign<'_> {
    pub fn about(&self) -> About {
        let command = &self.subject.command;
        let words = std::iter::once(command.program.display().to_string())
            .chain(command.args.iter().map(|word| word.to_string_lossy().into_owned()));
        About {
            version: crate::corpus::VERSION,
            command: words.collect(),
            delivery: delivery(&self.subject.delivery).to_owned(),
            pools: self.subject.pools.clone(),
            seed: self.seed,
        }
    }

    /// Goes on until the budget is over or it is stopped.
    pub fn run(&self) -> Result<State, CampaignError> {
        let mut state = self.open()?;
        let mut executor = Executor::new(self.subject.clone())?;
        self.know_again(&mut state, &mut executor)?;
        self.begin(&mut state)?;
        let state = self.work(state, executor, self.jobs)?;
        if state.covered.pm_transitions == 0 && state.executions > 0 && state.findings.all().is_empty() {
            return Err(CampaignError::NoPm(state.executions));
        }
        Ok(state)
    }

    pub(super) fn open(&self) -> Result<State, CampaignError> {
        let mut state = State::open(&self.folder, &self.about(), self.budget, self.jobs)?;
        state.has_helper = self.helper.is_some();
        Ok(state)
    }

    /// Gives a campaign that has no case yet its first inputs.
    pub(super) fn begin(&self, state: &mut State) -> Result<(), CampaignError> {
        if state.corpus.cases().is_empty() {
            if !self.root.is_none() {
                let images = self.folder.join("images");
                let root = Arc::new(self.root.clone());
                state
                    .tree
                    .add(&root, ImageId::NONE, CaseId(u32::MAX), None)
                    .map_err(failed("write an image in", &images))?;
            }
            let mut random = Random::new(self.seed);
            let seeds = match self.seeds.is_empty() {
                true => vec![self.inputs.first(&mut random)],
                false => self.seeds.clone(),
            };
            state.give_seeds(seeds);
        }
        Ok(())
    }

    /// Lets the jobs work until the budget is over.
    pub(super) fn work(&self, state: State, executor: Executor, jobs: usize) -> Result<State, CampaignError> {
        let shared = Shared { campaign: self, state: Mutex::new(state), failed: AtomicBool::new(false) };
        let results: Vec<Result<(), CampaignError>> = std::thread::scope(|scope| {
            let mut executors = vec![Some(executor)];
            executors.resize_with(jobs.max(1), || None);
            let workers: Vec<_> = executors.into_iter().map(|executor| scope.spawn(|| shared.work(executor))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or(Ok(()))).collect()
        });
        let mut state = shared.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What was found is safe in any case.
        let saved = state.save(true);
        results.into_iter().collect::<Result<(), CampaignError>>()?;
        saved?;
        Ok(state)
    }

    /// Runs the cases of earlier sittings again, to know what they cover.
    pub(super) fn know_again(&self, state: &mut State, executor: &mut Executor) -> Result<(), CampaignError> {
        for number in 0..state.corpus.cases().len() {
            let case = state.corpus.cases()[number].clone();
            let input = Arc::clone(state.corpus.input(case.id));
            let start = state.image(case.start)?;
            let execution = executor.run(&input, &start)?;
            state.covered.add(&execution.trail);
            // It was killed between the case and what it left.
            if state.tree.node(case.left).is_none() {
                let left = Arc::new(executor.left()?);
                let images = self.folder.join("images");
                state.tree.add(&left, case.start, case.id, None).map_err(failed("write an image in", &images))?;
            }
            if self.stop.load(Ordering::Relaxed) {
                break;
            }
        }
        Ok(())
    }
}

/// Its name in the corpus.
pub fn delivery(delivery: &Delivery) -> &'static str {
    match delivery {
        Delivery::Operations => "operations",
        Delivery::Stdin => "stdin",
        Delivery::File(_) => "file",
        Delivery::Arguments => "arguments",
    }
}

impl Shared<'_> {
    fn work(&self, executor: Option<Executor>) -> Result<(), CampaignError> {
        let result = self.units(executor);
        if result.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        result
    }

    fn units(&self, executor: Option<Executor>) -> Result<(), CampaignError> {
        let mut executor = match executor {
            Some(executor) => executor,
            None => Executor::new(self.campaign.subject.clone())?,
        };
        let mut looked = Instant::now();
        while !self.is_stopped() {
            let unit = {
                let mut state = self.state();
                let unit = state.next(self.campaign.examination.is_some())?;
                if looked.elapsed() >= LOOK {
                    looked = Instant::now();
                    state.save(false)?;
                    (self.campaign.on_progress)(&state, None);
                }
                unit
            };
            match unit {
                None if self.state().is_over() => return Ok(()),
                // Another worker runs the seeds.
                None => std::thread::sleep(Duration::from_millis(5)),
                Some(Unit::Seed(input)) => {
                    let root = Arc::new(self.campaign.root.clone());
                    self.try_one(&mut executor, Origin { parent: None, found_by: FoundBy::Seed }, &input, 0, &root)?;
                    let mut state = self.state();
                    if state.corpus.cases().is_empty() {
                        // It broke down: without any case there is nothing to mutate.
                        if state.executions >= MOST_BROKEN {
                            return Err(CampaignError::NothingRuns(state.executions));
                        }
                        let mut random = Random::new(self.campaign.seed ^ state.executions);
                        state.give_seeds([self.campaign.inputs.mutate(&input, b"", &mut random)]);
                    }
                }
                Some(Unit::Mutate { parent, input, other, start, elsewhere, mut random, count }) => {
                    let origin = Origin { parent: Some(parent), found_by: FoundBy::Mutation };
                    let kept = if elsewhere { 0 } else { self.kept(&input, &mut random) };
                    for _ in 0..count {
                        let from = if elsewhere { self.shortened(&input, &mut random) } else { input.to_vec() };
                        let mutant = self.campaign.inputs.mutate_after(&from, kept, &other, &mut random);
                        self.try_one(&mut executor, origin, &mutant, kept, &start)?;
                        if self.is_stopped() || self.state().is_over() {
                            break;
                        }
                    }
                }
                Some(Unit::Help(case)) => self.ask(&mut executor, case)?,
                Some(Unit::Check { case, input, start, lineage, crash }) => {
                    let began = Instant::now();
                    self.check(case, &input, &start, &lineage, crash)?;
                    self.state().checked(case, crash, began.elapsed());
                }
                Some(Unit::CheckImage { case, input, start, mut lineage }) => {
                    let began = Instant::now();
                    let parts = self.campaign.inputs.parts(&input);
                    let from = parts.len().checked_sub(AFTER_OPENING).map_or(0, |first| parts[first].start);
                    let input: Arc<[u8]> = Arc::from(&input[from..]);
                    lineage.push(Arc::clone(&input));
                    self.check_image(case, &input, &start, &lineage)?;
                    self.state().checked_image(began.elapsed());
                }
            }
        }
        Ok(())
    }

    /// Of an input for another pool, only some now and then: a pool that is full needs few operations more.
    fn shortened(&self, input: &[u8], random: &mut Random) -> Vec<u8> {
        let parts = self.campaign.inputs.parts(input);
        if parts.len() <= SHORT || random.once_in(2) {
            return input.to_vec();
        }
        let first = random.index(parts.len());
        let last = (first + random.small(SHORT)).min(parts.len()) - 1;
        input[parts[first].start..parts[last].end].to_vec()
    }

    /// How much of an input the mutants of a batch share: none of it, or up to one of its parts, the later the likelier. They are forked
    /// behind it.
    fn kept(&self, input: &[u8], random: &mut Random) -> usize {
        let parts = self.campaign.inputs.parts(input);
        if parts.len() < 2 || random.once_in(3) {
            return 0;
        }
        let back = random.small(parts.len() - 1);
        parts[parts.len() - back].start
    }

    /// Lets the helper think, and runs what it suggests.
    fn ask(&self, executor: &mut Executor, case: Option<Known>) -> Result<(), CampaignError> {
        let Some(helper) = self.campaign.helper else { return Ok(()) };
        let mut helper = helper.lock().unwrap_or_else(PoisonError::into_inner);
        let go_on = || !self.is_stopped() && !self.state().is_over();
        let suggested = helper.help(&Asked { subject: self.campaign.subject, case, go_on: &go_on });
        let trouble = helper.trouble();
        drop(helper);
        if trouble.is_some() {
            self.state().helper_trouble = trouble;
        }
        let before = self.state().found_by(FoundBy::Solving).0;
        for one in &suggested {
            let origin = Origin { parent: Some(one.parent), found_by: FoundBy::Solving };
            self.try_one(executor, origin, &one.input, 0, &one.start)?;
        }
        let mut state = self.state();
        let kept = state.found_by(FoundBy::Solving).0 > before;
        state.helped(suggested.len(), kept);
        Ok(())
    }

    /// Runs an input, whose first `kept` bytes it shares with those before it; if there is news, keeps it.
    fn try_one(
        &self,
        executor: &mut Executor,
        origin: Origin,
        input: &[u8],
        kept: usize,
        start: &Arc<Image>,
    ) -> Result<(), CampaignError> {
        let cut = self.try_cut(executor, input, kept, start)?;
        if cut == CutRun::SaysNothing {
            return Ok(());
        }
        let execution = executor.run_after(input, kept, start, Until::End)?;
        if let CutRun::Sample(maps) = cut {
            self.state().tails.learn(&maps, executor.maps());
        }
        let is_news = {
            let mut state = self.state();
            state.executions += 1;
            state.covered.news(&execution.trail).priority().is_some()
        };
        if execution.is_orderly() && !is_news {
            return Ok(());
        }
        // Once more, all of it: what it leaves, and whether it does the same again.
        let again = executor.run(input, start)?;
        if !again.is_orderly() {
            return self.broke_down(&mut self.state(), executor, &again, input, start);
        }
        if !execution.is_orderly() {
            return Ok(());
        }
        let left = Arc::new(executor.left()?);
        let stable = again.trail == execution.trail;
        let first = execution.trail.pm().count();
        let trail = if stable { execution.trail } else { common(&execution.trail, &again.trail) };
        let kept = {
            let mut state = self.state();
            state.stable.0 += trail.pm().count() as u64;
            state.stable.1 += again.trail.pm().count().max(first) as u64;
            state.keep(&TriedCase { origin, input, start: start.id(), left: &left, trail: &trail, stable })?
        };
        if let Some((id, Priority::High)) = kept {
            self.add_crash_images(id, input, start)?;
        }
        Ok(())
    }

    /// Runs an input up to its end, where programs do the same at the end of every input.
    fn try_cut(
        &self,
        executor: &mut Executor,
        input: &[u8],
        kept: usize,
        start: &Arc<Image>,
    ) -> Result<CutRun, CampaignError> {
        let length = if executor.can_cut() { self.state().tails.length() } else { Length::Whole };
        if length == Length::Whole {
            return Ok(CutRun::None);
        }
        let cut = executor.run_after(input, kept, start, Until::InputRead)?;
        if length == Length::Sample {
            return Ok(CutRun::Sample(executor.maps().to_vec()));
        }
        let mut state = self.state();
        let State { tails, covered, .. } = &mut *state;
        let says_nothing = cut.is_orderly() && !tails.is_news(&cut.trail, covered);
        state.executions += u64::from(says_nothing);
        Ok(if says_nothing { CutRun::SaysNothing } else { CutRun::None })
    }

    /// A run that did not end by itself.
    fn broke_down(
        &self,
        state: &mut State,
        executor: &Executor,
        execution: &Execution,
        input: &[u8],
        start: &Arc<Image>,
    ) -> Result<(), CampaignError> {
        match execution.report.end {
            End::Hung => state.hangs += 1,
            _ => state.crashes += 1,
        }
        let at = executor.broke_down_at();
        let Some(mut finding) = misbehaviour::finding(&execution.report.end, at, self.campaign.libraries) else {
            return Ok(());
        };
        if state.findings.knows(&finding.id) {
            return Ok(());
        }
        let out = self.campaign.shown.display();
        let pool = match start.is_none() {
            true => StartingPool::None,
            false => match state.tree.node(start.id()).and_then(|node| node.crash.clone()) {
                Some(crash) => StartingPool::CrashImage { event: crash.event, state: crash.state },
                None => StartingPool::OfEarlierCase,
            },
        };
        finding.notes.push(Note::BeganWith { pool });
        finding.replay = Some(format!("fencepost fuzz replay --out {out} {}", finding.id));
        let found = Found {
            finding,
            case: CaseId(state.corpus.cases().len() as u32),
            second: state.elapsed().as_secs(),
            execution: state.executions,
        };
        let folder = self.campaign.folder.clone();
        if state.findings.add(found.clone(), None, input, start).map_err(failed("write a finding in", &folder))? {
            (self.campaign.on_progress)(state, Some(&found));
        }
        Ok(())
    }

    /// Power fails during a case with new PM transitions: what is left are starting pools.
    fn add_crash_images(&self, id: CaseId, input: &[u8], start: &Image) -> Result<(), CampaignError> {
        let recorded = record_case(self.campaign.subject, input, start, Vec::new())?;
        let mut random = Random::new(self.campaign.seed ^ (u64::from(id.0) << 20));
        // A recording that cannot be walked gives no images; its check says why.
        let Ok(images) = crash_images(&recorded, &self.campaign.subject.pools, &mut random) else { return Ok(()) };
        let mut state = self.state();
        let folder = self.campaign.folder.join("images");
        for (crash, image) in images {
            let image = Arc::new(image);
            state.tree.add(&image, start.id(), id, Some(crash)).map_err(failed("write an image in", &folder))?;
        }
        Ok(())
    }
}

/// A run that ended where its input did.
#[derive(PartialEq, Eq)]
enum CutRun {
    /// There is none, or it is not enough.
    None,
    /// There is nothing new in it.
    SaysNothing,
    /// Its maps, to be compared with those of a whole run.
    Sample(Vec<u8>),
}

/// First inputs that break down, before it is said that nothing runs.
pub(super) const MOST_BROKEN: u64 = 16;

/// Counters that two runs of the same case agree on.
fn common(one: &Trail, other: &Trail) -> Trail {
    let counters = one.counters.iter().filter(|counter| other.counters.binary_search(counter).is_ok());
    Trail { counters: counters.copied().collect() }
}
