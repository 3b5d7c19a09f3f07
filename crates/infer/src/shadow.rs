//! What every byte of a process's volatile memory carries.
//!
//! Pages of 512 words, allocated when something is first stored there that carries labels. A word whose eight bytes
//! carry the same is one entry; others are split. PM has no shadow: a load from PM starts anew (see the crate's header).

use rustc_hash::FxHashMap;

use crate::labels::{Collection, LabelSets, Value};

const WORD: u64 = 8;
const PAGE: u64 = 4096;
const WORDS: usize = (PAGE / WORD) as usize;

/// An entry with this bit is the number of a split word.
const SPLIT: u64 = 1 << 63;

type Page = Box<[u64; WORDS]>;

/// Recently used pages, by their low bits; a power of two.
const RECENT: usize = 256;

#[derive(Clone, Debug)]
pub struct Shadow {
    /// The first is empty and stands for all pages that have nothing.
    pages: Vec<Page>,
    numbers: FxHashMap<u64, u32>,
    recent: Box<[(u64, u32); RECENT]>,
    split: Vec<[Value; WORD as usize]>,
    free: Vec<u32>,
}

impl Default for Shadow {
    fn default() -> Self {
        Shadow {
            pages: vec![Box::new([0; WORDS])],
            numbers: FxHashMap::default(),
            recent: Box::new([(u64::MAX, 0); RECENT]),
            split: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl Shadow {
    /// What `len` bytes carry together.
    #[inline]
    pub fn load(&mut self, sets: &mut LabelSets, address: u64, len: u64) -> Value {
        if address % WORD + len <= WORD {
            let entry = self.entry(address);
            if entry & SPLIT == 0 {
                return Value::from_word(entry);
            }
        }
        self.load_slowly(sets, address, len)
    }

    fn load_slowly(&mut self, sets: &mut LabelSets, address: u64, len: u64) -> Value {
        let mut value = Value::EMPTY;
        for (at, bytes) in words(address, len) {
            let entry = self.entry(at);
            if entry & SPLIT == 0 {
                value = sets.join(value, Value::from_word(entry));
            } else {
                for &byte in &self.split[(entry & !SPLIT) as usize][bytes] {
                    value = sets.join(value, byte);
                }
            }
        }
        value
    }

    /// What one byte carries.
    pub fn byte(&mut self, address: u64) -> Value {
        let entry = self.entry(address);
        if entry & SPLIT == 0 {
            return Value::from_word(entry);
        }
        self.split[(entry & !SPLIT) as usize][(address % WORD) as usize]
    }

    /// `len` bytes carry this from now on.
    #[inline]
    pub fn store(&mut self, address: u64, len: u64, value: Value) {
        if address.is_multiple_of(WORD) && len == WORD {
            let number = self.page(address);
            if number == 0 && value.is_empty() {
                return;
            }
            let number = if number == 0 { self.allocate(address) } else { number };
            let entry = &mut self.pages[number as usize][word_of(address)];
            if *entry & SPLIT == 0 {
                *entry = value.word();
                return;
            }
        }
        self.store_slowly(address, len, value);
    }

    fn store_slowly(&mut self, address: u64, len: u64, value: Value) {
        for (at, bytes) in words(address, len) {
            let mut number = self.page(at);
            if number == 0 {
                if value.is_empty() {
                    continue;
                }
                number = self.allocate(at);
            }
            let (page, word) = (number as usize, word_of(at));
            let entry = self.pages[page][word];
            if bytes.len() as u64 == WORD {
                if entry & SPLIT != 0 {
                    self.free.push((entry & !SPLIT) as u32);
                }
                self.pages[page][word] = value.word();
            } else if entry & SPLIT != 0 {
                let slot = &mut self.split[(entry & !SPLIT) as usize];
                slot[bytes].fill(value);
                let first = slot[0];
                if slot.iter().all(|&byte| byte == first) {
                    self.free.push((entry & !SPLIT) as u32);
                    self.pages[page][word] = first.word();
                }
            } else if entry != value.word() {
                let mut slot = [Value::from_word(entry); WORD as usize];
                slot[bytes].fill(value);
                let number = match self.free.pop() {
                    Some(number) => {
                        self.split[number as usize] = slot;
                        number
                    }
                    None => {
                        self.split.push(slot);
                        self.split.len() as u32 - 1
                    }
                };
                self.pages[page][word] = SPLIT | u64::from(number);
            }
        }
    }

    /// Every byte of `to` carries what its byte of `from` does, and `more`; one byte after the other, as string
    /// instructions copy (SDM vol. 2, MOVS): where the ranges overlap, bytes may be read that were copied just before.
    pub fn copy(&mut self, sets: &mut LabelSets, from: u64, to: u64, len: u64, backwards: bool, more: Value) {
        let apart = from.abs_diff(to);
        if apart < WORD && apart != 0 {
            for i in 0..len {
                let i = if backwards { len - 1 - i } else { i };
                let value = self.byte(from.wrapping_add(i));
                let value = sets.join(value, more);
                self.store(to.wrapping_add(i), 1, value);
            }
            return;
        }
        let mut pieces: Vec<(u64, usize)> = words(to, len).map(|(at, bytes)| (at, bytes.len())).collect();
        if backwards {
            pieces.reverse();
        }
        for (at, count) in pieces {
            let source = from.wrapping_add(at.wrapping_sub(to));
            let mut bytes = [Value::EMPTY; WORD as usize];
            for (i, byte) in bytes[..count].iter_mut().enumerate() {
                *byte = self.byte(source.wrapping_add(i as u64));
            }
            let same = bytes[..count].iter().all(|&byte| byte == bytes[0]);
            if same {
                let value = sets.join(bytes[0], more);
                self.store(at, count as u64, value);
            } else {
                for (i, byte) in bytes[..count].iter().enumerate() {
                    let value = sets.join(*byte, more);
                    self.store(at.wrapping_add(i as u64), 1, value);
                }
            }
        }
    }

    /// These bytes carry nothing from now on. Costs what is there, not what is asked for.
    pub fn clear(&mut self, address: u64, len: u64) {
        let end = address.saturating_add(len);
        let (first, last) = (address / PAGE, end.div_ceil(PAGE));
        let pages: Vec<u64> = if last - first > self.numbers.len() as u64 {
            let mut own: Vec<u64> = self.numbers.keys().copied().filter(|page| (first..last).contains(page)).collect();
            own.sort_unstable();
            own
        } else {
            (first..last).filter(|page| self.numbers.contains_key(page)).collect()
        };
        for page in pages {
            let start = address.max(page * PAGE);
            let stop = end.min((page + 1).saturating_mul(PAGE));
            self.store_slowly(start, stop - start, Value::EMPTY);
        }
    }

    /// Gives all sets their new numbers.
    pub(crate) fn rename(&mut self, sets: &mut LabelSets, collection: &mut Collection) {
        for entry in self.pages.iter_mut().flat_map(|page| page.iter_mut()) {
            if *entry != 0 && *entry & SPLIT == 0 {
                *entry = collection.rename_value(sets, Value::from_word(*entry)).word();
            }
        }
        // Free ones may name sets that are gone; they are overwritten before they are read.
        for &number in &self.free {
            self.split[number as usize] = Default::default();
        }
        for value in self.split.iter_mut().flatten() {
            *value = collection.rename_value(sets, *value);
        }
    }

    #[inline]
    fn entry(&mut self, address: u64) -> u64 {
        let number = self.page(address);
        self.pages[number as usize][word_of(address)]
    }

    /// The page of an address; 0 if it has nothing.
    #[inline]
    fn page(&mut self, address: u64) -> u32 {
        let page = address / PAGE;
        let (known, number) = self.recent[page as usize % RECENT];
        if known == page { number } else { self.look_up(page) }
    }

    fn look_up(&mut self, page: u64) -> u32 {
        let number = self.numbers.get(&page).copied().unwrap_or(0);
        self.recent[page as usize % RECENT] = (page, number);
        number
    }

    #[cold]
    fn allocate(&mut self, address: u64) -> u32 {
        let page = address / PAGE;
        let number = u32::try_from(self.pages.len()).expect("fewer than 2³² pages fit into memory");
        self.pages.push(Box::new([0; WORDS]));
        self.numbers.insert(page, number);
        self.recent[page as usize % RECENT] = (page, number);
        number
    }
}

#[inline]
fn word_of(address: u64) -> usize {
    (address % PAGE / WORD) as usize
}

/// The words of a range: the address of the first byte in each, and which of its bytes.
fn words(address: u64, len: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = address.wrapping_add(done);
        let first = at % WORD;
        let count = (WORD - first).min(len - done);
        done += count;
        (count > 0).then_some((at, first as usize..(first + count) as usize))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::labels::{Label, SetId};

    /// Small, without a pattern that the shadow could follow.
    fn random(state: &mut u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *state >> 33
    }

    #[test]
    fn every_byte_is_as_in_a_plain_map() {
        let mut sets = LabelSets::default();
        let values: Vec<Value> = (0..4)
            .map(|i| if i == 0 { Value::EMPTY } else { Value::new(sets.singleton(Label(i)), SetId::EMPTY) })
            .collect();
        let (mut shadow, mut plain) = (Shadow::default(), HashMap::<u64, Value>::new());
        let mut state = 7;
        let base = 0x7fff_0000_0f00;
        for _ in 0..30_000 {
            let at = base + random(&mut state) % 512;
            let len = [1, 2, 4, 8, 8, 16, 31][random(&mut state) as usize % 7];
            let value = values[random(&mut state) as usize % 4];
            match random(&mut state) % 4 {
                0 => {
                    shadow.store(at, len, value);
                    plain.extend((at..at + len).map(|byte| (byte, value)));
                }
                1 => {
                    let to = base + random(&mut state) % 512;
                    let backwards = random(&mut state).is_multiple_of(2);
                    shadow.copy(&mut sets, at, to, len, backwards, Value::EMPTY);
                    for i in 0..len {
                        let i = if backwards { len - 1 - i } else { i };
                        let byte = plain.get(&(at + i)).copied().unwrap_or_default();
                        plain.insert(to + i, byte);
                    }
                }
                _ => {
                    let mut expected = Value::EMPTY;
                    for byte in at..at + len {
                        expected = sets.join(expected, plain.get(&byte).copied().unwrap_or_default());
                    }
                    assert_eq!(shadow.load(&mut sets, at, len), expected);
                }
            }
        }
        for byte in base..base + 600 {
            assert_eq!(shadow.byte(byte), plain.get(&byte).copied().unwrap_or_default());
        }
        assert!(shadow.pages.len() <= 3);
    }

    #[test]
    fn clearing_takes_what_is_there_and_no_more() {
        let mut sets = LabelSets::default();
        let value = Value::new(sets.singleton(Label(1)), SetId::EMPTY);
        let mut shadow = Shadow::default();
        shadow.store(0x5ff0, 64, value);
        shadow.clear(0x5ff4, 1 << 45);
        let left: Vec<u64> = (0x5fe0..0x6040).filter(|&at| shadow.byte(at) == value).collect();
        assert_eq!(left, [0x5ff0, 0x5ff1, 0x5ff2, 0x5ff3]);
        shadow.clear(0x5ff1, 1);
        assert_eq!((shadow.byte(0x5ff0), shadow.byte(0x5ff1)), (value, Value::EMPTY));
    }

    #[test]
    fn stores_of_nothing_allocate_nothing() {
        let mut shadow = Shadow::default();
        for page in 0..1000 {
            shadow.store(page * PAGE + 4, 16, Value::EMPTY);
            shadow.store(page * PAGE, 8, Value::EMPTY);
        }
        assert_eq!(shadow.pages.len(), 1);
    }
}
