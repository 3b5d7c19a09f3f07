//! Causes with the same guilty code are one finding.

use std::collections::BTreeSet;
use std::sync::Arc;

use cause::analyse::RootCause;
use cause::assume::assume;
use cause::classify::Completes;
use cause::explain::{Explained, explain};
use crash::assumed::AssumedRepairs;
use crash::walk::{Rules, Walk};
use finding::blame::Libraries;
use finding::failure::BrokenPromise;
use finding::finding::{Class, Title};
use finding::note::Note;
use trace::EventId;
use verdict::end::Frame;

use crate::recoveries::{Words, causes};
use crate::traces::{Recorded, Step, clwb, fence, pc, record, store};

/// Data and flag without an order between them: the data's store is guilty.
fn round(number: u64, site: u64) -> [Step; 5] {
    let (data, flag) = (1 + 2 * number, 2 + 2 * number);
    [store(site, data, 7), store(site + 1, flag, 1), clwb(90, flag), clwb(91, data), fence(92)]
}

fn any_broken(word: Words<'_>) -> Option<&'static str> {
    (0..4).any(|round| word(2 + 2 * round) == 1 && word(1 + 2 * round) == 0).then_some("exit 1")
}

fn explained(rounds: &[[Step; 5]]) -> Vec<Explained> {
    let recorded = record(&rounds.concat());
    let causes = causes(&recorded, any_broken);
    explain(&causes, &[], recorded.reader.tables(), &Libraries::default())
}

#[test]
fn the_same_code_is_one_finding_and_other_code_another() {
    let found = explained(&[round(0, 1), round(1, 1), round(2, 11), round(3, 1)]);
    let guilty: Vec<u64> = found.iter().map(|one| one.finding.locations[0].address).collect();
    assert_eq!(guilty, [pc(1), pc(11)]);
    assert!(found[0].finding.count >= 3 && found[1].finding.count >= 1);
    for one in &found {
        assert_eq!((one.finding.class, one.finding.rule.as_str()), (Class::Ordering, "FP0602"));
        let failure = one.finding.failure.as_ref().expect("a failure");
        assert!(!one.causes.is_empty() && failure.symptom.key().to_string() == "exit 1", "{one:?}");
        assert!(failure.repair.is_some() && !failure.missing.is_empty() && !failure.present.is_empty(), "{one:?}");
    }
    assert_ne!(found[0].finding.id, found[1].finding.id);
}

#[test]
fn a_finding_keeps_its_id_when_the_workload_grows() {
    let (short, long) = (explained(&[round(0, 1)]), explained(&[round(0, 1), round(1, 1)]));
    assert_eq!(short[0].finding.id, long[0].finding.id);
    assert!(short[0].finding.first <= long[0].finding.first);
}

#[test]
fn one_missing_fence_is_one_finding_whatever_is_lost_for_lack_of_it() {
    // Two flushed words and the flag that says that they are there: either may be missing beside the other.
    let steps = [store(1, 1, 7), store(2, 2, 7), clwb(3, 1), clwb(4, 2), store(5, 3, 1), clwb(6, 3), fence(7)];
    let recorded = record(&steps);
    let causes = causes(&recorded, |word| (word(3) == 1 && word(1) != word(2)).then_some("exit 1"));
    let firsts: BTreeSet<EventId> = causes.iter().map(|cause| cause.present[0].event).collect();
    assert!(firsts.len() > 1, "{causes:?}");
    let found = explain(&causes, &[], recorded.reader.tables(), &Libraries::default());
    assert_eq!(found.len(), 1, "{found:#?}");
}

#[test]
fn a_hang_has_one_id_wherever_the_loop_was_caught() {
    let recorded = record(&[store(1, 1, 7), clwb(2, 1), fence(3), store(4, 2, 1), clwb(5, 2), fence(6)]);
    let causes = causes(&recorded, |word| (word(1) == 7 && word(2) == 0).then_some("hang"));
    let ids = [0x10, 0x20].map(|address| {
        let path = vec![vec![Frame { module: "/bin/kv".to_owned(), address }]; causes.len()];
        let found = explain(&causes, &path, recorded.reader.tables(), &Libraries::default());
        assert_eq!((found.len(), found[0].finding.class), (1, Class::Recovery), "{found:#?}");
        assert_eq!(found[0].finding.locations[0].address, address);
        (found[0].finding.id.clone(), found[0].finding.title.clone())
    });
    assert_eq!(ids[0], ids[1]);
}

/// A store, made durable.
fn durable(site: u64, line: u64) -> [Step; 3] {
    [store(site, line, 1), clwb(90, line), fence(91)]
}

fn named(recorded: &Recorded, recovery: fn(Words<'_>) -> Option<&'static str>) -> Vec<Explained> {
    explain(&causes(recorded, recovery), &[], recorded.reader.tables(), &Libraries::default())
}

/// Lines 1 and 2 belong together, and so do 3 and 4.
fn torn(word: Words<'_>) -> Option<&'static str> {
    (word(1) != word(2) || word(3) != word(4)).then_some("exit 1")
}

#[test]
fn updates_that_begin_alike_and_end_otherwise_are_two_findings() {
    let recorded = record(&[durable(1, 1), durable(2, 2), durable(1, 3), durable(3, 4)].concat());
    let found = named(&recorded, torn);
    let ends: Vec<u64> = found.iter().map(|one| one.finding.locations[1].address).collect();
    assert_eq!(ends, [pc(2), pc(3)]);
    assert_ne!(found[0].finding.id, found[1].finding.id);
}

#[test]
fn updates_that_lack_the_same_store_are_one_finding() {
    let recorded = record(&[durable(1, 1), durable(9, 2), durable(2, 3), durable(9, 4)].concat());
    assert_eq!(named(&recorded, torn).len(), 1);
}

#[test]
fn a_lost_store_does_not_take_in_an_update_that_is_torn_without_any_loss() {
    // Line 2 is never flushed; and even if it were, power could fail before it is stored.
    let later = [durable(4, 5), durable(4, 6)].concat();
    let recorded = record(&[durable(1, 1).to_vec(), vec![store(2, 2, 1), fence(3)], later].concat());
    let classes: Vec<Class> = named(&recorded, torn).iter().map(|one| one.finding.class).collect();
    assert_eq!(classes, [Class::Durability, Class::Atomicity]);
}

/// The same where the loss shows in states of that update first.
#[test]
fn an_update_that_is_torn_without_any_loss_is_told_beside_the_loss_of_its_store() {
    let recorded = record(&[durable(1, 3), durable(2, 4)].concat());
    let all = causes(&recorded, torn);
    let update = all.iter().find(|cause| cause.in_program_order).expect("torn in program order").clone();
    let half = RootCause { in_program_order: false, completes: Completes::Unknown, ..update.clone() };
    let lost = RootCause { class: Class::Durability, missing: update.present.clone(), present: vec![], ..half.clone() };
    let classes = |causes: &[RootCause]| -> Vec<Class> {
        let found = explain(causes, &[], recorded.reader.tables(), &Libraries::default());
        found.iter().map(|one| one.finding.class).collect()
    };
    assert_eq!(classes(&[lost.clone(), half.clone()]), [Class::Durability]);
    assert_eq!(classes(&[lost.clone(), half.clone(), update.clone()]), [Class::Durability, Class::Atomicity]);
    assert_eq!(classes(&[lost, update, half]), [Class::Durability, Class::Atomicity]);
}

/// Eight words copied by four instructions and not flushed, then a flag that says that they are there.
fn copied(by: impl Fn(Step) -> Step) -> Recorded {
    let mut steps: Vec<Step> = (0..8).map(|word| by(store(20 + word % 4, 1 + word, 7))).collect();
    steps.extend([store(2, 9, 1), clwb(3, 9), fence(4)]);
    record(&steps)
}

fn half_copied(word: Words<'_>) -> Option<&'static str> {
    (word(9) == 1 && (1..9).any(|line| word(line) != 7)).then_some("exit 1")
}

/// Also as soon as one of its instructions is known: many more lines are lost than the library has instructions.
#[test]
fn what_one_call_of_the_c_library_copies_has_one_cause_and_one_repair() {
    let assumed = |recorded: &Recorded| {
        let causes = causes(recorded, half_copied);
        let mut assumed = AssumedRepairs::default();
        assert!(assume(&recorded.reader, &causes[..1], &Libraries::default(), &mut assumed).unwrap());
        (causes.len(), assumed.len())
    };
    // By instructions of the program itself each is a store of its own.
    let (causes, repaired) = assumed(&copied(|step| step));
    assert!(causes > 1 && repaired == 1, "{causes} causes, {repaired} repaired");
    assert_eq!(assumed(&copied(|step| step.called_at(1))), (1, 4));
    // And each call is.
    let recorded = copied(|step| step.called_at(step.site() % 2));
    assert_eq!(assumed(&recorded), (2, 2));
}

/// Line 2 is needed before line 1 is there; lines 3 and 4 belong together.
fn early_or_torn(word: Words<'_>) -> Option<&'static str> {
    (word(1) > word(2) || word(3) != word(4)).then_some("exit 1")
}

#[test]
fn a_store_that_comes_too_early_and_is_half_of_an_update_is_one_finding() {
    let recorded = record(&[durable(1, 1), durable(2, 2), durable(1, 3), durable(5, 4)].concat());
    let found = named(&recorded, early_or_torn);
    let ends: Vec<(Class, u64)> =
        found.iter().map(|one| (one.finding.class, one.finding.locations[1].address)).collect();
    assert_eq!(ends, [(Class::Atomicity, pc(5))]);
    assert_eq!(found[0].finding.notes, [Note::OrderAlone]);
    // Another store that comes too early is another bug.
    let recorded = record(&[durable(7, 1), durable(2, 2), durable(1, 3), durable(5, 4)].concat());
    let classes: Vec<Class> = named(&recorded, early_or_torn).iter().map(|one| one.finding.class).collect();
    assert_eq!(classes, [Class::Ordering, Class::Atomicity]);
}

#[test]
fn a_loop_that_comes_too_early_is_one_finding_about_the_order() {
    let recorded = record(&[durable(1, 1), durable(2, 2), durable(1, 3), durable(1, 4)].concat());
    let found = named(&recorded, early_or_torn);
    let guilty: Vec<(Class, u64)> =
        found.iter().map(|one| (one.finding.class, one.finding.locations[0].address)).collect();
    assert_eq!(guilty, [(Class::Ordering, pc(2))]);
}

/// Where the runs do not suffice to see what completes an update, the store that comes next is all that is known of it.
#[test]
fn an_order_says_more_than_an_update_of_which_only_the_next_store_is_known() {
    let recorded = record(&[durable(1, 1), durable(2, 5), durable(3, 2)].concat());
    let causes = causes(&recorded, |word| (word(1) > word(2)).then_some("exit 1"));
    let order = causes.iter().find(|cause| cause.program_order_is_wrong).expect("a store that comes too early");
    let update = |next: usize| RootCause {
        class: Class::Atomicity,
        program_order_is_wrong: false,
        completes: Completes::Unknown,
        missing: order.missing[..next].to_vec(),
        ..order.clone()
    };
    let classes = |next: usize| -> Vec<Class> {
        let causes = [update(next), order.clone()];
        let found = explain(&causes, &[], recorded.reader.tables(), &Libraries::default());
        found.iter().map(|one| one.finding.class).collect()
    };
    assert_eq!(classes(1), [Class::Ordering]);
    // No store comes next: it may be a file.
    assert_eq!(classes(0), [Class::Atomicity]);
}

/// One instruction stores to lines 1 and 2; only line 1 is flushed, and no fence comes before the mark.
fn neither_flushed_nor_fenced() -> Recorded {
    record(&[store(1, 1, 7), store(1, 2, 7), clwb(2, 1), store(3, 3, 1), clwb(4, 3), fence(5)])
}

fn both_are_there(word: Words<'_>) -> Option<&'static str> {
    (word(3) == 1 && (word(1) != 7 || word(2) != 7)).then_some("exit 1")
}

/// One would still be there if the other were repaired.
#[test]
fn a_missing_flush_and_a_missing_fence_of_one_line_are_two_findings() {
    let found = named(&neither_flushed_nor_fenced(), both_are_there);
    let told: Vec<(Class, u64)> =
        found.iter().map(|one| (one.finding.class, one.finding.locations[0].address)).collect();
    assert_eq!(told, [(Class::Durability, pc(1)), (Class::Ordering, pc(1))]);
    assert_ne!(found[0].finding.id, found[1].finding.id);
}

/// Where a fence is missing, what is not flushed stays as it is: it is another bug.
#[test]
fn a_missing_fence_is_repaired_for_what_is_flushed() {
    let recorded = neither_flushed_nor_fenced();
    let causes = causes(&recorded, both_are_there);
    let assumed = |causes: &[RootCause]| {
        let mut assumed = AssumedRepairs::default();
        assert!(assume(&recorded.reader, causes, &Libraries::default(), &mut assumed).unwrap());
        // The same again is nothing new.
        assert!(!assume(&recorded.reader, causes, &Libraries::default(), &mut assumed).unwrap());
        let mut walk = Walk::new(&recorded.reader, Rules::default()).unwrap();
        walk.assume(Arc::new(assumed));
        walk.advance_to(EventId(4)).unwrap();
        let lines: Vec<u64> = walk.view().lines().iter().map(|line| line.id().line.0).collect();
        lines
    };
    let lacks_fence = |wanted: bool| -> Vec<RootCause> {
        causes.iter().filter(|cause| cause.lacks_fence() == wanted).cloned().collect()
    };
    let (fence, flush) = (lacks_fence(true), lacks_fence(false));
    assert_eq!(assumed(&fence), [2, 3]);
    assert_eq!(assumed(&flush), [3]);
    assert_eq!(assumed(&[fence, flush].concat()), [3]);
}

/// On one path a line is never flushed. On the other it is as well, or it is flushed and lacks the fence, which is another bug.
#[test]
fn a_missing_flush_is_repaired_on_all_paths_that_lack_it() {
    fn marked(word: Words<'_>) -> Option<&'static str> {
        ((word(3) == 1 && word(1) != 7) || (word(4) == 1 && word(2) != 7)).then_some("exit 1")
    }
    let repaired = |flush: &[Step]| {
        let never = [store(1, 2, 7).reached_by(21), store(6, 4, 1), clwb(7, 4), fence(8)];
        let steps = [&[store(1, 1, 7).reached_by(20)], flush, &[store(3, 3, 1), clwb(4, 3), fence(5)], &never].concat();
        let recorded = record(&steps);
        let causes = causes(&recorded, marked);
        let lost = causes.iter().find(|cause| cause.class == Class::Durability && !cause.lacks_fence());
        let mut assumed = AssumedRepairs::default();
        let lost = std::slice::from_ref(lost.expect("a store that is never flushed"));
        assert!(assume(&recorded.reader, lost, &Libraries::default(), &mut assumed).unwrap());
        assumed.len()
    };
    assert_eq!((repaired(&[]), repaired(&[clwb(2, 1)])), (2, 1));
}

/// Once the mark is there, three words must be equal. The first round shows what two of them lack; in the second, the third alone fails only beside the two.
#[test]
fn what_is_put_back_is_no_side_of_another_cause() {
    fn unequal(word: Words<'_>) -> Option<&'static str> {
        let unequal = |first: u64| word(first) != word(first + 1) || word(first) != word(first + 2);
        [1, 11].iter().any(|&first| word(first + 3) == 1 && unequal(first)).then_some("exit 1")
    }
    let round = |first: u64| {
        let words = [store(1, first, 7), store(2, first + 1, 7), store(3, first + 2, 7)];
        let mark = [store(4, first + 3, 1), clwb(5, first + 3), fence(6)];
        let flushed = [clwb(7, first), clwb(7, first + 1), clwb(7, first + 2), fence(8)];
        [&words[..], &mark, &flushed].concat()
    };
    let causes = causes(&record(&[round(1), round(11)].concat()), unequal);
    assert!(causes.iter().all(|cause| cause.class == Class::Ordering), "{causes:#?}");
}

/// Three words are set one by one; the last of them is flushed late, too. A fence there leaves the update as it is.
#[test]
fn the_loss_of_what_completes_an_update_is_part_of_it() {
    fn all_or_none(word: Words<'_>) -> Option<&'static str> {
        (word(1) != word(2) || word(1) != word(3)).then_some("exit 1")
    }
    let late = [&[store(3, 3, 1)][..], &durable(4, 4), &[store(5, 5, 1), clwb(6, 3), fence(7)]].concat();
    let recorded = record(&[&durable(1, 1)[..], &durable(2, 2), &late].concat());
    let classes: BTreeSet<&str> = causes(&recorded, all_or_none).iter().map(|cause| cause.class.name()).collect();
    assert!(classes.contains("ordering") && classes.contains("atomicity"), "{classes:?}");
    let found = named(&recorded, all_or_none);
    assert!(found.iter().all(|one| one.finding.class == Class::Atomicity), "{found:#?}");
}

/// What the title says of a lost store: "never" is wrong where a later flush, meant for another store, makes it durable.
#[test]
fn a_store_that_a_later_flush_makes_durable_is_not_told_as_never_durable() {
    fn promised(word: Words<'_>) -> Option<&'static str> {
        (word(2) == 1 && word(1) == 0).then_some("exit 1")
    }
    let lost = [store(1, 1, 7), store(2, 2, 1), clwb(3, 2), fence(4)];
    let later = [store(5, 1, 8), clwb(6, 1), fence(7)];
    let title = |steps: &[Step]| -> Title {
        let found = named(&record(steps), promised);
        assert_eq!(found.len(), 1, "{found:#?}");
        found[0].finding.title.clone()
    };
    let is_never = |title: &Title| match title {
        Title::Broken { promise, .. } => match **promise {
            BrokenPromise::Durable { .. } => Some(true),
            BrokenPromise::DurableOnPurpose { .. } => Some(false),
            _ => None,
        },
        _ => None,
    };
    let (never, by_accident) = (title(&lost), title(&[&lost[..], &later].concat()));
    assert_eq!((is_never(&never), is_never(&by_accident)), (Some(true), Some(false)), "{never:?} {by_accident:?}");
}
