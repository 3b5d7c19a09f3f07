//! Recoveries that are functions of the first words of the lines, and the way from a trace to its root causes.

use cause::analyse::{Allowance, Analysis, RootCause, analyse};
use crash::image::CrashImage;
use crash::recovery::{Observation, Recovery, RecoveryError, Verdict};
use crash::rounds::Selection;
use crash::search::{Search, SearchOptions};
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use persistency::line::LineId;
use trace::{LineNo, PoolId};

use crate::traces::Recorded;

/// The words that the pool holds.
pub type Words<'a> = &'a dyn Fn(u64) -> u64;

/// Fails, and so, if the function gives the key of a symptom.
struct Check<F>(F);

impl<F: Fn(Words<'_>) -> Option<&'static str>> Recovery for Check<F> {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let word = |line: u64| {
            let bytes = image.line(LineId { pool: PoolId(0), line: LineNo(line) });
            u64::from_le_bytes(bytes[..8].try_into().unwrap())
        };
        let verdict = (self.0)(&word).map_or_else(Verdict::pass, |key| Verdict::fail(key, key));
        Ok(Observation { verdict, reads: None })
    }
}

/// Searches all of the trace, and analyses what fails.
pub fn causes(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
) -> Vec<RootCause> {
    let analysis = analysed(recorded, recovery, Allowance::default());
    assert_eq!(analysis.unexplained, 0);
    analysis.causes
}

/// The same with an allowance.
pub fn analysed(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
    allowance: Allowance,
) -> Analysis {
    let options = SearchOptions {
        selection: Selection { every: true, ..Selection::default() },
        strategies: StrategySpec::list("program-order,guaranteed-only,few-lines:1:24").unwrap(),
        ..SearchOptions::default()
    };
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers = [Check(recovery)];
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers).unwrap();
    analyse(&recorded.reader, options.rules, &found.points, &mut workers[0], allowance).unwrap()
}
