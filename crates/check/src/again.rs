//! A second power failure, during recovery: recovery is recorded on a crash image, and its own crash states are searched as
//! those of the workload were. A recovery that survives its own failure everywhere is idempotent where it matters.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crash::outcome::PointOutcome;
use crash::points::Point;
use crash::rounds::{Selection, Shard};
use crash::search::SearchOptions;
use crash::strategy::StrategySpec;
use crash::walk::{Walk, WalkError};
use finding::evidence::Evidence;
use finding::finding::Finding;
use finding::note::RunNote;
use supervise::probe::Substituted;
use supervise::temporary::Temporary;
use trace::{ReadError, TraceReader};

use crate::session::{CheckSession, SessionError};
use crash::assignment::Assignment;
use persistency::point::PointError;
use runner::record_recovery::{RecordRecoveryError, RecoveryRecording, put_image};
use runner::runner::{Plan, Runner};

/// What to record at most: each recording is searched on its own.
const RECORDINGS: usize = 12;

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
}

impl CheckSession<'_> {
    /// Crashes the recoveries of some crash points that recovery got right.
    pub fn again(&self, points: &[PointOutcome], runner: &mut Runner) -> Result<Again, AgainError> {
        let mut again = Again::default();
        let good: Vec<&Point> =
            points.iter().filter(|o| o.failing.is_empty() && o.point.occurrence == 1).map(|o| &o.point).collect();
        let step = good.len().div_ceil(RECORDINGS * 4).max(1);
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        for point in good.into_iter().step_by(step) {
            if again.recordings == RECORDINGS || self.is_over() {
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
                limit: self.left(),
                cancel: &self.plan.cancel,
            };
            if recording.record(&[], None, &trace)?.interrupted {
                break;
            }
            again.recordings += 1;
            let bundles = folder.path().join("bundles");
            self.search_recovery(&TraceReader::open(&trace)?, &private, &bundles, point, &mut again);
        }
        Ok(again)
    }

    fn is_over(&self) -> bool {
        self.is_stopped() || self.left().is_some_and(|left| left.is_zero())
    }

    /// Until failing states are not looked into any more.
    fn left(&self) -> Option<Duration> {
        self.analysis_deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Searches the crash states of a recovery.
    fn search_recovery(
        &self,
        reader: &TraceReader,
        private: &[Substituted],
        bundles: &Path,
        point: &Point,
        again: &mut Again,
    ) {
        let original = |path: &str| private.iter().find(|pool| pool.private == Path::new(path)).map(|pool| &pool.path);
        let pools: Option<Vec<(PathBuf, u64)>> = reader
            .tables()
            .pools
            .iter()
            .map(|pool| Some((original(&pool.info.path)?.clone(), pool.info.len)))
            .collect();
        let Some(pools) = pools.filter(|pools| pools.len() == private.len()) else {
            again.notes.push(RunNote::RecoveryUsesFewPools { event: point.at });
            return;
        };
        // A recovery is recorded without the files beside the pools.
        let plan = Plan { pools, names: Vec::new(), ..self.plan.clone() };
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
            shard: Shard::WHOLE,
            journal: None,
            merge: &[],
            again: false,
            skip_operations: None,
            bundles,
            recovery_from: Some(point.at),
            bundles_option: self.bundles_option.clone(),
            ..*self
        };
        match session.run(&|_| {}) {
            Ok(checked) => {
                again.states_decided += checked.coverage.states_decided;
                again.notes.extend(checked.notes);
                for finding in checked.findings {
                    if again.findings.iter().all(|known| known.id != finding.id) {
                        if let Err(error) = keep(&bundles.join(&finding.id.0), &self.bundles.join(&finding.id.0)) {
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
            }
            Err(error) => {
                again.notes.push(RunNote::RecoveryNotCrashed { event: point.at, why: error.to_string() });
            }
        }
    }
}

/// Copies a bundle out of the temporary folder.
fn keep(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}
