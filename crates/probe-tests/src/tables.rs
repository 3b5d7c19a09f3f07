//! Tables and patterns.

use std::collections::HashMap;

use crate::glob;
use crate::layout::alias;
use crate::map::U64Map;
use crate::marks::{Flavour, Mark, Marks};

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

/// Marks as a block could have them: mostly of copied instructions, some of everything else.
fn some_marks(numbers: &mut Numbers) -> Vec<Mark> {
    let flavours = [Flavour::Clean, Flavour::Spilled, Flavour::SpilledT1, Flavour::Alias, Flavour::Busy];
    let mut mark = Mark { at: 0, flavour: Flavour::Busy, reg: 0, pc: 0 };
    let mut marks = Vec::new();
    for _ in 0..numbers.next() % 200 {
        let step = (numbers.next() % 15 + 1) as u16;
        mark = match numbers.next() % 4 {
            0 => Mark {
                at: mark.at + (numbers.next() % 300 + 1) as u16,
                flavour: flavours[(numbers.next() % 5) as usize],
                reg: [0, 2, 15, 0xff][(numbers.next() % 4) as usize],
                pc: [numbers.next() as i32, mark.pc - 40, i32::MIN, i32::MAX][(numbers.next() % 4) as usize],
            },
            _ => Mark { at: mark.at + step, flavour: Flavour::Clean, reg: 0, pc: mark.pc.wrapping_add(step.into()) },
        };
        marks.push(mark);
    }
    marks
}

#[test]
fn packed_marks_are_the_marks() {
    let mut numbers = Numbers(2);
    for _ in 0..2_000 {
        let marks = some_marks(&mut numbers);
        let packed = Marks::pack(&marks);
        assert_eq!(packed.iter().collect::<Vec<_>>(), marks);
        for _ in 0..20 {
            let at = (numbers.next() % 8_000) as u16;
            assert_eq!(packed.at(at), marks.iter().rfind(|mark| mark.at <= at).copied(), "at {at}");
        }
    }
}

#[test]
fn a_mark_of_a_copied_instruction_takes_one_byte() {
    let marks: Vec<_> =
        (1..=90).map(|n| Mark { at: 4 * n, flavour: Flavour::Clean, reg: 0, pc: 4 * i32::from(n) }).collect();
    assert_eq!(Marks::pack(&marks).bytes(), 90);
}
