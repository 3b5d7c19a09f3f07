//! A hash table with linear probing: the key's word commits, a deleted key leaves a tombstone, and a full table is copied.
//! variants: 6
//! grammar: kv.toml
//! together: 1 2 3 5 6 | 4
//! bug 1: wrong value — that of the key that was there before, insert
//! bug 2: resurrected key — a tombstone is taken away too early, insert
//! bug 3: lost keys — a table that was not copied, insert that grows
//! bug 4: lost keys — a half-done resize, insert that grows
//! bug 5: stale value — in slots that lie across two lines, update
//! bug 6: wrong count, insert and delete
include!("../include/kv.rs");

/// Table n has 8 * 2^n slots, and the smaller tables lie before it.
const TABLES: u64 = 11;
const SLOTS: usize = 8 << TABLES;

const FREE: u64 = 0;
const TOMBSTONE: u64 = 1;
const FULL: u64 = 2;
const STATES: u64 = 4;

/// Not a part of a line: some slots lie across two.
#[repr(C)]
struct Slot {
    /// The key times 4, plus the state: one store for both.
    head: u64,
    /// How often it was written.
    writes: u64,
    reserved: [u64; 4],
    value: u64,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    table: Line<u64>,
    count: Line<u64>,
    slots: Line<[Slot; SLOTS]>,
}

struct Probing {
    pool: &'static mut Pool,
}

fn size_of_table(table: u64) -> u64 {
    8 << table
}

fn place(table: u64, number: u64) -> usize {
    (size_of_table(table) + (number & (size_of_table(table) - 1))) as usize
}

impl Probing {
    fn open(path: &str) -> Probing {
        let (pool, is_new) = open_pool::<Pool>(path);
        if is_new {
            created(pool);
        }
        // SAFETY: the mapping lasts as long as the process, and any content is a valid pool.
        let map = Probing { pool: unsafe { &mut *pool } };
        let table = map.pool.table.0;
        let full = (0..size_of_table(table)).filter(|i| map.pool.slots.0[place(table, *i)].head % STATES == FULL);
        let full = full.count() as u64;
        if full != map.pool.count.0 && !has_bug(6) {
            put!(map.pool.count.0, full);
            persist(&map.pool.count.0, 8);
        }
        map
    }

    /// The slot of the key, or the one where it would go.
    fn locate(&self, key: u64) -> Result<usize, Option<usize>> {
        let table = self.pool.table.0;
        let mut vacant = None;
        for i in 0..size_of_table(table) {
            let at = place(table, hash(key).wrapping_add(i));
            match self.pool.slots.0[at].head {
                head if head == key * STATES + FULL => return Ok(at),
                head if head % STATES == FREE => return Err(vacant.or(Some(at))),
                head if head % STATES == TOMBSTONE => vacant = vacant.or(Some(at)),
                _ => {}
            }
        }
        Err(vacant)
    }

    fn add_to_count(&mut self, difference: u64) {
        put!(self.pool.count.0, self.pool.count.0.wrapping_add(difference)); //~ 6 atomicity
        persist(&self.pool.count.0, 8);
    }

    fn fill(&mut self, at: usize, key: u64, value: u64) {
        let slot = &mut self.pool.slots.0[at];
        if has_bug(2) {
            // What the tombstone covers is its key.
            put!(slot.head, slot.head / STATES * STATES + FULL); //~ 2 atomicity
            persist(&slot.head, 8);
        }
        put!(slot.value, value); //~ 1 ordering
        put!(slot.writes, slot.writes + 1);
        if !has_bug(1) {
            persist(slot, size_of::<Slot>());
        }
        put!(slot.head, key * STATES + FULL); //~ 1 ordering 2 atomicity
        persist(slot, size_of::<Slot>());
    }

    /// All of the table into the next one, which may hold what an earlier attempt has left.
    fn grow(&mut self) {
        let (table, next) = (self.pool.table.0, self.pool.table.0 + 1);
        for i in 0..size_of_table(next) {
            if self.pool.slots.0[place(next, i)].head != FREE {
                put!(self.pool.slots.0[place(next, i)].head, FREE);
            }
        }
        if has_bug(4) {
            put!(self.pool.table.0, next); //~ 4 ordering
            persist(&self.pool.table.0, 8);
        }
        for i in 0..size_of_table(table) {
            let (head, value) = (self.pool.slots.0[place(table, i)].head, self.pool.slots.0[place(table, i)].value);
            if head % STATES != FULL {
                continue;
            }
            let mut number = hash(head / STATES);
            while self.pool.slots.0[place(next, number)].head != FREE {
                number = number.wrapping_add(1);
            }
            let slot = &mut self.pool.slots.0[place(next, number)];
            put!(slot.value, value); //~ 3 ordering 4 ordering
            put!(slot.head, head); //~ 3 ordering 4 ordering
        }
        flush(&self.pool.slots.0[place(next, 0)], size_of_table(next) as usize * size_of::<Slot>());
        if !has_bug(3) {
            fence();
        }
        if !has_bug(4) {
            put!(self.pool.table.0, next);
            persist(&self.pool.table.0, 8);
        }
    }
}

impl Map for Probing {
    fn insert(&mut self, key: u64, value: u64) -> Answer {
        if self.locate(key).is_ok() {
            return Answer::Exists;
        }
        if self.pool.count.0 >= size_of_table(self.pool.table.0) / 4 * 3 {
            if self.pool.table.0 + 2 == TABLES {
                return Answer::Full;
            }
            self.grow();
        }
        let Err(Some(at)) = self.locate(key) else { return Answer::Full };
        self.fill(at, key, value);
        self.add_to_count(1); //~ 6 atomicity
        Answer::Done
    }

    fn update(&mut self, key: u64, value: u64) -> Answer {
        let Ok(at) = self.locate(key) else { return Answer::Missing };
        let slot = &mut self.pool.slots.0[at];
        put!(slot.value, value); //~ 5 durability
        persist(if has_bug(5) { &slot.head } else { &slot.value }, 8);
        Answer::Done
    }

    fn erase(&mut self, key: u64) -> Answer {
        let Ok(at) = self.locate(key) else { return Answer::Missing };
        put!(self.pool.slots.0[at].head, key * STATES + TOMBSTONE);
        persist(&self.pool.slots.0[at].head, 8);
        self.add_to_count(1u64.wrapping_neg()); //~ 6 atomicity
        Answer::Done
    }

    fn find(&self, key: u64) -> Option<u64> {
        self.locate(key).ok().map(|at| self.pool.slots.0[at].value)
    }

    fn count(&self) -> u64 {
        self.pool.count.0
    }
}

fn main() {
    serve(&mut Probing::open(&pool_path()));
}
