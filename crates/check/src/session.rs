//! The whole way from a trace to confirmed findings: search, analyse, explain, confirm, write bundles.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crash::assumed::AssumedRepairs;
use crash::checkpoints::PlainWalks;
use crash::image::CrashImage;
use crash::journal::JournalError;
use crash::points::CREATORS;
use crash::recovery::Observation;
use crash::rounds::Shard;
use crash::search::{Budget, Progress, SearchError, SearchOptions, coverage};
use crash::survey::Survey;
use crash::walk::{Walk, WalkError};
use finding::blame::Libraries;
use finding::evidence::Evidence;
use finding::finding::{Finding, Location, Title};
use finding::note::RunNote;
use finding::severity::Severity;
use operation::equivalence::{Asking, Equivalence};
use trace::event::{CodeAddr, ContextId, EventId};
use trace::symbol::Symbolizer;
use trace::{ReadError, TraceReader};
use verdict::position::CrashPosition;
use verdict::read::Read;
use verdict::symptom::Symptom;
use verdict::verdict::Verdict;

use crate::again::{AgainError, AgainShare};
use crate::checked::Checked;
use crate::confirm::ConfirmError;
use crate::elsewhere::Fleet;
use crate::further::Further;
use crate::passes::{Searched, Time};
use crate::threads::interleaved;
use cause::analyse::{AnalyseError, Analysis, RootCause};
use cause::assume::carried;
use crash::assignment::Assignment;
use evidence::bundle::{BundleError, Contents, Expectation};
use evidence::gather::{Case, EvidenceError};
use persistency::point::PointError;
use recover::slot::RecordedNames;
use runner::plan::RecoveryPlan;
use runner::reference::error::ReferenceError;
use runner::reference::run::{ReferenceAnswers, reference_answers};
use runner::runner::{Runner, RunnerError};

/// What to look for, and where.
#[derive(Debug)]
pub struct CheckSession<'a> {
    pub reader: &'a TraceReader,
    pub plan: &'a RecoveryPlan,
    pub expectation: &'a Expectation,
    pub options: &'a SearchOptions,
    /// Other machines that judge crash points, and the file of the trace, for them; none: this one does.
    pub fleet: Option<(&'a Fleet, &'a Path)>,
    pub shard: Shard,
    /// False runs every state.
    pub equivalence: bool,
    pub workers: usize,
    pub budget: Budget<'a>,
    /// When the analysis of failing states must end.
    pub analysis_deadline: Option<Instant>,
    /// The same where a run that hangs must be confirmed.
    pub analysis_with_hangs: Option<Instant>,
    /// When runs without a crash must end. None: they take what they take, and the deadlines come later by that much.
    pub reference_deadline: Option<Instant>,
    pub journal: Option<&'a Path>,
    /// Journals of other searches to put together instead of searching.
    pub merge: &'a [PathBuf],
    /// How many recoveries are crashed as well.
    pub again: AgainShare,
    /// If this is about a recovery: which answers are right after it, and where the crash came that it recovers from.
    pub judged_as: Option<(&'a Arc<Equivalence>, CrashPosition)>,
    /// Operations whose crashes are left out, with everything before them; none: crashes in the set-up have their share.
    pub skip_operations: Option<usize>,
    /// The event of the workload at which power failed, if this is about the recovery from that.
    pub recovery_from: Option<EventId>,
    pub bundles: &'a Path,
    /// How the user names the bundles' folder in a command; none: it is the default.
    pub bundles_option: Option<String>,
    pub libraries: &'a Libraries,
    /// Code whose bugs are known from another recording: it is taken to be repaired from the beginning.
    pub repaired: &'a [Location],
}

#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
    #[error(transparent)]
    Search(#[from] SearchError),
    #[error(transparent)]
    Journal(#[from] JournalError),
    #[error(transparent)]
    Analyse(#[from] AnalyseError),
    #[error(transparent)]
    Confirm(#[from] ConfirmError),
    #[error(transparent)]
    Bundle(#[from] BundleError),
    #[error(transparent)]
    Evidence(#[from] EvidenceError),
    #[error(transparent)]
    State(#[from] PointError),
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    #[error(transparent)]
    Again(#[from] Box<AgainError>),
    #[error("{0}")]
    Fleet(Box<dyn std::error::Error + Send + Sync>),
    /// No run was begun any more, before there was anything to tell.
    #[error("the run was ended from outside")]
    Cancelled,
    /// A recovery that never succeeds shows nothing.
    #[error("recovery fails even on the pools that the complete run left, without any power failure: {0}")]
    NeverRecovers(Box<Symptom>),
}

impl SessionError {
    /// Was a run ended from outside?
    pub(crate) fn is_cancelled(&self) -> bool {
        match self {
            SessionError::Cancelled => true,
            SessionError::Runner(error)
            | SessionError::Reference(ReferenceError::Runner(error))
            | SessionError::Confirm(ConfirmError::Runner(error)) => error.is_cancelled(),
            _ => false,
        }
    }
}

/// What is being done, for progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Survey,
    /// Runs without a crash, to know the right answers: this operation of so many is next.
    Reference {
        next: usize,
        operations: usize,
    },
    /// Recoveries that show more conditions.
    Infer,
    Search(Progress),
    /// Root causes of so many failing states.
    Analyse(u64),
    Confirm,
    /// Crashing recoveries.
    Again,
}

impl CheckSession<'_> {
    pub fn run(&self, on_phase: &(dyn Fn(Phase) + Sync)) -> Result<Checked, SessionError> {
        let begun = Instant::now();
        on_phase(Phase::Survey);
        let mut survey = survey(self.reader, self.options)?;
        if let Some(served) = &self.plan.served {
            survey.keep(|at| served.judge.wants(at));
        }
        match self.judge(&survey, begun, on_phase) {
            Err(error) if error.is_cancelled() => Ok(self.stopped(&survey)),
            checked => checked,
        }
    }

    fn judge(
        &self,
        survey: &Survey,
        begun: Instant,
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<Checked, SessionError> {
        let count = self.workers.max(1);
        let mut runners =
            (0..count).map(|_| Runner::new(self.plan.clone())).collect::<Result<Vec<Runner>, RunnerError>>()?;
        let timeout = runners[0].timeout.clone();
        runners.iter_mut().for_each(|runner| {
            runner.timeout = timeout.clone();
            runner.set_equivalence(self.equivalence);
        });
        let mut reference_notes = Vec::new();
        let mut positions = Arc::default();
        let (mut setup_end, mut from) = (None, None);
        let before = Instant::now();
        if let Some((equivalence, position)) = self.judged_as {
            runners.iter_mut().for_each(|runner| {
                runner.equivalence = Some(Arc::clone(equivalence));
                runner.recovers_from = Some(position);
            });
        } else if let Some(operations) = &self.plan.operations {
            let count = operations.workload.count();
            let reached = Cell::new(0);
            let goes_on = |next: usize| {
                on_phase(Phase::Reference { next, operations: count });
                reached.set(next);
                !self.is_stopped() && self.reference_deadline.is_none_or(|deadline| Instant::now() < deadline)
            };
            let reference = reference_answers(self.reader, self.options.rules, operations, &mut runners[0], &goes_on);
            let ReferenceAnswers { equivalence, notes, native } = match reference {
                Err(ReferenceError::Stopped) if self.is_stopped() => return Err(SessionError::Cancelled),
                Err(ReferenceError::Stopped) => {
                    return Err(ReferenceError::OutOfTime { done: reached.get(), all: count }.into());
                }
                reference => reference?,
            };
            reference_notes = notes;
            if let Some(why) = native {
                runners.iter_mut().for_each(|runner| runner.go_native(why.clone()));
            }
            positions = Arc::new(equivalence.boundaries.positions());
            setup_end = equivalence.boundaries.begin(0);
            from = self.skip_operations.map(|number| {
                // With fewer operations there is nothing left to crash.
                equivalence.boundaries.begin(number).unwrap_or(EventId(self.reader.event_count() + 1))
            });
            let equivalence = Arc::new(equivalence);
            runners.iter_mut().for_each(|runner| runner.equivalence = Some(Arc::clone(&equivalence)));
        }
        let left_out: Vec<String> = runners[0].left_out().into_iter().map(str::to_owned).collect();
        if !left_out.is_empty() {
            reference_notes.push(RunNote::FilesAsLeft { names: left_out });
        }
        let unexplained = self.reader.unexplained_files()?;
        if !unexplained.is_empty() {
            let names = unexplained.iter().map(|file| file.path.clone()).collect();
            reference_notes.push(RunNote::FilesNotRecorded { names });
        }
        if let Some(served) = &self.plan.served {
            positions = Arc::new(served.judge.positions());
        }
        let looks = match self.recovers_at_the_end(&mut runners[0]) {
            Err(SessionError::NeverRecovers(symptom)) if self.judged_as.is_none() && symptom.is_about_answers() => {
                return self.lost_without_crash(survey, *symptom, &mut runners[0], reference_notes);
            }
            looks => looks?,
        };
        let options = self.with_recoveries(survey, &mut runners[0], on_phase)?;
        let mut options = options.unwrap_or_else(|| self.options.clone());
        options.selection.from = options.selection.from.max(from);
        let session = CheckSession { options: &options, bundles_option: self.bundles_option.clone(), ..*self };
        let mut time = self.time(begun, before.elapsed(), setup_end);
        let whole = time.budget.deadline;
        time.budget.deadline = self.again.leaves(whole);
        let Searched { points, mut coverage, mut notes, analysis, assumed, reads_pools } =
            session.search_and_analyse(survey, &mut runners, &positions, time, self.carried()?, on_phase)?;
        notes.extend(reference_notes);
        notes.extend(interleaved(self.reader)?);
        let outside: BTreeSet<_> = runners.iter().flat_map(|runner| runner.outside.iter()).collect();
        if !outside.is_empty() {
            // What one recovery did there another has seen: nothing is known for all of them.
            coverage.complete = false;
            let names = outside.iter().map(|path| path.display().to_string()).collect();
            notes.push(RunNote::SharedFiles { names });
        }
        if runners.iter().any(|runner| runner.reuse_differs) {
            coverage.complete = false;
            notes.push(RunNote::ReuseDiffers);
        }
        if notes.iter().any(shakes_states) {
            coverage.withdraw_exhaustive();
        }
        // A program that has no operations left need not look.
        let resumed = self.plan.operations.as_ref().is_some_and(|operations| operations.asking != Asking::Fed);
        // What it looks at may depend on files beside the pools.
        let only_pools =
            self.plan.names.iter().all(|name| self.plan.pools.iter().any(|(path, _)| path == Path::new(name)));
        // What was read is forgotten where runs contradict each other.
        let contradicted = notes.iter().any(|note| matches!(note, RunNote::NotDeterministic { .. }));
        // One process per operation: at the end there is none.
        if !looks && !reads_pools && !contradicted && !resumed && only_pools {
            let pools = self.plan.pools.iter().map(|(path, _)| path.display().to_string()).collect();
            notes.push(RunNote::ReadsNothing { pools });
        }
        let runner = &mut runners[0];
        if let Some(why) = &runner.refused {
            notes.push(RunNote::NativeRuns { why: why.clone() });
        }
        let Analysis { causes, unexplained, .. } = analysis;
        if !assumed.is_empty() {
            notes.push(RunNote::RepairsAssumed { places: assumed.len() as u64 });
        }
        if unexplained > 0 {
            notes.push(RunNote::NotAnalysed { states: unexplained });
        }
        on_phase(Phase::Confirm);
        let (mut findings, mut evidence) = session.confirmed(&causes, &mut runners, &mut notes)?;
        // A journal, or a part of the points, is about one search.
        let is_check = self.journal.is_none() && self.merge.is_empty() && self.shard == Shard::WHOLE;
        if self.again != AgainShare::None && is_check {
            let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
            let mut further = Further {
                survey,
                positions: &positions,
                time,
                assumed: &assumed,
                points: &points,
                findings,
                evidence,
                notes,
            };
            let longer = session.longer(&mut further, &mut runners, on_phase);
            match longer.and_then(|()| session.locked(&mut further, &mut runners, on_phase)) {
                // What was found before is told in any case.
                Err(error) if error.is_cancelled() => {}
                done => done?,
            }
            Further { findings, evidence, notes, .. } = further;
            if findings.iter().filter(|finding| finding.severity == Severity::Error).count() > errors {
                // What was asked after the crashes was not enough to tell.
                coverage.withdraw_exhaustive();
            }
        }
        let runner = &mut runners[0];
        // What a recovery does wrong is looked for by itself where the program is right.
        let share = if findings.is_empty() || self.again == AgainShare::Whole { self.again } else { AgainShare::None };
        if share != AgainShare::None && !self.is_stopped() && !self.plan.cancel.is_cancelled() {
            on_phase(Phase::Again);
            let budget = self.budget.deadline.map(|end| end.saturating_duration_since(begun));
            let again = self.again(&points, share, (budget, whole), runner).map_err(Box::new)?;
            if share == AgainShare::Whole {
                let (recoveries, states) = (again.recordings as u64, again.states_decided);
                notes.push(RunNote::RecoveriesCrashed { recoveries, states });
                notes.extend(again.notes);
                if !again.complete {
                    coverage.withdraw_exhaustive();
                }
            }
            findings.extend(again.findings);
            evidence.extend(again.evidence);
        }
        Ok(Checked {
            findings,
            coverage,
            evidence,
            notes,
            points,
            judged_creation: self.options.selection.creation,
            judged_by: self.plan.judged_by(),
            interrupted: self.is_stopped(),
            events: self.reader.event_count(),
        })
    }

    /// What is left after runs without a crash took so long. Where they count, the search gets an eighth of the whole time at least.
    fn time(&self, begun: Instant, taken: Duration, setup_end: Option<EventId>) -> Time<'_> {
        let (mut budget, mut analysis) = (self.budget, self.analysis_deadline);
        match self.reference_deadline {
            None => {
                budget.deadline = budget.deadline.map(|deadline| deadline + taken);
                analysis = analysis.map(|deadline| deadline + taken);
            }
            Some(deadline) => {
                let share = deadline.saturating_duration_since(begun) / 8;
                let least = Instant::now() + share;
                budget.deadline = budget.deadline.map(|deadline| deadline.max(least));
                analysis = analysis.map(|deadline| deadline.max(least + share / 2));
            }
        }
        Time { setup_end, budget, analysis }
    }

    fn carried(&self) -> Result<AssumedRepairs, ReadError> {
        if self.repaired.is_empty() {
            return Ok(AssumedRepairs::default());
        }
        carried(self.reader, self.repaired, self.libraries)
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.budget.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Nothing can be judged without right answers. What a journal knows stays there, for the next time.
    fn stopped(&self, survey: &Survey) -> Checked {
        Checked {
            findings: Vec::new(),
            coverage: coverage(survey, self.options, self.shard, &[]),
            evidence: Vec::new(),
            notes: vec![if self.is_stopped() { RunNote::Interrupted } else { RunNote::NoTime }],
            points: Vec::new(),
            judged_creation: self.options.selection.creation,
            judged_by: self.plan.judged_by(),
            interrupted: self.is_stopped(),
            events: self.reader.event_count(),
        }
    }

    /// With everything in PM after the last event, recovery must pass, or the user has named the wrong command. Returns
    /// whether it looks at the pools, as far as that is known.
    fn recovers_at_the_end(&self, runner: &mut Runner) -> Result<bool, SessionError> {
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        walk.advance_to(EventId(self.reader.event_count()))?;
        let view = walk.view();
        let image = view.image(&Assignment::everything(&view).state(&view))?;
        let Observation { verdict, reads } = runner.observe(&image)?;
        if let Verdict::Fail(symptom) = verdict {
            return Err(SessionError::NeverRecovers(symptom));
        }
        Ok(reads.is_none_or(|reads| reads.iter().any(|read| matches!(read, Read::Line(_)))))
    }

    /// Says where the crash of a finding lies: among the operations, and in which run.
    pub(crate) fn place(&self, finding: &mut Finding, runner: &Runner) {
        if let Title::Broken { during_recovery, .. } = &mut finding.title {
            *during_recovery = self.recovery_from.is_some();
        }
        let Some(failure) = &mut finding.failure else { return };
        failure.recovery_from = self.recovery_from;
        let position = runner.position_at(failure.crash_point.event);
        if let Some(CrashPosition::During(number) | CrashPosition::After(number)) = position {
            failure.crash_point.operation = Some(number as u64);
        }
    }

    pub(crate) fn write_bundle(
        &self,
        walks: &PlainWalks<'_>,
        finding: &Finding,
        cause: &RootCause,
        runner: &Runner,
    ) -> Result<(), SessionError> {
        let walk = walks.to(cause.point.at)?;
        let view = walk.view();
        let image = view.image(&cause.state)?;
        let pools: Vec<PathBuf> = self.plan.pools.iter().map(|(path, _)| path.clone()).collect();
        let position = runner.position_at(cause.point.at);
        let mut expectation = self.expectation.clone();
        if let (Some(equivalence), Some(position)) = (&runner.equivalence, position) {
            expectation.answers = equivalence.allowed(position);
        }
        let mut command = runner.command(position);
        if let Some(served) = &self.plan.served {
            expectation.case = served.judge.case(cause.point.at);
            command = served.native.clone();
        }
        let contents = Contents {
            finding,
            recovery: &command,
            checker: self.plan.checker.as_ref(),
            expectation: &expectation,
            limits: &self.plan.limits,
            pools: &pools,
            files: RecordedNames { names: &self.plan.names, folders: &self.plan.folders },
        };
        contents.write(self.bundles, &image)?;
        Ok(())
    }
}

impl CheckSession<'_> {
    /// What a report shows beside the finding's words; the bundle keeps it for later.
    pub(crate) fn evidence(
        &self,
        walks: &PlainWalks<'_>,
        finding: &Finding,
        cause: &RootCause,
        runner: &mut Runner,
    ) -> Result<Evidence, SessionError> {
        let case = Case {
            reader: self.reader,
            walks,
            cause,
            finding,
            libraries: self.libraries,
            operation: &|number| match (&self.plan.operations, &self.plan.served) {
                (Some(plan), _) => Some(plan.workload.shown(number as usize)),
                (None, Some(served)) => served.judge.operation(number as usize),
                (None, None) => None,
            },
        };
        let mut passes = |image: &CrashImage<'_>| runner.observe(image).is_ok_and(|seen| seen.verdict.is_pass());
        let evidence = case.evidence(&mut passes)?;
        if self.plan.cancel.is_cancelled() {
            // Some of it may be missing.
            return Err(SessionError::Cancelled);
        }
        evidence::file::write(&evidence, self.bundles)?;
        Ok(evidence)
    }
}

/// All crash points; those in functions that make pools are marked.
pub(crate) fn survey(reader: &TraceReader, options: &SearchOptions) -> Result<Survey, ReadError> {
    let tables = reader.tables();
    let symbols = RefCell::new(Symbolizer::new(tables));
    let creates = |frames: &[trace::symbol::SourceFrame]| {
        frames.iter().filter_map(|frame| frame.function.as_deref()).any(|name| CREATORS.contains(&name))
    };
    let is_creation = |context: ContextId, pc: CodeAddr| {
        let mut symbols = symbols.borrow_mut();
        creates(&symbols.frames(pc)) || tables.call_path(context).any(|call| creates(&symbols.call_frames(call)))
    };
    Survey::of(reader, options.selection.density, &is_creation)
}

/// What recovery did depends on more than the state that it was given: states that were taken for decided may not be.
fn shakes_states(note: &RunNote) -> bool {
    matches!(
        note,
        RunNote::SharedFiles { .. }
            | RunNote::ReuseDiffers
            | RunNote::FilesAsLeft { .. }
            | RunNote::FilesNotRecorded { .. }
            | RunNote::NotDeterministic { .. }
    )
}
