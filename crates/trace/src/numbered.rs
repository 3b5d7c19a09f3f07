//! Values that get the next number when they are first seen. A recording can have a million shapes and half as many call paths: a value is kept
//! once, and finding its number takes 13 to 26 bytes more.

use std::hash::{BuildHasher, Hash};

use rustc_hash::FxBuildHasher;

#[derive(Debug)]
pub(crate) struct Numbered<T> {
    values: Vec<T>,
    /// With open addressing. A search looks at values only where the hash is the same, and growing at none.
    slots: Vec<Bucket>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    hash: u32,
    /// The number plus 1; 0: free.
    number: u32,
}

impl<T> Default for Numbered<T> {
    fn default() -> Numbered<T> {
        Numbered { values: Vec::new(), slots: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Numbered<T> {
    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn get(&self, number: u32) -> Option<&T> {
        self.values.get(number as usize)
    }

    fn hash(value: &T) -> u32 {
        FxBuildHasher.hash_one(value) as u32
    }

    #[inline]
    pub fn find(&self, value: &T) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let hash = Self::hash(value);
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let number = slot.number.checked_sub(1)?;
            if slot.hash == hash && self.values[number as usize] == *value {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// The number of a value that has none yet.
    pub fn add(&mut self, value: T) -> u32 {
        debug_assert_eq!(self.find(&value), None, "the value has a number already");
        if self.values.len() * 8 >= self.slots.len() * 5 {
            let size = (self.slots.len() * 2).max(64);
            let old = std::mem::replace(&mut self.slots, vec![Bucket::default(); size]);
            old.into_iter().filter(|slot| slot.number != 0).for_each(|slot| self.put(slot));
        }
        self.values.push(value);
        let number = self.values.len() as u32;
        self.put(Bucket { hash: Self::hash(&value), number });
        number - 1
    }

    fn put(&mut self, slot: Bucket) {
        let mask = self.slots.len() - 1;
        let mut at = slot.hash as usize & mask;
        while self.slots[at].number != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn agrees_with_the_standard_map() {
        let (mut numbered, mut expected) = (Numbered::default(), HashMap::new());
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let value = (state >> 33) % 3000;
            assert_eq!(numbered.find(&value), expected.get(&value).copied());
            if !expected.contains_key(&value) {
                let number = numbered.add(value);
                assert_eq!((number as usize, numbered.get(number)), (expected.len(), Some(&value)));
                expected.insert(value, number);
            }
        }
        assert_eq!((numbered.len(), numbered.get(3000)), (expected.len(), None));
    }
}
