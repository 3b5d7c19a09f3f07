//! Small random programs of two threads on a pool of three lines with files beside it, and traces of them.

use std::collections::BTreeMap;

use trace::*;

pub const LINES: usize = 3;

/// What files beside the pool may be called.
pub const NAMES: [&str; 3] = ["/a", "/b", "/c"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    Adr,
    Eadr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    Cached,
    NonTemporal,
    Direct64,
    /// A locked instruction on PM.
    Locked,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    Store {
        by: Writer,
        offset: usize,
        bytes: Vec<u8>,
    },
    Clwb {
        line: usize,
    },
    Clflush {
        line: usize,
    },
    Sfence,
    /// On ordinary memory.
    Locked,
    Fsync,
    File(FileOp),
}

/// A system call on files, by their place in [`NAMES`]. It succeeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// There was none.
    Create {
        name: usize,
    },
    Write {
        name: usize,
        offset: usize,
        value: u8,
    },
    Truncate {
        name: usize,
        len: usize,
    },
    Rename {
        from: usize,
        to: usize,
    },
    Link {
        from: usize,
        to: usize,
    },
    Unlink {
        name: usize,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    pub thread: u32,
    pub what: What,
}

impl Op {
    pub fn is_fence(&self) -> bool {
        matches!(self.what, What::Sfence | What::Locked | What::Store { by: Writer::Locked, .. })
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
pub struct Rng(pub u64);

impl Rng {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

pub fn random(seed: u64) -> Vec<Op> {
    let mut rng = Rng(seed);
    let lines = 1 + rng.below(LINES);
    let threads = 1 + rng.below(2);
    // Wide stores have very many states, so they are not in every program.
    let widths: &[usize] = rng.one_of(&[&[1, 2, 4, 8, 8, 8][..], &[4, 8, 8, 16, 16], &[8, 16, 24, 32], &[8, 64, 72]]);
    let count = 2 + rng.below(9);
    // Files are in every second program.
    let kinds = if rng.below(2) == 0 { 32 } else { 40 };
    let mut there = [false; NAMES.len()];
    let mut op = |index: usize, rng: &mut Rng| {
        let line = rng.below(lines);
        let what = match rng.below(kinds) {
            0..17 => store(rng, line, widths, index as u8 + 1),
            17..24 => What::Clwb { line },
            24..26 => What::Clflush { line },
            26..30 => What::Sfence,
            30 => What::Locked,
            31 => What::Fsync,
            _ => What::File(file_op(rng, &mut there, index as u8 + 1)),
        };
        Op { thread: rng.below(threads) as u32, what }
    };
    (0..count).map(|index| op(index, &mut rng)).collect()
}

fn file_op(rng: &mut Rng, there: &mut [bool; NAMES.len()], value: u8) -> FileOp {
    let name = rng.below(NAMES.len());
    if !std::mem::replace(&mut there[name], true) {
        return FileOp::Create { name };
    }
    let other = (name + 1 + rng.below(NAMES.len() - 1)) % NAMES.len();
    match rng.below(5) {
        0 => {
            (there[name], there[other]) = (false, true);
            FileOp::Rename { from: name, to: other }
        }
        1 => {
            there[name] = false;
            FileOp::Unlink { name }
        }
        2 if !std::mem::replace(&mut there[other], true) => FileOp::Link { from: name, to: other },
        3 => FileOp::Truncate { name, len: rng.below(12) },
        _ => FileOp::Write { name, offset: rng.below(10), value },
    }
}

/// Every store writes a value of its own.
fn store(rng: &mut Rng, line: usize, widths: &[usize], value: u8) -> What {
    let by = rng.one_of(&[
        Writer::Cached,
        Writer::Cached,
        Writer::Cached,
        Writer::Cached,
        Writer::NonTemporal,
        Writer::NonTemporal,
        Writer::Locked,
        Writer::Direct64,
    ]);
    let (offset, width) = match by {
        Writer::Direct64 => (line * 64, 64),
        Writer::Locked => (line * 64 + 8 * rng.below(8), 8),
        Writer::Cached | Writer::NonTemporal => {
            let width = rng.one_of(widths);
            // Mostly aligned to four bytes, so that granules are shared and crossed; sometimes over the end of the line.
            let last = LINES * 64 - width;
            ((line * 64 + 4 * rng.below(16)).min(last), width)
        }
    };
    What::Store { by, offset, bytes: vec![value; width] }
}

/// Writes the trace of a program; event *n* is operation *n*.
pub fn record(ops: &[Op], path: &std::path::Path) -> TraceReader {
    let mut writer = TraceWriter::create(path, Meta::default()).unwrap();
    let len = (LINES * 64) as u64;
    let pool = writer.pool(PoolInfo { path: "pool".into(), len }, &mut &vec![0; len as usize][..]).unwrap();
    let module = writer.module(CodeModule { path: "program".into(), build_id: None, kind: ModuleKind::Elf });
    let place = |offset: usize| Place { pool, offset: PoolOffset(offset as u64) };
    let paths = NAMES.map(|name| writer.path(name));
    let mut files: BTreeMap<usize, FileId> = BTreeMap::new();
    for (at, op) in ops.iter().enumerate() {
        let flush = |kind, line: usize| EventKind::Flush { kind, target: FlushTarget::Pool(place(line * 64 + at)) };
        let value;
        let kind = match &op.what {
            What::File(FileOp::Write { name, offset, value: byte }) => {
                value = [*byte];
                let (file, offset) = (files[name], *offset as u64);
                EventKind::File(FileEvent::Write { file, offset, bytes: &value, continues: false })
            }
            What::File(change) => EventKind::File(file_event(*change, &paths, &mut files, || writer.new_file())),
            What::Store { by: Writer::Locked, offset, bytes } => {
                EventKind::Rmw { place: place(*offset), old: &[0; 8], new: bytes }
            }
            What::Store { by, offset, bytes } => {
                let kind = match by {
                    Writer::NonTemporal => StoreKind::NonTemporal,
                    Writer::Direct64 => StoreKind::Direct64,
                    Writer::Cached | Writer::Locked => StoreKind::Plain,
                };
                EventKind::Store { place: place(*offset), kind, bytes }
            }
            What::Clwb { line } => flush(if at % 2 == 0 { FlushKind::Clwb } else { FlushKind::Clflushopt }, *line),
            What::Clflush { line } => flush(FlushKind::Clflush, *line),
            What::Sfence => EventKind::Fence { kind: if at % 2 == 0 { FenceKind::Sfence } else { FenceKind::Mfence } },
            What::Locked => EventKind::Fence { kind: FenceKind::Locked },
            What::Fsync => EventKind::Fsync { pool, data_only: false },
        };
        let pc = CodeAddr { module, addr: at as u64 };
        writer.push(&Event { thread: ThreadId(op.thread), context: ContextId(0), pc, kind }).unwrap();
    }
    writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0))).unwrap();
    TraceReader::open(path).unwrap()
}

/// Keeps account of which file has which name.
fn file_event(
    change: FileOp,
    paths: &[PathId; NAMES.len()],
    files: &mut BTreeMap<usize, FileId>,
    new_file: impl FnOnce() -> FileId,
) -> FileEvent<'static> {
    match change {
        FileOp::Create { name } => {
            let file = new_file();
            files.insert(name, file);
            FileEvent::Create { file, path: paths[name], mode: 0o600 }
        }
        FileOp::Write { .. } => unreachable!("it has bytes"),
        FileOp::Truncate { name, len } => FileEvent::Length { file: files[&name], len: len as u64 },
        FileOp::Rename { from, to } => {
            let file = files.remove(&from).expect("there is one");
            files.insert(to, file);
            FileEvent::Rename { from: paths[from], to: paths[to] }
        }
        FileOp::Link { from, to } => {
            files.insert(to, files[&from]);
            FileEvent::Link { file: files[&from], path: paths[to] }
        }
        FileOp::Unlink { name } => {
            files.remove(&name);
            FileEvent::Unlink { path: paths[name] }
        }
    }
}
