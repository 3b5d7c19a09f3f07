//! A second power failure, during recovery: recovery is recorded on a crash image, and its own crash states are searched as
//! those of the workload were. A recovery that survives its own failure everywhere is idempotent where it matters.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crash::outcome::PointOutcome;
use crash::points::Point;
use crash::rounds::{Selection, Shard};
use crash::search::{Budget, SearchOptions};
use crash::strategy::StrategySpec;
use crash::walk::{Walk, WalkError};
use evidence::bundle;
use finding::evidence::Evidence;
use finding::finding::Finding;
use finding::note::RunNote;
use operation::equivalence::Equivalence;
use supervise::probe::Substituted;
use supervise::temporary::Temporary;
use trace::event::EventKind;
use trace::{ReadError, TraceReader};
use verdict::position::CrashPosition;

use crate::session::{CheckSession, SessionError};
use crash::assignment::Assignment;
use persistency::point::PointError;
use runner::plan::RecoveryPlan;
use runner::record_recovery::{RecordRecoveryError, RecoveryRecording, put_image};
use runner::runner::Runner;

/// Of the time, what is kept for recoveries where that is asked for: a quarter.
const KEPT: u32 = 4;

/// What recoveries may take where nobody asked, of the budget and in all.
const LITTLE: u32 = 10;
const LITTLE_AT_MOST: Duration = Duration::from_secs(5);

/// How much is done about a second power failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AgainShare {
    #[default]
    None,
    /// A few recoveries, for a short time, if nothing else was found.
    Little,
    /// As many as there is time for, and a share of the budget.
    Whole,
}

impl AgainShare {
    /// What to record at most: each recording is searched on its own.
    fn recordings(self) -> usize {
        match self {
            AgainShare::None => 0,
            AgainShare::Little => 2,
            AgainShare::Whole => 12,
        }
    }

    /// When the search must end, so that there is time for recoveries.
    pub(crate) fn leaves(self, deadline: Option<Instant>) -> Option<Instant> {
        let now = Instant::now();
        let kept = |deadline: Instant| deadline.saturating_duration_since(now) / KEPT;
        deadline.map(|deadline| if self == AgainShare::Whole { deadline - kept(deadline) } else { deadline })
    }

    /// When recoveries must end. `deadline` is that of the whole check.
    fn ends(self, deadline: Option<Instant>, budget: Option<Duration>) -> Option<Instant> {
        match self {
            AgainShare::Little => {
                let time = budget.map_or(LITTLE_AT_MOST, |budget| (budget / LITTLE).min(LITTLE_AT_MOST));
                Some(Instant::now() + time)
            }
            _ => deadline,
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum AgainError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    State(#[from] PointError),
    #[error(transparent)]
    Runner(#[from] runner::runner::RunnerError),
    #[error("cannot prepare the recording of a recovery: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Record(#[from] RecordRecoveryError),
    #[error(transparent)]
    Read(#[from] ReadError),
}

/// What came of it.
#[derive(Debug, Default)]
pub struct Again {
    pub findings: Vec<Finding>,
    /// Recoveries that wrote to a pool and were crashed in turn.
    pub recordings: usize,
    pub states_decided: u64,
    pub notes: Vec<RunNote>,
    pub evidence: Vec<Evidence>,
    /// Every recovery that was chosen was crashed.
    pub complete: bool,
}

/// A recovery that was recorded.
#[derive(Clone, Copy)]
struct SecondCrash<'a> {
    reader: &'a TraceReader,
    private: &'a [Substituted],
    bundles: &'a Path,
    /// Where power failed before.
    point: &'a Point,
    judged_as: Option<(&'a Arc<Equivalence>, CrashPosition)>,
    end: Option<Instant>,
}

/// Has it stored anything to PM?
fn stores(reader: &TraceReader) -> Result<bool, ReadError> {
    let mut events = reader.events();
    while let Some(event) = events.next()? {
        if matches!(event.kind, EventKind::Store { .. } | EventKind::Rmw { .. } | EventKind::KernelWrite { .. }) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl CheckSession<'_> {
    /// Crashes the recoveries of some crash points that recovery got right. The whole check has this
    /// budget, and must end then.
    pub(crate) fn again(
        &self,
        points: &[PointOutcome],
        share: AgainShare,
        (budget, deadline): (Option<Duration>, Option<Instant>),
        runner: &mut Runner,
    ) -> Result<Again, AgainError> {
        let mut again = Again { complete: true, ..Again::default() };
        let end = share.ends(deadline, budget);
        let is_over = || self.is_stopped() || end.is_some_and(|end| Instant::now() >= end);
        // Nothing is assumed about a recovery.
        let equivalence = runner.equivalence.as_deref().cloned();
        let equivalence = equivalence.map(|known| Arc::new(Equivalence { forgiven: BTreeMap::new(), ..known }));
        runner.equivalence.clone_from(&equivalence);
        let good: Vec<&Point> =
            points.iter().filter(|o| o.failing.is_empty() && o.point.occurrence == 1).map(|o| &o.point).collect();
        let step = good.len().div_ceil(share.recordings() * 4).max(1);
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        for point in good.into_iter().step_by(step) {
            if again.recordings == share.recordings() {
                break;
            }
            if is_over() {
                again.complete = false;
                break;
            }
            walk.advance_to(point.at)?;
            let view = walk.view();
            let image = view.image(&Assignment::everything(&view).state(&view))?;
            let passes = match runner.observe(&image) {
                Err(error) if error.is_cancelled() => break,
                observed => observed?.verdict.is_pass(),
            };
            let writes = runner.last().is_some_and(|report| !report.dirtied.is_empty());
            if !passes || !writes {
                continue;
            }
            let folder = Temporary::new("again")?;
            let private = put_image(&image, &self.plan.pools, folder.path())?;
            let trace = folder.path().join("recovery.fptrace");
            let recording = RecoveryRecording {
                command: &self.plan.recovery,
                private: &private,
                limit: end.map(|end| end.saturating_duration_since(Instant::now())),
                cancel: &self.plan.cancel,
            };
            if recording.record(&[], None, &trace)?.interrupted {
                again.complete = false;
                break;
            }
            let reader = TraceReader::open(&trace)?;
            // What was written may have been written by operations that came after the recovery.
            if !stores(&reader)? {
                continue;
            }
            again.recordings += 1;
            let left = (share.recordings() + 1 - again.recordings) as u32;
            let now = Instant::now();
            let part = end.map(|end| now + end.saturating_duration_since(now) / left);
            let bundles = folder.path().join("bundles");
            let judged_as = equivalence.as_ref().map(|known| (known, known.position(point.at)));
            let second =
                SecondCrash { reader: &reader, private: &private, bundles: &bundles, point, judged_as, end: part };
            self.search_recovery(&second, &mut again);
        }
        Ok(again)
    }

    /// Searches the crash states of a recovery.
    fn search_recovery(&self, second: &SecondCrash<'_>, again: &mut Again) {
        let SecondCrash { reader, private, bundles, point, judged_as, end } = *second;
        let original = |path: &str| private.iter().find(|pool| pool.private == Path::new(path)).map(|pool| &pool.path);
        let pools: Option<Vec<(PathBuf, u64)>> = reader
            .tables()
            .pools
            .iter()
            .map(|pool| Some((original(&pool.info.path)?.clone(), pool.info.len)))
            .collect();
        let Some(pools) = pools.filter(|pools| pools.len() == private.len()) else {
            again.notes.push(RunNote::RecoveryUsesFewPools { event: point.at });
            again.complete = false;
            return;
        };
        // A recovery is recorded without the files beside the pools.
        let plan = RecoveryPlan { pools, names: Vec::new(), ..self.plan.clone() };
        let options = SearchOptions {
            selection: Selection { occurrences: Some(2), ..Selection::default() },
            strategies: vec![
                StrategySpec::ProgramOrder,
                StrategySpec::GuaranteedOnly,
                StrategySpec::Visible { cap: Some(16) },
            ],
            // Those of the workload say nothing about the stores of a recovery.
            conditions: None,
            ..self.options.clone()
        };
        let session = CheckSession {
            reader,
            plan: &plan,
            options: &options,
            fleet: None,
            shard: Shard::WHOLE,
            journal: None,
            merge: &[],
            again: AgainShare::None,
            judged_as,
            reference_deadline: None,
            budget: Budget { deadline: end, ..self.budget },
            analysis_deadline: end.map(|end| end + Duration::from_secs(2)),
            analysis_with_hangs: None,
            skip_operations: None,
            bundles,
            recovery_from: Some(point.at),
            bundles_option: self.bundles_option.clone(),
            repaired: &[],
            ..*self
        };
        match session.run(&|_| {}) {
            Ok(checked) => {
                again.states_decided += checked.coverage.states_decided;
                again.notes.extend(checked.notes);
                for finding in checked.findings {
                    if again.findings.iter().all(|known| known.id != finding.id) {
                        if let Err(error) = bundle::take(&finding.id, bundles, self.bundles) {
                            let (finding, why) = (finding.id.clone(), error.to_string());
                            again.notes.push(RunNote::BundleNotKept { finding, why });
                        }
                        let own = |evidence: &&Evidence| evidence.finding.id == finding.id;
                        again.evidence.extend(checked.evidence.iter().find(own).cloned());
                        again.findings.push(finding);
                    }
                }
            }
            Err(SessionError::NeverRecovers(symptom)) => {
                again.notes.push(RunNote::SecondRecoveryFails { event: point.at, symptom });
                again.complete = false;
            }
            Err(error) => {
                again.notes.push(RunNote::RecoveryNotCrashed { event: point.at, why: error.to_string() });
                again.complete = false;
            }
        }
    }
}
