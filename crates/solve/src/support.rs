//! Sets of input bytes, interned.

use rustc_hash::FxHashMap;

/// A set; equal sets have equal ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SupportId(u32);

impl SupportId {
    pub const EMPTY: SupportId = SupportId(0);
}

#[derive(Clone, Debug)]
pub struct Supports {
    sets: Vec<Box<[u32]>>,
    known: FxHashMap<Box<[u32]>, SupportId>,
    unions: FxHashMap<(SupportId, SupportId), SupportId>,
}

impl Default for Supports {
    fn default() -> Self {
        let known = FxHashMap::from_iter([(Box::from([]), SupportId::EMPTY)]);
        Supports { sets: vec![Box::from([])], known, unions: FxHashMap::default() }
    }
}

impl Supports {
    pub fn get(&self, id: SupportId) -> &[u32] {
        &self.sets[id.0 as usize]
    }

    pub fn single(&mut self, byte: u32) -> SupportId {
        self.intern(Box::from([byte]))
    }

    pub fn union(&mut self, a: SupportId, b: SupportId) -> SupportId {
        if a == b || b == SupportId::EMPTY {
            return a;
        }
        if a == SupportId::EMPTY {
            return b;
        }
        let key = if a.0 < b.0 { (a, b) } else { (b, a) };
        if let Some(&known) = self.unions.get(&key) {
            return known;
        }
        let mut both: Vec<u32> = self.get(a).iter().chain(self.get(b)).copied().collect();
        both.sort_unstable();
        both.dedup();
        let id = self.intern(both.into());
        self.unions.insert(key, id);
        id
    }

    fn intern(&mut self, set: Box<[u32]>) -> SupportId {
        if let Some(&known) = self.known.get(&set) {
            return known;
        }
        let id = SupportId(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.known.insert(set, id);
        id
    }
}
