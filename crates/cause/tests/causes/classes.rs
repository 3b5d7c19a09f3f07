//! The class of a cause, the stores on both sides, and the remedy.

use std::sync::Arc;

use cause::analyse::{Allowance, RootCause, analyse};
use cause::classify::Completes;
use cause::repair::Remedy;
use cause::store_history::StoreInfo;
use cause::verdict_cache::VerdictCache;
use crash::image::CrashImage;
use crash::recovery::{Observation, Recovery, RecoveryError};
use crash::search::Search;
use crash::survey::Survey;
use finding::finding::Class;
use persistency::line::LineId;
use trace::event::EventId;
use trace::{LineNo, PoolId};
use verdict::position::CrashPositions;
use verdict::symptom::{Failure, Party, Symptom};
use verdict::verdict::Verdict;

use crate::recoveries::{Words, analysed, both, causes, last_causes, thorough};
use crate::traces::{Recorded, Step, clwb, fence, pc, record, store, stream};

/// Line 2 says that line 1 has its value.
fn promised(word: Words<'_>) -> Option<&'static str> {
    (word(2) == 1 && word(1) == 0).then_some("exit 1")
}

fn sites(stores: &[StoreInfo]) -> Vec<u64> {
    stores.iter().map(|store| store.site.pc.addr - pc(0)).collect()
}

/// The cause; several crash points may show it.
#[track_caller]
fn only(steps: &[Step], recovery: fn(Words<'_>) -> Option<&'static str>) -> RootCause {
    let mut found = causes(&record(steps), recovery);
    let first = found.remove(0);
    let what = |cause: &RootCause| (cause.class, sites(&cause.missing), sites(&cause.present));
    assert!(found.iter().all(|other| what(other) == what(&first)), "{first:#?} {found:#?}");
    first
}

#[test]
fn a_program_that_orders_its_stores_has_no_bug() {
    let steps = [store(1, 1, 7), clwb(2, 1), fence(3), store(4, 2, 1), clwb(5, 2), fence(6)];
    assert!(causes(&record(&steps), promised).is_empty());
}

#[test]
fn a_store_that_is_never_flushed_is_not_durable() {
    let cause = only(&[store(1, 1, 7), store(2, 2, 1), clwb(3, 2), fence(4)], promised);
    assert_eq!(cause.class, Class::Durability);
    assert_eq!(sites(&cause.missing), [1]);
    let repair = cause.repair.expect("a flush and a fence help");
    assert_eq!((repair.remedy, sites(&[repair.after])), (Remedy::FlushAndFence, vec![1]));
}

#[test]
fn two_stores_that_are_flushed_together_have_no_order() {
    let cause = only(&[store(1, 1, 7), store(2, 2, 1), clwb(3, 1), clwb(4, 2), fence(5)], promised);
    assert_eq!((cause.class, cause.program_order_is_wrong), (Class::Ordering, false));
    assert_eq!((sites(&cause.missing), sites(&cause.present)), (vec![1], vec![2]));
    let repair = cause.repair.expect("a flush and a fence help");
    assert_eq!((repair.remedy, sites(&[repair.after])), (Remedy::FlushAndFence, vec![1]));
    assert_eq!(repair.before.map(|store| sites(&[store])), Some(vec![2]));
}

#[test]
fn a_flush_without_a_fence_lacks_only_the_fence() {
    for first in [vec![store(1, 1, 7), clwb(2, 1)], vec![stream(1, 1, 7)]] {
        let rest = [store(3, 2, 1), clwb(4, 2), fence(5)];
        let cause = only(&[first, rest.to_vec()].concat(), promised);
        assert_eq!(cause.class, Class::Ordering);
        assert_eq!(cause.repair.expect("a fence helps").remedy, Remedy::Fence);
    }
}

#[test]
fn a_flag_that_is_stored_before_its_data_is_in_the_wrong_order() {
    let cause = only(&[store(1, 2, 1), clwb(2, 2), fence(3), store(4, 1, 7), clwb(5, 1), fence(6)], promised);
    assert_eq!((cause.class, cause.program_order_is_wrong), (Class::Ordering, true));
    assert_eq!((sites(&cause.missing), sites(&cause.present)), (vec![4], vec![1]));
    assert!(cause.in_program_order && cause.repair.is_none());
}

#[test]
fn two_stores_of_which_neither_may_be_alone_must_be_atomic() {
    fn equal(word: Words<'_>) -> Option<&'static str> {
        (word(1) != word(2)).then_some("exit 1")
    }
    let in_order = only(&[store(1, 1, 1), clwb(2, 1), fence(3), store(4, 2, 1), clwb(5, 2), fence(6)], equal);
    assert_eq!(in_order.class, Class::Atomicity);
    assert_eq!(sites(&in_order.present), [1]);
    assert!(in_order.in_program_order);
    let found = causes(&record(&[store(1, 1, 1), store(2, 2, 1), clwb(3, 1), clwb(4, 2), fence(5)]), equal);
    assert!(!found.is_empty() && found.iter().all(|cause| cause.class == Class::Atomicity), "{found:#?}");
}

#[test]
fn a_recovery_that_crashes_on_a_state_of_the_program_is_to_blame() {
    fn crashes(word: Words<'_>) -> Option<&'static str> {
        (word(1) == 1 && word(2) == 0).then_some("signal SIGSEGV in program+0x10")
    }
    let cause = only(&[store(1, 1, 1), clwb(2, 1), fence(3), store(4, 2, 1), clwb(5, 2), fence(6)], crashes);
    assert_eq!(cause.class, Class::Recovery);
}

#[test]
fn one_cause_explains_all_its_failing_states() {
    let mut steps = Vec::new();
    for round in 0..4 {
        let (data, flag) = (1 + 2 * round, 2 + 2 * round);
        steps.extend([store(1, data, 7), store(2, flag, 1), clwb(3, flag), clwb(4, data), fence(5)]);
    }
    fn each(word: Words<'_>) -> Option<&'static str> {
        (0..4).any(|round| word(2 + 2 * round) == 1 && word(1 + 2 * round) == 0).then_some("exit 1")
    }
    let found = causes(&record(&steps), each);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].class, sites(&found[0].missing)), (Class::Ordering, vec![1]));
    assert!(found[0].explains >= 4);
}

/// The third store must be missing as well, or nothing shows; but the program does make it durable.
#[test]
fn only_the_store_that_is_never_durable_is_to_blame() {
    let steps = [store(1, 1, 7), fence(2), store(3, 9, 1), store(4, 2, 8), clwb(5, 9), clwb(6, 2), fence(7)];
    let cause = only(&steps, |word| (word(9) == 1 && word(1) == 0 && word(2) == 0).then_some("exit 1"));
    assert_eq!((cause.class, sites(&cause.missing)), (Class::Durability, vec![1]));
    let repair = cause.repair.expect("a flush and a fence help");
    assert_eq!((repair.remedy, sites(&[repair.after])), (Remedy::FlushAndFence, vec![1]));
}

/// As an undo log does: a line is changed twice, logged with a fence before each time, and flushed once, in the end.
#[test]
fn a_line_that_is_flushed_after_a_later_store_to_it_is_late_not_lost() {
    let steps = [store(1, 1, 7), fence(2), store(3, 1, 8), clwb(4, 1), store(5, 2, 1), clwb(6, 2), fence(7)];
    let cause = only(&steps, promised);
    assert_eq!((cause.class, sites(&cause.missing)), (Class::Ordering, vec![1]));
    assert_eq!(cause.repair.expect("a fence helps").remedy, Remedy::Fence);
}

/// Two stores in the wrong order among many that recovery does not look at.
fn among_others() -> Recorded {
    let others = (0..20).map(|number| store(10 + number, 3 + number, 1));
    let steps: Vec<Step> = [store(1, 1, 7)].into_iter().chain(others).chain([store(2, 2, 1), fence(3)]).collect();
    record(&steps)
}

#[test]
fn what_the_search_found_out_spares_runs() {
    let [remembering, running_all] = both(&among_others(), promised, Allowance::default());
    assert!(remembering.runs * 4 < running_all.runs, "{} of {}", remembering.runs, running_all.runs);
    analysed(&among_others(), promised, Allowance::default());
}

#[test]
fn a_cause_that_takes_too_many_runs_is_counted_not_an_error() {
    let recorded = among_others();
    let (mut explained, mut unexplained) = (0, 0);
    for runs_per_cause in 0..60 {
        let [_, analysis] = both(&recorded, promised, Allowance { runs_per_cause, ..Allowance::default() });
        assert!(analysis.unexplained > 0 || !analysis.causes.is_empty(), "{runs_per_cause}: what fails is told");
        explained += analysis.causes.len();
        unexplained += analysis.unexplained;
    }
    assert!(explained > 0 && unexplained > 0, "{explained} {unexplained}");
}

#[test]
fn another_bug_does_not_hide_which_store_comes_too_early() {
    /// As long as the log is open (1), recovery fails for a reason of its own; once it is closed (2), line 1 must be there.
    fn logged(word: Words<'_>) -> Option<&'static str> {
        match word(3) {
            1 => Some("exit 2"),
            2 if word(1) == 0 => Some("exit 1"),
            _ => None,
        }
    }
    let log = [store(1, 3, 1), clwb(2, 3), fence(3)];
    let change = [store(4, 1, 7), clwb(5, 1), store(6, 3, 2), clwb(7, 3), fence(8)];
    let found = causes(&record(&[&log[..], &change[..]].concat()), logged);
    let cause = found.iter().find(|cause| !cause.in_program_order).expect("line 1 can be lost");
    assert_eq!((cause.class, sites(&cause.missing), sites(&cause.present)), (Class::Ordering, vec![4], vec![6]));
    assert_eq!(cause.repair.expect("a fence helps").remedy, Remedy::Fence);
}

/// Line 1 with its first store only fails by itself, so of line 2 nothing is missing any more once that is the state in question.
#[test]
fn a_line_that_fails_with_all_of_it_in_pm_is_none_of_the_missing() {
    fn half_or_empty(word: Words<'_>) -> Option<&'static str> {
        match word(1) {
            0 if word(2) == 0 && word(3) == 1 => Some("exit 1"),
            1 => Some("exit 1"),
            _ => None,
        }
    }
    let recorded = record(&[store(1, 1, 1), store(2, 1, 2), store(3, 2, 1), store(4, 3, 1), clwb(5, 3), fence(6)]);
    let found = causes(&recorded, half_or_empty);
    let is_half = |cause: &RootCause| (sites(&cause.present), sites(&cause.missing)) == (vec![1], vec![2]);
    assert!(!found.is_empty() && found.iter().all(is_half), "the first store without the second: {found:#?}");
}

/// Between a flag and the data that it speaks of, a library keeps its log: the program is told of its own store.
#[test]
fn what_a_pm_library_stores_for_itself_is_not_what_was_needed() {
    let flag = [store(1, 2, 1), clwb(2, 2), fence(3)];
    let log = [store(4, 5, 1).by_pm_library(), clwb(5, 5), fence(6)];
    let data = [store(7, 1, 7), clwb(8, 1), fence(9)];
    let cause = only(&[flag, log, data].concat(), promised);
    assert_eq!((cause.class, cause.program_order_is_wrong), (Class::Ordering, true));
    assert_eq!((sites(&cause.present), sites(&cause.missing)), (vec![1], vec![7]));
    // Where there is nothing else, it is told.
    let log = [store(4, 1, 7).by_pm_library(), clwb(5, 1), fence(6)];
    assert_eq!(sites(&only(&[flag, log].concat(), promised).missing), [4]);
}

/// An update of very many steps, such as the growing of a table, is one from its first store to its last, wherever power fails in it.
#[test]
fn both_ends_of_a_long_update_are_found() {
    let step = |number: u64| [store(4, 10 + number % 40, number + 1), clwb(5, 10 + number % 40), fence(6)];
    let mut steps = vec![store(10, 9, 1), clwb(11, 9), fence(12), store(1, 1, 1), clwb(2, 1), fence(3)];
    steps.extend((0..100).flat_map(step));
    steps.extend([store(7, 2, 1), clwb(8, 2), fence(9)]);
    let recorded = record(&steps);
    let unequal = |word: Words<'_>| (word(1) != word(2)).then_some("exit 1");
    for found in [causes(&recorded, unequal), last_causes(&recorded, unequal)] {
        assert!(!found.is_empty());
        for cause in &found {
            assert_eq!((cause.class, cause.completes), (Class::Atomicity, Completes::Alone));
            assert_eq!((sites(&cause.present), sites(&cause.missing)), (vec![1], vec![7]));
        }
    }
}

/// A counter that is never right: the next step of the same counter is not what completes it.
#[test]
fn a_store_does_not_belong_together_with_itself() {
    fn never_counted(word: Words<'_>) -> Option<&'static str> {
        (word(1) != 0).then_some("exit 1")
    }
    let count = |value: u64| [store(1, 1, value), clwb(2, 1), fence(3)];
    let cause = only(&[count(1), count(2)].concat(), never_counted);
    assert_eq!((cause.class, sites(&cause.present), sites(&cause.missing)), (Class::Atomicity, vec![1], vec![]));
}

/// Fails once the only operation is over, unless line 1 has its value.
struct AfterTheOperation(EventId);

impl Recovery for AfterTheOperation {
    fn run(&mut self, image: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let id = LineId { pool: PoolId(0), line: LineNo(1) };
        let lost = image.guaranteed().at() >= self.0 && image.line(id)[0] == 0;
        let failure = || Verdict::fail(Symptom::Failed { by: Party::Recovery, how: Failure::Hang { after_ms: 1 } });
        Ok(Observation { verdict: if lost { failure() } else { Verdict::Pass }, reads: None })
    }
}

/// Before the store recovery would fail by the standards of a crash that came later. The program was never in such a state.
#[test]
fn a_store_at_the_end_of_an_operation_is_lost_not_late() {
    let recorded = record(&[store(1, 2, 1), clwb(2, 2), fence(3), store(4, 1, 7), fence(5), store(6, 3, 1)]);
    let over = EventId(4);
    let options = thorough();
    let survey = Survey::of(&recorded.reader, options.selection.density, &|_, _| false).unwrap();
    let mut workers = [AfterTheOperation(over)];
    let found = Search::new(&recorded.reader, &survey, &options).run(&mut workers).unwrap();
    let memory = VerdictCache::new(None, Arc::new(CrashPositions::new(vec![over])));
    let found =
        analyse(&recorded.reader, options.rules, &found.points, memory, &mut workers, Allowance::default()).unwrap();
    let what = |cause: &RootCause| (cause.class, sites(&cause.missing), cause.in_program_order);
    assert_eq!(found.causes.iter().map(what).collect::<Vec<_>>(), [(Class::Durability, vec![4], false)]);
}

/// A run that hangs takes as long as many others, so it uses up more of what one cause may take.
#[test]
fn fewer_runs_are_made_for_a_cause_if_they_hang() {
    let stores = (1..=30).map(|line| store(line, line, 1));
    let recorded = record(&stores.chain([fence(31)]).collect::<Vec<_>>());
    let runs = |how: &'static str| {
        let torn = move |word: Words<'_>| (word(1) != word(30)).then_some(how);
        let [_, analysis] = both(&recorded, torn, Allowance { runs_per_cause: 64, ..Allowance::default() });
        assert!(analysis.unexplained > 0 || !analysis.causes.is_empty());
        analysis.runs
    };
    let (hanging, others) = (runs("hang"), runs("exit 1"));
    assert!(hanging < others, "{hanging} runs that hang, {others} that do not");
}
