//! Values by number: equal ones have one number, exactly.

use std::hash::Hash;

use rustc_hash::FxHashMap;

#[derive(Debug)]
pub(super) struct Interner<T> {
    numbers: FxHashMap<T, u32>,
    values: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Interner { numbers: FxHashMap::default(), values: Vec::new() }
    }
}

impl<T: Copy + Eq + Hash> Interner<T> {
    pub fn find(&self, value: &T) -> Option<u32> {
        self.numbers.get(value).copied()
    }

    /// None when there are no numbers left.
    pub fn add(&mut self, value: T) -> Option<u32> {
        if let Some(known) = self.find(&value) {
            return Some(known);
        }
        let number = u32::try_from(self.values.len()).ok().filter(|&number| number < RESERVED)?;
        self.numbers.insert(value, number);
        self.values.push(value);
        Some(number)
    }

    pub fn get(&self, number: u32) -> T {
        self.values[number as usize]
    }

    pub fn len(&self) -> usize {
        self.values.len()
    }

    pub fn values_from(&self, first: usize) -> &[T] {
        &self.values[first..]
    }
}

/// Numbers from here on mean something else to [`ReadTreeCache`](super::ReadTreeCache).
pub(super) const RESERVED: u32 = u32::MAX - 8;
