//! The followed bytes of a process's memory.

use rustc_hash::FxHashMap;

use crate::expr::Expr;
use crate::frame::Byte;

const PAGE: u64 = 4096;
/// Bits of the filter; a power of two.
const FILTER: usize = 1 << 16;
const LINE: u64 = 64;

#[derive(Clone, Debug)]
pub struct Memory {
    pages: FxHashMap<u64, Box<[Byte]>>,
    /// Lines that may have followed bytes, by their number modulo the filter's size.
    filter: Box<[u64]>,
    /// What was loaded near followed bytes, by line: content, and which bytes are known.
    known: FxHashMap<u64, ([u8; LINE as usize], u64)>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory { pages: FxHashMap::default(), filter: vec![0; FILTER / 64].into(), known: FxHashMap::default() }
    }
}

impl Memory {
    /// Whether some of these bytes may be followed.
    #[inline]
    pub fn may_have(&self, address: u64, len: u64) -> bool {
        if self.pages.is_empty() || len == 0 {
            return false;
        }
        let (first, last) = (address / LINE, address.wrapping_add(len - 1) / LINE);
        if last.wrapping_sub(first) > 2 {
            return true;
        }
        let has = |line: u64| self.filter[line as usize % FILTER / 64] >> (line % 64) & 1 == 1;
        has(first) || has(last)
    }

    pub fn get(&self, address: u64) -> Byte {
        self.pages.get(&(address / PAGE)).and_then(|page| page[(address % PAGE) as usize])
    }

    pub fn load(&self, address: u64, len: usize) -> Vec<Byte> {
        (0..len as u64).map(|at| self.get(address.wrapping_add(at))).collect()
    }

    pub fn set(&mut self, address: u64, byte: Byte) {
        self.forget_known(address, 1);
        match byte {
            None => {
                if let Some(page) = self.pages.get_mut(&(address / PAGE)) {
                    page[(address % PAGE) as usize] = None;
                }
            }
            Some(expr) => self.follow(address, expr),
        }
    }

    fn follow(&mut self, address: u64, expr: Expr) {
        let line = address / LINE;
        self.filter[line as usize % FILTER / 64] |= 1 << (line % 64);
        let page = self.pages.entry(address / PAGE).or_insert_with(|| vec![None; PAGE as usize].into());
        page[(address % PAGE) as usize] = Some(expr);
    }

    /// The processor loaded these bytes. Remembered only beside what is followed: there addresses that depend on the input lead.
    pub fn loaded(&mut self, address: u64, bytes: impl Iterator<Item = u8>) {
        for (at, byte) in bytes.enumerate() {
            let place = address.wrapping_add(at as u64);
            let (content, known) = self.known.entry(place / LINE).or_insert(([0; LINE as usize], 0));
            content[(place % LINE) as usize] = byte;
            *known |= 1 << (place % LINE);
        }
    }

    /// What is there, if it was loaded since it was last written.
    pub fn known(&self, address: u64) -> Option<u8> {
        let (content, known) = self.known.get(&(address / LINE))?;
        (known >> (address % LINE) & 1 == 1).then(|| content[(address % LINE) as usize])
    }

    /// Whether loads there are to be remembered.
    #[inline]
    pub fn is_near(&self, address: u64, len: u64) -> bool {
        self.may_have(address.wrapping_sub(LINE), LINE) || self.may_have(address, len + LINE)
    }

    /// Something was written there.
    #[inline]
    pub fn forget_known(&mut self, address: u64, len: u64) {
        if self.known.is_empty() || len == 0 {
            return;
        }
        let (first, last) = (address / LINE, address.wrapping_add(len - 1) / LINE);
        if last.wrapping_sub(first) > 1024 {
            self.known.clear();
            return;
        }
        for line in first..=last {
            self.known.remove(&line);
        }
    }

    pub fn store(&mut self, address: u64, bytes: &[Byte]) {
        for (at, &byte) in bytes.iter().enumerate() {
            self.set(address.wrapping_add(at as u64), byte);
        }
    }

    /// Not followed from here on.
    pub fn clear(&mut self, address: u64, len: u64) {
        self.forget_known(address, len);
        if !self.may_have(address, len) {
            return;
        }
        let end = address.saturating_add(len);
        let mut at = address;
        while at < end {
            let next = ((at / PAGE + 1) * PAGE).min(end);
            if let Some(page) = self.pages.get_mut(&(at / PAGE)) {
                page[(at % PAGE) as usize..][..(next - at) as usize].fill(None);
            }
            at = next;
        }
    }
}
