//! An append-only log of checksummed records in two segments: the live items are copied to the other one when one is full.
//! variants: 9
//! run: {bin} {pool} run
//! recover: {bin} {pool} check
//
// A record counts if its epoch, its number and its checksum are right: one fence makes it durable. Which segment is in use
// is said by the newer of two checksummed headers. Records begin at lines.
include!("../include/pm.rs");

const MAGIC: u64 = 0x6c6f67303031;
const KEYS: usize = 10;
const SEGMENT_WORDS: usize = 256;
const RECORD_WORDS: usize = 4;
const MAX_ITEM: usize = 12;

#[repr(C)]
struct Header {
    epoch: u64,
    segment: u64,
    check: u64,
}

/// Followed by `words` words of items: key, version (0: deleted), number of words, words.
#[repr(C)]
struct Record {
    epoch: u64,
    words: u64,
    number: u64,
    check: u64,
}

#[repr(C)]
struct Pool {
    magic: Line<u64>,
    /// Operations that are finished.
    ack: Line<u64>,
    headers: [Line<Header>; 2],
    segments: [Line<[u64; SEGMENT_WORDS]>; 2],
}

#[derive(Clone, Copy)]
enum Op {
    Put(u64),
    Delete(u64),
    /// This key and the next one.
    PutTwo(u64),
}
use Op::*;

#[rustfmt::skip]
const OPS: [Op; 30] = [
    Put(1), Put(2), PutTwo(3), Put(1), Delete(2), Put(5), PutTwo(5), Put(2), Delete(3), Put(7),
    PutTwo(1), Put(4), Put(7), Delete(1), Put(3), PutTwo(7), Put(6), Put(1), Delete(8), Put(2),
    Put(3), PutTwo(4), Put(1), Delete(6), Put(8), Put(2), PutTwo(2), Delete(7), Put(5), Put(1),
];

/// The log as the running program knows it.
struct Log {
    pool: *mut Pool,
    epoch: u64,
    segment: usize,
    /// In words.
    end: usize,
    number: u64,
    versions: [u64; KEYS],
}

fn item_words(key: u64, version: u64) -> usize {
    if version == 0 { 0 } else { (key + version) as usize % MAX_ITEM + 1 }
}

fn items(list: &[(u64, u64)]) -> Vec<u64> {
    let mut words = Vec::new();
    for &(key, version) in list {
        let count = item_words(key, version);
        words.extend([key, version, count as u64]);
        words.extend((0..count as u64).map(|i| mix(key + i, version)));
    }
    words
}

fn checksum(epoch: u64, number: u64, body: &[u64]) -> u64 {
    let covered = if has_bug(1) { &body[..0] } else { body };
    covered.iter().fold(mix(epoch, number + body.len() as u64), |sum, word| mix(sum ^ word, sum >> 7))
}

fn in_lines(words: usize) -> usize {
    (RECORD_WORDS + words).next_multiple_of(8)
}

impl Log {
    fn at(&self, word: usize) -> *mut u64 {
        // SAFETY: callers stay inside the segment.
        unsafe { (&raw mut (*self.pool).segments[self.segment].0).cast::<u64>().add(word) }
    }

    /// Writes a record; nothing of it is flushed.
    fn write(&mut self, body: &[u64]) -> *mut u64 {
        let start = self.at(self.end);
        let record = start.cast::<Record>();
        // SAFETY: the caller made sure that the record fits.
        unsafe {
            for (i, word) in body.iter().enumerate() {
                *start.add(RECORD_WORDS + i) = *word; //~ 1 ordering 2 durability 3 ordering 4 ordering 6 ordering
            }
            in_order();
            (*record).epoch = self.epoch; //~ 3 ordering 4 ordering 6 ordering
            in_order();
            (*record).words = body.len() as u64; //~ 3 ordering 4 ordering 6 ordering
            in_order();
            (*record).number = self.number; //~ 3 ordering 4 ordering 6 ordering
            (*record).check = checksum(self.epoch, self.number, body); //~ 3 ordering 4 ordering 6 ordering
        }
        self.end += in_lines(body.len());
        self.number += 1;
        start
    }

    fn append(&mut self, list: &[(u64, u64)]) {
        let body = items(list);
        if self.end + in_lines(body.len()) > SEGMENT_WORDS {
            self.compact();
        }
        let start = self.write(&body);
        let mut bytes = (RECORD_WORDS + body.len()) * 8;
        if has_bug(2) && list.len() > 1 {
            bytes = 64;
        }
        flush(start, bytes);
        if !has_bug(3) {
            fence();
        }
        for &(key, version) in list {
            self.versions[key as usize] = version;
        }
    }

    fn compact(&mut self) {
        let old = self.at(0);
        self.epoch += 1;
        self.segment = 1 - self.segment;
        self.end = 0;
        self.number = 0;
        for key in 0..KEYS as u64 {
            let version = self.versions[key as usize];
            if version != 0 {
                let body = items(&[(key, version)]);
                let start = self.write(&body);
                flush(start, (RECORD_WORDS + body.len()) * 8);
            }
        }
        if !has_bug(4) {
            fence();
        }
        let which = if has_bug(5) { 0 } else { self.epoch as usize % 2 };
        // SAFETY: inside the pool.
        unsafe {
            let header = &raw mut (*self.pool).headers[which].0;
            (*header).epoch = self.epoch; //~ 5 atomicity 9 ordering
            in_order();
            (*header).segment = self.segment as u64; //~ 5 atomicity 9 ordering
            in_order();
            (*header).check = mix(self.epoch, self.segment as u64); //~ 5 atomicity 9 ordering
            flush(header, size_of::<Header>());
            if !has_bug(9) {
                fence();
            }
            *old = 0;
            persist(old, 8);
        }
    }
}

fn apply(log: &mut Log, index: usize) {
    let version = index as u64 + 1;
    match OPS[index] {
        Put(key) => log.append(&[(key, version)]),
        Delete(key) => log.append(&[(key, 0)]),
        PutTwo(key) if has_bug(6) => {
            log.append(&[(key, version)]);
            log.append(&[(key + 1, version)]);
        }
        PutTwo(key) => log.append(&[(key, version), (key + 1, version)]),
    }
}

fn run(path: &str) {
    let pool = create::<Pool>(path);
    // SAFETY: the mapping holds a `Pool` and nobody else uses it.
    unsafe {
        let first = &raw mut (*pool).headers[if has_bug(5) { 0 } else { 1 }].0;
        (*first).epoch = 1;
        (*first).check = mix(1, 0);
        persist(first, size_of::<Header>());
        (*pool).magic.0 = MAGIC;
        persist(&raw const (*pool).magic, 8);
        let mut log = Log { pool, epoch: 1, segment: 0, end: 0, number: 0, versions: [0; KEYS] };
        for index in 0..OPS.len() {
            apply(&mut log, index);
            (*pool).ack.0 = index as u64 + 1;
            persist(&raw const (*pool).ack, 8);
        }
    }
}

/// The newer of the headers that are whole.
fn newest(pool: &Pool) -> Option<&Header> {
    let whole = |header: &&Header| header.check == mix(header.epoch, header.segment) && header.segment < 2;
    pool.headers.iter().map(|line| &line.0).filter(whole).max_by_key(|header| header.epoch)
}

/// Takes over the items of a record.
fn replay(log: &mut Log, mut body: &[u64]) {
    while let [key, version, count, rest @ ..] = body {
        if *key >= KEYS as u64 || *count as usize != item_words(*key, *version) || *count as usize > rest.len() {
            fail("an item");
        }
        if rest[..*count as usize].iter().zip(*key..).any(|(word, i)| *word != mix(i, *version)) {
            fail("the words of an item");
        }
        log.versions[*key as usize] = *version;
        body = &rest[*count as usize..];
    }
}

/// The header that was in force before; null if there is none.
fn older(log: &Log) -> *const Header {
    // SAFETY: the mapping holds a `Pool`.
    let headers = unsafe { &(*log.pool).headers };
    let found = headers.iter().find(|line| line.0.epoch == log.epoch - 1 && line.0.check != 0);
    std::hint::black_box(found.map_or(std::ptr::null(), |line| &raw const line.0))
}

fn scan(log: &mut Log) {
    while log.end + RECORD_WORDS <= SEGMENT_WORDS {
        let start = log.at(log.end);
        // SAFETY: the bounds are checked before anything is read.
        let (record, room) = unsafe { (&*start.cast::<Record>(), SEGMENT_WORDS - RECORD_WORDS - log.end) };
        if record.epoch != log.epoch || record.words as usize > room {
            break;
        }
        // SAFETY: as above.
        let body = unsafe { std::slice::from_raw_parts(start.add(RECORD_WORDS), record.words as usize) };
        if record.number != log.number || record.check != checksum(record.epoch, record.number, body) {
            // SAFETY: the bug: before the first compaction there is none.
            if has_bug(8) && unsafe { (*older(log)).segment } > 1 {
                //~^ 8 recovery
                fail("the older header");
            }
            if has_bug(7) && log.number == 0 {
                continue; //~ 7 recovery
            }
            break;
        }
        replay(log, body);
        log.end += in_lines(body.len());
        log.number += 1;
    }
}

/// What a torn record left is not to be taken for one later.
fn truncate(log: &Log) {
    if log.end < SEGMENT_WORDS {
        let end = log.at(log.end);
        // SAFETY: inside the segment.
        unsafe { *end = 0 };
        persist(end, 8);
    }
}

fn is_after(ops: usize, versions: &[u64; KEYS]) -> bool {
    let mut model = [0; KEYS];
    for (op, version) in OPS[..ops.min(OPS.len())].iter().zip(1..) {
        match *op {
            Put(key) => model[key as usize] = version,
            Delete(key) => model[key as usize] = 0,
            PutTwo(key) => model[key as usize..][..2].fill(version),
        }
    }
    model == *versions
}

fn check(path: &str) {
    let pool = reopen::<Pool>(path);
    // SAFETY: the mapping holds a `Pool`; any bytes are one.
    let Some(pool) = pool.filter(|pool| unsafe { (**pool).magic.0 } == MAGIC) else {
        println!("empty");
        return;
    };
    // SAFETY: as above; the headers do not change while they are borrowed.
    let Some(header) = newest(unsafe { &*pool }) else { fail("no header is whole") };
    let (epoch, segment) = (header.epoch, header.segment as usize);
    let mut log = Log { pool, epoch, segment, end: 0, number: 0, versions: [0; KEYS] };
    scan(&mut log);
    truncate(&log);
    // SAFETY: as above.
    let ack = unsafe { (*pool).ack.0 } as usize;
    if !is_after(ack, &log.versions) && !is_after(ack + 1, &log.versions) {
        fail("operations are lost");
    }
    println!("ok");
}

fn main() {
    command(run, check);
}
