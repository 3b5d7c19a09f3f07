//! What the workers of a campaign share: corpus, images, coverage, root causes, the budget.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::findings::Findings;
use super::helper::{Known, LONGEST_WAIT, WAIT};
use super::pick;
use crate::case::{Case, CaseId, FoundBy, Origin};
use crate::corpus::{About, Corpus, CorpusError, failed};
use crate::coverage::{Covered, News, Priority, Trail};
use crate::image::{Image, ImageId};
use crate::journal::{Journal, write_whole};
use crate::random::Random;
use crate::tails::Tails;
use crate::tree::{Node, Tree};

/// Mutants of one case in a row: they share its starting pool, which is then put in place once.
const BATCH: usize = 24;

/// How long a campaign goes on, and how it shares its time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budget {
    pub time: Option<Duration>,
    pub executions: Option<u64>,
    /// Of the time, for checks.
    pub check_share: f64,
}

/// One piece of work.
#[derive(Debug)]
pub enum Unit {
    /// Run this many mutants of a case.
    Mutate {
        parent: CaseId,
        input: Arc<[u8]>,
        /// To splice with.
        other: Arc<[u8]>,
        start: Arc<Image>,
        /// The start is not the case's own.
        elsewhere: bool,
        random: Random,
        count: usize,
    },
    /// Run a seed.
    Seed(Arc<[u8]>),
    /// Ask the helper, about a case that it has not seen, if there is one.
    Help(Option<Known>),
    Check {
        case: CaseId,
        input: Arc<[u8]>,
        start: Arc<Image>,
        /// The inputs that made its starting pool, and its own.
        lineage: Vec<Arc<[u8]>>,
        /// It has new PM transitions: let power fail in it.
        crash: bool,
    },
    /// Check what opening a crash image of this case does, and the end of its input after that.
    CheckImage { case: CaseId, input: Arc<[u8]>, start: Arc<Image>, lineage: Vec<Arc<[u8]>> },
}

/// A point of the plot: what was covered when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    pub second: u64,
    pub executions: u64,
    pub pm_transitions: usize,
    pub edges: usize,
    pub cases: usize,
    pub images: usize,
    pub findings: usize,
}

/// What was covered when, in all sittings of the campaign in this folder.
pub fn samples(folder: &Path) -> std::io::Result<Vec<Sample>> {
    Journal::read(&folder.join("coverage.jsonl"))
}

/// What a campaign remembers beside its lists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Saved {
    random: Random,
    executions: u64,
    seconds: u64,
    /// Cases from this one on were not checked.
    checked: Vec<CaseId>,
    /// So many images of the tree were opened for a check, if they are crash images.
    #[serde(default)]
    opened: usize,
}

#[derive(Debug)]
pub struct State {
    folder: PathBuf,
    pub corpus: Corpus,
    pub tree: Tree,
    pub covered: Covered,
    pub tails: Tails,
    pub findings: Findings,
    pub budget: Budget,
    random: Random,
    picks: Vec<u32>,
    seeds: VecDeque<Arc<[u8]>>,
    to_check: VecDeque<CaseId>,
    /// Linted only so far: power fails in them as well while there is time.
    deeper: Vec<CaseId>,
    checked: Vec<CaseId>,
    /// Images of the tree up to here were opened for a check.
    opened: usize,
    pub executions: u64,
    /// Executions of earlier sittings.
    begun: Instant,
    before: Duration,
    checking: Duration,
    pub jobs: usize,
    samples: Journal,
    last_sample: u64,
    /// PM counters that two runs of a case agreed on, and all of them. Edges would hide them: most are of the loader.
    pub stable: (u64, u64),
    pub hangs: u64,
    pub crashes: u64,
    pub unchecked: u64,
    /// Why a check was not possible, the first time.
    pub unchecked_why: Option<String>,
    pub news: String,
    /// There is somebody to ask.
    pub has_helper: bool,
    /// It is being asked.
    helping: bool,
    /// Executions when something new came last, and how many without news are borne.
    last_news: u64,
    wait: u64,
    /// Cases that the helper has seen.
    shown: BTreeSet<CaseId>,
    /// What it could not do, the first time.
    pub helper_trouble: Option<String>,
    /// Inputs that it suggested.
    pub suggested: u64,
    /// Of a slice: what the cases that were kept in it have covered.
    trails: Option<Vec<Trail>>,
    /// Nothing is checked for now.
    holds_checks: bool,
    /// Parts of the campaign that no worker could perform, and why.
    pub set_aside: Vec<String>,
}

/// A case that ran to its end.
#[derive(Clone, Copy, Debug)]
pub struct TriedCase<'a> {
    pub origin: Origin,
    pub input: &'a [u8],
    pub start: ImageId,
    /// The pool that it left.
    pub left: &'a Arc<Image>,
    pub trail: &'a Trail,
    /// It did the same twice.
    pub stable: bool,
}

impl State {
    pub fn open(folder: &Path, about: &About, budget: Budget, jobs: usize) -> Result<State, CorpusError> {
        let corpus = Corpus::open(folder, about)?;
        let images = folder.join("images");
        let tree = Tree::open(&images, about.pools.len()).map_err(failed("open", &images))?;
        let findings = Findings::open(folder).map_err(failed("open the findings in", folder))?;
        let plot = folder.join("coverage.jsonl");
        let (samples, plotted) = Journal::open::<Sample>(&plot).map_err(failed("open", &plot))?;
        let last_sample = plotted.last().map_or(0, |sample| sample.second);
        let saved = std::fs::read(folder.join("state.json")).ok();
        let saved: Option<Saved> = saved.and_then(|text| serde_json::from_slice(&text).ok());
        let saved = saved.unwrap_or(Saved {
            random: Random::new(about.seed),
            executions: 0,
            seconds: 0,
            checked: Vec::new(),
            opened: 0,
        });
        // A process that was killed has saved its cases, but perhaps not how far it was.
        let executions = corpus.cases().iter().map(|case| case.execution).max().unwrap_or(0).max(saved.executions);
        let seconds = corpus.cases().iter().map(|case| case.second).max().unwrap_or(0).max(saved.seconds);
        let is_checked = |case: &Case| saved.checked.contains(&case.id);
        let is_deeper = |case: &&Case| case.priority == Priority::Medium && is_checked(case);
        let deeper = corpus.cases().iter().filter(is_deeper).map(|case| case.id).collect();
        let to_check = corpus.cases().iter().filter(|case| case.priority > Priority::Low && !is_checked(case));
        Ok(State {
            folder: folder.to_owned(),
            to_check: to_check.map(|case| case.id).collect(),
            deeper,
            picks: vec![0; corpus.cases().len()],
            corpus,
            tree,
            covered: Covered::default(),
            tails: Tails::default(),
            findings,
            budget,
            random: saved.random,
            seeds: VecDeque::new(),
            checked: saved.checked,
            opened: saved.opened,
            executions,
            begun: Instant::now(),
            before: Duration::from_secs(seconds),
            checking: Duration::ZERO,
            jobs,
            samples,
            last_sample,
            stable: (0, 0),
            hangs: 0,
            crashes: 0,
            unchecked: 0,
            unchecked_why: None,
            news: String::new(),
            has_helper: false,
            helping: false,
            last_news: executions,
            wait: WAIT,
            shown: BTreeSet::new(),
            helper_trouble: None,
            suggested: 0,
            trails: None,
            holds_checks: false,
            set_aside: Vec::new(),
        })
    }

    /// From now on this is a slice: it goes on for so many executions with this seed, and knows what was covered.
    pub(super) fn begin_slice(&mut self, covered: Covered, seed: u64, executions: u64) {
        self.covered = covered;
        self.random = Random::new(seed);
        self.budget =
            Budget { time: None, executions: Some(self.executions + executions), check_share: self.budget.check_share };
        self.trails = Some(Vec::new());
        self.holds_checks = true;
    }

    pub(super) fn hold_checks(&mut self, hold: bool) {
        self.holds_checks = hold;
    }

    /// What the cases that a slice has kept have covered, in their order.
    pub(super) fn trails(&self) -> &[Trail] {
        self.trails.as_deref().unwrap_or_default()
    }

    /// Cases that wait for a check, at most so many, and whether power shall fail in them.
    pub(super) fn take_checks(&mut self, most: usize) -> Vec<(CaseId, bool)> {
        let taken = self.to_check.drain(..most.min(self.to_check.len()));
        taken.map(|id| (id, self.corpus.cases()[id.0 as usize].priority == Priority::High)).collect()
    }

    /// It was not checked after all.
    pub(super) fn check_later(&mut self, case: CaseId) {
        self.to_check.push_back(case);
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Inputs to run before anything else.
    pub fn give_seeds(&mut self, seeds: impl IntoIterator<Item = Vec<u8>>) {
        self.seeds.extend(seeds.into_iter().map(Arc::from));
    }

    /// Of the campaign, with earlier sittings.
    pub fn elapsed(&self) -> Duration {
        self.before.saturating_add(self.begun.elapsed())
    }

    /// Of this sitting.
    pub fn sitting(&self) -> Duration {
        self.begun.elapsed()
    }

    /// Is there nothing more to be run?
    pub fn is_over(&self) -> bool {
        self.budget.time.is_some_and(|time| self.elapsed() >= time)
            || self.budget.executions.is_some_and(|most| self.executions >= most)
    }

    /// What a worker shall do; none: nothing is left.
    pub fn next(&mut self, checks: bool) -> Result<Option<Unit>, CorpusError> {
        let checks = checks && !self.holds_checks;
        if self.is_over() {
            // A budget of executions leaves time for all checks.
            let may_check = checks && self.budget.time.is_none_or(|time| self.elapsed() < time);
            return if may_check { self.next_check() } else { Ok(None) };
        }
        if let Some(seed) = self.seeds.pop_front() {
            return Ok(Some(Unit::Seed(seed)));
        }
        let share = self.begun.elapsed().as_secs_f64() * self.jobs as f64 * self.budget.check_share;
        if checks && self.checking.as_secs_f64() <= share {
            if !self.to_check.is_empty() {
                return self.next_check();
            }
            // What came last is the furthest from what was checked.
            if let Some(id) = self.deeper.pop() {
                return self.check_of(id, true).map(Some);
            }
            if let Some(unit) = self.next_image()? {
                return Ok(Some(unit));
            }
        }
        if self.has_helper && !self.helping && self.executions - self.last_news >= self.wait {
            self.helping = true;
            return self.next_help().map(Some);
        }
        let Some(parent) = pick::case(self.corpus.cases(), &self.picks, &mut self.random) else { return Ok(None) };
        self.picks[parent.0 as usize] += 1;
        let case = self.corpus.cases()[parent.0 as usize].clone();
        let (start, own) = pick::start(&case, self.tree.nodes(), &mut self.random);
        let start = self.image(start)?;
        let other = CaseId(self.random.index(self.corpus.cases().len()) as u32);
        let random = Random::new(self.random.draw());
        let left = self.budget.executions.map_or(u64::MAX, |most| most - self.executions);
        Ok(Some(Unit::Mutate {
            parent,
            input: Arc::clone(self.corpus.input(parent)),
            other: Arc::clone(self.corpus.input(other)),
            start,
            elsewhere: !own,
            random,
            count: BATCH.min(usize::try_from(left).unwrap_or(BATCH)),
        }))
    }

    /// The best case that the helper has not seen: of the highest priority, and the newest of those.
    fn next_help(&mut self) -> Result<Unit, CorpusError> {
        let unseen = self.corpus.cases().iter().filter(|case| !self.shown.contains(&case.id));
        let Some(case) = unseen.max_by_key(|case| (case.priority, case.id)).cloned() else {
            return Ok(Unit::Help(None));
        };
        self.shown.insert(case.id);
        let start = self.image(case.start)?;
        Ok(Unit::Help(Some(Known { id: case.id, input: Arc::clone(self.corpus.input(case.id)), start })))
    }

    /// The helper was asked; `kept`: something of what it suggested was new.
    pub fn helped(&mut self, suggested: usize, kept: bool) {
        self.helping = false;
        self.last_news = self.executions;
        self.suggested += suggested as u64;
        self.wait = if kept { WAIT } else { (self.wait * 2).min(LONGEST_WAIT) };
    }

    /// Cases that were found this way, and the PM transitions that were new with them.
    pub fn found_by(&self, by: FoundBy) -> (usize, u64) {
        let cases = self.corpus.cases().iter().filter(|case| case.found_by == by);
        cases.fold((0, 0), |(count, new), case| (count + 1, new + u64::from(case.pm_transitions)))
    }

    fn next_check(&mut self) -> Result<Option<Unit>, CorpusError> {
        let Some(id) = self.to_check.pop_front() else { return Ok(None) };
        let crash = self.corpus.cases()[id.0 as usize].priority == Priority::High;
        self.check_of(id, crash).map(Some)
    }

    /// The next crash image. Many take the same way through the recovery code, and only the first of them is a case with news; but what a
    /// power failure in that code breaks depends on what was still to be done.
    fn next_image(&mut self) -> Result<Option<Unit>, CorpusError> {
        let nodes = &self.tree.nodes()[self.opened.min(self.tree.nodes().len())..];
        let is_crash = |node: &Node| node.crash.is_some() && self.corpus.get(node.case).is_some();
        let Some(at) = nodes.iter().position(is_crash) else {
            self.opened = self.tree.nodes().len();
            return Ok(None);
        };
        let (id, case) = (nodes[at].id, nodes[at].case);
        self.opened += at + 1;
        let start = self.image(id)?;
        let input = Arc::clone(self.corpus.input(case));
        let made_by = self.corpus.lineage(case, &self.tree);
        let lineage = made_by.into_iter().map(|id| Arc::clone(self.corpus.input(id))).collect();
        Ok(Some(Unit::CheckImage { case, input, start, lineage }))
    }

    /// The check of an image took this long.
    pub fn checked_image(&mut self, took: Duration) {
        self.checking += took;
    }

    pub(super) fn check_of(&mut self, id: CaseId, crash: bool) -> Result<Unit, CorpusError> {
        // Another machine names it.
        let Some(case) = self.corpus.cases().get(id.0 as usize) else {
            let unknown = std::io::Error::new(std::io::ErrorKind::InvalidData, format!("it has no case {}", id.0));
            return Err(failed("check a case of", &self.folder)(unknown));
        };
        let start = self.image(case.start)?;
        let lineage = self.corpus.lineage(id, &self.tree);
        Ok(Unit::Check {
            case: id,
            input: Arc::clone(self.corpus.input(id)),
            start,
            lineage: lineage.into_iter().map(|id| Arc::clone(self.corpus.input(id))).collect(),
            crash,
        })
    }

    pub fn waiting_checks(&self) -> usize {
        self.to_check.len()
    }

    pub fn image(&mut self, id: ImageId) -> Result<Arc<Image>, CorpusError> {
        let folder = self.folder.join("images");
        self.tree.image(id).map_err(failed("read an image in", &folder))
    }

    /// A check took this long.
    pub fn checked(&mut self, case: CaseId, crash: bool, took: Duration) {
        self.checking += took;
        if !crash {
            self.deeper.push(case);
        }
        if !self.checked.contains(&case) {
            self.checked.push(case);
        }
    }

    /// Keeps a case that has news, and the pool that it left.
    pub fn keep(&mut self, tried: &TriedCase<'_>) -> Result<Option<(CaseId, Priority)>, CorpusError> {
        // Another worker may have been faster.
        if self.covered.news(tried.trail).priority().is_none() {
            return Ok(None);
        }
        self.keep_anyway(tried, self.executions).map(Some)
    }

    /// Keeps a case that was found after so many executions, also one without news.
    pub(super) fn keep_anyway(
        &mut self,
        tried: &TriedCase<'_>,
        execution: u64,
    ) -> Result<(CaseId, Priority), CorpusError> {
        let &TriedCase { origin, input, start, left, trail, stable } = tried;
        let news: News = self.covered.news(trail);
        let priority = news.priority().unwrap_or(Priority::Low);
        self.covered.add(trail);
        let Origin { parent, found_by } = origin;
        let case = Case {
            id: CaseId(0),
            parent,
            start,
            left: left.id(),
            priority,
            execution,
            second: self.elapsed().as_secs(),
            pm_transitions: news.pm_transitions,
            edges: news.edges,
            file: String::new(),
            stable,
            found_by,
        };
        self.last_news = self.executions;
        let id = self.corpus.add(case, input)?;
        self.picks.push(0);
        if let Some(trails) = &mut self.trails {
            trails.push(trail.clone());
        }
        let images = self.folder.join("images");
        self.tree.add(left, start, id, None).map_err(failed("write an image in", &images))?;
        if priority > Priority::Low {
            self.to_check.push_back(id);
        }
        let by = if found_by == FoundBy::Solving { ", solved" } else { "" };
        self.news = format!(
            "case {id}: {} new PM transitions, {} new edges, {} operations or bytes{by}",
            news.pm_transitions,
            news.edges,
            input.len()
        );
        Ok((id, priority))
    }

    /// How things stand.
    pub fn sample(&self) -> Sample {
        Sample {
            second: self.elapsed().as_secs(),
            executions: self.executions,
            pm_transitions: self.covered.pm_transitions,
            edges: self.covered.edges,
            cases: self.corpus.cases().len(),
            images: self.tree.nodes().len(),
            findings: self.findings.all().len(),
        }
    }

    /// Writes down how far the campaign is: every second, and at its end.
    pub fn save(&mut self, end: bool) -> Result<(), CorpusError> {
        let sample = self.sample();
        if !end && sample.second == self.last_sample {
            return Ok(());
        }
        self.last_sample = sample.second;
        let plot = self.folder.join("coverage.jsonl");
        self.samples.add(&sample).map_err(failed("write", &plot))?;
        let saved = Saved {
            random: self.random.clone(),
            executions: self.executions,
            seconds: sample.second,
            checked: self.checked.clone(),
            opened: self.opened,
        };
        let path = self.folder.join("state.json");
        let text = serde_json::to_vec(&saved).unwrap_or_default();
        write_whole(&path, &text).map_err(failed("write", &path))
    }
}
