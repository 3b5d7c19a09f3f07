//! Causes with the same guilty code are one finding.

use cause::explain::{Explained, explain};
use finding::blame::Libraries;
use finding::finding::Class;

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
        assert!(!one.causes.is_empty() && one.finding.notes[0].contains("exit 1"), "{one:?}");
        assert!(one.finding.notes.iter().any(|note| note.contains("checked on the trace")), "{one:?}");
    }
    assert_ne!(found[0].finding.id, found[1].finding.id);
}

#[test]
fn a_finding_keeps_its_id_when_the_workload_grows() {
    let (short, long) = (explained(&[round(0, 1)]), explained(&[round(0, 1), round(1, 1)]));
    assert_eq!(short[0].finding.id, long[0].finding.id);
    assert!(short[0].finding.first <= long[0].finding.first);
}
