//! From the outcomes of a search to root causes, each analysed once.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crash::assignment::Assignment;
use crash::assumed::without_assumptions;
use crash::outcome::{FailingState, PointOutcome};
use crash::points::Point;
use crash::recovery::Recovery;
use crash::strategy::StrategySpec;
use crash::view::PointView;
use crash::walk::{Rules, Walk, WalkError};
use finding::finding::Class;
use finding::site::Site;
use persistency::point::Content;
use persistency::states::CrashState;
use rustc_hash::FxHashMap;
use trace::event::{ContextId, EventId};
use trace::{ReadError, TraceReader};
use verdict::symptom::{Symptom, SymptomKey};
use verdict::verdict::Verdict;

use crate::ahead::{Ahead, Part};
use crate::classify::{Classified, ClassifyError, Completes, classify, is_breakdown};
use crate::minimise::{Minimal, minimise};
use crate::point_evaluator::{EvaluateError, PointEvaluator};
use crate::repair::{self, Remedy, Repair};
use crate::store_history::{self, StoreFate, StoreInfo};
use crate::storing_code::{StoringCode, StoringCodes};
use crate::verdict_cache::VerdictCache;

/// Why a program loses or mixes up data.
#[derive(Clone, Debug)]
pub struct RootCause {
    pub class: Class,
    pub missing: Vec<StoreInfo>,
    pub present: Vec<StoreInfo>,
    pub program_order_is_wrong: bool,
    /// Recovery fails with every store in PM.
    pub in_program_order: bool,
    /// Of the missing store, in program order.
    pub completes: Completes,
    /// All missing stores become durable in the end, with later stores to their lines.
    pub by_accident: bool,
    pub point: Point,
    /// The smallest failing state.
    pub state: CrashState,
    pub verdict: Verdict,
    pub repair: Option<Repair>,
    /// Where the missing stores are flushed, if all that they lack is a fence in time.
    pub flushed_at: Option<Site>,
    /// Failing states that it explains, this one included.
    pub explains: u64,
    /// Crash points where they are, without repetition; not more than a few hundred.
    pub points: Vec<EventId>,
    /// The pending lines of the point, for the report: how many states were possible there.
    pub dirty_lines: usize,
}

impl RootCause {
    /// The missing stores are flushed in time, and a fence is all that they lack: what the same code does not flush is another bug.
    pub fn lacks_fence(&self) -> bool {
        self.repair.is_some_and(|repair| repair.remedy == Remedy::Fence)
    }

    fn seen_at(&mut self, at: EventId) {
        const MOST: usize = 256;
        if self.points.len() < MOST && self.points.last() != Some(&at) {
            self.points.push(at);
        }
    }
}

/// What came of the analysis.
#[derive(Clone, Debug, Default)]
pub struct Analysis {
    pub causes: Vec<RootCause>,
    /// Failing states for whose analysis there was no time.
    pub unexplained: u64,
    /// Recoveries that were run.
    pub runs: u64,
}

/// How much to spend.
#[derive(Clone, Copy)]
pub struct Allowance<'a> {
    pub runs_per_cause: u32,
    pub causes: usize,
    /// Is there no time for more? Asked before each failing state.
    pub is_over: &'a (dyn Fn() -> bool + Sync),
}

impl Default for Allowance<'_> {
    fn default() -> Self {
        // Many states have one cause, and are told apart only when causes are named: a program with thirty bugs had more than a hundred.
        Allowance { runs_per_cause: 400, causes: 1000, is_over: &|| false }
    }
}

impl std::fmt::Debug for Allowance<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Allowance").field("causes", &self.causes).finish_non_exhaustive()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AnalyseError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Classify(#[from] ClassifyError),
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

impl AnalyseError {
    fn is_exhausted(&self) -> bool {
        matches!(
            self,
            AnalyseError::Evaluate(EvaluateError::Exhausted)
                | AnalyseError::Classify(ClassifyError::Evaluate(EvaluateError::Exhausted))
        )
    }
}

/// Finds the causes of all failing states, in the order of the trace, with one worker per recovery.
pub fn analyse<R: Recovery + Send>(
    reader: &TraceReader,
    rules: Rules,
    outcomes: &[PointOutcome],
    mut memory: VerdictCache,
    recoveries: &mut [R],
    allowance: Allowance<'_>,
) -> Result<Analysis, AnalyseError> {
    let mut analyser = Analyser::default();
    analyser.take(reader, rules, outcomes, &mut memory, recoveries, allowance)?;
    Ok(analyser.finish())
}

/// Looks into failing states for another machine, which takes them in order and alone decides on causes. It finds what was run here in the verdicts
/// that `memory` shares with others.
pub fn look_ahead<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    outcomes: &[PointOutcome],
    mut memory: VerdictCache,
    recovery: &mut R,
    allowance: Allowance<'_>,
) -> Result<(), AnalyseError> {
    let mut scout = Analyser::default();
    let mut worker = Worker::new(Task { reader, rules, allowance }, &mut memory, recovery)?;
    for outcome in outcomes {
        worker.take(&mut scout, outcome, 0..outcome.failing.len(), &|_| {})?;
    }
    Ok(())
}

/// Takes the outcomes of one search after another, and remembers the causes that it knows.
#[derive(Clone, Debug, Default)]
pub struct Analyser {
    known: Known,
    analysis: Analysis,
}

impl Analyser {
    /// All causes so far, the oldest first.
    pub fn causes(&self) -> &[RootCause] {
        &self.analysis.causes
    }

    /// Finds the causes of these failing states. They are states under the repairs that `memory` assumes. The first worker takes them all, in
    /// order; the others [run ahead](crate::ahead), so that it finds most verdicts known.
    pub fn take<R: Recovery + Send>(
        &mut self,
        reader: &TraceReader,
        rules: Rules,
        outcomes: &[PointOutcome],
        memory: &mut VerdictCache,
        recoveries: &mut [R],
        allowance: Allowance<'_>,
    ) -> Result<(), AnalyseError> {
        let Some((own, others)) = recoveries.split_first_mut() else { return Ok(()) };
        memory.forget_images();
        let ahead = Ahead::new(outcomes, others.len());
        let task = Task { reader, rules, allowance };
        let runs = AtomicU64::new(0);
        let taken = std::thread::scope(|scope| {
            for recovery in others {
                let (scout, memory, ahead, runs) = (self.clone(), memory.share(), &ahead, &runs);
                scope.spawn(move || {
                    runs.fetch_add(scout.run_ahead(task, outcomes, memory, recovery, ahead), Ordering::Relaxed)
                });
            }
            let taken = self.take_all(task, outcomes, memory, own, &ahead);
            ahead.end();
            taken
        });
        self.analysis.runs += runs.into_inner();
        taken
    }

    fn take_all<R: Recovery>(
        &mut self,
        task: Task<'_>,
        outcomes: &[PointOutcome],
        memory: &mut VerdictCache,
        recovery: &mut R,
        ahead: &Ahead,
    ) -> Result<(), AnalyseError> {
        let mut worker = Worker::new(task, memory, recovery)?;
        for (number, outcome) in outcomes.iter().enumerate() {
            let reach = |state| ahead.reach(ahead.number(number, state));
            worker.take(self, outcome, 0..outcome.failing.len(), &reach)?;
        }
        Ok(())
    }

    /// How many runs it took. An error is found again, and told, by the first worker; or it does not matter.
    fn run_ahead<R: Recovery>(
        mut self,
        task: Task<'_>,
        outcomes: &[PointOutcome],
        mut memory: VerdictCache,
        recovery: &mut R,
        ahead: &Ahead,
    ) -> u64 {
        let before = self.analysis.runs;
        let here = AtomicUsize::new(0);
        let is_over = || ahead.is_reached(here.load(Ordering::Relaxed)) || (task.allowance.is_over)();
        let allowance = Allowance { is_over: &is_over, ..task.allowance };
        let Ok(mut worker) = Worker::new(Task { allowance, ..task }, &mut memory, recovery) else { return 0 };
        while let Some(parts) = ahead.next() {
            for Part { outcome, states } in parts {
                let reach = |state| here.store(ahead.number(outcome, state), Ordering::Relaxed);
                if worker.take(&mut self, &outcomes[outcome], states, &reach).is_err() {
                    return self.analysis.runs - before;
                }
            }
        }
        self.analysis.runs - before
    }

    pub fn finish(mut self) -> Analysis {
        join_breakdowns(&mut self.analysis.causes);
        self.analysis
    }
}

/// What is the same for all workers.
#[derive(Clone, Copy)]
struct Task<'a> {
    reader: &'a TraceReader,
    rules: Rules,
    allowance: Allowance<'a>,
}

/// Looks into failing states, from the beginning of the trace to its end.
struct Worker<'a, R> {
    task: Task<'a>,
    codes: StoringCodes,
    memory: &'a mut VerdictCache,
    recovery: &'a mut R,
    walk: Walk<'a>,
    /// The cause of a streak of crash points at all of which recovery fails with everything in PM.
    streak: Option<usize>,
    /// The crash point that was looked into last, by its index.
    last: Option<u64>,
}

impl<'a, R: Recovery> Worker<'a, R> {
    fn new(task: Task<'a>, memory: &'a mut VerdictCache, recovery: &'a mut R) -> Result<Self, AnalyseError> {
        let walk = memory.walk(task.reader, task.rules)?;
        let codes = StoringCodes::of(task.reader);
        Ok(Worker { task, codes, memory, recovery, walk, streak: None, last: None })
    }

    /// Finds the causes of these failing states of the outcome; `reach` is told of each before.
    fn take(
        &mut self,
        analyser: &mut Analyser,
        outcome: &PointOutcome,
        states: Range<usize>,
        reach: &dyn Fn(usize),
    ) -> Result<(), AnalyseError> {
        let Analyser { known, analysis } = analyser;
        let Task { reader, rules, allowance } = self.task;
        let fails_in_order = outcome.failing.iter().any(|failing| failing.strategy == StrategySpec::ProgramOrder);
        // Between two points that do not follow each other recovery may have passed.
        let index = outcome.point.index;
        let follows = self.last.replace(index).is_some_and(|last| last == index || last + 1 == index);
        self.streak = self.streak.filter(|_| fails_in_order && follows);
        if let Some(cause) = self.streak {
            analysis.causes[cause].explains += states.len() as u64;
            analysis.causes[cause].seen_at(outcome.point.at);
            return Ok(());
        }
        if states.is_empty() {
            return Ok(());
        }
        self.walk.advance_to(outcome.point.at)?;
        let view = self.walk.view();
        let assumes = !self.memory.assumed.is_empty();
        let mut evaluator = PointEvaluator::new(&view, self.recovery, self.memory);
        evaluator.is_over = allowance.is_over;
        outcome.passing.iter().for_each(|state| evaluator.remember(state, Verdict::Pass));
        outcome.failing.iter().for_each(|failing| evaluator.remember(&failing.state, failing.verdict.clone()));
        for number in states {
            reach(number);
            let (failing, point) = (&outcome.failing[number], &outcome.point);
            evaluator.allowance = if (allowance.is_over)() { 0 } else { allowance.runs_per_cause };
            match known.explains(reader, &self.codes, &mut evaluator, point, failing) {
                Ok(Explanation::Known(cause)) => {
                    analysis.causes[cause].explains += 1;
                    analysis.causes[cause].seen_at(outcome.point.at);
                }
                Ok(Explanation::Open(_)) if analysis.causes.len() >= allowance.causes => analysis.unexplained += 1,
                Ok(Explanation::Open(state)) => match new(reader, rules, &mut evaluator, point, failing, state) {
                    Ok(mut cause) => {
                        if assumes {
                            // Causes are told in states of the program as it is.
                            let without = evaluator.memory.plain_walk_to(reader, rules, outcome.point.at)?;
                            cause.state = without_assumptions(&cause.state, &view, &without.view());
                        }
                        if fails_in_order && cause.in_program_order {
                            self.streak = Some(analysis.causes.len());
                        }
                        let around = around(reader, point, failing)?;
                        known.add(&self.codes, &view, &cause, around, analysis.causes.len());
                        analysis.causes.push(cause);
                    }
                    Err(error) if error.is_exhausted() => analysis.unexplained += 1,
                    Err(error) => return Err(error),
                },
                Err(error) if error.is_exhausted() => analysis.unexplained += 1,
                Err(error) => return Err(error),
            }
        }
        analysis.runs += evaluator.runs;
        Ok(())
    }
}

/// A recovery that breaks down the same way on states out of program order as on those in it does so for one reason.
fn join_breakdowns(causes: &mut Vec<RootCause>) {
    let all = std::mem::take(causes);
    let (own, others): (Vec<RootCause>, Vec<RootCause>) =
        all.into_iter().partition(|cause| cause.class == Class::Recovery || !is_breakdown(&cause.verdict));
    *causes = own;
    for other in others {
        let same = |cause: &&mut RootCause| cause.class == Class::Recovery && cause.verdict.agrees(&other.verdict);
        match causes.iter_mut().find(same) {
            Some(recovery) => {
                recovery.explains += other.explains;
                other.points.iter().for_each(|&at| recovery.seen_at(at));
            }
            None => causes.push(other),
        }
    }
}

/// The cause of a failing state, of which `restored` is left once what known causes lack is put back. If that fails only because of what was put
/// back, it says nothing about the state.
fn new<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    evaluator: &mut PointEvaluator<'_, '_, R>,
    point: &Point,
    failing: &FailingState,
    restored: Assignment,
) -> Result<RootCause, AnalyseError> {
    let found = Assignment::of(evaluator.view, &failing.state);
    let view = evaluator.view;
    let is_put_back = |store: &StoreInfo| {
        let Some(at) = view.index_of(store.line) else { return false };
        let place = view.lines()[at].stores().iter().position(|pending| pending.event == store.event);
        place.is_some_and(|place| (found.0[at].kept as usize..restored.0[at].kept as usize).contains(&place))
    };
    let cause = one(reader, rules, evaluator, point, restored.clone())?;
    if cause.present.iter().any(is_put_back) { one(reader, rules, evaluator, point, found) } else { Ok(cause) }
}

fn one<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    evaluator: &mut PointEvaluator<'_, '_, R>,
    point: &Point,
    failing: Assignment,
) -> Result<RootCause, AnalyseError> {
    // Where very many lines are dirty, a state that is not quite as small as it could be must do.
    let reserved = evaluator.allowance / 4;
    evaluator.allowance -= reserved;
    let minimal = minimise(evaluator, failing);
    evaluator.allowance += reserved;
    let minimal: Minimal = minimal?;
    let verdict = evaluator.verdict(&minimal.failing)?;
    let Classified { class, missing, present, program_order_is_wrong, from_program_order, completes } =
        classify(reader, rules, evaluator, point, &minimal, &verdict)?;
    let repair = match class {
        Class::Durability | Class::Ordering if !program_order_is_wrong => {
            repair::find(evaluator.memory, reader, rules, point.at, &missing, &present)?
        }
        _ => None,
    };
    let class = if class == Class::Durability && is_late(reader, &missing, repair)? { Class::Ordering } else { class };
    let mut by_accident = class == Class::Durability;
    for store in missing.iter().filter(|_| class == Class::Durability) {
        by_accident &= store_history::fate(reader, store)? == StoreFate::ByAccident;
    }
    let late = class == Class::Ordering && !program_order_is_wrong;
    let flushed_at = match missing.first().filter(|_| late) {
        Some(store) => store_history::flushed_at(reader, store)?,
        None => None,
    };
    Ok(RootCause {
        class,
        by_accident,
        flushed_at,
        missing,
        present,
        program_order_is_wrong,
        completes,
        in_program_order: minimal.in_program_order || from_program_order,
        point: *point,
        state: minimal.failing.state(evaluator.view),
        verdict,
        repair,
        explains: 1,
        points: vec![point.at],
        dirty_lines: evaluator.view.lines().len(),
    })
}

/// Are the stores flushed before the one that must not come first, and durable in the end? Then only the fence between is
/// missing, however often their lines were stored to before.
fn is_late(reader: &TraceReader, missing: &[StoreInfo], repair: Option<Repair>) -> Result<bool, ReadError> {
    if !matches!(repair, Some(Repair { remedy: Remedy::Fence, before: Some(_), .. })) {
        return Ok(false);
    }
    for store in missing {
        if store_history::fate(reader, store)? == StoreFate::Never {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What the causes so far explain.
#[derive(Clone, Debug, Default)]
struct Known {
    /// Code whose store was missing, each by a call path, and the cause. What was flushed and lacked only a fence, and what was not, can be
    /// two bugs of the same code.
    missing: FxHashMap<(StoringCode, ContextId, Flushed), usize>,
    /// Failures in program order: by the symptom and the instructions around the crash.
    between: BTreeMap<Around, usize>,
    /// The code of stores that were asked for: reading an event anew decodes a block of the trace.
    sites: FxHashMap<EventId, Option<Site>>,
}

/// Had a flush asked for the store when power failed?
type Flushed = bool;

/// Why a state fails.
enum Explanation {
    Known(usize),
    /// This state fails, too, though what known causes lack was put back: something else is missing in it.
    Open(Assignment),
}

/// A symptom, and the instructions of the stores before and after a crash.
type Around = (Option<SymptomKey>, Option<Site>, Option<Site>);

impl Known {
    fn add(&mut self, codes: &StoringCodes, view: &PointView<'_>, cause: &RootCause, around: Around, number: usize) {
        // What was not executed yet is no culprit.
        let lost = !matches!(cause.class, Class::Atomicity | Class::Recovery) || cause.program_order_is_wrong;
        for store in cause.missing.iter().filter(|_| lost) {
            // What is flushed too late lacks its flush before the power failure as well as after it.
            let is_one_of_two = cause.class == Class::Durability || cause.lacks_fence();
            let known = flushed(view, store).filter(|_| is_one_of_two);
            for flushed in [false, true].into_iter().filter(|flushed| known.is_none_or(|known| known == *flushed)) {
                self.missing.entry((codes.code(store.site.pc), store.site.context, flushed)).or_insert(number);
            }
        }
        if cause.in_program_order {
            self.between.entry(around).or_insert(number);
        }
    }

    fn site(&mut self, reader: &TraceReader, store: EventId) -> Result<Option<Site>, ReadError> {
        if let Some(site) = self.sites.get(&store) {
            return Ok(*site);
        }
        let site = store_history::store(reader, store)?.map(|store| store.site);
        self.sites.insert(store, site);
        Ok(site)
    }

    /// Does a known cause explain this state? With its missing stores put back, recovery passes.
    fn explains<R: Recovery>(
        &mut self,
        reader: &TraceReader,
        codes: &StoringCodes,
        evaluator: &mut PointEvaluator<'_, '_, R>,
        point: &Point,
        failing: &FailingState,
    ) -> Result<Explanation, AnalyseError> {
        let everything = Assignment::everything(evaluator.view);
        let mut restored = Assignment::of(evaluator.view, &failing.state);
        if !evaluator.passes(&everything)? {
            let known = self.between.get(&around(reader, point, failing)?).copied();
            return Ok(known.map_or(Explanation::Open(restored), Explanation::Known));
        }
        let mut by = None;
        for (at, line) in evaluator.view.lines().iter().enumerate() {
            let mut kept = restored.0[at].kept as usize;
            let stores = line.stores();
            let flushed = stores.len() - line.unasked().count();
            // Up to the last store of a known culprit.
            for (number, store) in stores.iter().enumerate().skip(kept) {
                let Some(site) = self.site(reader, store.event)? else { continue };
                let code = (codes.code(site.pc), site.context, number < flushed);
                if let Some(&cause) = self.missing.get(&code) {
                    by.get_or_insert(cause);
                    kept = number + 1;
                }
            }
            if kept > restored.0[at].kept as usize {
                restored.0[at] = Content::whole(kept as u32);
            }
        }
        match by {
            Some(cause) if evaluator.passes(&restored)? => Ok(Explanation::Known(cause)),
            _ => Ok(Explanation::Open(restored)),
        }
    }
}

/// Had a flush asked for this store? None if it is not pending.
fn flushed(view: &PointView<'_>, store: &StoreInfo) -> Option<Flushed> {
    let line = &view.lines()[view.index_of(store.line)?];
    let place = line.stores().iter().position(|pending| pending.event == store.event)?;
    Some(place < line.stores().len() - line.unasked().count())
}

/// Failures in program order around the same instructions, with the same symptom, are one. Where recovery breaks down
/// does not depend on the store that the crash came after.
fn around(reader: &TraceReader, point: &Point, failing: &FailingState) -> Result<Around, ReadError> {
    let symptom = failing.verdict.symptom().map(Symptom::key);
    if is_breakdown(&failing.verdict) {
        return Ok((symptom, None, None));
    }
    let last = store_history::last_store_before(reader, point.at)?.map(|store| store.site);
    let next = store_history::stores_in(reader, point.at, EventId(point.at.0.saturating_add(10_000)), 1)?;
    Ok((symptom, last, next.first().map(|store| store.site)))
}
