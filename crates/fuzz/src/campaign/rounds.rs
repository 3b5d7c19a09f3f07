//! A campaign in rounds. A round has some slices of new executions and the checks of cases that rounds before it have kept; they know
//! what was known at its beginning, and nothing of each other. What they found is put together in their order. So the result depends
//! on the seed and on the size of slices, and not on how many jobs or machines performed them, as long as no time limit ends a check.

use std::path::Path;

use super::findings::Found;
use super::run::{CampaignError, FuzzCampaign, MOST_BROKEN};
use super::slice::RoundUnit;
use super::snapshot::Snapshot;
use super::state::{Budget, State};
use crate::corpus::failed;
use crate::execute::Executor;
use crate::random::Random;

/// Slices in a round; at most as many cases are checked in it while the campaign goes on.
pub const SLICES: u64 = 16;

/// What became of a unit.
#[derive(Debug)]
pub enum Performed {
    /// What it found lies there.
    Done(tempfile::TempDir),
    /// Nobody could perform it.
    SetAside(String),
    /// It was stopped.
    NotDone,
}

/// Whoever performs units, with [`FuzzCampaign::perform`].
pub trait Performers {
    /// `piece` is what came to the campaign's folder since the round before. One result per unit.
    fn perform(
        &mut self,
        piece: &Path,
        units: &[RoundUnit],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Performed>, String>;
}

impl FuzzCampaign<'_> {
    /// Goes on until the budget is over or it is stopped. Each slice has so many executions.
    pub fn run_rounds(&self, slice: u64, performers: &mut dyn Performers) -> Result<State, CampaignError> {
        let mut state = self.first_cases()?;
        let mut snapshot = Snapshot::default();
        let checks = self.examination.is_some();
        loop {
            (self.on_progress)(&state, None);
            if self.stop.load(std::sync::atomic::Ordering::Relaxed) {
                break;
            }
            let units = self.round(&mut state, slice, checks);
            if units.is_empty() {
                break;
            }
            let piece = tempfile::tempdir().map_err(failed("make a folder beside", &self.folder))?;
            let known = state.corpus.cases().len();
            snapshot
                .next(&self.folder, &state.covered, piece.path())
                .map_err(failed("send a part of", &self.folder))?;
            let end = state.budget.time.map(|time| time.saturating_sub(state.elapsed()));
            let begun = std::time::Instant::now();
            let is_stopped = || {
                self.stop.load(std::sync::atomic::Ordering::Relaxed) || end.is_some_and(|end| begun.elapsed() >= end)
            };
            let performed = performers.perform(piece.path(), &units, &is_stopped).map_err(CampaignError::Elsewhere)?;
            self.put_together(&mut state, &units, performed, known)?;
            state.save(false)?;
        }
        state.save(true)?;
        if state.covered.pm_transitions == 0 && state.executions > 0 && state.findings.all().is_empty() {
            return Err(CampaignError::NoPm(state.executions));
        }
        Ok(state)
    }

    /// Runs the seeds here: slices need something to mutate.
    fn first_cases(&self) -> Result<State, CampaignError> {
        let mut state = self.open()?;
        let mut executor = Executor::new(self.subject.clone())?;
        self.know_again(&mut state, &mut executor)?;
        if !state.corpus.cases().is_empty() {
            return Ok(state);
        }
        self.begin(&mut state)?;
        let whole = state.budget;
        state.hold_checks(true);
        let mut most = self.seeds.len().max(1) as u64;
        loop {
            state.budget = Budget { executions: Some(most.min(whole.executions.unwrap_or(most))), ..whole };
            state = self.work(state, executor, 1)?;
            let is_over = self.stop.load(std::sync::atomic::Ordering::Relaxed) || most > MOST_BROKEN;
            if !state.corpus.cases().is_empty() || is_over {
                break;
            }
            most += 1;
            executor = Executor::new(self.subject.clone())?;
        }
        state.hold_checks(false);
        state.budget = whole;
        Ok(state)
    }

    /// What there is to do next. Checks come first, since they take longer.
    fn round(&self, state: &mut State, slice: u64, checks: bool) -> Vec<RoundUnit> {
        let is_over = state.is_over() || state.corpus.cases().is_empty();
        let is_out_of_time = state.budget.time.is_some_and(|time| state.elapsed() >= time);
        let most = match (checks && !is_out_of_time, is_over) {
            (false, _) => 0,
            (true, false) => SLICES as usize,
            (true, true) => usize::MAX,
        };
        let checks = state.take_checks(most).into_iter().map(|(case, crash)| RoundUnit::Check { case, crash });
        let mut units: Vec<RoundUnit> = checks.collect();
        if is_over {
            return units;
        }
        let mut left = state.budget.executions.map_or(u64::MAX, |most| most - state.executions);
        // The last round is divided as well.
        let slice = slice.min(left.div_ceil(SLICES)).max(1);
        let mut random = Random::new(self.seed ^ state.executions.rotate_left(32));
        for _ in 0..SLICES {
            let executions = slice.min(left);
            if executions == 0 {
                break;
            }
            left -= executions;
            units.push(RoundUnit::Slice { seed: random.draw(), executions });
        }
        units
    }

    fn put_together(
        &self,
        state: &mut State,
        units: &[RoundUnit],
        performed: Vec<Performed>,
        known: usize,
    ) -> Result<(), CampaignError> {
        for (unit, performed) in units.iter().zip(performed) {
            match (unit, performed) {
                (_, Performed::Done(folder)) => {
                    let new: Vec<Found> = state.merge(folder.path(), known)?;
                    if let RoundUnit::Check { case, crash } = unit {
                        state.checked(*case, *crash, std::time::Duration::ZERO);
                    }
                    new.iter().for_each(|found| (self.on_progress)(state, Some(found)));
                }
                (RoundUnit::Slice { executions, .. }, Performed::SetAside(why)) => {
                    // They count: nobody will run them.
                    state.executions += executions;
                    state.set_aside.push(format!("a slice of {executions} executions: {why}"));
                }
                (RoundUnit::Check { case, .. }, Performed::SetAside(why)) => {
                    state.set_aside.push(format!("the check of case {case}: {why}"));
                }
                (RoundUnit::Check { case, .. }, Performed::NotDone) => state.check_later(*case),
                (RoundUnit::Slice { .. }, Performed::NotDone) => {}
            }
        }
        Ok(())
    }
}
