//! The order of a search: round by round, and in each round the quick strategies on all points before the others on any.
//!
//! A search that ends early has then looked at everything a little rather than at a little of it thoroughly.

use crate::rounds::{Round, Shard};
use crate::search::SearchOptions;
use crate::strategy::StrategySpec;
use crate::survey::Survey;

/// Some strategies on the points of a round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub round: Round,
    pub strategies: Vec<StrategySpec>,
    /// Strategies that have been at these points before.
    pub earlier: Vec<StrategySpec>,
}

pub(crate) fn stages(survey: &Survey, options: &SearchOptions, shard: Shard) -> Vec<Stage> {
    let (quick, others): (Vec<_>, Vec<_>) = options.strategies.iter().partition(|strategy| strategy.is_quick());
    let mut stages = Vec::new();
    for (round, _) in options.selection.rounds(survey, shard) {
        if !quick.is_empty() {
            stages.push(Stage { round, strategies: quick.clone(), earlier: Vec::new() });
        }
        if !others.is_empty() {
            stages.push(Stage { round, strategies: others.clone(), earlier: quick.clone() });
        }
    }
    stages
}
