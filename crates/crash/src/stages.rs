//! The order of a search: breadth first.
//!
//! Every crash point gets its cheap states (program order, guaranteed only, one line more or less) before any gets the others, round by
//! round. What was chosen over the whole run (*inferred*) is little, and likely to be wrong: it is tried in all rounds as soon as the first
//! one has had its cheap states. A search that ends early has then looked at everything a little rather than at a little of it thoroughly.

use std::ops::RangeInclusive;

use crate::rounds::{Round, Shard};
use crate::search::SearchOptions;
use crate::strategy::StrategySpec;
use crate::survey::Survey;

/// Some strategies on the points of some rounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    pub rounds: RangeInclusive<Round>,
    pub strategies: Vec<StrategySpec>,
    /// Strategies that have been at these points before.
    pub earlier: Vec<StrategySpec>,
}

/// Which stages of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Part {
    #[default]
    All,
    /// Those with few states per point.
    Broad,
    /// The others.
    Deep,
}

pub(crate) fn stages(survey: &Survey, options: &SearchOptions, shard: Shard, part: Part) -> Vec<Stage> {
    let rounds = options.selection.rounds(survey, shard);
    let rounds: Vec<Round> = rounds.into_iter().map(|(round, _)| round).collect();
    let mut stages = in_order(&rounds, &options.strategies);
    let is_broad = |stage: &Stage| stage.strategies.iter().all(|spec| spec.is_cheap() || spec.needs_conditions());
    match part {
        Part::All => {}
        Part::Broad => stages.retain(is_broad),
        Part::Deep => stages.retain(|stage| !is_broad(stage)),
    }
    stages
}

fn in_order(rounds: &[Round], strategies: &[StrategySpec]) -> Vec<Stage> {
    let those = |is: &dyn Fn(StrategySpec) -> bool| -> Vec<StrategySpec> {
        strategies.iter().copied().filter(|&strategy| is(strategy)).collect()
    };
    let (quick, chosen) = (those(&StrategySpec::is_quick), those(&StrategySpec::needs_conditions));
    let near = those(&|strategy| strategy.is_cheap() && !strategy.is_quick());
    let others = those(&|strategy| !strategy.is_cheap() && !strategy.needs_conditions());
    let (first, later): (Vec<Round>, Vec<Round>) = rounds.iter().partition(|&&round| round == Round::default());
    let stage = |rounds: RangeInclusive<Round>, strategies: &[StrategySpec], earlier: &[&[StrategySpec]]| Stage {
        rounds,
        strategies: strategies.to_vec(),
        earlier: earlier.concat(),
    };
    let mut stages = Vec::new();
    for &round in &first {
        stages.push(stage(round..=round, &quick, &[]));
        stages.push(stage(round..=round, &near, &[&quick]));
        stages.push(stage(round..=round, &chosen, &[&quick, &near]));
    }
    if let (Some(&from), Some(&to)) = (later.first(), later.last()) {
        stages.push(stage(from..=to, &chosen, &[]));
    }
    for &round in &later {
        stages.push(stage(round..=round, &quick, &[&chosen]));
        stages.push(stage(round..=round, &near, &[&chosen, &quick]));
    }
    for &round in first.iter().chain(&later) {
        stages.push(stage(round..=round, &others, &[&quick, &near, &chosen]));
    }
    stages.retain(|stage| !stage.strategies.is_empty());
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cheap_states_come_everywhere_before_the_others_anywhere() {
        let list = StrategySpec::list("program-order,few-lines:1,inferred,visible:64").unwrap();
        let shown = |rounds: &[Round]| -> Vec<String> {
            let names = |list: &[StrategySpec]| list.iter().map(|s| s.to_string()).collect::<Vec<_>>().join("+");
            let show = |stage: Stage| {
                let (first, last) = (stage.rounds.start().0, stage.rounds.end().0);
                format!("{first}-{last} {} after {}", names(&stage.strategies), names(&stage.earlier))
            };
            in_order(rounds, &list).into_iter().map(show).collect()
        };
        assert_eq!(
            shown(&[Round(0), Round(1), Round(3)]),
            [
                "0-0 program-order after ",
                "0-0 few-lines:1 after program-order",
                "0-0 inferred after program-order+few-lines:1",
                "1-3 inferred after ",
                "1-1 program-order after inferred",
                "1-1 few-lines:1 after inferred+program-order",
                "3-3 program-order after inferred",
                "3-3 few-lines:1 after inferred+program-order",
                "0-0 visible:64 after program-order+few-lines:1+inferred",
                "1-1 visible:64 after program-order+few-lines:1+inferred",
                "3-3 visible:64 after program-order+few-lines:1+inferred",
            ]
        );
        assert_eq!(shown(&[Round(0)]).len(), 4);
        let shard = shown(&[Round(1)]);
        assert_eq!(shard[..2], ["1-1 inferred after ", "1-1 program-order after inferred"], "as in the whole");
        assert!(shown(&[]).is_empty());
    }
}
