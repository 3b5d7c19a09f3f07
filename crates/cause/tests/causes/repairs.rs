//! Remedies are tried on the trace.

use cause::repair::{Remedy, find};
use cause::store_history::{self, StoreInfo};
use cause::verdict_cache::VerdictCache;
use crash::walk::Rules;
use trace::EventId;

use crate::traces::{Recorded, clwb, fence, record, store};

fn fact(recorded: &Recorded, event: u64) -> StoreInfo {
    store_history::store(&recorded.reader, EventId(event)).unwrap().expect("a store")
}

#[test]
fn the_smallest_remedy_is_taken() {
    let recorded = record(&[store(1, 1, 7), clwb(2, 1), store(3, 2, 1), clwb(4, 2), fence(5)]);
    let (missing, present) = ([fact(&recorded, 0)], [fact(&recorded, 2)]);
    let repair = find(&mut VerdictCache::default(), &recorded.reader, Rules::default(), EventId(4), &missing, &present)
        .unwrap()
        .expect("a remedy");
    assert_eq!((repair.remedy, repair.after, repair.before), (Remedy::Fence, missing[0], Some(present[0])));
}

#[test]
fn without_another_side_the_remedy_is_right_behind_the_store() {
    let recorded = record(&[store(1, 1, 7), store(2, 2, 1), clwb(3, 2), fence(4)]);
    let missing = [fact(&recorded, 0)];
    let repair = find(&mut VerdictCache::default(), &recorded.reader, Rules::default(), EventId(4), &missing, &[])
        .unwrap()
        .expect("a remedy");
    assert_eq!((repair.remedy, repair.before), (Remedy::FlushAndFence, None));
}

#[test]
fn several_lost_stores_need_all_their_flushes() {
    let recorded = record(&[store(1, 1, 7), store(2, 3, 8), clwb(3, 1), store(4, 2, 1), clwb(5, 2), fence(6)]);
    let (missing, present) = ([fact(&recorded, 0), fact(&recorded, 1)], [fact(&recorded, 3)]);
    let remedy = |missing: &[StoreInfo]| {
        let repair =
            find(&mut VerdictCache::default(), &recorded.reader, Rules::default(), EventId(5), missing, &present)
                .unwrap();
        repair.map(|repair| repair.remedy)
    };
    assert_eq!(remedy(&missing[..1]), Some(Remedy::Fence));
    assert_eq!(remedy(&missing), Some(Remedy::FlushAndFence));
    assert_eq!(remedy(&[]), None);
}
