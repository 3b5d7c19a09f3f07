//! Titles of findings.

use finding::failure::{BrokenPromise, NamedStore};
use finding::finding::{Finding, Title};

use super::place::{place, store, store_with_bytes};

/// The whole title.
pub fn title(finding: &Finding) -> String {
    title_of(&finding.title)
}

pub fn title_of(title: &Title) -> String {
    match title {
        Title::Rule(words) => words.clone(),
        Title::BreaksDown { signal } => breaks_down(*signal),
        Title::Broken { promise, during_recovery } => {
            let (what, so) = words(promise);
            let what = within(what, *during_recovery);
            so.map_or(what.clone(), |so| format!("{what}: {so}"))
        }
    }
}

/// Its first half, for lists.
pub fn headline(finding: &Finding) -> String {
    match &finding.title {
        Title::Rule(words) => words.clone(),
        Title::BreaksDown { signal } => breaks_down(*signal),
        Title::Broken { promise, during_recovery } => within(words(promise).0, *during_recovery),
    }
}

fn breaks_down(signal: Option<i32>) -> String {
    match signal {
        Some(signal) => format!("the program ends with signal {signal} without any power failure"),
        None => "the program does not end in time, without any power failure".to_owned(),
    }
}

fn within(what: String, during_recovery: bool) -> String {
    if during_recovery { format!("during recovery: {what}") } else { what }
}

/// What is wrong, and what follows from it.
fn words(promise: &BrokenPromise) -> (String, Option<&'static str>) {
    let of = |named: &Option<_>| store(named.as_ref());
    match promise {
        BrokenPromise::Durable { store } => {
            (format!("the store to {} is never made durable", of(store)), Some("a power failure can lose it"))
        }
        BrokenPromise::DurableInTime { store } => {
            (format!("the store to {} becomes durable too late", of(store)), Some("a power failure can lose it"))
        }
        BrokenPromise::DurableOnPurpose { store } => (
            format!("nothing makes the store to {} durable but a later flush that is for another store", of(store)),
            Some("a power failure before that can lose it"),
        ),
        BrokenPromise::Ordered { first, second } => {
            let (first, second) = apart(first.as_ref(), second.as_ref());
            let follows = "after a power failure PM can have the second without the first";
            (format!("nothing orders {first} before {second}"), Some(follows))
        }
        BrokenPromise::StoredAfter { store, needed } => {
            let (store, needed) = apart(store.as_ref(), needed.as_ref());
            let follows = "a power failure in between breaks recovery";
            (format!("{store} is stored before {needed}, which it needs"), Some(follows))
        }
        BrokenPromise::Whole { store } => (
            format!("the store in {} crosses a cache line", of(store)),
            Some("after a power failure PM can have one part without the other"),
        ),
        BrokenPromise::Together { one, other: None } => {
            (format!("the change that {} is part of can be half done after a power failure", of(one)), None)
        }
        BrokenPromise::Together { one, other } => {
            let (one, other) = apart(one.as_ref(), other.as_ref());
            if one == other {
                let what = format!("two stores to {one} belong together");
                return (format!("{what}, but a power failure can leave the first without the second"), None);
            }
            (format!("{one} and {other} belong together, but a power failure can leave one without the other"), None)
        }
        BrokenPromise::Ends { after } => {
            (format!("recovery does not end after a power failure behind the store to {}", store(Some(after))), None)
        }
        BrokenPromise::Survives { at } => {
            let at = at.as_ref().map_or_else(|| "an unknown place".to_owned(), place);
            (format!("recovery breaks down in {at}"), None)
        }
    }
}

/// Two stores of one place are told apart by where they go.
fn apart(one: Option<&NamedStore>, other: Option<&NamedStore>) -> (String, String) {
    let of = if store(one) == store(other) { store_with_bytes } else { store };
    (of(one), of(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use finding::failure::PoolBytes;
    use finding::finding::{Location, Role};
    use trace::event::{EventId, PoolOffset, ThreadId};

    fn stored(bytes: Option<PoolBytes>) -> Option<NamedStore> {
        let location = Location {
            role: Role::Store,
            file: None,
            line: None,
            function: Some("count".into()),
            module: "program".into(),
            address: 0x10,
        };
        Some(NamedStore { location, name: None, event: EventId(1), thread: ThreadId(0), thread_runs: None, bytes })
    }

    /// Two sides that nobody could tell apart are not named twice.
    #[test]
    fn two_stores_to_the_same_bytes_are_told_as_two() {
        let (what, _) = words(&BrokenPromise::Together { one: stored(None), other: stored(None) });
        assert_eq!(what.matches("`count`").count(), 1, "{what}");
        assert!(what.starts_with("two stores to `count`"), "{what}");
    }

    #[test]
    fn never_is_said_only_where_no_flush_follows() {
        let store = stored(None);
        let (never, _) = words(&BrokenPromise::Durable { store: store.clone() });
        assert!(never.contains("never made durable"), "{never}");
        let [late, by_accident] =
            [BrokenPromise::DurableInTime { store: store.clone() }, BrokenPromise::DurableOnPurpose { store }]
                .map(|promise| words(&promise).0);
        assert!(late.ends_with("becomes durable too late"), "{late}");
        assert!(by_accident.contains("a later flush that is for another store"), "{by_accident}");
        assert!(!late.contains("never") && !by_accident.contains("never"), "{late} {by_accident}");
    }

    /// The steps of a loop.
    #[test]
    fn two_stores_of_one_place_are_told_apart_by_their_bytes() {
        let [one, other] = [64, 128]
            .map(|offset| stored(Some(PoolBytes { pool: "pool".to_owned(), offset: PoolOffset(offset), len: 8 })));
        let promises = [
            BrokenPromise::Ordered { first: one.clone(), second: other.clone() },
            BrokenPromise::StoredAfter { store: one.clone(), needed: other.clone() },
            BrokenPromise::Together { one, other },
        ];
        for promise in promises {
            let (what, _) = words(&promise);
            assert!(what.contains("0x40") && what.contains("0x80"), "{what}");
        }
    }
}
