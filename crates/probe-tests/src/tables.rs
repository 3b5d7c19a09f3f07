//! Tables and patterns.

use std::collections::HashMap;

use crate::glob;
use crate::layout::alias;
use crate::map::U64Map;

/// SplitMix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        let (word, state) = wire::virtual_time::random_word(self.0);
        self.0 = state;
        word
    }
}

#[test]
fn the_map_agrees_with_the_standard_one() {
    let mut numbers = Numbers(1);
    let (mut map, mut expected) = (U64Map::<u32>::new(), HashMap::new());
    for _ in 0..50_000 {
        // Few keys, so that many are removed and inserted again.
        let key = numbers.next() % 700 + 1;
        match numbers.next() % 4 {
            0 => {
                map.remove(key);
                expected.remove(&key);
            }
            1 => assert_eq!(map.get(key), expected.get(&key).copied()),
            _ => {
                let value = numbers.next() as u32;
                map.insert(key, value);
                expected.insert(key, value);
            }
        }
    }
    for key in 1..=700 {
        assert_eq!(map.get(key), expected.get(&key).copied(), "{key}");
    }
    map.clear();
    assert!((1..=700).all(|key| map.get(key).is_none()));
}

/// As the recorder's contract has it, one character at a time.
fn matches_slowly(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|skip| matches_slowly(rest, &path[skip..])),
        [b'?', rest @ ..] => !path.is_empty() && matches_slowly(rest, &path[1..]),
        [first, rest @ ..] => path.first() == Some(first) && matches_slowly(rest, &path[1..]),
    }
}

#[test]
fn patterns_match_what_the_slow_matcher_does() {
    let mut numbers = Numbers(2);
    let mut matched = 0;
    for _ in 0..20_000 {
        let mut text = |letters: &[u8], most: u64| -> Vec<u8> {
            let len = numbers.next() % most;
            (0..len).map(|_| letters[numbers.next() as usize % letters.len()]).collect()
        };
        let (pattern, path) = (text(b"ab/*?", 7), text(b"ab/", 9));
        let expected = matches_slowly(&pattern, &path);
        assert_eq!(glob::matches(&pattern, &path), expected, "{pattern:?} {path:?}");
        matched += u32::from(expected);
    }
    assert!(matched > 500, "only {matched} patterns matched");
}

#[test]
fn an_alias_of_an_alias_is_the_address() {
    for address in [0x7fff_f7a0_0000, 0x5555_5555_4000, 0x40_0000] {
        assert_ne!(alias(address), address);
        assert_eq!(alias(alias(address)), address);
    }
}
