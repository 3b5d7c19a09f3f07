//! Coverage: which block of the wanted code runs after which.

use std::collections::HashSet;
use std::ops::Range;

/// What was seen in the operation under way.
#[derive(Default)]
pub struct Edges {
    /// Ascending, apart.
    code: Vec<Range<u64>>,
    last: u64,
    seen: HashSet<u64>,
}

impl Edges {
    pub fn set_code(&mut self, mut code: Vec<Range<u64>>) {
        code.sort_by_key(|range| range.start);
        self.code = code;
        self.begin();
    }

    /// An operation begins.
    pub fn begin(&mut self) {
        self.last = 0;
        self.seen.clear();
    }

    /// A block runs; its edge, if it is new in this operation.
    pub fn block(&mut self, at: u64) -> Option<u64> {
        let next = self.code.partition_point(|range| range.start <= at);
        let inside = next.checked_sub(1).is_some_and(|range| self.code[range].contains(&at));
        if !inside {
            return None;
        }
        // Fibonacci hashing: the two addresses differ in few bits.
        let edge = self.last.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) ^ at;
        self.last = at;
        self.seen.insert(edge).then_some(edge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_of_wanted_code_come_once_per_operation() {
        let mut edges = Edges::default();
        edges.set_code(vec![0x200..0x300, 0x100..0x180]);
        let first = edges.block(0x100).unwrap();
        assert_eq!(edges.block(0x190), None, "between the ranges");
        let second = edges.block(0x200).unwrap();
        assert_ne!(first, second);
        assert!(edges.block(0x100).is_some_and(|back| back != first), "another way to the same block");
        assert_eq!(edges.block(0x200), None);
        edges.begin();
        assert_eq!((edges.block(0x100), edges.block(0x200)), (Some(first), Some(second)));
    }
}
