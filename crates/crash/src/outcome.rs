//! What a search has found out, as plain data.

use num_bigint::BigUint;
use persistency::states::CrashState;
use serde::{Deserialize, Serialize};

use crate::points::Point;
use crate::strategy::{Reach, StrategySpec};
use verdict::verdict::Verdict;

/// A state that recovery failed on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingState {
    pub strategy: StrategySpec,
    pub state: CrashState,
    pub verdict: Verdict,
}

/// What one strategy did at a point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StrategyOutcome {
    pub strategy: StrategySpec,
    pub reach: Reach,
    /// States that were decided, those left out that the point knew already.
    pub decided: u64,
    /// Those of them that failed; at most a few are kept as [`FailingState`]s.
    pub failing: u64,
}

/// A crash point and what became of its states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointOutcome {
    pub point: Point,
    /// False if the search was stopped before all strategies were through.
    pub finished: bool,
    pub dirty_lines: u64,
    /// With the stores of each line whole and in order.
    #[serde(with = "crate::names::decimal")]
    pub states_possible: BigUint,
    pub strategies: Vec<StrategyOutcome>,
    pub failing: Vec<FailingState>,
    /// Some states that recovery got right, where others failed: to compare with.
    pub passing: Vec<CrashState>,
    /// How many recoveries were run, and how many runs earlier ones made unnecessary.
    pub runs: u64,
    pub saved: u64,
    /// States that still failed when the point was searched again with repairs assumed; none if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_failing: Option<u64>,
}

impl PointOutcome {
    /// Failures may hide others: a recovery that fails looks at nothing more.
    pub fn is_masked(&self) -> bool {
        self.still_failing.unwrap_or_else(|| self.failing_states()) > 0
    }

    /// Takes in what a search of this point found with repairs assumed: it tells what is exhausted. Its states are among those that were
    /// decided before, so what it saved is no part of what was saved of them.
    pub fn searched_again(&mut self, again: &PointOutcome) {
        for outcome in &again.strategies {
            match self.strategies.iter_mut().find(|own| own.strategy == outcome.strategy) {
                Some(own) => own.reach = outcome.reach,
                None => self.strategies.push(outcome.clone()),
            }
        }
        self.finished &= again.finished;
        self.runs += again.runs;
        self.still_failing = Some(again.failing_states());
    }

    pub fn decided(&self) -> u64 {
        self.strategies.iter().map(|outcome| outcome.decided).sum()
    }

    /// The strategies that are through with this point; none if it was stopped.
    pub fn covers(&self) -> impl Iterator<Item = (u64, StrategySpec)> {
        let strategies = self.strategies.iter().filter(|_| self.finished);
        strategies.map(|outcome| (self.point.index, outcome.strategy))
    }

    pub fn failing_states(&self) -> u64 {
        self.strategies.iter().map(|outcome| outcome.failing).sum()
    }

    /// The same but for what depends on who came first: how many recoveries had to be run.
    pub fn agrees(&self, other: &PointOutcome) -> bool {
        let plain = |outcome: &PointOutcome| PointOutcome { runs: 0, saved: 0, ..outcome.clone() };
        plain(self) == plain(other)
    }

    /// What failed stays, also if a later search of the point assumed that it is repaired.
    fn keep_failures(&mut self, begun: PointOutcome) {
        let without = self.failing_states();
        for own in &mut self.strategies {
            let same = begun.strategies.iter().find(|outcome| outcome.strategy == own.strategy);
            own.failing = same.map_or(own.failing, |outcome| own.failing.max(outcome.failing));
        }
        if self.failing_states() > without {
            self.still_failing.get_or_insert(without);
            let is_own = |state: &FailingState| self.strategies.iter().any(|own| own.strategy == state.strategy);
            let is_new = |state: &FailingState| is_own(state) && !self.failing.contains(state);
            let more: Vec<FailingState> = begun.failing.into_iter().filter(is_new).collect();
            self.failing.extend(more);
            self.runs += begun.runs;
        }
    }

    /// Takes in what other strategies did at this point.
    fn join(&mut self, other: PointOutcome) {
        let known = |strategy: &StrategySpec| self.strategies.iter().any(|own| own.strategy == *strategy);
        if other.strategies.iter().any(|outcome| known(&outcome.strategy)) {
            // Both are about the same: two journals overlap, or one of them was stopped.
            let begun = if other.finished && !self.finished { std::mem::replace(self, other) } else { other };
            self.keep_failures(begun);
            return;
        }
        if !other.failing.is_empty() && self.failing.is_empty() {
            // Its passing states were not kept, but some are known without.
            let passed = self.strategies.iter().filter(|own| own.failing == 0 && own.decided > 0);
            self.passing = passed.filter_map(|own| own.strategy.only_state()).collect();
        }
        self.finished &= other.finished;
        self.strategies.extend(other.strategies);
        self.failing.extend(other.failing);
        self.passing.extend(other.passing);
        self.runs += other.runs;
        self.saved += other.saved;
    }
}

/// One outcome per crash point, in order, from those of several stages, shards or runs.
pub fn merge(outcomes: impl IntoIterator<Item = PointOutcome>) -> Vec<PointOutcome> {
    let mut all: Vec<PointOutcome> = outcomes.into_iter().collect();
    all.sort_by_key(|outcome| (outcome.point.index, outcome.strategies.first().map(|first| first.strategy)));
    let mut merged: Vec<PointOutcome> = Vec::new();
    for outcome in all {
        match merged.last_mut().filter(|last| last.point.index == outcome.point.index) {
            Some(last) => last.join(outcome),
            None => merged.push(outcome),
        }
    }
    merged
}

/// What was looked at and what was not.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Coverage {
    /// All crash points of the trace.
    pub crash_points: u64,
    /// Those that differ in call path, instruction or kind.
    pub failure_points: u64,
    /// Those in the creation of a pool, which are not judged unless that is asked for.
    pub creation_points: u64,
    /// Those that the search was to judge, and how many of them it has.
    pub points_wanted: u64,
    pub points_finished: u64,
    /// Points of which some states were decided, but not all that were wanted.
    #[serde(default)]
    pub points_in_part: u64,
    /// Points at which a strategy met its limit.
    pub points_capped: u64,
    /// Points at which every state that recovery can tell apart was decided, those with torn stores included.
    pub points_distinguished: u64,
    /// States with the stores of each line whole and in order, of all points that were begun.
    #[serde(with = "crate::names::decimal")]
    pub states_possible: BigUint,
    pub states_decided: u64,
    pub states_failing: u64,
    pub recovery_runs: u64,
    /// States decided without a run because an earlier run had read the same.
    pub runs_saved: u64,
    /// Every wanted point was judged by every strategy, and none met its limit.
    pub complete: bool,
    /// All wanted points are among the distinguished ones: no crash in the recorded run leaves a state that was not decided.
    #[serde(default)]
    pub exhaustive: bool,
}

impl Coverage {
    /// Together with that of another search, of another trace. Failure points may be the same: they are counted twice.
    pub fn absorb(&mut self, other: &Coverage) {
        self.crash_points += other.crash_points;
        self.failure_points += other.failure_points;
        self.creation_points += other.creation_points;
        self.points_wanted += other.points_wanted;
        self.points_finished += other.points_finished;
        self.points_in_part += other.points_in_part;
        self.points_capped += other.points_capped;
        self.points_distinguished += other.points_distinguished;
        self.states_possible += &other.states_possible;
        self.states_decided += other.states_decided;
        self.states_failing += other.states_failing;
        self.recovery_runs += other.recovery_runs;
        self.runs_saved += other.runs_saved;
        self.complete &= other.complete;
        self.exhaustive &= other.exhaustive;
    }

    /// Adds up the outcomes of distinct points, to which so many strategies were to be applied.
    pub(crate) fn add(&mut self, outcomes: &[PointOutcome], strategies: usize) {
        for outcome in outcomes {
            let reached = |reach: fn(Reach) -> bool| outcome.strategies.iter().any(|strategy| reach(strategy.reach));
            let capped = reached(|reach| matches!(reach, Reach::Capped | Reach::CappedWithoutReads));
            let finished = outcome.finished && outcome.strategies.len() == strategies;
            self.points_finished += u64::from(finished);
            self.points_in_part += u64::from(!finished && outcome.decided() > 0);
            self.points_capped += u64::from(capped);
            self.points_distinguished +=
                u64::from(reached(|reach| reach == Reach::Distinguishable) && !outcome.is_masked());
            self.states_possible += &outcome.states_possible;
            self.states_decided += outcome.decided();
            self.states_failing += outcome.failing_states();
            self.recovery_runs += outcome.runs;
            self.runs_saved += outcome.saved;
        }
        self.complete = self.points_finished == self.points_wanted && self.points_capped == 0;
        self.exhaustive = self.points_finished == self.points_wanted && self.points_distinguished == self.points_wanted;
    }

    /// What states were told apart by cannot be relied on (recovery is not deterministic, or looked at something that is not part of the
    /// state): no point is exhausted.
    pub fn withdraw_exhaustive(&mut self) {
        self.points_distinguished = 0;
        self.exhaustive = self.points_wanted == 0;
    }
}
