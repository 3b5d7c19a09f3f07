//! Does the program make a store durable?

use cause::store_history::{self, StoreFate, StoreInfo};
use persistency::line::LineId;
use trace::{EventId, LineNo};

use crate::traces::{Recorded, Step, clflush, clwb, fence, fsync, locked, msync, record, store, straddle, stream};

/// The first event's store.
fn first(recorded: &Recorded) -> StoreInfo {
    store_history::store(&recorded.reader, EventId(0)).unwrap().expect("a store")
}

fn is_made_durable(steps: &[Step]) -> bool {
    let recorded = record(steps);
    store_history::fate(&recorded.reader, &first(&recorded)).unwrap() == StoreFate::Durable
}

#[test]
fn by_a_flush_and_a_fence_of_one_thread() {
    assert!(is_made_durable(&[store(1, 1, 7), clwb(2, 1), fence(3)]));
    assert!(is_made_durable(&[store(1, 1, 7), clwb(2, 1), locked(3, 5)]));
    assert!(is_made_durable(&[store(1, 1, 7), clwb(2, 1).by(1), fence(3).by(1)]));
    assert!(!is_made_durable(&[store(1, 1, 7), clwb(2, 1), fence(3).by(1)]));
    assert!(!is_made_durable(&[store(1, 1, 7), fence(2), clwb(3, 1)]));
    assert!(!is_made_durable(&[store(1, 1, 7), clwb(2, 2), fence(3)]));
    assert!(!is_made_durable(&[store(1, 1, 7)]));
}

#[test]
fn by_what_needs_no_fence() {
    assert!(is_made_durable(&[store(1, 1, 7), clflush(2, 1)]));
    assert!(is_made_durable(&[store(1, 1, 7), msync(2, 1)]));
    assert!(is_made_durable(&[store(1, 1, 7), fsync(2)]));
    assert!(!is_made_durable(&[store(1, 1, 7), msync(2, 2)]));
}

#[test]
fn a_streaming_store_needs_only_the_fence() {
    assert!(is_made_durable(&[stream(1, 1, 7), fence(2)]));
    assert!(!is_made_durable(&[stream(1, 1, 7), fence(2).by(1)]));
}

#[test]
fn a_flush_that_was_meant_for_a_later_store_does_not_count() {
    assert!(!is_made_durable(&[store(1, 1, 7), fence(2), store(3, 1, 8), clwb(4, 1), fence(5)]));
    // In one epoch one flush is for both.
    assert!(is_made_durable(&[store(1, 1, 7), store(3, 1, 8), clwb(4, 1), fence(5)]));
    // And a late one is still one.
    assert!(is_made_durable(&[store(1, 1, 7), fence(2), store(3, 5, 8), clwb(4, 1), fence(5)]));
}

#[test]
fn of_two_lines_the_one_in_question_counts() {
    let recorded = record(&[straddle(1, 1), clwb(2, 1), fence(3)]);
    let fact = first(&recorded);
    let second = LineId { line: LineNo(2), ..fact.line };
    assert!(fact.touches(fact.line) && fact.touches(second));
    assert!(!fact.touches(LineId { line: LineNo(3), ..second }));
    assert_eq!(store_history::fate(&recorded.reader, &fact).unwrap(), StoreFate::Durable);
    assert_eq!(store_history::fate(&recorded.reader, &StoreInfo { line: second, ..fact }).unwrap(), StoreFate::Never);
}

#[test]
fn stores_are_found_by_their_place_in_the_trace() {
    let recorded = record(&[store(1, 1, 7), clwb(2, 1), fence(3), store(4, 2, 1), fence(5)]);
    let reader = &recorded.reader;
    assert_eq!(store_history::store(reader, EventId(1)).unwrap(), None);
    assert_eq!(
        store_history::last_store_before(reader, EventId(3)).unwrap().map(|store| store.event),
        Some(EventId(0))
    );
    assert_eq!(store_history::last_store_before(reader, EventId(0)).unwrap(), None);
    let events = |most| {
        let stores = store_history::stores_in(reader, EventId(0), EventId(5), most).unwrap();
        stores.iter().map(|store| store.event.0).collect::<Vec<_>>()
    };
    assert_eq!((events(9), events(1)), (vec![0, 3], vec![0]));
}
