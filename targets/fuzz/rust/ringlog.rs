//! A map in a log that goes round: when it is nearly full, the oldest record is copied to its end if it still counts, and then forgotten.
//! A pool with much rubbish is cleaned when it is opened.
//! variants: 3
//! grammar: kv.toml
//! bug 1: lost key — forgotten before its copy counts, operation that frees a record
//! bug 2: wrong value — what the record held before, operation after the log went round
//! bug 3: lost key — its copy never counts, opening of a pool with much rubbish
use std::collections::BTreeMap;

include!("../../ops/include/kv.rs");

const RECORDS: u64 = 48;
/// Keys at most, so that cleaning always frees something.
const KEYS: usize = 24;

#[repr(C, align(64))]
struct Record {
    key: u64,
    value: u64,
    /// 0: the key was removed.
    there: u64,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    /// Both count records for ever.
    head: Line<u64>,
    tail: Line<u64>,
    records: [Record; RECORDS as usize],
}

struct RingLog {
    pool: &'static mut Pool,
    /// Where the newest record of each key is.
    index: BTreeMap<u64, u64>,
}

impl RingLog {
    fn open(path: &str) -> RingLog {
        let (pool, is_new) = open_pool::<Pool>(path);
        if is_new {
            created(pool);
        }
        // SAFETY: the mapping lasts as long as the process, and any content is a valid pool.
        let mut map = RingLog { pool: unsafe { &mut *pool }, index: BTreeMap::new() };
        for at in map.pool.head.0..map.pool.tail.0 {
            let &Record { key, there, .. } = map.record(at);
            if there != 0 {
                map.index.insert(key, at);
            } else {
                map.index.remove(&key);
            }
        }
        while map.pool.tail.0 - map.pool.head.0 > map.index.len() as u64 + RECORDS / 4 {
            map.free_one(true);
        }
        map
    }

    fn record(&self, at: u64) -> &Record {
        &self.pool.records[(at % RECORDS) as usize]
    }

    fn append(&mut self, key: u64, value: u64, there: u64) {
        let tail = self.pool.tail.0;
        let record = &mut self.pool.records[(tail % RECORDS) as usize];
        put!(record.key, key); //~ 2 ordering
        put!(record.value, value); //~ 2 ordering
        put!(record.there, there); //~ 2 ordering
        if !(has_bug(2) && tail >= RECORDS) {
            persist(&raw const *record, size_of::<Record>());
        }
        put!(self.pool.tail.0, tail + 1); //~ 2 ordering
        persist(&raw const self.pool.tail.0, 8);
        if there != 0 {
            self.index.insert(key, tail);
        } else {
            self.index.remove(&key);
        }
    }

    /// Forgets the oldest record, and copies it before if it counts.
    fn free_one(&mut self, opening: bool) {
        let head = self.pool.head.0;
        let &Record { key, value, .. } = self.record(head);
        let counts = self.index.get(&key) == Some(&head);
        if has_bug(1) && counts && !opening {
            put!(self.pool.head.0, head + 1); //~ 1 ordering
            persist(&raw const self.pool.head.0, 8);
            self.append(key, value, 1); //~ 1 ordering
            return;
        }
        if has_bug(3) && counts && opening {
            let tail = self.pool.tail.0;
            let record = &mut self.pool.records[(tail % RECORDS) as usize];
            put!(record.key, key);
            put!(record.value, value);
            put!(record.there, 1);
            persist(&raw const *record, size_of::<Record>());
            put!(self.pool.tail.0, tail + 1); //~ 3 ordering
            self.index.insert(key, tail);
        } else if counts {
            self.append(key, value, 1);
        }
        put!(self.pool.head.0, head + 1); //~ 3 ordering
        persist(&raw const self.pool.head.0, 8);
    }

    fn make_room(&mut self) {
        while self.pool.tail.0 - self.pool.head.0 + 2 > RECORDS {
            self.free_one(false);
        }
    }
}

impl Map for RingLog {
    fn insert(&mut self, key: u64, value: u64) -> Answer {
        if self.index.contains_key(&key) {
            return Answer::Exists;
        }
        if self.index.len() == KEYS {
            return Answer::Full;
        }
        self.make_room();
        self.append(key, value, 1);
        Answer::Done
    }

    fn update(&mut self, key: u64, value: u64) -> Answer {
        if !self.index.contains_key(&key) {
            return Answer::Missing;
        }
        self.make_room();
        self.append(key, value, 1);
        Answer::Done
    }

    fn erase(&mut self, key: u64) -> Answer {
        if !self.index.contains_key(&key) {
            return Answer::Missing;
        }
        self.make_room();
        self.append(key, 0, 0);
        Answer::Done
    }

    fn find(&self, key: u64) -> Option<u64> {
        self.index.get(&key).map(|at| self.record(*at).value)
    }

    fn count(&self) -> u64 {
        self.index.len() as u64
    }
}

fn main() {
    serve(&mut RingLog::open(&pool_path()));
}
