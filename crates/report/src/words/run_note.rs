//! Remarks on a run as a whole.

use finding::note::RunNote;
use verdict::contradiction::Contradiction;
use verdict::read::Read;
use verdict::verdict::Verdict;

use super::{symptom, title_of};
use crate::number::{counted, separated};

/// Files that are named.
const FILES: usize = 3;

/// A sentence without its full stop.
pub fn run_note(note: &RunNote) -> String {
    match note {
        RunNote::NotDeterministic { how, all_run } => format!(
            "recovery is not deterministic: {}; {}: does recovery depend on the time, on random numbers, or on files other than \
             its pools?",
            contradiction(how),
            match all_run {
                true => "what failed may pass the next time",
                false => "from there on every state was run, which is slow, and no crash point counts as exhaustive",
            }
        ),
        RunNote::ReadsNothing { pools } => format!(
            "recovery reads nothing of {}: no crash can matter to it; check the paths in its command (--recover)",
            pools.join(", ")
        ),
        RunNote::PoolsExisted { pools } => format!(
            "{} existed before the run: what this run does to it is tested, not how it is made; --fresh starts without it, --pool-from \
             with another",
            pools.join(", ")
        ),
        RunNote::NativeRuns { why } => format!("recoveries ran in native mode, and every state was run: {why}"),
        RunNote::ReuseDiffers => "a recovery showed something else in a process that earlier recoveries had used than in a fresh one; from \
             then on each had a fresh one, but earlier results may be wrong, and no crash point counts as exhaustive. Please report it, \
             unless its runs share memory"
            .into(),
        RunNote::Reopened { why } => {
            format!("right answers come from runs that open the pools anew at each operation: {why}")
        }
        RunNote::FailsWithout { operations } => format!(
            "without {} the program fails by itself, even without a crash: after a crash inside, it is compared with the run in which the \
             operation happened, and the same failure is no finding",
            counted_as(*operations, "operation", "operations of the workload, one at a time,")
        ),
        RunNote::FewQueries { asked, all } => format!(
            "a recovered process was asked {} of {} queries of the readback: those about operations near the crash, and a \
             sample (--readback-queries)",
            separated(*asked),
            separated(*all)
        ),
        RunNote::RepairsAssumed { places } => format!(
            "to find what else is wrong, the stores of {} in the code were taken to be durable once their bug was known",
            counted(*places, "place")
        ),
        RunNote::PointsSetAside { points, lost, failures } => {
            set_aside(&counted_as(*points, "crash point", "crash points"), *lost, failures)
        }
        RunNote::WorkloadsSetAside { count, lost, failures } => {
            set_aside(&counted(*count, "workload"), *lost, failures)
        }
        RunNote::NotAnalysed { states: 1 } => {
            "time budget exhausted: 1 failing state was not analysed; it may have another cause".to_owned()
        }
        RunNote::NotAnalysed { states } => format!(
            "time budget exhausted: {} were not analysed; they may have other causes",
            counted(*states, "failing state")
        ),
        RunNote::Interleaved { threads } => format!(
            "{} stored to PM: crashes were simulated in the order in which this recording interleaved them; with another \
             order other states are possible, so record again to test more",
            counted(*threads, "thread")
        ),
        RunNote::Interrupted => "interrupted before the search: no crash was simulated".to_owned(),
        RunNote::NoTime => "time budget exhausted before the search: no crash was simulated (--budget)".to_owned(),
        RunNote::NotReproduced { finding, title } => {
            format!("not shown, because native mode did not reproduce it: {} (finding {finding})", title_of(title))
        }
        RunNote::NotConfirmed { finding, title, .. } => format!(
            "not shown, because no time was left to reproduce it in native mode: {} (finding {finding})",
            title_of(title)
        ),
        RunNote::NoBundle { finding, why } => format!("finding {finding} cannot be replayed: {why}"),
        RunNote::NoTimeline { finding, why } => {
            format!("the report cannot show the time line of finding {finding}: {why}")
        }
        RunNote::BundleNotKept { finding, why } => format!("the bundle of finding {finding} cannot be kept: {why}"),
        RunNote::RecoveriesCrashed { recoveries, states } => format!(
            "simulated a second power failure in {}: {}",
            counted_as(*recoveries, "recovery", "recoveries"),
            counted(*states, "state")
        ),
        RunNote::RecoveryUsesFewPools { event } => {
            format!("recovery after event {} does not use all pools; it was not crashed", event.0)
        }
        RunNote::SecondRecoveryFails { event, symptom: what } => {
            format!("after a recovery from event {} has ended, another one fails: {}", event.0, symptom(what))
        }
        RunNote::RecoveryNotCrashed { event, why } => {
            format!("the recovery from event {} was not crashed: {why}", event.0)
        }
        RunNote::SharedFiles { names } => {
            const NAMED: usize = 5;
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {}", counted(more as u64, "more file")) } else { String::new() };
            let named = names[..names.len().min(NAMED)].join(", ");
            format!(
                "recovery writes to {named}{more}, outside of the folders that are private to each run: recoveries can see what \
                 earlier ones left there, so the result is not complete"
            )
        }
        RunNote::FilesAsLeft { names } => format!(
            "recovery finds files outside of the folders of the pools and of the working directory as the complete run left \
             them: {}; name them with --files to have them as they were at the crash",
            first_files(names)
        ),
        RunNote::FilesNotRecorded { names } => format!(
            "recovery finds these files as the complete run left them: {}; they were changed in ways that are not recorded, for \
             example through a writable mapping that --pm excludes, or by a process that was not recorded",
            first_files(names)
        ),
        RunNote::Workloads { count, states, saved } => {
            let share = match *states {
                0 => String::new(),
                states => format!("; {} needed no recovery run (equivalence)", share(*saved, states)),
            };
            format!("crashed {} of system calls{share}", counted(*count, "workload"))
        }
        RunNote::RunNotKept => "the run was not kept, only its findings: how far it went is not known".to_owned(),
        RunNote::OlderFindings { count } => {
            let verb = if *count == 1 { "is" } else { "are" };
            format!("{} of earlier runs {verb} not shown (--all)", counted(*count, "finding"))
        }
        RunNote::Unreadable { why } => why.clone(),
    }
}

/// `28,393 of 29,798 states (95.2 %)`. Rounded down: not everything is everything.
fn share(part: u64, all: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(all.max(1));
    format!("{} of {} ({}.{} %)", separated(part), counted(all, "state"), tenths / 10, tenths % 10)
}

/// The first files, and how many more there are.
fn first_files(names: &[String]) -> String {
    let named = names[..names.len().min(FILES)].join(", ");
    match names.len().saturating_sub(FILES) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn counted_as(count: u64, one: &str, several: &str) -> String {
    format!("{} {}", separated(count), if count == 1 { one } else { several })
}

fn contradiction(how: &Contradiction) -> String {
    match how {
        Contradiction::Reads { after, one, other } => format!(
            "in two runs the first reads of PM were the same ({after}), then one read {} and the other {}",
            read(*one),
            read(*other)
        ),
        Contradiction::Verdicts { one, other } => format!(
            "two runs read the same from PM, but {}, and {}",
            verdict(one, "in one"),
            verdict(other, "in another")
        ),
    }
}

fn read(read: Option<Read>) -> String {
    match read {
        Some(Read::Line(line)) => format!("line {} of pool {}", line.line.0, line.pool.0),
        Some(Read::Length(pool)) => format!("the length of pool {}", pool.0),
        None => "nothing more".to_owned(),
    }
}

fn verdict(verdict: &Verdict, run: &str) -> String {
    match verdict {
        Verdict::Pass => format!("{run} recovery succeeded"),
        Verdict::Fail(what) => format!("{run} {}", symptom(what)),
    }
}

/// What nobody could do, and why.
pub fn set_aside(what: &str, lost: u64, failures: &[String]) -> String {
    let lost = if lost > 0 { format!("; {} died", counted_as(lost, "worker", "workers")) } else { String::new() };
    let said: String = failures.iter().map(|failure| format!("; {failure}")).collect();
    format!("{what} set aside and not tested: workers failed three times{lost}{said}")
}
