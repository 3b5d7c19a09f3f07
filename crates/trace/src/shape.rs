//! An event taken apart: its *shape* (everything that repeats: kind, code address, call path, pool, length) and
//! its *row* of 64-bit words (everything that varies: offset and values).
//!
//! A program has few shapes, so an event costs one small number for its shape, and the words of all events of one
//! shape form columns that compress well (see `block`).

use crate::error::{Malformed, WriteError};
use crate::event::*;
use crate::numbered::Numbered;

/// Bytes up to this length lie in the row and the length in the shape; longer ones go to the block's heap.
pub(crate) const ROW_BYTES: usize = 64;
/// `Shape::len` of events whose length is in the row.
pub(crate) const IN_ROW: u32 = u32::MAX;
/// Longest byte string of an event.
pub(crate) const MAX_BYTES: usize = 64 << 10;

macro_rules! codes {
    ($($name:ident = $number:literal,)*) => {
        /// Kind of an event as the file says it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub(crate) enum Code { $($name = $number,)* }
        impl Code {
            pub fn from_byte(byte: u8) -> Result<Code, Malformed> {
                match byte {
                    $($number => Ok(Code::$name),)*
                    _ => Err(Malformed("unknown kind of event")),
                }
            }
        }
    };
}

codes! {
    Store = 0, StoreNonTemporal = 1, StoreDirect64 = 2, Rmw = 3,
    Clflush = 4, Clflushopt = 5, Clwb = 6, Cldemote = 7,
    VolatileClflush = 8, VolatileClflushopt = 9, VolatileClwb = 10, VolatileCldemote = 11,
    Sfence = 12, Mfence = 13, Locked = 14, Load = 15,
    Map = 16, Unmap = 17, Msync = 18, Fsync = 19, Fdatasync = 20,
    KernelWrite = 21, FileWrite = 22, FileZero = 23, Resize = 24,
    ThreadStart = 25, ThreadEnd = 26, ProcessStart = 27, Exited = 28, Killed = 29, Exec = 30,
    OperationBegin = 31, OperationEnd = 32, Call = 33, Return = 34, File = 35,
}

impl Code {
    /// Does the row begin with a pool offset?
    pub fn has_place(self) -> bool {
        (self as u8) < Code::VolatileClflush as u8
            || matches!(self, Code::Load | Code::Map | Code::Unmap | Code::Msync)
            || matches!(self, Code::KernelWrite | Code::FileWrite | Code::FileZero)
    }

    /// Is `Shape::subject` a pool?
    pub fn has_pool(self) -> bool {
        self.has_place() || matches!(self, Code::Fsync | Code::Fdatasync | Code::Resize)
    }

    pub fn has_watch(self) -> bool {
        matches!(self, Code::Call | Code::Return)
    }

    fn has_bytes(self) -> bool {
        use Code::*;
        matches!(self, Store | StoreNonTemporal | StoreDirect64 | Rmw | KernelWrite | FileWrite | Exec | File)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub code: Code,
    /// Pool or watch.
    pub subject: u32,
    /// Length of the bytes or of the load; [`IN_ROW`] where it varies; 0 where there is none.
    pub len: u32,
    pub context: ContextId,
    pub pc: CodeAddr,
}

impl Shape {
    /// Number of words of a row.
    pub fn width(&self) -> usize {
        use Code::*;
        let value = if self.len == IN_ROW { 1 } else { (self.len as usize).div_ceil(8) };
        match self.code {
            Store | StoreNonTemporal | StoreDirect64 | KernelWrite | FileWrite => 1 + value,
            Rmw if self.len == IN_ROW => 2,
            Rmw => 1 + 2 * value,
            Load => 1 + usize::from(self.len == IN_ROW),
            Clflush | Clflushopt | Clwb | Cldemote => 1,
            VolatileClflush | VolatileClflushopt | VolatileClwb | VolatileCldemote => 1,
            Sfence | Mfence | Locked | Fsync | Fdatasync | ThreadStart | ThreadEnd => 0,
            Map | Unmap => 3,
            Msync | FileZero | ProcessStart => 2,
            Resize | Exited | Killed | Exec | File | OperationBegin | OperationEnd | Return => 1,
            Call => 6,
        }
    }

    /// Can a row of this shape be one that no writer wrote?
    pub fn is_checked(&self) -> bool {
        self.len == IN_ROW || matches!(self.code, Code::ProcessStart | Code::Exited | Code::Killed)
    }

    /// Is a length that came from a file one that a writer would have written?
    pub fn check(&self) -> Result<(), Malformed> {
        let right = match self.code {
            Code::Exec | Code::File => self.len == IN_ROW,
            Code::Load => true,
            code if code.has_bytes() => self.len == IN_ROW || self.len as usize <= ROW_BYTES,
            _ => self.len == 0,
        };
        if right { Ok(()) } else { Err(Malformed("an event has an impossible length")) }
    }

    /// Takes `event` apart: its words go to `row`, long byte strings to `heap`.
    pub fn split(event: &Event<'_>, row: &mut Vec<u64>, heap: &mut Vec<u8>) -> Result<Shape, WriteError> {
        use EventKind as K;
        let mut part = Split { row, heap };
        let (code, subject, len) = match event.kind {
            K::Store { place, kind, bytes } => {
                let code = match kind {
                    StoreKind::Plain => Code::Store,
                    StoreKind::NonTemporal => Code::StoreNonTemporal,
                    StoreKind::Direct64 => Code::StoreDirect64,
                };
                (code, place.pool.0, part.place_bytes(place, bytes)?)
            }
            K::KernelWrite { place, bytes } => (Code::KernelWrite, place.pool.0, part.place_bytes(place, bytes)?),
            K::FileWrite { place, bytes } => (Code::FileWrite, place.pool.0, part.place_bytes(place, bytes)?),
            K::Rmw { place, old, new } => {
                if old.len() != new.len() {
                    return Err(WriteError::BadEvent("old and new value of a read-modify-write differ in length"));
                }
                part.row.push(place.offset.0);
                let len = part.bytes(&[old, new])?;
                (Code::Rmw, place.pool.0, len)
            }
            K::Flush { kind, target } => {
                let (volatile, subject, word) = match target {
                    FlushTarget::Pool(place) => (false, place.pool.0, place.offset.0),
                    FlushTarget::Volatile(address) => (true, 0, address),
                };
                part.row.push(word);
                let code = match (kind, volatile) {
                    (FlushKind::Clflush, false) => Code::Clflush,
                    (FlushKind::Clflushopt, false) => Code::Clflushopt,
                    (FlushKind::Clwb, false) => Code::Clwb,
                    (FlushKind::Cldemote, false) => Code::Cldemote,
                    (FlushKind::Clflush, true) => Code::VolatileClflush,
                    (FlushKind::Clflushopt, true) => Code::VolatileClflushopt,
                    (FlushKind::Clwb, true) => Code::VolatileClwb,
                    (FlushKind::Cldemote, true) => Code::VolatileCldemote,
                };
                (code, subject, 0)
            }
            K::Fence { kind: FenceKind::Sfence } => (Code::Sfence, 0, 0),
            K::Fence { kind: FenceKind::Mfence } => (Code::Mfence, 0, 0),
            K::Fence { kind: FenceKind::Locked } => (Code::Locked, 0, 0),
            K::Load { place, len } => {
                part.row.push(place.offset.0);
                let fixed = len as usize <= ROW_BYTES;
                if !fixed {
                    part.row.push(len.into());
                }
                (Code::Load, place.pool.0, if fixed { len } else { IN_ROW })
            }
            K::Map { place, len, address } => part.words(Code::Map, place.pool.0, &[place.offset.0, len, address]),
            K::Unmap { place, len, address } => part.words(Code::Unmap, place.pool.0, &[place.offset.0, len, address]),
            K::Msync { place, len } => part.words(Code::Msync, place.pool.0, &[place.offset.0, len]),
            K::Fsync { pool, data_only: false } => (Code::Fsync, pool.0, 0),
            K::Fsync { pool, data_only: true } => (Code::Fdatasync, pool.0, 0),
            K::FileZero { place, len } => part.words(Code::FileZero, place.pool.0, &[place.offset.0, len]),
            K::Resize { pool, len } => part.words(Code::Resize, pool.0, &[len]),
            K::ThreadStart => (Code::ThreadStart, 0, 0),
            K::ThreadEnd => (Code::ThreadEnd, 0, 0),
            K::ProcessStart { process, parent } => {
                let parent = parent.map_or(0, |parent| u64::from(parent.0) + 1);
                part.words(Code::ProcessStart, 0, &[process.0.into(), parent])
            }
            K::ProcessExit { status: ExitStatus::Code(code) } => part.words(Code::Exited, 0, &[code as u32 as u64]),
            K::ProcessExit { status: ExitStatus::Signal(signal) } => {
                part.words(Code::Killed, 0, &[signal as u32 as u64])
            }
            K::Exec { path } => {
                part.long(&[path.as_bytes()])?;
                (Code::Exec, 0, IN_ROW)
            }
            K::File(ref change) => {
                part.long(&[&change.encode()])?;
                (Code::File, 0, IN_ROW)
            }
            K::OperationBegin { index } => part.words(Code::OperationBegin, 0, &[index]),
            K::OperationEnd { index } => part.words(Code::OperationEnd, 0, &[index]),
            K::Call { watch, ref args } => part.words(Code::Call, watch.0, args),
            K::Return { watch, value } => part.words(Code::Return, watch.0, &[value]),
        };
        Ok(Shape { code, subject, len, context: event.context, pc: event.pc })
    }
}

/// Numbers of shapes.
#[derive(Debug, Default)]
pub(crate) struct ShapeTable {
    shapes: Numbered<Shape>,
    /// By number: the one that followed it last time, which mostly does so again.
    followers: Vec<u32>,
    last: u32,
}

impl ShapeTable {
    #[inline]
    pub fn find(&mut self, shape: &Shape) -> Option<u32> {
        let follower = *self.followers.get(self.last as usize)?;
        if self.shapes.get(follower) == Some(shape) {
            self.last = follower;
            return Some(follower);
        }
        let number = self.shapes.find(shape)?;
        self.followers[self.last as usize] = number;
        self.last = number;
        Some(number)
    }

    pub fn add(&mut self, shape: Shape) -> u32 {
        let number = self.shapes.add(shape);
        if let Some(follower) = self.followers.get_mut(self.last as usize) {
            *follower = number;
        }
        self.followers.push(0);
        self.last = number;
        number
    }
}

struct Split<'a> {
    row: &'a mut Vec<u64>,
    heap: &'a mut Vec<u8>,
}

impl Split<'_> {
    fn words(&mut self, code: Code, subject: u32, words: &[u64]) -> (Code, u32, u32) {
        self.row.extend_from_slice(words);
        (code, subject, 0)
    }

    fn place_bytes(&mut self, place: Place, bytes: &[u8]) -> Result<u32, WriteError> {
        self.row.push(place.offset.0);
        self.bytes(&[bytes])
    }

    /// Returns the length for the shape. All parts have the same length.
    fn bytes(&mut self, parts: &[&[u8]]) -> Result<u32, WriteError> {
        if parts[0].len() > ROW_BYTES {
            self.long(parts)?;
            return Ok(IN_ROW);
        }
        for part in parts {
            // By far the most frequent.
            if let Ok(word) = <[u8; 8]>::try_from(*part) {
                self.row.push(u64::from_le_bytes(word));
                continue;
            }
            let (words, rest) = part.as_chunks::<8>();
            self.row.extend(words.iter().map(|word| u64::from_le_bytes(*word)));
            if !rest.is_empty() {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                self.row.push(u64::from_le_bytes(last));
            }
        }
        Ok(parts[0].len() as u32)
    }

    fn long(&mut self, parts: &[&[u8]]) -> Result<(), WriteError> {
        if parts[0].len() > MAX_BYTES {
            return Err(WriteError::BadEvent("more than 64 KiB of bytes in one event"));
        }
        self.row.push(parts[0].len() as u64);
        for part in parts {
            self.heap.extend_from_slice(part);
        }
        Ok(())
    }
}

/// Checks a row that can be wrong (see [`Shape::is_checked`]) and says how many bytes of the heap it owns.
pub(crate) fn check_row(shape: &Shape, row: &[u64], heap: &[u8]) -> Result<usize, Malformed> {
    const WRONG: Malformed = Malformed("the content of an event makes no sense");
    let small = |word: u64| if u32::try_from(word).is_ok() { Ok(0) } else { Err(WRONG) };
    match shape.code {
        Code::Load => small(row[1]),
        Code::ProcessStart => small(row[0]).and(small(row[1].saturating_sub(1))),
        Code::Exited | Code::Killed => small(row[0]),
        code => {
            let len = if matches!(code, Code::Exec | Code::File) { row[0] } else { row[1] };
            let parts = if code == Code::Rmw { 2 } else { 1 };
            let bytes = usize::try_from(len).ok().and_then(|len| heap.get(..len.checked_mul(parts)?)).ok_or(WRONG)?;
            if code == Code::Exec {
                std::str::from_utf8(bytes).map_err(|_| WRONG)?;
            }
            if code == Code::File {
                FileEvent::decode(bytes)?;
            }
            Ok(bytes.len())
        }
    }
}

/// Puts an event together again; `heap` is its part of the block's heap. The row has passed [`check_row`] where
/// that is needed. Always inlined, because an event is large and moving it about costs more than building it.
#[inline(always)]
pub(crate) fn join<'a>(shape: &Shape, row: &'a [u64], heap: &'a [u8]) -> EventKind<'a> {
    let pool = PoolId(shape.subject);
    let place = || Place { pool, offset: PoolOffset(row[0]) };
    let value = || value(shape, row, heap);
    let flush = |kind| EventKind::Flush { kind, target: FlushTarget::Pool(place()) };
    let volatile = |kind| EventKind::Flush { kind, target: FlushTarget::Volatile(row[0]) };
    match shape.code {
        Code::Store => EventKind::Store { place: place(), kind: StoreKind::Plain, bytes: value() },
        Code::StoreNonTemporal => EventKind::Store { place: place(), kind: StoreKind::NonTemporal, bytes: value() },
        Code::StoreDirect64 => EventKind::Store { place: place(), kind: StoreKind::Direct64, bytes: value() },
        Code::Rmw if shape.len == IN_ROW => {
            let (old, new) = heap.split_at(heap.len() / 2);
            EventKind::Rmw { place: place(), old, new }
        }
        Code::Rmw => {
            let len = shape.len as usize;
            let (old, new) = row[1..].split_at(len.div_ceil(8));
            let bytes = |words: &'a [u64]| &bytemuck::cast_slice::<u64, u8>(words)[..len];
            EventKind::Rmw { place: place(), old: bytes(old), new: bytes(new) }
        }
        Code::Clflush => flush(FlushKind::Clflush),
        Code::Clflushopt => flush(FlushKind::Clflushopt),
        Code::Clwb => flush(FlushKind::Clwb),
        Code::Cldemote => flush(FlushKind::Cldemote),
        Code::VolatileClflush => volatile(FlushKind::Clflush),
        Code::VolatileClflushopt => volatile(FlushKind::Clflushopt),
        Code::VolatileClwb => volatile(FlushKind::Clwb),
        Code::VolatileCldemote => volatile(FlushKind::Cldemote),
        Code::Sfence => EventKind::Fence { kind: FenceKind::Sfence },
        Code::Mfence => EventKind::Fence { kind: FenceKind::Mfence },
        Code::Locked => EventKind::Fence { kind: FenceKind::Locked },
        Code::Load => {
            EventKind::Load { place: place(), len: if shape.len == IN_ROW { row[1] as u32 } else { shape.len } }
        }
        Code::Map => EventKind::Map { place: place(), len: row[1], address: row[2] },
        Code::Unmap => EventKind::Unmap { place: place(), len: row[1], address: row[2] },
        Code::Msync => EventKind::Msync { place: place(), len: row[1] },
        Code::Fsync => EventKind::Fsync { pool, data_only: false },
        Code::Fdatasync => EventKind::Fsync { pool, data_only: true },
        Code::KernelWrite => EventKind::KernelWrite { place: place(), bytes: value() },
        Code::FileWrite => EventKind::FileWrite { place: place(), bytes: value() },
        Code::FileZero => EventKind::FileZero { place: place(), len: row[1] },
        Code::Resize => EventKind::Resize { pool, len: row[0] },
        Code::ThreadStart => EventKind::ThreadStart,
        Code::ThreadEnd => EventKind::ThreadEnd,
        Code::ProcessStart => {
            let parent = row[1].checked_sub(1).map(|parent| ProcessId(parent as u32));
            EventKind::ProcessStart { process: ProcessId(row[0] as u32), parent }
        }
        Code::Exited => EventKind::ProcessExit { status: ExitStatus::Code(row[0] as i32) },
        Code::Killed => EventKind::ProcessExit { status: ExitStatus::Signal(row[0] as i32) },
        Code::Exec => EventKind::Exec { path: std::str::from_utf8(heap).unwrap_or_default() },
        Code::File => {
            // `check_row` has decoded it before.
            let unknown = FileEvent::Sync { file: None, data_only: false };
            EventKind::File(FileEvent::decode(heap).unwrap_or(unknown))
        }
        Code::OperationBegin => EventKind::OperationBegin { index: row[0] },
        Code::OperationEnd => EventKind::OperationEnd { index: row[0] },
        Code::Call => {
            EventKind::Call { watch: WatchId(shape.subject), args: [row[0], row[1], row[2], row[3], row[4], row[5]] }
        }
        Code::Return => EventKind::Return { watch: WatchId(shape.subject), value: row[0] },
    }
}

#[inline(always)]
fn value<'a>(shape: &Shape, row: &'a [u64], heap: &'a [u8]) -> &'a [u8] {
    if shape.len == IN_ROW { heap } else { &bytemuck::cast_slice::<u64, u8>(&row[1..])[..shape.len as usize] }
}
