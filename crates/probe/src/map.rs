//! A hash map from nonzero 64-bit keys, with open addressing. Keys and values are stored together: an insertion writes to one page, which
//! matters in a child of fork, where the kernel copies each page that is written.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Debug)]
pub struct U64Map<V: Copy + Default> {
    slots: Vec<(u64, V)>,
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
        U64Map { slots: Vec::new(), used: 0 }
    }

    fn slot(&self, key: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut i = spread(key) as usize & mask;
        loop {
            match self.slots[i].0 {
                k if k == key => return Some(i),
                0 => return None,
                _ => i = (i + 1) & mask,
            }
        }
    }

    pub fn get(&self, key: u64) -> Option<V> {
        self.slot(key).map(|i| self.slots[i].1)
    }

    pub fn insert(&mut self, key: u64, value: V) {
        debug_assert!(key != 0 && key != GONE);
        if let Some(i) = self.slot(key) {
            self.slots[i].1 = value;
            return;
        }
        if (self.used + 1) * 2 > self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let mut i = spread(key) as usize & mask;
        while self.slots[i].0 != 0 {
            i = (i + 1) & mask;
        }
        self.slots[i] = (key, value);
        self.used += 1;
    }

    pub fn remove(&mut self, key: u64) {
        if let Some(i) = self.slot(key) {
            self.slots[i].0 = GONE;
        }
    }

    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.0 = 0);
        self.used = 0;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let slots = core::mem::replace(&mut self.slots, vec![(0, V::default()); size]);
        self.used = 0;
        for (key, value) in slots {
            if key != 0 && key != GONE {
                self.insert(key, value);
            }
        }
    }
}
