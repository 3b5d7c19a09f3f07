//! What a strategy is, and how it is named on the command line.

use std::fmt;
use std::str::FromStr;

use persistency::line::LineId;
use persistency::states::{Base, CrashState};
use serde::{Deserialize, Serialize};

use super::few_lines::few_lines;
use super::few_sectors::few_sectors;
use super::guaranteed_only::GuaranteedOnly;
use super::inferred::Inferred;
use super::program_order::ProgramOrder;
use super::random::Random;
use super::visible::{Limits, Visible};
use crate::view::PointView;

/// Names the states of one crash point that are to be decided, in a fixed order, the smallest deviation first.
pub trait Strategy: fmt::Debug {
    /// The next state; none when there is nothing more to try.
    fn next(&mut self, view: &PointView<'_>) -> Option<CrashState>;

    /// Recovery looked at these dirty lines of the state that [`next`](Self::next) returned last, in this order; none
    /// if that is not known.
    fn observe(&mut self, view: &PointView<'_>, state: &CrashState, reads: Option<&[LineId]>) {
        let _ = (view, state, reads);
    }

    /// How far it came, once `next` has returned none.
    fn reach(&self) -> Reach;
}

/// How much of a point a strategy has covered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// All states that it stands for.
    Done,
    /// All states that recovery can tell apart at this point, those with torn and with reordered stores included.
    Distinguishable,
    /// It has a limit, and there were more.
    Capped,
    /// As `Capped`; without knowing what recovery reads it had to try state after state.
    CappedWithoutReads,
    /// It was stopped.
    Stopped,
}

/// A strategy with its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StrategySpec {
    ProgramOrder,
    GuaranteedOnly,
    /// Needs the conditions of the run; see [`SearchOptions`](crate::search::SearchOptions).
    Inferred {
        times: u64,
    },
    FewLines {
        lines: u32,
        cap: u64,
    },
    /// Sectors of 512 bytes are declared to be written whole.
    FewSectors {
        sectors: u32,
        cap: u64,
    },
    /// As [`Visible`](StrategySpec::Visible), with as many states with cuts as without.
    Torn {
        cap: u64,
    },
    Random {
        seed: u64,
        states: u64,
    },
    /// The limit is for states with whole stores; of those with cuts a quarter as many are tried.
    Visible {
        cap: Option<u64>,
    },
}

/// Of each kind, unless the user says otherwise; those whose number is a power of two as well.
const TIMES: u64 = 1;
/// Per point, unless the user says otherwise.
const FEW_LINES_CAP: u64 = 4096;
const TORN_CAP: u64 = 1024;
/// States with cuts that *visible* tries: its limit divided by this.
const CUTS_PART: u64 = 4;

impl StrategySpec {
    /// Starts on a crash point. `index` is the point's: the random ones differ from point to point.
    pub fn start(self, view: &PointView<'_>, index: u64) -> Box<dyn Strategy> {
        match self {
            StrategySpec::ProgramOrder => Box::new(ProgramOrder::default()),
            StrategySpec::GuaranteedOnly => Box::new(GuaranteedOnly::default()),
            StrategySpec::Inferred { times } => Box::new(Inferred::new(view, index, times)),
            StrategySpec::FewLines { lines, cap } => Box::new(few_lines(view, lines, cap)),
            StrategySpec::FewSectors { sectors, cap } => Box::new(few_sectors(view, sectors, cap)),
            StrategySpec::Torn { cap } => Box::new(Visible::new(Limits { whole: Some(cap), cuts: Some(cap) })),
            StrategySpec::Random { seed, states } => Box::new(Random::new(seed, index, states)),
            StrategySpec::Visible { cap } => {
                let cuts = cap.map(|cap| cap / CUTS_PART);
                Box::new(Visible::new(Limits { whole: cap, cuts }))
            }
        }
    }

    /// Tries one state: worth doing everywhere before anything else is done anywhere.
    pub fn is_quick(self) -> bool {
        self.only_state().is_some()
    }

    /// Tries a few states that differ little from one that is quick.
    pub fn is_cheap(self) -> bool {
        self.is_quick()
            || matches!(self, StrategySpec::FewLines { lines: 1, .. } | StrategySpec::FewSectors { sectors: 1, .. })
    }

    /// The state of a strategy that has one at every point.
    pub fn only_state(self) -> Option<CrashState> {
        let base = match self {
            StrategySpec::ProgramOrder => Base::Everything,
            StrategySpec::GuaranteedOnly => Base::Guaranteed,
            _ => return None,
        };
        Some(CrashState { base, lines: Vec::new() })
    }

    /// It breaks conditions, and names nothing without them.
    pub fn needs_conditions(self) -> bool {
        matches!(self, StrategySpec::Inferred { .. })
    }

    /// Which states it tries depends on what recoveries read.
    pub fn learns(self) -> bool {
        matches!(self, StrategySpec::Visible { .. } | StrategySpec::Torn { .. })
    }

    /// Reads a list: `program-order,few-lines:2,random:7:100`. The order does not matter; it comes back sorted, the
    /// cheap ones first, each once.
    pub fn list(text: &str) -> Result<Vec<StrategySpec>, BadStrategy> {
        let mut list: Vec<StrategySpec> = text.split(',').map(|name| name.trim().parse()).collect::<Result<_, _>>()?;
        list.sort_unstable();
        list.dedup();
        Ok(list)
    }
}

impl fmt::Display for StrategySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            StrategySpec::ProgramOrder => f.write_str("program-order"),
            StrategySpec::GuaranteedOnly => f.write_str("guaranteed-only"),
            StrategySpec::Inferred { times: TIMES } => f.write_str("inferred"),
            StrategySpec::Inferred { times } => write!(f, "inferred:{times}"),
            StrategySpec::FewLines { lines, cap: FEW_LINES_CAP } => write!(f, "few-lines:{lines}"),
            StrategySpec::FewLines { lines, cap } => write!(f, "few-lines:{lines}:{cap}"),
            StrategySpec::FewSectors { sectors, cap: FEW_LINES_CAP } => write!(f, "few-sectors:{sectors}"),
            StrategySpec::FewSectors { sectors, cap } => write!(f, "few-sectors:{sectors}:{cap}"),
            StrategySpec::Torn { cap: TORN_CAP } => f.write_str("torn"),
            StrategySpec::Torn { cap } => write!(f, "torn:{cap}"),
            StrategySpec::Random { seed, states } => write!(f, "random:{seed}:{states}"),
            StrategySpec::Visible { cap: None } => f.write_str("visible"),
            StrategySpec::Visible { cap: Some(cap) } => write!(f, "visible:{cap}"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there is no strategy `{0}`; the strategies are program-order, guaranteed-only, inferred[:TIMES], few-lines:LINES[:STATES], \
     few-sectors:SECTORS[:STATES], torn[:STATES], random:SEED:STATES and visible[:STATES], where STATES is a limit per crash point and TIMES how often what repeats is tried at least"
)]
pub struct BadStrategy(pub String);

impl FromStr for StrategySpec {
    type Err = BadStrategy;

    fn from_str(text: &str) -> Result<Self, BadStrategy> {
        let bad = || BadStrategy(text.to_owned());
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let numbers: Vec<u64> = parts.map(|part| part.parse().map_err(|_| bad())).collect::<Result<_, _>>()?;
        let lines = |lines: u64| u32::try_from(lines).ok().filter(|&lines| lines > 0).ok_or_else(bad);
        Ok(match (name, &numbers[..]) {
            ("program-order", []) => StrategySpec::ProgramOrder,
            ("guaranteed-only", []) => StrategySpec::GuaranteedOnly,
            ("inferred", []) => StrategySpec::Inferred { times: TIMES },
            ("inferred", &[times]) => StrategySpec::Inferred { times },
            ("few-lines", []) => StrategySpec::FewLines { lines: 2, cap: FEW_LINES_CAP },
            ("few-lines", &[most]) => StrategySpec::FewLines { lines: lines(most)?, cap: FEW_LINES_CAP },
            ("few-lines", &[most, cap]) => StrategySpec::FewLines { lines: lines(most)?, cap },
            ("few-sectors", []) => StrategySpec::FewSectors { sectors: 2, cap: FEW_LINES_CAP },
            ("few-sectors", &[most]) => StrategySpec::FewSectors { sectors: lines(most)?, cap: FEW_LINES_CAP },
            ("few-sectors", &[most, cap]) => StrategySpec::FewSectors { sectors: lines(most)?, cap },
            ("torn", []) => StrategySpec::Torn { cap: TORN_CAP },
            ("torn", &[cap]) => StrategySpec::Torn { cap },
            ("random", &[seed, states]) => StrategySpec::Random { seed, states },
            ("visible", []) => StrategySpec::Visible { cap: None },
            ("visible", &[cap]) => StrategySpec::Visible { cap: Some(cap) },
            _ => return Err(bad()),
        })
    }
}

impl Serialize for StrategySpec {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for StrategySpec {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let text = "program-order,guaranteed-only,inferred,inferred:7,few-lines:2,few-lines:3:10,few-sectors:1:9,few-sectors:2,torn:9,torn,random:7:100,visible,visible:64";
        let list = StrategySpec::list(text).unwrap();
        assert_eq!(list.iter().map(StrategySpec::to_string).collect::<Vec<_>>().join(","), text);
        assert_eq!(StrategySpec::list("visible:64, program-order,visible:64").unwrap().len(), 2);
    }

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        for wrong in ["", "few", "few-lines:0", "few-lines:x", "random", "random:1", "visible:1:2", "torn:-1"] {
            let error = StrategySpec::list(wrong).unwrap_err();
            assert_eq!(error, BadStrategy(wrong.to_owned()));
        }
        let error = "inferior".parse::<StrategySpec>().unwrap_err().to_string();
        assert!(error.contains("no strategy `inferior`") && error.contains("few-lines:LINES"), "{error}");
    }
}
