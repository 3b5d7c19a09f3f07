//! Causes with the same guilty code are one finding.

use std::collections::BTreeSet;

use cause::explain::{Explained, explain};
use finding::blame::Libraries;
use finding::finding::Class;
use trace::EventId;
use verdict::end::Frame;

use crate::recoveries::{Words, causes};
use crate::traces::{Step, clwb, fence, pc, record, store};

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
