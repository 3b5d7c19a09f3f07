//! The coordinator's side: cuts a search into units, and puts together what comes back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cause::verdict_cache::VerdictCache;
use crash::elsewhere::{PointsDone, PointsUnit, Unjudged};
use crash::outcome::PointOutcome;
use crash::read_tree::{KnownRuns, ReadTree};
use crash::search::{Found, Search};
use crash::strategy::inferred::KnownConditions;
use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, CampaignError, Dispatch, Fate, Watch};
use fleet::same::{SameFile, is_taken_over};
use runner::plan::EngineChoice;
use runner::runner::Runner;
use supervise::temporary::Temporary;

use super::sent::{Job, Pass, SentCommand, Unit, UnitDone, Work, json, received, sent};
use crate::session::{CheckSession, SessionError};

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
/// Fewer failing states than this are not worth the way.
const FEW_STATES: usize = 24;
/// Units that failing states are divided into, at most.
const CAUSE_UNITS: usize = 32;

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
        let pass = sent_pass(&mut *campaign, search, runner).map_err(failed)?;
        let strange = Mutex::default();
        let mut points = Units { campaign: &mut *campaign, pass, strange: &strange };
        let (mut found, unjudged) = search.run_elsewhere(&mut points, read_tree).map_err(failed)?;
        strange.into_inner().unwrap_or_else(PoisonError::into_inner).tell(runner);
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

    /// Has workers look into these failing states, and takes over what they ran.
    pub(crate) fn look_ahead_elsewhere(
        &self,
        fleet: &Fleet,
        search: &Search<'_>,
        failing: &[PointOutcome],
        runner: &mut Runner,
        memory: &mut VerdictCache,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), SessionError> {
        let states = |outcomes: &[PointOutcome]| outcomes.iter().map(|outcome| outcome.failing.len()).sum::<usize>();
        // Only what runs read says something about others.
        if !self.equivalence || states(failing) < FEW_STATES {
            return Ok(());
        }
        let failed = |CampaignError(error): CampaignError| SessionError::Fleet(error);
        let mut campaign = fleet.campaign();
        let pass = sent_pass(&mut *campaign, search, runner).map_err(failed)?;
        let strange = Mutex::default();
        let mut units = Units { campaign: &mut *campaign, pass, strange: &strange };
        let work = divided(failing, states(failing).div_ceil(CAUSE_UNITS)).into_iter().map(Work::Causes);
        // Whatever became of them: the coordinator looks into all states itself, and finds more or less of it done.
        let take = |_: usize, _: Fate<PointsDone>| Ok(());
        units.perform(work, &Watch { is_stopped: is_over, take: &take }).map_err(failed)?;
        strange.into_inner().unwrap_or_else(PoisonError::into_inner).tell(runner);
        let mut learn = |bytes: &[u8]| {
            if let Ok(runs) = serde_json::from_slice::<KnownRuns>(bytes) {
                memory.learn_runs(&runs);
            }
        };
        campaign.exchanged(&mut learn).map_err(failed)
    }
}

/// Tells the workers what a pass assumes.
fn sent_pass(campaign: &mut dyn Campaign, search: &Search<'_>, runner: &Runner) -> Result<BlobId, CampaignError> {
    campaign.put(json(&Pass {
        assumed: (*search.assumed).clone(),
        positions: (*search.positions).clone(),
        answers: runner.equivalence.as_deref().cloned(),
        native: runner.refused.clone(),
    }))
}

/// Neighbouring outcomes with at least so many failing states each; neighbours mostly have one cause.
fn divided(outcomes: &[PointOutcome], states: usize) -> Vec<Vec<PointOutcome>> {
    let mut pieces: Vec<Vec<PointOutcome>> = Vec::new();
    let mut room = 0;
    for outcome in outcomes {
        if room == 0 {
            pieces.push(Vec::new());
            room = states.max(1);
        }
        if let Some(piece) = pieces.last_mut() {
            piece.push(outcome.clone());
        }
        room = room.saturating_sub(outcome.failing.len());
    }
    pieces
}

/// Units of a campaign.
struct Units<'c> {
    campaign: &'c mut dyn Campaign,
    pass: BlobId,
    strange: &'c Mutex<Strange>,
}

/// What workers met that the user must know.
#[derive(Debug, Default)]
struct Strange {
    outside: Vec<PathBuf>,
    native: Option<String>,
    reuse_differs: bool,
}

impl Strange {
    /// The points of a result. Keeps what else is in it.
    fn take(&mut self, result: &[u8]) -> Result<PointsDone, Senseless> {
        let done: UnitDone = serde_json::from_slice(result).map_err(Senseless)?;
        self.outside.extend(done.outside.iter().filter_map(|name| received(name)).map(PathBuf::from));
        self.native = self.native.take().or(done.native);
        self.reuse_differs |= done.reuse_differs;
        Ok(done.points)
    }

    fn tell(self, runner: &mut Runner) {
        runner.outside.extend(self.outside);
        runner.refused = runner.refused.take().or(self.native);
        runner.reuse_differs |= self.reuse_differs;
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a worker sent a result that makes no sense: {0}")]
struct Senseless(serde_json::Error);

impl Dispatch<PointsUnit, PointsDone> for Units<'_> {
    type Error = CampaignError;

    fn dispatch(
        &mut self,
        units: &[PointsUnit],
        watch: &Watch<'_, PointsDone, CampaignError>,
    ) -> Result<(), CampaignError> {
        self.perform(units.iter().cloned().map(Work::Points), watch)
    }
}

impl Units<'_> {
    fn perform(
        &mut self,
        work: impl Iterator<Item = Work>,
        watch: &Watch<'_, PointsDone, CampaignError>,
    ) -> Result<(), CampaignError> {
        let sent: Vec<Vec<u8>> = work.map(|work| json(&Unit { pass: self.pass, work })).collect();
        let take = |number: usize, fate: Fate<Vec<u8>>| {
            let fate = match fate {
                Fate::Done(bytes) => {
                    let mut strange = self.strange.lock().unwrap_or_else(PoisonError::into_inner);
                    Fate::Done(strange.take(&bytes)?)
                }
                Fate::SetAside(why) => Fate::SetAside(why),
            };
            (watch.take)(number, fate)
        };
        self.campaign.dispatch(&sent, &Watch { is_stopped: watch.is_stopped, take: &take })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn altered_results() {
        let done = UnitDone {
            points: PointsDone::default(),
            outside: vec![sent("/tmp/log"), "…".to_owned()],
            native: Some("the program is traced".to_owned()),
            reuse_differs: true,
        };
        let mut strange = Strange::default();
        strange.take(&json(&done)).expect("a result");
        assert_eq!((strange.outside, strange.native), (vec![PathBuf::from("/tmp/log")], done.native.clone()));
        assert!(strange.reuse_differs);
        parser_tests::hammer::hammer("unit-done", &[json(&done)], &|input| {
            let _ = Strange::default().take(input);
        });
    }
}
