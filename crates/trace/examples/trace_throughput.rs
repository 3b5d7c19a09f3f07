//! How fast traces are written and read, and how small they are, on a stream that resembles a PMDK b-tree.
//!
//! `cargo run --release -p trace --example trace_throughput [EVENTS] [FILE]`; with FILE, reading that trace is measured
//! and it is written again.

use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use trace::*;

/// CPU time of all threads of this process: what it costs, however busy the machine is.
struct Cpu(f64);

impl Cpu {
    fn now() -> Cpu {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        Cpu(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
    }

    fn elapsed(&self) -> f64 {
        Cpu::now().0 - self.0
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Inserts into a tree of 304-byte nodes: undo log entries by NT stores, changes in place, allocator words, flushes.
struct Stream {
    random: Random,
    writer: TraceWriter,
    contexts: Vec<ContextId>,
    log: u64,
    next_object: u64,
    pushed: u64,
}

const POOL: PoolId = PoolId(0);
const UUID: u64 = 0x6a09_e667_f3bc_c908;

impl Stream {
    fn push(&mut self, site: u64, context: usize, kind: EventKind<'_>) {
        let pc = CodeAddr { module: ModuleId(1), addr: 0x4000 + site * 13 };
        let context = self.contexts[context];
        self.writer.push(&Event { thread: ThreadId(0), context, pc, kind }).unwrap();
        self.pushed += 1;
    }

    fn store(&mut self, site: u64, context: usize, offset: u64, bytes: &[u8]) {
        let place = Place { pool: POOL, offset: PoolOffset(offset) };
        self.push(site, context, EventKind::Store { place, kind: StoreKind::Plain, bytes });
    }

    fn copy_out(&mut self, site: u64, context: usize, offset: u64, words: &[u64; 8]) {
        let mut bytes = [0; 64];
        bytes.chunks_exact_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        let place = Place { pool: POOL, offset: PoolOffset(offset) };
        self.push(site, context, EventKind::Store { place, kind: StoreKind::NonTemporal, bytes: &bytes });
    }

    fn persist(&mut self, site: u64, context: usize, offset: u64, len: u64) {
        for line in (offset / 64..=(offset + len - 1) / 64).map(|line| line * 64) {
            let target = FlushTarget::Pool(Place { pool: POOL, offset: PoolOffset(line) });
            self.push(site, context, EventKind::Flush { kind: FlushKind::Clwb, target });
        }
        self.push(site + 1, context, EventKind::Fence { kind: FenceKind::Sfence });
    }

    fn operation(&mut self) {
        let key = self.random.next() >> 33;
        let node = 0x40_0000 + self.random.next() % 50_000 * 320;
        let items = 3 + self.random.next() % 4;
        let path = (self.random.next() % 6) as usize;
        // The snapshot of the node in the undo log.
        let log = 0x1_0000 + self.log;
        self.log = (self.log + 384) % 3072;
        self.store(1, path, log, &node.to_le_bytes());
        self.store(2, path, log + 8, &304u64.to_le_bytes());
        for line in 0..5u64 {
            let mut words = [0; 8];
            for (slot, word) in words.iter_mut().enumerate() {
                let at = line * 8 + slot as u64;
                *word = match at % 3 {
                    _ if at / 3 > items => 0,
                    0 => self.random.next() >> 33,
                    1 => UUID,
                    _ => 0x80_0000 + self.random.next() % 150_000 * 128,
                };
            }
            self.copy_out(3, path, log + 64 + line * 64, &words);
        }
        self.push(4, path, EventKind::Fence { kind: FenceKind::Sfence });
        // The new object, and the node's change.
        let object = 0x80_0000 + self.next_object * 128;
        self.next_object += 1;
        self.store(5, 6 + path, object, &key.to_le_bytes());
        self.persist(6, 6 + path, object, 8);
        for item in (0..items % 4).rev() {
            let at = node + 8 + item * 24;
            let (other_key, other_object) = (self.random.next() >> 33, object - self.random.next() % 64 * 128);
            self.store(8, 12 + path, at, &other_key.to_le_bytes());
            self.store(9, 12 + path, at + 8, &UUID.to_le_bytes());
            self.store(10, 12 + path, at + 16, &other_object.to_le_bytes());
        }
        self.store(11, 12 + path, node, &(items as u32).to_le_bytes());
        self.persist(12, 18, node, 304);
        self.store(14, 19, log, &0u64.to_le_bytes());
        self.persist(15, 19, log, 8);
    }
}

fn write(path: &Path, events: u64) -> (u64, f64) {
    let mut writer = TraceWriter::create(path, Meta::default()).unwrap();
    writer.module(CodeModule { path: "/bin/tree".into(), ..CodeModule::default() });
    let mut contexts = vec![ContextId(0)];
    for depth in 0..19u64 {
        let return_to = CodeAddr { module: ModuleId(1), addr: 0x9000 + depth * 5 };
        contexts.push(writer.context(contexts[depth as usize / 2], return_to, false));
    }
    writer.pool(PoolInfo { path: "pool".into(), len: 160 << 20 }, &mut &[][..]).unwrap();
    let start = Cpu::now();
    let mut stream =
        Stream { random: Random(88_172_645_463_325_252), writer, contexts, log: 0, next_object: 0, pushed: 0 };
    while stream.pushed < events {
        stream.operation();
    }
    let pushed = stream.pushed;
    stream.writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    (pushed, start.elapsed())
}

/// Writes the events of a trace again.
fn copy(from: &Path, to: &Path) -> (u64, f64) {
    let reader = TraceReader::open(from).unwrap();
    let tables = reader.tables();
    let mut writer = TraceWriter::create(to, tables.meta.clone()).unwrap();
    tables.modules.iter().for_each(|module| _ = writer.module(module.clone()));
    for node in &tables.contexts[1..] {
        writer.context(node.parent, node.return_to, node.partial);
    }
    tables.watches.iter().for_each(|watch| _ = writer.watch(watch));
    for pool in &tables.pools {
        writer.pool(pool.info.clone(), &mut &[][..]).unwrap();
    }
    let mut events = reader.events();
    let start = Cpu::now();
    while let Some(event) = events.next().unwrap() {
        writer.push(&event).unwrap();
    }
    writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    (reader.event_count(), start.elapsed())
}

fn report(path: &Path, what: &str, events: u64, seconds: f64) {
    let bytes = std::fs::metadata(path).unwrap().len();
    println!(
        "{what} {events} events in {seconds:.3} s of CPU time: {:.1} M/s; {bytes} bytes, {:.2} per event",
        events as f64 / seconds / 1e6,
        bytes as f64 / events as f64
    );
}

fn main() {
    let mut args = std::env::args().skip(1);
    let events = args.next().map_or(5_000_000, |number| number.parse().expect("a number of events"));
    let folder = std::env::temp_dir();
    let path = folder.join(format!("throughput-{}.fptrace", std::process::id()));
    let (pushed, seconds) = match args.next().map(PathBuf::from) {
        Some(source) => copy(&source, &path),
        None => write(&path, events),
    };
    report(&path, "wrote", pushed, seconds);
    let reader = TraceReader::open(&path).unwrap();
    for _ in 0..3 {
        let start = Cpu::now();
        let mut cursor = reader.events();
        let mut sum = 0u64;
        while let Some(event) = cursor.next().unwrap() {
            if let EventKind::Store { place, bytes, .. } = event.kind {
                sum = sum.wrapping_add(place.offset.0 + bytes.len() as u64);
            }
        }
        std::hint::black_box(sum);
        report(&path, "read", pushed, start.elapsed());
    }
    std::fs::remove_file(path).unwrap();
}
