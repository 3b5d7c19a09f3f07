//! Chooses a workload for a check among generated ones: the one that makes the most PM transitions, or parts of a few, one after the other,
//! that together make more.
//!
//! The whole is no longer than a generated workload would be. If no choice is better than the plain workload, that one stays.

use std::sync::Arc;
use std::time::Instant;

use crate::coverage::{Covered, Trail};
use crate::execute::{ExecuteError, Executor};
use crate::image::Image;
use crate::inputs::Inputs;
use crate::random::Random;

/// Executions, if they do not take too long.
const EXECUTIONS: usize = 96;

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    pub operations: Vec<u8>,
    /// That it makes.
    pub pm_transitions: usize,
    /// That the plain workload makes.
    pub plain: usize,
    /// Workloads that were tried.
    pub tried: usize,
}

/// Tries workloads until the deadline; none: nothing was better than `plain`.
pub fn select(
    executor: &mut Executor,
    start: &Arc<Image>,
    inputs: &dyn Inputs,
    plain: &[u8],
    seed: u64,
    deadline: Instant,
) -> Result<Option<Chosen>, ExecuteError> {
    let total = inputs.parts(plain).len();
    let mut random = Random::new(seed);
    let first = executor.run(plain, start)?;
    let plain_count = first.trail.pm().count();
    let mut covered = Covered::default();
    covered.add(&first.trail);
    // Every workload that had something new.
    let mut candidates: Vec<(Vec<u8>, Trail)> = vec![(plain.to_vec(), first.trail)];
    let mut tried = 1;
    while tried < EXECUTIONS * 2 / 3 && Instant::now() < deadline {
        let pick = |random: &mut Random| candidates[random.index(candidates.len())].0.clone();
        let (from, other) = (pick(&mut random), pick(&mut random));
        let next = cut(inputs, &inputs.mutate(&from, &other, &mut random), total);
        let execution = executor.run(&next, start)?;
        tried += 1;
        if execution.is_orderly() && covered.news(&execution.trail).pm_transitions > 0 {
            covered.add(&execution.trail);
            candidates.push((next, execution.trail));
        }
    }
    // The one that makes most; then a part of it, and of whatever adds most behind it.
    let most = |(_, trail): &&(Vec<u8>, Trail)| trail.pm().count();
    let Some((mut whole, mut trail)) = candidates.iter().max_by_key(most).cloned() else { return Ok(None) };
    while tried < EXECUTIONS && Instant::now() < deadline {
        let mut reached = Covered::default();
        reached.add(&trail);
        let gain = |(_, trail): &&(Vec<u8>, Trail)| reached.news(trail).pm_transitions;
        let Some(other) = candidates.iter().max_by_key(gain).filter(|other| gain(other) > 0).cloned() else { break };
        candidates.retain(|candidate| candidate.0 != other.0);
        let part = total / 4 * (1 + random.index(3));
        let together = [cut(inputs, &whole, total - part), cut(inputs, &other.0, part)].concat();
        let execution = executor.run(&together, start)?;
        tried += 1;
        if execution.is_orderly() && execution.trail.pm().count() > trail.pm().count() {
            (whole, trail) = (together, execution.trail);
        }
    }
    let pm_transitions = trail.pm().count();
    let chosen = Chosen { operations: whole, pm_transitions, plain: plain_count, tried };
    Ok((pm_transitions > plain_count).then_some(chosen))
}

/// The first operations.
fn cut(inputs: &dyn Inputs, input: &[u8], count: usize) -> Vec<u8> {
    let end = inputs.parts(input).get(count.saturating_sub(1)).map_or(input.len(), |part| part.end);
    let mut cut = input[..end].to_vec();
    if cut.last().is_some_and(|byte| *byte != b'\n') {
        cut.push(b'\n');
    }
    cut
}
