//! One bug, one finding: what several rules, and the simulated power failures, say about the same store for the same reason.
//!
//! A failure takes in the misuse that explains it: it has the evidence, and its words say what follows. Of misuse alone the rule counts that
//! says most. What was taken in stays known by its id ([`Finding::also`]), so that baselines go on knowing it.
//!
//! A store of which its transaction knows nothing breaks recovery in several ways: it can be lost, it can be there although the transaction is
//! undone, and it can spoil what the library does for the same function. Only the first of these failures is told.

use crate::finding::{Also, Class, Finding, FindingId, Location, Role};
use crate::note::Note;
use crate::pmdk::on_own_account;

/// Rules about stores that do not become durable, the one that says most first.
const LOST: [&str; 6] = [UNLOGGED, "FP0101", "FP0103", "FP0102", "FP0104", "FP0301"];
/// In a transaction the range must be added; flushing by hand would be the wrong advice.
const UNLOGGED: &str = "FP0402";
const UNORDERED: &str = "FP0304";

/// Joins findings about one bug. Those about transactions come first, the order of the others stays.
pub fn merge(findings: Vec<Finding>) -> Vec<Finding> {
    let (mut all, mut misuse): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| finding.failure.is_some() || rank(finding).is_none());
    misuse.sort_by_key(rank);
    let unlogged_stores: Vec<Location> =
        misuse.iter().filter(|finding| finding.rule == UNLOGGED).map(|finding| finding.guilty().clone()).collect();
    // Stores without a log, and the findings that they went to.
    let mut without_log: Vec<(Location, FindingId)> = Vec::new();
    for finding in one_flush(misuse) {
        // The loss of another such store is that store's, though this one was there.
        let is_of_another = |known: &Finding| {
            finding.rule == UNLOGGED
                && known.failure.is_some()
                && !same_place(known.guilty(), finding.guilty())
                && unlogged_stores.iter().any(|store| same_place(store, known.guilty()))
        };
        if finding.rule == UNLOGGED {
            one_failure(&mut all, &finding, &is_of_another);
        }
        let of_store = || {
            let own = |(store, _): &&(Location, FindingId)| same_place(store, finding.guilty());
            let (_, id) = without_log.iter().find(own).filter(|_| LOST.contains(&finding.rule.as_str()))?;
            all.iter().position(|known| known.id == *id)
        };
        let is_taker = |known: &Finding| is_same_bug(known, &finding) && !is_of_another(known);
        let taker = all.iter().position(is_taker).or_else(of_store);
        match taker {
            Some(taker) => {
                if finding.rule == UNLOGGED {
                    without_log.push((finding.guilty().clone(), all[taker].id.clone()));
                }
                take_in(&mut all[taker], finding);
            }
            None => all.push(finding),
        }
    }
    all.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| unlogged(b).cmp(&unlogged(a))));
    all
}

/// Of the failures of a store that its transaction does not know, the first takes in the others.
fn one_failure(all: &mut Vec<Finding>, unlogged: &Finding, is_of_another: &dyn Fn(&Finding) -> bool) {
    let is_own = |known: &Finding| known.failure.is_some() && is_same_bug(known, unlogged) && !is_of_another(known);
    let Some(place) = all.iter().position(is_own) else { return };
    let mut first = all.remove(place);
    let others = all.extract_if(.., |known| is_own(known) || is_within(known, unlogged)).collect::<Vec<_>>();
    for Finding { rule, id, title, also, count, .. } in others {
        first.count += count;
        first.also.push(Also { rule, id, title });
        first.also.extend(also);
    }
    all.insert(place.min(all.len()), first);
}

/// Whether a failure is about nothing but what libpmemobj stores for itself, in the function whose store it does not know. The library is right about
/// the order of its own stores.
fn is_within(known: &Finding, unlogged: &Finding) -> bool {
    let at = unlogged.guilty();
    let is_its_own = |store: &Location| {
        known.paths.iter().any(|path| {
            let call = path.frames.iter().position(|frame| same_place(frame, store));
            call.is_some_and(|call| on_own_account(&path.frames[..call]))
        })
    };
    let mut stores = known.locations.iter().filter(|location| location.role.is_of_failing_store()).peekable();
    known.failure.is_some()
        && stores.peek().is_some()
        && stores.all(|store| (&store.file, &store.function) == (&at.file, &at.function) && is_its_own(store))
}

/// Stores of one function that are not flushed where a flush of theirs lies elsewhere: one flush was forgotten for all of them, as for the
/// fields of a record. The first takes in the others.
fn one_flush(misuse: Vec<Finding>) -> Vec<Finding> {
    let flush = |finding: &Finding| {
        let known =
            finding.locations.iter().find(|location| location.role == Role::Flush && location.function.is_some());
        known.filter(|_| finding.rule == "FP0101").cloned()
    };
    let mut all: Vec<Finding> = Vec::new();
    for finding in misuse {
        let by = flush(&finding);
        let is_same = |known: &&mut Finding| {
            let own = flush(known);
            own.as_ref().zip(by.as_ref()).is_some_and(|(own, by)| same_place(own, by))
                && (&known.guilty().file, &known.guilty().function)
                    == (&finding.guilty().file, &finding.guilty().function)
        };
        match all.iter_mut().find(is_same) {
            Some(known) => {
                let store = Location { role: Role::Store, ..finding.guilty().clone() };
                if !known.locations.iter().any(|other| same_place(other, &store)) {
                    let stores = known.locations.iter().take_while(|other| other.role == Role::Store).count();
                    known.locations.insert(stores, store);
                }
                known.count += finding.count;
                take_in(known, finding);
            }
            None => all.push(finding),
        }
    }
    all
}

/// Which of several rules about one store counts; none of other rules.
fn rank(finding: &Finding) -> Option<usize> {
    LOST.iter().chain([&UNORDERED]).position(|rule| *rule == finding.rule)
}

fn unlogged(finding: &Finding) -> bool {
    finding.rule == UNLOGGED || finding.also.iter().any(|also| also.rule == UNLOGGED)
}

fn is_same_bug(known: &Finding, misuse: &Finding) -> bool {
    if known.failure.is_none() {
        let lost = |finding: &Finding| LOST.contains(&finding.rule.as_str());
        return lost(known) && lost(misuse) && same_place(known.guilty(), misuse.guilty());
    }
    let sides = |role: Role| known.locations.iter().filter(move |location| location.role == role);
    let is_lost = |store: &Location| sides(Role::Missing).any(|missing| same_place(missing, store));
    match misuse.rule.as_str() {
        UNLOGGED => is_lost(misuse.guilty()) || sides(Role::Present).any(|there| same_place(there, misuse.guilty())),
        // About a flush: the store that it was for.
        "FP0102" | "FP0104" => misuse.locations.iter().filter(|location| location.role == Role::Store).any(is_lost),
        UNORDERED => {
            known.class == Class::Ordering && completes(misuse, sides(Role::Missing).chain(sides(Role::Present)))
        }
        "FP0101" => misuse.locations.iter().filter(|location| location.role == Role::Store).any(is_lost),
        _ => is_lost(misuse.guilty()),
    }
}

/// Whether all these stores, and the flushes, stand before the fence in its function: it is the one that completes them together.
fn completes<'f>(fence: &Finding, mut stores: impl Iterator<Item = &'f Location>) -> bool {
    let at = fence.guilty();
    let before = |other: &Location| {
        other.file.is_some() && (&other.file, &other.function) == (&at.file, &at.function) && other.line < at.line
    };
    stores.all(before) && fence.locations.iter().filter(|location| location.role == Role::Flush).all(before)
}

fn take_in(finding: &mut Finding, misuse: Finding) {
    if misuse.rule == UNLOGGED {
        if let Some(failure) = &mut finding.failure {
            failure.repair = None;
        }
        finding.notes.insert(0, Note::NotInTransaction);
    }
    for note in misuse.notes {
        if !finding.notes.contains(&note) {
            finding.notes.push(note);
        }
    }
    finding.also.push(Also { rule: misuse.rule, id: misuse.id, title: misuse.title });
    finding.also.extend(misuse.also);
}

/// The same line of source, or, where that is not known, the same instruction.
pub fn same_place(one: &Location, other: &Location) -> bool {
    match (&one.file, one.line) {
        (Some(file), Some(line)) => other.file.as_ref() == Some(file) && other.line == Some(line),
        _ => one.module == other.module && one.address == other.address,
    }
}

#[cfg(test)]
mod tests {
    use trace::event::EventId;
    use verdict::crash_point::{CrashPoint, PointKind};
    use verdict::symptom::{Failure, Party, Symptom};

    use super::*;
    use crate::failure::CrashFailure;
    use crate::finding::{CallPath, Title};
    use crate::severity::Severity;

    fn at(role: Role, line: u32) -> Location {
        let (file, function) = (Some("kv.c".to_owned()), Some("put".to_owned()));
        Location { role, file, line: Some(line), function, module: "kv".to_owned(), address: u64::from(line) }
    }

    fn misuse(rule: &str, locations: Vec<Location>) -> Finding {
        Finding {
            id: FindingId::new(rule, &locations[0]),
            rule: rule.to_owned(),
            class: Class::Durability,
            severity: Severity::Error,
            title: Title::Rule(rule.to_lowercase()),
            locations,
            count: 1,
            paths: Vec::new(),
            first: EventId(0),
            thread: None,
            also: Vec::new(),
            failure: None,
            notes: Vec::new(),
            replay: None,
        }
    }

    fn failure(rule: &str, class: Class, locations: Vec<Location>) -> Finding {
        let how = Failure::Exit { code: 1, complaint: None };
        let failure = CrashFailure {
            symptom: Symptom::Failed { by: Party::Recovery, how },
            crash_point: CrashPoint { event: EventId(1), operation: None, kind: PointKind::Fence },
            dirty_lines: 1,
            missing: Vec::new(),
            present: Vec::new(),
            repair: None,
            recovery_from: None,
        };
        Finding { class, failure: Some(Box::new(failure)), ..misuse(rule, locations) }
    }

    fn merged(findings: Vec<Finding>) -> Vec<String> {
        let also = |finding: &Finding| finding.also.iter().map(|also| format!("+{}", also.rule)).collect::<String>();
        merge(findings).iter().map(|finding| format!("{}{}", finding.rule, also(finding))).collect()
    }

    #[test]
    fn a_failure_takes_in_the_misuse_that_explains_it() {
        let lost = || failure("FP0601", Class::Durability, vec![at(Role::Missing, 7), at(Role::Present, 9)]);
        assert_eq!(merged(vec![lost(), misuse("FP0101", vec![at(Role::Store, 7)])]), ["FP0601+FP0101"]);
        let flush = misuse("FP0102", vec![at(Role::Flush, 8), at(Role::Store, 7)]);
        assert_eq!(merged(vec![flush, lost()]), ["FP0601+FP0102"]);
        // The store that was there is another one, and waste is another matter.
        assert_eq!(merged(vec![lost(), misuse("FP0101", vec![at(Role::Store, 9)])]), ["FP0601", "FP0101"]);
        assert_eq!(merged(vec![lost(), misuse("FP0201", vec![at(Role::Flush, 7)])]), ["FP0601", "FP0201"]);
        // The flush of a record was forgotten: the crash shows that for one of its fields.
        let field = |line| misuse("FP0101", vec![at(Role::Store, line), at(Role::Flush, 20)]);
        assert_eq!(merged(vec![lost(), field(6), field(7), field(8)]), ["FP0601+FP0101+FP0101+FP0101"]);
        assert_eq!(merged(vec![field(6), field(8)]), ["FP0101+FP0101"]);
        let elsewhere = misuse("FP0101", vec![at(Role::Store, 8), at(Role::Flush, 21)]);
        assert_eq!(merged(vec![field(6), elsewhere]), ["FP0101", "FP0101"]);
    }

    #[test]
    fn of_misuse_alone_the_rule_that_says_most_counts() {
        let stores = |rule: &str| misuse(rule, vec![at(Role::Store, 7)]);
        assert_eq!(merged(vec![stores("FP0301"), stores("FP0101")]), ["FP0101+FP0301"]);
        assert_eq!(merged(vec![stores("FP0101"), stores("FP0402"), stores("FP0301")]), ["FP0402+FP0101+FP0301"]);
    }

    #[test]
    fn a_transaction_comes_first_and_has_its_own_advice() {
        let other = failure("FP0601", Class::Durability, vec![at(Role::Missing, 1)]);
        let lost = failure("FP0603", Class::Atomicity, vec![at(Role::Present, 7), at(Role::Missing, 9)]);
        let all = merge(vec![other, lost, misuse("FP0402", vec![at(Role::Store, 7)])]);
        assert_eq!(all.iter().map(|finding| finding.rule.as_str()).collect::<Vec<_>>(), ["FP0603", "FP0601"]);
        assert_eq!(all[0].notes, [Note::NotInTransaction]);
    }

    #[test]
    fn two_stores_without_a_log_are_two_bugs() {
        let one = || failure("FP0601", Class::Durability, vec![at(Role::Missing, 7), at(Role::Present, 9)]);
        let other = || failure("FP0601", Class::Durability, vec![at(Role::Missing, 9), at(Role::Present, 7)]);
        let unlogged = |line| misuse("FP0402", vec![at(Role::Store, line)]);
        for all in [
            vec![one(), other(), unlogged(7), unlogged(9)],
            vec![other(), one(), unlogged(9), unlogged(7)],
            vec![one(), other(), unlogged(9), unlogged(7)],
        ] {
            assert_eq!(merged(all), ["FP0601+FP0402", "FP0601+FP0402"]);
        }
        // Where the other store is no bug, both failures are this one's.
        assert_eq!(merged(vec![one(), other(), unlogged(9)]), ["FP0601+FP0601+FP0402"]);
    }

    /// A store of which its transaction knows nothing can be lost, or there too early; and what the library does in that function fails because of it.
    #[test]
    fn the_failures_of_a_store_without_a_log_are_one() {
        let lost = || failure("FP0601", Class::Durability, vec![at(Role::Missing, 7)]);
        let early = |other| failure("FP0603", Class::Atomicity, vec![at(Role::Present, 7), at(Role::Missing, other)]);
        let unlogged = || misuse("FP0402", vec![at(Role::Store, 7)]);
        let all = vec![lost(), early(9), early(3), unlogged()];
        assert_eq!(merged(all), ["FP0601+FP0603+FP0603+FP0402"]);
        // Without the misuse they are different bugs, and another store is one in any case.
        assert_eq!(merged(vec![lost(), early(9)]), ["FP0601", "FP0603"]);
        let other = || failure("FP0601", Class::Durability, vec![at(Role::Missing, 9)]);
        assert_eq!(merged(vec![lost(), other(), unlogged()]), ["FP0601+FP0402", "FP0601"]);
        // That the store is never flushed goes with it, whether it was lost or there too early.
        let unflushed = || misuse("FP0101", vec![at(Role::Store, 7)]);
        assert_eq!(merged(vec![early(9), unlogged(), unflushed()]), ["FP0603+FP0402+FP0101"]);
        assert_eq!(merged(vec![early(9), unflushed()]), ["FP0603", "FP0101"]);
        // Between two stores that the library makes for the program's lines 4 and 5.
        let inside = |library: &str, function: &str| {
            let call = |role, line| {
                let inner = Location { file: None, function: Some("pmemobj_tx_commit".into()), ..at(role, 1) };
                let inner = Location { module: library.into(), ..inner };
                CallPath { count: 1, frames: vec![inner, at(role, line)] }
            };
            let sides = [at(Role::Missing, 4), at(Role::Present, 5)];
            let sides = sides.map(|side| Location { function: Some(function.to_owned()), ..side });
            let paths = vec![call(Role::Missing, 4), call(Role::Present, 5)];
            Finding { paths, ..failure("FP0602", Class::Ordering, sides.to_vec()) }
        };
        assert_eq!(merged(vec![lost(), inside("libpmemobj.so.1", "put"), unlogged()]), ["FP0601+FP0602+FP0402"]);
        assert_eq!(merged(vec![inside("libpmemobj.so.1", "put"), lost(), unlogged()]), ["FP0601+FP0602+FP0402"]);
        assert_eq!(merged(vec![lost(), inside("libpmemobj.so.1", "get"), unlogged()]), ["FP0601+FP0402", "FP0602"]);
        assert_eq!(merged(vec![lost(), inside("kv", "put"), unlogged()]), ["FP0601+FP0402", "FP0602"]);
    }

    #[test]
    fn a_fence_for_several_lines_is_the_cause_of_their_order() {
        let order = || failure("FP0602", Class::Ordering, vec![at(Role::Missing, 3), at(Role::Present, 5)]);
        let fence = |line: u32| misuse("FP0304", vec![at(Role::Fence, line), at(Role::Flush, 4), at(Role::Flush, 6)]);
        assert_eq!(merged(vec![order(), fence(7)]), ["FP0602+FP0304"]);
        assert_eq!(merged(vec![order(), fence(5)]), ["FP0602", "FP0304"]);
    }
}
