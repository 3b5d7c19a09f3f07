//! Which queries of the readback a recovered process is asked. All of them, where they are few; else those about what the operations
//! around the crash touched, and a sample of the others.

use std::collections::HashMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Of the queries that are asked, so many in four are about the operations nearest to the crash.
const NEAR_OF_FOUR: usize = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queries {
    /// By query: the operations that have a word in common with it, ascending; none: it is about everything.
    about: Vec<Option<Vec<u32>>>,
    most: usize,
}

impl Queries {
    pub fn of(text: &[u8], operations: &[Range<u64>], readback: &[Range<u64>]) -> Queries {
        let line = |range: &Range<u64>| &text[range.start as usize..range.end as usize];
        let mut by_word: HashMap<&[u8], Vec<u32>> = HashMap::new();
        for (number, operation) in (0..).zip(operations) {
            for word in arguments(line(operation)) {
                let numbers = by_word.entry(word).or_default();
                if numbers.last() != Some(&number) {
                    numbers.push(number);
                }
            }
        }
        let about = |range: &Range<u64>| {
            let mut words = arguments(line(range)).peekable();
            words.peek()?;
            let mut numbers: Vec<u32> = words.filter_map(|word| by_word.get(word)).flatten().copied().collect();
            numbers.sort_unstable();
            numbers.dedup();
            Some(numbers)
        };
        Queries { about: readback.iter().map(about).collect(), most: usize::MAX }
    }

    /// False if they are not those of so many lines: another machine sent them.
    pub fn is_sound(&self, lines: usize) -> bool {
        self.about.len() == lines && self.about.iter().flatten().all(|numbers| numbers.is_sorted())
    }

    pub fn limit(&mut self, most: usize) {
        self.most = most;
    }

    pub fn count(&self) -> usize {
        self.about.len().min(self.most)
    }

    /// The queries for a process that recovered before operation `next`, ascending.
    pub fn asked(&self, next: usize) -> Vec<usize> {
        if self.about.len() <= self.most {
            return (0..self.about.len()).collect();
        }
        // How far the crash is from the next operation that a query is about.
        let far = |query: &usize| match &self.about[*query] {
            None => 0,
            Some(numbers) => {
                let after = numbers.partition_point(|&number| (number as usize) < next);
                let back = after.checked_sub(1).map(|at| next - numbers[at] as usize);
                let ahead = numbers.get(after).map(|&number| number as usize + 1 - next);
                back.into_iter().chain(ahead).min().unwrap_or(usize::MAX)
            }
        };
        let mut queries: Vec<(usize, usize)> = (0..self.about.len()).map(|query| (far(&query), query)).collect();
        queries.sort_unstable();
        let near = self.most * NEAR_OF_FOUR / 4;
        let mut asked: Vec<usize> = queries[..near].iter().map(|&(_, query)| query).collect();
        // Another sample after each operation: together they ask about everything.
        let mut others: Vec<(u64, usize)> =
            queries[near..].iter().map(|&(_, query)| (mix(next as u64, query as u64), query)).collect();
        others.sort_unstable();
        asked.extend(others.iter().take(self.most - near).map(|&(_, query)| query));
        asked.sort_unstable();
        asked
    }
}

/// All words but the first, which says what to do.
fn arguments(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).skip(1)
}

/// The last step of SplitMix64 (Steele, Lea, Flood 2014).
fn mix(one: u64, other: u64) -> u64 {
    let mut z = (one << 32 ^ other).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use crate::workload::Workload;

    fn workload(most: usize) -> Workload {
        let operations: String = (0..100).map(|key| format!("i {key} {}\n", key + 1000)).collect();
        let readback: String = (0..100).map(|key| format!("g {key}\n")).chain(["n\n".to_owned()]).collect();
        let mut workload = Workload::new(operations.as_bytes(), readback.as_bytes()).unwrap();
        workload.limit_queries(most);
        workload
    }

    #[test]
    fn few_are_all_asked() {
        assert_eq!(workload(101).queries(7), (0..101).collect::<Vec<_>>());
        assert_eq!(workload(101).readback_ranges(7).len(), 1);
    }

    #[test]
    fn of_many_those_near_the_crash_and_a_sample() {
        let workload = workload(16);
        let asked = workload.queries(50);
        assert_eq!(asked.len(), 16);
        assert!(asked.contains(&100), "what is about everything is always asked");
        assert!((46..54).all(|key| asked.contains(&key)), "{asked:?}");
        assert_ne!(workload.queries(50), workload.queries(51));
        let bytes: u64 = workload.byte_ranges(50..52).iter().map(|byte_range| byte_range.end - byte_range.start).sum();
        let wanted: usize = workload.numbers(50..52).map(|number| workload.shown(number).len() + 1).sum();
        assert_eq!(bytes as usize, wanted);
    }
}
