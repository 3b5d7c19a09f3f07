//! An exploration: runs, solves and runs again, until the time budget is exhausted or no branch is left.

use std::time::{Duration, Instant};

use crate::explore::{Explorer, News, Proposal};
use crate::follow::{Followed, Mapped};
use crate::reach::{ReachError, SourceLine, addresses};
use crate::run::{Ran, RunError, Runner};
use crate::solver::SolverStage;

/// When a session ends.
#[derive(Clone, Debug)]
pub struct Limits {
    pub time: Duration,
    pub runs: u64,
}

/// Why a session could not go on.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    #[error(transparent)]
    Run(#[from] RunError),
    #[error(transparent)]
    Reach(#[from] ReachError),
}

/// One run of a session.
#[derive(Debug)]
pub struct Found<'a> {
    pub number: u64,
    pub input: &'a [u8],
    pub ran: &'a Ran,
    pub news: News,
    /// What answered the query that it came of; none for the first.
    pub stage: Option<SolverStage>,
    /// It executed the line that was asked for.
    pub reached: bool,
}

/// Sums over all runs.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    pub runs: u64,
    pub instructions: u64,
    pub followed: u64,
    pub steps: u64,
    pub diverged: u64,
    pub cut: u64,
    pub too_many: u64,
    pub dropped: u64,
    pub pinned: u64,
    pub partial: u64,
    pub tables: u64,
    pub stopped: u64,
    pub more_threads: u64,
    pub code_changed: u64,
    /// The time that runs took.
    pub running: Duration,
    pub nodes: usize,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// No branch is left to try. Every one was tried if there are no [gaps](Session::gaps).
    Exhausted,
    Time,
    Runs,
    /// The user asked for it.
    Interrupted,
    /// The caller had enough.
    Asked,
    /// Nothing that the program decided depended on the input.
    NoBranch,
    /// No byte of the input ever came to the program.
    NoInput,
}

#[derive(Debug)]
pub struct Session {
    pub runner: Runner,
    pub explorer: Explorer,
    pub limits: Limits,
    pub reach: Option<SourceLine>,
    pub totals: Totals,
    pub concrete: std::collections::BTreeMap<(String, crate::frame::Concrete), (u64, u64)>,
    goals: Vec<u64>,
    /// Files with code, of the last run.
    pub mapped: Vec<Mapped>,
}

impl Session {
    pub fn new(runner: Runner, explorer: Explorer, limits: Limits, reach: Option<SourceLine>) -> Session {
        let (totals, concrete, goals, mapped) = Default::default();
        Session { runner, explorer, limits, reach, totals, concrete, goals, mapped }
    }

    /// Runs until the end; `each` is told of every run, and says whether to go on.
    pub fn run(&mut self, mut each: impl FnMut(&Found<'_>) -> bool) -> Result<Ended, SessionError> {
        let start = Instant::now();
        let until = start + self.limits.time;
        self.explorer.end_queries(until, self.runner.stop);
        let mut input = self.runner.shape().seed.clone();
        let mut proposal: Option<Proposal> = None;
        loop {
            let before = Instant::now();
            let ran = match self.runner.run(&input) {
                // What the user's signal left of the run means nothing.
                _ if self.is_interrupted() => return Ok(Ended::Interrupted),
                ran => ran?,
            };
            self.totals.running += before.elapsed();
            self.add(&ran);
            if self.totals.runs == 1 {
                if let Some(place) = &self.reach {
                    self.goals = addresses(&ran.followed.mapped, place)?;
                    self.explorer.set_goals(self.goals.clone());
                }
                if ran.followed.path.counts.input == 0 {
                    return Ok(Ended::NoInput);
                }
            }
            let reached = self.is_reached(&ran.followed);
            let no_branch = self.totals.runs == 1 && !ran.followed.path.has_branches();
            // The path goes to the explorer; what is told of the run has the rest.
            let Ran { followed, recording, trace, pm, stopped } = ran;
            let (empty, path) = (emptied(&followed), followed);
            let news = self.explorer.ran(input.clone(), path, &pm, proposal.as_ref(), 0);
            let ran = Ran { followed: empty, recording, trace, pm, stopped };
            let stage = proposal.as_ref().map(|proposal| proposal.stage);
            let found = Found { number: self.totals.runs, input: &input, ran: &ran, news, stage, reached };
            if !each(&found) || reached && self.reach.is_some() {
                return Ok(Ended::Asked);
            }
            if no_branch {
                return Ok(Ended::NoBranch);
            }
            if self.totals.runs >= self.limits.runs {
                return Ok(Ended::Runs);
            }
            let stop = self.runner.stop;
            let go_on = || Instant::now() < until && stop.is_none_or(|stop| stop.count() == 0);
            let Some(next) = self.explorer.next(go_on) else {
                if self.is_interrupted() {
                    return Ok(Ended::Interrupted);
                }
                return Ok(if Instant::now() < until { Ended::Exhausted } else { Ended::Time });
            };
            input.clone_from(&next.input);
            proposal = Some(next);
            if Instant::now() >= until {
                return Ok(Ended::Time);
            }
        }
    }

    fn is_interrupted(&self) -> bool {
        self.runner.stop.is_some_and(|stop| stop.count() > 0)
    }

    fn is_reached(&self, followed: &Followed) -> bool {
        followed.blocks.iter().any(|&(pc, len)| self.goals.iter().any(|goal| (pc..pc + len).contains(goal)))
    }

    fn add(&mut self, ran: &Ran) {
        let (totals, path) = (&mut self.totals, &ran.followed.path);
        let counts = path.counts;
        totals.runs += 1;
        totals.instructions += counts.instructions;
        totals.followed += counts.followed;
        totals.steps += path.steps.len() as u64;
        totals.diverged += counts.diverged;
        totals.cut += counts.cut;
        totals.too_many += counts.too_many;
        totals.dropped += counts.dropped;
        totals.pinned += counts.pinned;
        totals.partial += counts.partial;
        totals.tables += counts.tables;
        totals.stopped += u64::from(ran.stopped);
        totals.more_threads += u64::from(ran.followed.more_threads);
        totals.code_changed += ran.followed.code_changed;
        self.mapped.clone_from(&ran.followed.mapped);
        totals.nodes = totals.nodes.max(ran.followed.arena.len());
        for (key, &(count, pc)) in &path.concrete {
            let entry = self.concrete.entry(key.clone()).or_insert((0, pc));
            entry.0 += count;
        }
    }
}

/// What is left of a path that was given away: its files.
fn emptied(followed: &Followed) -> Followed {
    Followed {
        arena: crate::expr::Arena::default(),
        path: crate::path::Path::of_counts(followed.path.counts),
        blocks: Vec::new(),
        mapped: followed.mapped.clone(),
        ways: Vec::new(),
        more_threads: followed.more_threads,
        code_changed: followed.code_changed,
    }
}
