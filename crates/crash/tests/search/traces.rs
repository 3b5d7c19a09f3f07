//! Random traces: two small pools, few different values, all kinds of events that change or settle content.

use std::path::PathBuf;

use trace::*;

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound
    }
}

/// So many traces; a debug build is some ten times slower.
pub fn traces(release: u64) -> std::ops::Range<u64> {
    0..if cfg!(debug_assertions) { release / 8 } else { release }
}

/// The pools' lengths at the beginning; the second ends inside a line.
pub const LENGTHS: [u64; 2] = [4096 + 512, 200];
/// Lines that stores go to, per pool. The pools have others, too.
const LINES: [&[u64]; 2] = [&[0, 1, 2, 63, 64, 65], &[0, 2, 3]];

pub fn initial(pool: usize) -> Vec<u8> {
    let mut rng = Rng(pool as u64);
    // A page of zeros, and some bytes.
    (0..LENGTHS[pool]).map(|at| if at < 64 { 0 } else { rng.below(3) as u8 }).collect()
}

pub struct Recording {
    pub writer: TraceWriter,
    pub contexts: Vec<ContextId>,
    pub module: ModuleId,
}

/// A trace in a folder of its own.
#[derive(Debug)]
pub struct Recorded {
    pub folder: tempfile::TempDir,
    pub reader: TraceReader,
}

impl Recorded {
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

pub fn record(body: impl FnOnce(&mut Recording)) -> Recorded {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.fptrace");
    let mut writer = TraceWriter::create(&path, Meta::default()).unwrap();
    for (pool, len) in LENGTHS.into_iter().enumerate() {
        let info = PoolInfo { path: format!("pool{pool}"), len };
        writer.pool(info, &mut &initial(pool)[..]).unwrap();
    }
    let module = writer.module(CodeModule { path: "program".into(), build_id: None, kind: ModuleKind::Elf });
    let mut contexts = vec![ContextId(0)];
    for addr in 1..4 {
        contexts.push(writer.context(ContextId(0), CodeAddr { module, addr }, false));
    }
    let mut recording = Recording { writer, contexts, module };
    body(&mut recording);
    recording.writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    let reader = TraceReader::open(&path).unwrap();
    Recorded { folder, reader }
}

impl Recording {
    pub fn push(&mut self, thread: u32, site: u64, kind: EventKind<'_>) {
        let context = self.contexts[(site % 4) as usize];
        let pc = CodeAddr { module: self.module, addr: 100 + site / 4 };
        self.writer.push(&Event { thread: ThreadId(thread), context, pc, kind }).unwrap();
    }
}

pub fn place(pool: u32, offset: u64) -> Place {
    Place { pool: PoolId(pool), offset: PoolOffset(offset) }
}

/// So many events of two threads.
pub fn random(seed: u64, events: u64) -> Recorded {
    random_with(seed, events, &[1, 4, 8, 8, 8, 16, 24, 64, 72])
}

/// With stores of these lengths.
pub fn random_with(seed: u64, events: u64, lens: &[u64]) -> Recorded {
    let mut rng = Rng(seed);
    record(|recording| {
        for index in 0..events {
            random_event(&mut rng, recording, index, lens);
        }
    })
}

fn random_event(rng: &mut Rng, recording: &mut Recording, index: u64, lens: &[u64]) {
    let (thread, site) = (rng.below(2) as u32, rng.below(6));
    let pool = usize::from(rng.below(4) == 0);
    let line = LINES[pool][rng.below(LINES[pool].len() as u64) as usize];
    let at = place(pool as u32, line * 64);
    let len = lens[rng.below(lens.len() as u64) as usize];
    let start = place(pool as u32, line * 64 + rng.below(64 - len.min(56)) / 4 * 4);
    let bytes = vec![1 + rng.below(3) as u8; len as usize];
    let kind = match rng.below(64) {
        0..24 => EventKind::Store { place: start, kind: StoreKind::Plain, bytes: &bytes },
        24..28 => EventKind::Store { place: start, kind: StoreKind::NonTemporal, bytes: &bytes },
        28 => EventKind::Store { place: at, kind: StoreKind::Direct64, bytes: &[3; 64] },
        29..31 => EventKind::Rmw { place: at, old: &[0; 8], new: &[bytes[0]; 8] },
        31 => EventKind::KernelWrite { place: start, bytes: &bytes },
        32 => EventKind::FileWrite { place: start, bytes: &bytes },
        33..46 => EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(at) },
        46..48 => EventKind::Flush { kind: FlushKind::Clflush, target: FlushTarget::Pool(at) },
        48 => EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Volatile(4711) },
        49..55 => EventKind::Fence { kind: FenceKind::Sfence },
        55 => EventKind::Msync { place: at, len: 64 },
        56 => EventKind::Fsync { pool: PoolId(pool as u32), data_only: false },
        57 => EventKind::FileZero { place: start, len: len * 9 },
        58 => EventKind::Resize { pool: PoolId(0), len: 64 * (60 + rng.below(16)) },
        59 => EventKind::OperationBegin { index },
        60 => EventKind::OperationEnd { index },
        61 => EventKind::Map { place: at, len: 64, address: 0x1000 },
        62 => EventKind::ThreadEnd,
        _ => EventKind::ThreadStart,
    };
    recording.push(thread, site, kind);
}
