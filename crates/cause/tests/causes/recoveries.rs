//! Recoveries that are functions of the first words of the lines, and the way from a trace to its root causes.

use std::cell::RefCell;
use std::sync::Arc;

use cause::analyse::{Allowance, Analysis, RootCause, analyse, look_ahead};
use cause::verdict_cache::{ForeignVerdicts, VerdictCache};
use crash::image::CrashImage;
use crash::outcome::PointOutcome;
use crash::recovery::{Observation, Recovery, RecoveryError};
use crash::rounds::Selection;
use crash::search::{Search, SearchOptions};
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use persistency::line::LineId;
use trace::{LineNo, PoolId};
use verdict::read::Read;
use verdict::symptom::{Failure, Party, Symptom};
use verdict::verdict::Verdict;

use crate::traces::Recorded;

/// The words that the pool holds.
pub type Words<'a> = &'a dyn Fn(u64) -> u64;

/// Whether something is known of what a run reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    Known,
    Unknown,
}

/// Analysed by a worker for each of these recoveries; `begin` is called when the search is over.
pub fn by_workers(
    recorded: &Recorded,
    recoveries: Vec<impl Fn(Words<'_>) -> Option<&'static str> + Send>,
    reads: Reads,
    begin: impl FnOnce(),
) -> Analysis {
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers: Vec<_> = recoveries.into_iter().map(Check).collect();
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers[..1]).unwrap();
    let memory = VerdictCache::new(found.read_tree.filter(|_| reads == Reads::Known), Arc::default());
    begin();
    analyse(&recorded.reader, options.rules, &found.points, memory, &mut workers, Allowance::default()).unwrap()
}

/// Analysed after so many machines have each looked into a part of what fails, without what the search found out, and told what they ran.
pub fn after_others(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
    machines: usize,
) -> Analysis {
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers = [Check(recovery)];
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers).unwrap();
    let mut memory = VerdictCache::new(found.read_tree, Arc::default());
    for part in found.points.chunks(found.points.len().div_ceil(machines)) {
        let verdicts = ForeignVerdicts::default();
        let cache = verdicts.cache(Arc::default(), Arc::default());
        look_ahead(&recorded.reader, options.rules, part, cache, &mut workers[0], Allowance::default()).unwrap();
        verdicts.new_runs().iter().for_each(|runs| memory.learn_runs(runs));
        assert!(verdicts.new_runs().is_none(), "told twice");
    }
    analyse(&recorded.reader, options.rules, &found.points, memory, &mut workers, Allowance::default()).unwrap()
}

/// Looks into units whose bytes were altered on the way.
pub fn altered_units(recorded: &Recorded, recovery: impl Fn(Words<'_>) -> Option<&'static str> + Copy + Send) {
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut [Check(recovery)]).unwrap();
    let failing: Vec<_> = found.points.into_iter().filter(|point| !point.failing.is_empty()).take(3).collect();
    let unit = serde_json::to_vec(&failing).unwrap();
    parser_tests::hammer::hammer("causes-unit", &[unit], &|input| {
        let Ok(outcomes) = serde_json::from_slice::<Vec<PointOutcome>>(input) else { return };
        let cache = ForeignVerdicts::default().cache(Arc::default(), Arc::default());
        let allowance = Allowance { runs_per_cause: 20, ..Allowance::default() };
        drop(look_ahead(&recorded.reader, options.rules, &outcomes, cache, &mut Check(recovery), allowance));
    });
}

/// Every state that few lines tell apart, at every crash point.
pub fn thorough() -> SearchOptions {
    SearchOptions {
        selection: Selection { every: true, ..Selection::default() },
        strategies: StrategySpec::list("program-order,guaranteed-only,few-lines:1:24").unwrap(),
        ..SearchOptions::default()
    }
}

/// Fails, and so, if the function gives `hang`, `signal` or `exit 1`.
struct Check<F>(F);

impl<F: Fn(Words<'_>) -> Option<&'static str>> Recovery for Check<F> {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let reads = RefCell::new(Vec::new());
        let word = |line: u64| {
            let id = LineId { pool: PoolId(0), line: LineNo(line) };
            if !reads.borrow().contains(&Read::Line(id)) {
                reads.borrow_mut().push(Read::Line(id));
            }
            u64::from_le_bytes(image.line(id)[..8].try_into().unwrap())
        };
        let verdict = (self.0)(&word).map_or(Verdict::Pass, failed);
        Ok(Observation { verdict, reads: Some(reads.into_inner()) })
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

/// The causes of what fails at the last crash point that fails: what lies before it nobody has looked into.
pub fn last_causes(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
) -> Vec<RootCause> {
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers = [Check(recovery)];
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers).unwrap();
    let last = found.points.iter().rposition(|point| !point.failing.is_empty()).unwrap();
    let memory = VerdictCache::new(found.read_tree, Arc::default());
    let points = &found.points[last..=last];
    analyse(&recorded.reader, options.rules, points, memory, &mut workers, Allowance::default()).unwrap().causes
}

/// The same with an allowance.
pub fn analysed(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
    allowance: Allowance,
) -> Analysis {
    let [remembering, running_all] = both(recorded, recovery, allowance);
    assert!(remembering.runs <= running_all.runs, "{} of {} runs", remembering.runs, running_all.runs);
    // With less, the one gets further than the other.
    if allowance.runs_per_cause >= Allowance::default().runs_per_cause {
        let [one, other] = [&remembering, &running_all].map(|analysis| format!("{:?}", analysis.causes));
        assert_eq!(one, other, "what is remembered changes nothing");
    }
    remembering
}

/// With what the search found out and with walks that begin at any event, and with a run for every state and walks from the beginning.
pub fn both(
    recorded: &Recorded,
    recovery: impl Fn(Words<'_>) -> Option<&'static str> + Clone + Send,
    allowance: Allowance,
) -> [Analysis; 2] {
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers = [Check(recovery)];
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers).unwrap();
    [VerdictCache::new(found.read_tree, Arc::default()).with_dense_checkpoints(), VerdictCache::default()]
        .map(|memory| analyse(&recorded.reader, options.rules, &found.points, memory, &mut workers, allowance).unwrap())
}

fn failed(how: &str) -> Verdict {
    let how = match how {
        "hang" => Failure::Hang { after_ms: 1 },
        "exit 1" => Failure::Exit { code: 1, complaint: None },
        "exit 2" => Failure::Exit { code: 2, complaint: None },
        other => {
            assert!(other.starts_with("signal"), "{other}");
            Failure::Signal { signal: 11, place: None }
        }
    };
    Verdict::fail(Symptom::Failed { by: Party::Recovery, how })
}
