//! A hash map from nonzero 64-bit keys, open addressing. Small, allocation only on growth, no removal cost surprises.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Debug)]
pub struct U64Map<V: Copy + Default> {
    keys: Vec<u64>,
    values: Vec<V>,
    used: usize,
}

const fn spread(key: u64) -> u64 {
    let x = key.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x ^ (x >> 29)
}

/// Marks a removed entry, so that searches go on past it.
const GONE: u64 = u64::MAX;

impl<V: Copy + Default> U64Map<V> {
    pub const fn new() -> Self {
        U64Map { keys: Vec::new(), values: Vec::new(), used: 0 }
    }

    fn slot(&self, key: u64) -> Option<usize> {
        if self.keys.is_empty() {
            return None;
        }
        let mask = self.keys.len() - 1;
        let mut i = spread(key) as usize & mask;
        loop {
            match self.keys[i] {
                k if k == key => return Some(i),
                0 => return None,
                _ => i = (i + 1) & mask,
            }
        }
    }

    pub fn get(&self, key: u64) -> Option<V> {
        self.slot(key).map(|i| self.values[i])
    }

    pub fn insert(&mut self, key: u64, value: V) {
        debug_assert!(key != 0 && key != GONE);
        if let Some(i) = self.slot(key) {
            self.values[i] = value;
            return;
        }
        if (self.used + 1) * 2 > self.keys.len() {
            self.grow();
        }
        let mask = self.keys.len() - 1;
        let mut i = spread(key) as usize & mask;
        while self.keys[i] != 0 {
            i = (i + 1) & mask;
        }
        self.keys[i] = key;
        self.values[i] = value;
        self.used += 1;
    }

    pub fn remove(&mut self, key: u64) {
        if let Some(i) = self.slot(key) {
            self.keys[i] = GONE;
        }
    }

    pub fn clear(&mut self) {
        self.keys.iter_mut().for_each(|k| *k = 0);
        self.used = 0;
    }

    fn grow(&mut self) {
        let size = (self.keys.len() * 2).max(64);
        let keys = core::mem::replace(&mut self.keys, vec![0; size]);
        let values = core::mem::replace(&mut self.values, vec![V::default(); size]);
        self.used = 0;
        for (key, value) in keys.into_iter().zip(values) {
            if key != 0 && key != GONE {
                self.insert(key, value);
            }
        }
    }
}
