//! A log-structured map: records are appended, an index in DRAM leads to the newest of each key, and a long log is copied
//! without what is stale into another area.
//! variants: 4
//! grammar: kv.toml
//! together: 1 2 4 | 3
//! bug 1: lost key, unexpected key — a record that is not there, insert and update and delete
//! bug 2: lost keys — a log that was not copied, operation that compacts
//! bug 3: lost keys — the new length with the old area, operation that compacts
//! bug 4: resurrected key, delete
include!("../include/kv.rs");

use std::collections::BTreeMap;

const RECORDS: usize = 8192;
/// A log of fewer records is not copied.
const SHORT: u64 = 12;

const PUT: u64 = 1;
const DELETE: u64 = 2;

#[repr(C, align(32))]
#[derive(Clone, Copy)]
struct Record {
    kind: u64,
    key: u64,
    value: u64,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    /// The length of the log, doubled, and 1 more if it is in the second area: one store switches over.
    end: Line<u64>,
    /// Only used by bug 3: which area.
    area: Line<u64>,
    areas: [[Record; RECORDS]; 2],
}

struct LogMap {
    pool: &'static mut Pool,
    /// Where the newest record of each key is.
    index: BTreeMap<u64, u64>,
}

impl LogMap {
    fn open(path: &str) -> LogMap {
        let (pool, is_new) = open_pool::<Pool>(path);
        if is_new {
            created(pool);
        }
        // SAFETY: the mapping lasts as long as the process, and any content is a valid pool.
        let mut map = LogMap { pool: unsafe { &mut *pool }, index: BTreeMap::new() };
        for at in 0..map.length() {
            map.note(at);
        }
        map
    }

    fn length(&self) -> u64 {
        (self.pool.end.0 >> 1).min(RECORDS as u64)
    }

    fn area(&self) -> usize {
        if has_bug(3) { (self.pool.area.0 & 1) as usize } else { (self.pool.end.0 & 1) as usize }
    }

    fn record(&self, at: u64) -> &Record {
        &self.pool.areas[self.area()][at as usize]
    }

    fn note(&mut self, at: u64) {
        let record = *self.record(at);
        match record.kind {
            PUT => {
                self.index.insert(record.key, at);
            }
            DELETE => {
                self.index.remove(&record.key);
            }
            _ => {}
        }
    }

    fn append(&mut self, kind: u64, key: u64, value: u64) -> Answer {
        if self.length() >= SHORT.max(self.index.len() as u64 * 3 / 2) {
            self.compact();
        }
        let (area, length) = (self.area(), self.length());
        if length as usize == RECORDS {
            return Answer::Full;
        }
        let record = &mut self.pool.areas[area][length as usize];
        put!(record.key, key); //~ 1 ordering 4 durability
        put!(record.value, value); //~ 1 ordering
        put!(record.kind, kind); //~ 1 ordering 4 durability
        if !has_bug(4) || kind != DELETE {
            flush(record, size_of::<Record>());
        }
        if !has_bug(1) {
            fence();
        }
        put!(self.pool.end.0, self.pool.end.0 + 2);
        persist(&self.pool.end.0, 8);
        self.note(length);
        Answer::Done
    }

    fn compact(&mut self) {
        let (area, old_area) = (self.area() ^ 1, self.area());
        let mut length = 0;
        for (_, from) in std::mem::take(&mut self.index) {
            let record = self.pool.areas[old_area][from as usize];
            let copy = &mut self.pool.areas[area][length as usize];
            put!(copy.key, record.key); //~ 2 ordering
            put!(copy.value, record.value); //~ 2 ordering
            put!(copy.kind, PUT); //~ 2 ordering
            length += 1;
        }
        flush(&self.pool.areas[area], length as usize * size_of::<Record>());
        if !has_bug(2) {
            fence();
        }
        put!(self.pool.end.0, length << 1 | area as u64); //~ 3 atomicity
        persist(&self.pool.end.0, 8);
        if has_bug(3) {
            put!(self.pool.area.0, area as u64); //~ 3 atomicity
            persist(&self.pool.area.0, 8);
        }
        for at in 0..length {
            self.note(at);
        }
    }
}

impl Map for LogMap {
    fn insert(&mut self, key: u64, value: u64) -> Answer {
        if self.index.contains_key(&key) { Answer::Exists } else { self.append(PUT, key, value) }
    }

    fn update(&mut self, key: u64, value: u64) -> Answer {
        if self.index.contains_key(&key) { self.append(PUT, key, value) } else { Answer::Missing }
    }

    fn erase(&mut self, key: u64) -> Answer {
        if self.index.contains_key(&key) { self.append(DELETE, key, 0) } else { Answer::Missing }
    }

    fn find(&self, key: u64) -> Option<u64> {
        self.index.get(&key).map(|at| self.record(*at).value)
    }

    fn count(&self) -> u64 {
        self.index.len() as u64
    }
}

fn main() {
    serve(&mut LogMap::open(&pool_path()));
}
