//! An event taken apart: its *shape* (everything that repeats: kind, code address, call path, pool, length) and
//! its *row* of 64-bit words (everything that varies: offset and values).
//!
//! A program has few shapes, so an event costs one small number for its shape, and the words of all events of one
//! shape form columns that compress well (see `block`).

use crate::error::{Malformed, WriteError};
use crate::event::*;

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
    OperationBegin = 31, OperationEnd = 32, Call = 33, Return = 34,
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
        matches!(self, Store | StoreNonTemporal | StoreDirect64 | Rmw | KernelWrite | FileWrite | Exec)
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
            Resize | Exited | Killed | Exec | OperationBegin | OperationEnd | Return => 1,
            Call => 6,
        }
    }

    /// Is a length that came from a file one that a writer would have written?
    pub fn check(&self) -> Result<(), Malformed> {
        let right = match self.code {
            Code::Exec => self.len == IN_ROW,
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
            K::OperationBegin { index } => part.words(Code::OperationBegin, 0, &[index]),
            K::OperationEnd { index } => part.words(Code::OperationEnd, 0, &[index]),
            K::Call { watch, ref args } => part.words(Code::Call, watch.0, args),
            K::Return { watch, value } => part.words(Code::Return, watch.0, &[value]),
        };
        Ok(Shape { code, subject, len, context: event.context, pc: event.pc })
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

const LONG: Malformed = Malformed("the bytes of an event are missing");

/// Puts an event together again; `heap` is what is left of the block's heap.
#[inline]
pub(crate) fn join<'a>(shape: &Shape, row: &'a [u64], heap: &mut &'a [u8]) -> Result<EventKind<'a>, Malformed> {
    let pool = PoolId(shape.subject);
    let place = || Place { pool, offset: PoolOffset(row[0]) };
    let store = |kind, heap| Ok(EventKind::Store { place: place(), kind, bytes: value(shape, row, heap)? });
    let flush = |kind| Ok(EventKind::Flush { kind, target: FlushTarget::Pool(place()) });
    let volatile = |kind| Ok(EventKind::Flush { kind, target: FlushTarget::Volatile(row[0]) });
    match shape.code {
        Code::Store => store(StoreKind::Plain, heap),
        Code::StoreNonTemporal => store(StoreKind::NonTemporal, heap),
        Code::StoreDirect64 => store(StoreKind::Direct64, heap),
        Code::Rmw if shape.len == IN_ROW => {
            let old = from_heap(row[1], heap)?;
            let new = from_heap(row[1], heap)?;
            Ok(EventKind::Rmw { place: place(), old, new })
        }
        Code::Rmw => {
            let len = shape.len as usize;
            let (old, new) = row[1..].split_at(len.div_ceil(8));
            let bytes = |words: &'a [u64]| &bytemuck::cast_slice::<u64, u8>(words)[..len];
            Ok(EventKind::Rmw { place: place(), old: bytes(old), new: bytes(new) })
        }
        Code::Clflush => flush(FlushKind::Clflush),
        Code::Clflushopt => flush(FlushKind::Clflushopt),
        Code::Clwb => flush(FlushKind::Clwb),
        Code::Cldemote => flush(FlushKind::Cldemote),
        Code::VolatileClflush => volatile(FlushKind::Clflush),
        Code::VolatileClflushopt => volatile(FlushKind::Clflushopt),
        Code::VolatileClwb => volatile(FlushKind::Clwb),
        Code::VolatileCldemote => volatile(FlushKind::Cldemote),
        Code::Sfence => Ok(EventKind::Fence { kind: FenceKind::Sfence }),
        Code::Mfence => Ok(EventKind::Fence { kind: FenceKind::Mfence }),
        Code::Locked => Ok(EventKind::Fence { kind: FenceKind::Locked }),
        Code::Load => {
            let len = if shape.len == IN_ROW { small(row[1])? } else { shape.len };
            Ok(EventKind::Load { place: place(), len })
        }
        Code::Map => Ok(EventKind::Map { place: place(), len: row[1], address: row[2] }),
        Code::Unmap => Ok(EventKind::Unmap { place: place(), len: row[1], address: row[2] }),
        Code::Msync => Ok(EventKind::Msync { place: place(), len: row[1] }),
        Code::Fsync => Ok(EventKind::Fsync { pool, data_only: false }),
        Code::Fdatasync => Ok(EventKind::Fsync { pool, data_only: true }),
        Code::KernelWrite => Ok(EventKind::KernelWrite { place: place(), bytes: value(shape, row, heap)? }),
        Code::FileWrite => Ok(EventKind::FileWrite { place: place(), bytes: value(shape, row, heap)? }),
        Code::FileZero => Ok(EventKind::FileZero { place: place(), len: row[1] }),
        Code::Resize => Ok(EventKind::Resize { pool, len: row[0] }),
        Code::ThreadStart => Ok(EventKind::ThreadStart),
        Code::ThreadEnd => Ok(EventKind::ThreadEnd),
        Code::ProcessStart => {
            let parent = row[1].checked_sub(1).map(small).transpose()?.map(ProcessId);
            Ok(EventKind::ProcessStart { process: ProcessId(small(row[0])?), parent })
        }
        Code::Exited => Ok(EventKind::ProcessExit { status: ExitStatus::Code(small(row[0])? as i32) }),
        Code::Killed => Ok(EventKind::ProcessExit { status: ExitStatus::Signal(small(row[0])? as i32) }),
        Code::Exec => {
            let path = std::str::from_utf8(from_heap(row[0], heap)?).map_err(|_| Malformed("a path is not UTF-8"))?;
            Ok(EventKind::Exec { path })
        }
        Code::OperationBegin => Ok(EventKind::OperationBegin { index: row[0] }),
        Code::OperationEnd => Ok(EventKind::OperationEnd { index: row[0] }),
        Code::Call => {
            let args = row.try_into().map_err(|_| LONG)?;
            Ok(EventKind::Call { watch: WatchId(shape.subject), args })
        }
        Code::Return => Ok(EventKind::Return { watch: WatchId(shape.subject), value: row[0] }),
    }
}

#[inline]
fn value<'a>(shape: &Shape, row: &'a [u64], heap: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    if shape.len == IN_ROW {
        return from_heap(row[1], heap);
    }
    Ok(&bytemuck::cast_slice::<u64, u8>(&row[1..])[..shape.len as usize])
}

fn from_heap<'a>(len: u64, heap: &mut &'a [u8]) -> Result<&'a [u8], Malformed> {
    let len = usize::try_from(len).map_err(|_| LONG)?;
    let (bytes, rest) = heap.split_at_checked(len).ok_or(LONG)?;
    *heap = rest;
    Ok(bytes)
}

fn small(word: u64) -> Result<u32, Malformed> {
    u32::try_from(word).map_err(|_| Malformed("a number is too large"))
}
