//! How much a call touches, before and after it was made.

use syscalls::{Length, entry};

const NOTHING: fn(u64) -> Option<u32> = |_| None;

#[test]
fn lengths_come_from_arguments_results_and_memory() {
    let args = [3, 0x1000, 100, 0, 0x2000, 0];
    let result = Length::Result { most: 2 };
    assert_eq!(result.most(&args, NOTHING), 100);
    assert_eq!(result.done(100, &args, 7, NOTHING), 7);
    // recv with MSG_TRUNC returns more than fits.
    assert_eq!(result.done(100, &args, 5000, NOTHING), 100);
    let events = Length::ResultItems { most: 2, size: 12 };
    assert_eq!((events.most(&args, NOTHING), events.done(1200, &args, 2, NOTHING)), (1200, 24));
    let pointed = Length::Pointed(4);
    assert_eq!(pointed.most(&args, |address| (address == 0x2000).then_some(110)), 110);
    assert_eq!(pointed.done(110, &args, 0, |_| Some(16)), 16);
    assert_eq!(Length::Bits(0).most(&args, NOTHING), 8);
    assert_eq!(Length::Plus { argument: 2, more: 8 }.most(&args, NOTHING), 108);
}

#[test]
fn numbers_without_a_row_are_unknown() {
    assert_eq!(entry(0).map(|e| e.name), Some("read"));
    assert_eq!(entry(450).map(|e| e.name), Some("set_mempolicy_home_node"));
    for number in [337, 423, 4000, u64::MAX] {
        assert!(entry(number).is_none());
    }
}
