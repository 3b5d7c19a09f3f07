//! Solvers, and the stages before them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use record::stop::StopRequest;
use rustc_hash::FxHashSet;

use crate::blast::Blaster;
use crate::eval::Evaluator;
use crate::expr::{Arena, Expr};
use crate::invert::guesses;
use crate::path::{Path, PathStepKind};

/// Something that finds bytes for which conditions hold.
pub trait Solver: Send {
    fn name(&self) -> &str;
    fn solve(&mut self, arena: &Arena, conditions: &[Expr], limit: &QueryLimit) -> Answer;

    /// What the last query took, in clauses or the like: the same on every machine.
    fn cost(&self) -> u64 {
        0
    }
}

/// How long a query may take.
#[derive(Clone, Copy, Debug)]
pub struct QueryLimit {
    /// For each; the embedded solver counts work instead, which is the same on every machine.
    pub time: Duration,
    /// Afterwards nobody waits for an answer.
    pub deadline: Option<Instant>,
    /// The user's wish to end.
    pub stop: Option<&'static StopRequest>,
}

impl QueryLimit {
    pub fn of(time: Duration) -> QueryLimit {
        QueryLimit { time, deadline: None, stop: None }
    }

    /// Does nobody wait for an answer any more?
    pub fn is_over(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.stop.is_some_and(|stop| stop.count() > 0)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Bytes of the input that are to be changed; the others do not matter.
    Solved(Vec<(u32, u8)>),
    Impossible,
    Unknown(Unknown),
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unknown {
    #[error("the work limit of the query (--query-limit)")]
    Work,
    #[error("the time limit of the query: another run may get an answer")]
    Time,
    #[error("the solver {0}")]
    Process(String),
}

/// Steps of the built-in solver's search that take about a millisecond.
const WORK_PER_MILLISECOND: u64 = 50;
/// Its clock stops it after so many times the limit.
const CLOCK_FACTOR: u32 = 8;
/// Other programs may have the processor.
const LEAST_CLOCK: Duration = Duration::from_secs(30);

/// The built-in solver: bits and clauses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Embedded {
    clauses: u64,
}

impl Solver for Embedded {
    fn name(&self) -> &str {
        "embedded"
    }

    fn solve(&mut self, arena: &Arena, conditions: &[Expr], limit: &QueryLimit) -> Answer {
        // Work is the same on every machine, time is not: the clock only ends what is far beyond.
        let late = Instant::now() + (limit.time * CLOCK_FACTOR).max(LEAST_CLOCK);
        let work = u64::try_from(limit.time.as_millis()).unwrap_or(u64::MAX).saturating_mul(WORK_PER_MILLISECOND);
        let limit = QueryLimit { deadline: Some(limit.deadline.map_or(late, |deadline| deadline.min(late))), ..*limit };
        let mut blaster = Blaster::new(arena, work, limit);
        let fits = conditions.iter().all(|&condition| blaster.require(condition));
        self.clauses = blaster.clauses() as u64;
        if !fits {
            return Answer::Unknown(if limit.is_over() { Unknown::Time } else { Unknown::Work });
        }
        match blaster.solve() {
            Some(true) => Answer::Solved(blaster.bytes()),
            Some(false) => Answer::Impossible,
            None if blaster.is_late() => Answer::Unknown(Unknown::Time),
            None => Answer::Unknown(Unknown::Work),
        }
    }

    fn cost(&self) -> u64 {
        self.clauses
    }
}

/// What answered a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SolverStage {
    /// Asked before, with the same structure.
    Cache,
    /// Compared bytes, copied or computed backwards.
    Copy,
    /// All values of one byte.
    Byte,
    /// A solver, on the whole path.
    Solver,
    /// A solver, on the path without addresses that were taken as they were.
    NoAddresses,
    /// A solver, on the branch alone.
    Alone,
    Impossible,
    Unknown,
}

/// An input that should take the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Solved {
    pub input: Vec<u8>,
    pub stage: SolverStage,
}

/// The stages, cheapest first.
pub struct Stages {
    solvers: Vec<Box<dyn Solver>>,
    /// Of each query.
    pub limit: QueryLimit,
    cache: HashMap<Vec<u64>, Answer>,
    pub counts: HashMap<SolverStage, u64>,
    pub time: Duration,
    /// What all queries took, as solvers count it.
    pub cost: u64,
    /// What solvers failed with, for the report.
    pub failures: Vec<Unknown>,
}

impl std::fmt::Debug for Stages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stages").field("counts", &self.counts).finish_non_exhaustive()
    }
}

/// Failures that are kept.
const MOST_FAILURES: usize = 4;

impl Stages {
    /// The solvers are asked in turn until one knows.
    pub fn new(solvers: Vec<Box<dyn Solver>>, limit: Duration) -> Stages {
        let (counts, cache) = Default::default();
        let limit = QueryLimit::of(limit);
        Stages { solvers, limit, cache, counts, time: Duration::ZERO, cost: 0, failures: Vec::new() }
    }

    /// An input that goes like `input` up to step `at` of its path, and the other way there: to `side`, if one is named.
    pub fn other_side(
        &mut self,
        arena: &mut Arena,
        path: &Path,
        at: usize,
        side: Option<u64>,
        input: &[u8],
    ) -> Option<Solved> {
        let start = Instant::now();
        let goal = match (path.steps[at].kind, side) {
            (PathStepKind::Jump { value, .. }, Some(side)) => {
                let side = arena.constant(64, side);
                arena.eq(value, side)
            }
            _ => arena.not(path.steps[at].condition),
        };
        let solved = self.staged(arena, path, at, goal, input);
        self.time += start.elapsed();
        let stage = match &solved {
            Ok(solved) => solved.stage,
            Err(stage) => *stage,
        };
        *self.counts.entry(stage).or_default() += 1;
        solved.ok()
    }

    fn staged(
        &mut self,
        arena: &Arena,
        path: &Path,
        at: usize,
        goal: Expr,
        input: &[u8],
    ) -> Result<Solved, SolverStage> {
        let conditions: Vec<Expr> = path.steps[..at].iter().map(|step| step.condition).collect();
        let related = related(arena, &conditions, goal);
        let hard: Vec<Expr> = {
            let pinned: FxHashSet<Expr> = path.steps[..at]
                .iter()
                .filter(|step| step.kind == PathStepKind::Address)
                .map(|step| step.condition)
                .collect();
            related.iter().copied().filter(|condition| !pinned.contains(condition)).collect()
        };
        let holds = |bytes: &[(u32, u8)], conditions: &[Expr]| {
            let mut input = input.to_vec();
            apply(&mut input, bytes);
            let mut evaluator = Evaluator::new(arena, &input);
            (evaluator.holds(goal) && conditions.iter().all(|&condition| evaluator.holds(condition))).then_some(input)
        };
        for guess in guesses(arena, goal) {
            let bytes: Vec<(u32, u8)> = guess.into_iter().collect();
            if let Some(input) = holds(&bytes, &related) {
                return Ok(Solved { input, stage: SolverStage::Copy });
            }
        }
        if let &[only] = arena.support(goal) {
            let found = (0..=u8::MAX).find_map(|value| holds(&[(only, value)], &related));
            if let Some(input) = found {
                return Ok(Solved { input, stage: SolverStage::Byte });
            }
            // What no value of the byte allows, together with all that is said of this byte alone, needs no solver.
            let alone: Vec<Expr> = hard.iter().copied().filter(|&it| arena.support(it) == [only]).collect();
            if (0..=u8::MAX).all(|value| holds(&[(only, value)], &alone).is_none()) {
                return Err(SolverStage::Impossible);
            }
        }
        let with_goal = |conditions: &[Expr]| -> Vec<Expr> { conditions.iter().copied().chain([goal]).collect() };
        let mut known = true;
        let mut sets = vec![(with_goal(&related), SolverStage::Solver)];
        if hard.len() < related.len() {
            sets.push((with_goal(&hard), SolverStage::NoAddresses));
        }
        if !related.is_empty() {
            sets.push((vec![goal], SolverStage::Alone));
        }
        for (set, which) in sets {
            // Alone only where the whole could not be decided: an impossible whole stays so.
            if which == SolverStage::Alone && known {
                break;
            }
            let (answer, cached) = self.ask(arena, &set);
            match answer {
                Answer::Solved(bytes) => {
                    let mut solved = input.to_vec();
                    apply(&mut solved, &bytes);
                    let input = nearest(arena, &set, input, solved);
                    return Ok(Solved { input, stage: if cached { SolverStage::Cache } else { which } });
                }
                Answer::Impossible => {}
                Answer::Unknown(_) => known = false,
            }
        }
        Err(if known { SolverStage::Impossible } else { SolverStage::Unknown })
    }

    fn ask(&mut self, arena: &Arena, conditions: &[Expr]) -> (Answer, bool) {
        let mut key: Vec<u64> = conditions.iter().map(|&condition| arena.structure(condition)).collect();
        key.sort_unstable();
        key.dedup();
        if let Some(answer) = self.cache.get(&key) {
            return (answer.clone(), true);
        }
        let mut last = Answer::Unknown(Unknown::Work);
        for solver in &mut self.solvers {
            last = solver.solve(arena, conditions, &self.limit);
            self.cost += solver.cost();
            match &last {
                // That the time is over is no failure of the solver.
                Answer::Unknown(_) if self.limit.is_over() => return (last, false),
                Answer::Unknown(why) => {
                    if self.failures.len() < MOST_FAILURES && !self.failures.contains(why) {
                        self.failures.push(why.clone());
                    }
                }
                _ => break,
            }
        }
        self.cache.insert(key, last.clone());
        (last, false)
    }
}

fn apply(input: &mut Vec<u8>, bytes: &[(u32, u8)]) {
    for &(index, byte) in bytes {
        let index = index as usize;
        if input.len() <= index {
            input.resize(index + 1, 0);
        }
        input[index] = byte;
    }
}

/// Of the inputs between `old` and `solved`, one with few changes for which the conditions still hold. What a solver was free to choose
/// is better left as it was: a zero in the middle of a word would hide the rest of it from the next run.
fn nearest(arena: &Arena, conditions: &[Expr], old: &[u8], mut solved: Vec<u8>) -> Vec<u8> {
    /// More changes than that are tried together only.
    const MOST_TRIES: usize = 256;
    let changed: Vec<usize> = (0..old.len().min(solved.len())).filter(|&at| old[at] != solved[at]).collect();
    let mut left = vec![changed.as_slice()];
    let mut tries = 0;
    while let Some(part) = left.pop().filter(|_| tries < MOST_TRIES) {
        tries += 1;
        let mut tried = solved.clone();
        part.iter().for_each(|&at| tried[at] = old[at]);
        let mut evaluator = Evaluator::new(arena, &tried);
        if conditions.iter().all(|&condition| evaluator.holds(condition)) {
            solved = tried;
        } else if part.len() > 1 {
            let (first, second) = part.split_at(part.len() / 2);
            left.extend([second, first]);
        }
    }
    solved
}

/// The conditions that share input bytes with the goal, directly or through others.
fn related(arena: &Arena, conditions: &[Expr], goal: Expr) -> Vec<Expr> {
    let mut bytes: FxHashSet<u32> = arena.support(goal).iter().copied().collect();
    let mut taken = vec![false; conditions.len()];
    loop {
        let mut grown = false;
        for (at, &condition) in conditions.iter().enumerate() {
            if !taken[at] && arena.support(condition).iter().any(|byte| bytes.contains(byte)) {
                taken[at] = true;
                bytes.extend(arena.support(condition));
                grown = true;
            }
        }
        if !grown {
            break;
        }
    }
    let mut list: Vec<Expr> = conditions.iter().zip(&taken).filter(|(_, taken)| **taken).map(|(&c, _)| c).collect();
    let mut seen = FxHashSet::default();
    list.retain(|condition| seen.insert(*condition));
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers with the same bytes every time.
    struct Always(Vec<(u32, u8)>);

    impl Solver for Always {
        fn name(&self) -> &str {
            "always"
        }

        fn solve(&mut self, _: &Arena, _: &[Expr], _: &QueryLimit) -> Answer {
            Answer::Solved(self.0.clone())
        }
    }

    #[test]
    fn an_answer_changes_no_more_than_the_branch_needs() {
        let mut arena = Arena::of(&[2, 2, b'x', b'y']);
        let (a, b, number) = (arena.input(0), arena.input(1), arena.constant(8, 49));
        let product = arena.mul(a, b);
        let is = arena.eq(product, number);
        let mut path = Path::default();
        let kind = PathStepKind::Branch { taken: false, target: 8, next: 4 };
        path.push(crate::path::PathStep { condition: arena.not(is), pc: 0, kind, frames: 0 });
        let answer = vec![(0, 7), (1, 7), (2, 0), (3, 0)];
        let mut stages = Stages::new(vec![Box::new(Always(answer))], Duration::from_secs(1));
        let solved = stages.other_side(&mut arena, &path, 0, None, &[2, 2, b'x', b'y']).expect("an answer");
        assert_eq!((solved.input.as_slice(), solved.stage), ([7, 7, b'x', b'y'].as_slice(), SolverStage::Solver));
    }

    #[test]
    fn a_query_ends_when_nobody_waits_for_it() {
        let mut arena = Arena::of(&[7; 16]);
        let word = |arena: &mut Arena, from: u32| {
            let bytes: Vec<Expr> = (from..from + 8).map(|at| arena.input(at)).collect();
            bytes.into_iter().reduce(|low, high| arena.concat(high, low)).expect("eight bytes")
        };
        // Factors of a prime number: there are none, which takes very long to prove.
        let (a, b) = (word(&mut arena, 0), word(&mut arena, 8));
        let (product, number) = (arena.mul(a, b), arena.constant(64, 0x3a7b_91c5_d2e4_f61f));
        let (is, half) = (arena.eq(product, number), arena.constant(64, 1 << 32));
        let conditions = [is, arena.ult(a, half), arena.ult(b, half)];
        let soon = Instant::now() + Duration::from_millis(50);
        let limit = QueryLimit { deadline: Some(soon), ..QueryLimit::of(Duration::from_secs(1 << 20)) };
        assert_eq!(Embedded::default().solve(&arena, &conditions, &limit), Answer::Unknown(Unknown::Time));
    }

    /// Must not be asked.
    struct Never;

    impl Solver for Never {
        fn name(&self) -> &str {
            "never"
        }

        fn solve(&mut self, _: &Arena, _: &[Expr], _: &QueryLimit) -> Answer {
            panic!("one byte decides it")
        }
    }

    #[test]
    fn what_one_byte_rules_out_needs_no_solver() {
        let mut arena = Arena::of(b"55");
        let (digit, other) = (arena.input(0), arena.input(1));
        // It is at least '5', and at least as large as its neighbour; the last branch asks whether it is below '1'.
        let (five, one) = (arena.constant(8, b'5'.into()), arena.constant(8, b'1'.into()));
        let conditions = [arena.ult(digit, five), arena.ult(digit, other), arena.ult(digit, one)];
        let kind = PathStepKind::Branch { taken: false, target: 8, next: 4 };
        let mut path = Path::default();
        for condition in conditions {
            path.push(crate::path::PathStep { condition: arena.not(condition), pc: 0, kind, frames: 0 });
        }
        let mut stages = Stages::new(vec![Box::new(Never)], Duration::from_secs(1));
        assert_eq!(stages.other_side(&mut arena, &path, 2, None, b"55"), None);
        assert_eq!(stages.counts[&SolverStage::Impossible], 1);
    }

    #[test]
    fn what_the_solver_chose_freely_stays_as_it_was() {
        let mut arena = Arena::default();
        let (byte, letter) = (arena.input(3), arena.constant(8, b'r'.into()));
        let condition = arena.eq(byte, letter);
        assert_eq!(nearest(&arena, &[condition], b"1111111", b"\0\0\0r\0\0\0".to_vec()), b"111r111");
        assert_eq!(nearest(&arena, &[condition], b"11", b"\0\0\0r".to_vec()), b"11\0r");
    }
}
