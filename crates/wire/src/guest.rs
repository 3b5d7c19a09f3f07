//! What passes between the host, the QEMU plugin and the agent inside a virtual machine.
//!
//! ```text
//!   guest physical memory, one file of the host:   RAM … | PM_BASE: the PM region | reserved … | mailbox
//!   mailbox:  page 0: the mark | a request of the host | the reply of the agent
//!   ring:     a file of its own; the plugin writes words, the host reads them
//! ```
//! The host writes a request and sends one byte over a serial line; the agent writes its reply and sends one byte back. The agent stores
//! *marks* into the first word of the mailbox; the plugin sees these stores, so that marks lie in order among the events.

/// Where the PM region begins in guest physical memory. Everything from here on is kept from the kernel's own use.
pub const PM_BASE: u64 = 1 << 30;
/// Linux adds memory in sections of this size: a PM region shares its section with nothing but reserved memory.
pub const SECTION: u64 = 128 << 20;

/// The mailbox is the last part of the memory.
pub const MAILBOX_LEN: u64 = 40 << 20;
pub const MARK_AT: u64 = 0;
pub const REQUEST_LEN_AT: u64 = 64;
pub const REPLY_LEN_AT: u64 = 128;
pub const REQUEST_AT: u64 = 4096;
pub const REQUEST_CAPACITY: u64 = (8 << 20) - 4096;
pub const REPLY_AT: u64 = 8 << 20;
pub const REPLY_CAPACITY: u64 = MAILBOX_LEN - REPLY_AT;

/// The length of all guest memory with a PM region of this size.
pub const fn memory_len(pm: u64) -> u64 {
    PM_BASE + (pm + MAILBOX_LEN).next_multiple_of(SECTION)
}

/// Where the mailbox begins.
pub const fn mailbox(pm: u64) -> u64 {
    memory_len(pm) - MAILBOX_LEN
}

/// What a mark says: the kind in the upper byte, a number in the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mark {
    OperationBegin = 1,
    OperationEnd = 2,
    /// From here on stores, flushes and fences are recorded.
    Record = 3,
    /// From here on the first load and the first store of each line are told.
    Observe = 4,
    /// Neither.
    Quiet = 5,
    /// From here on the edges of code in the ranges of the ring's head are told, each once per operation.
    Cover = 6,
}

impl Mark {
    pub const fn word(self, number: u64) -> u64 {
        ((self as u64) << 56) | (number & ((1 << 56) - 1))
    }

    pub const fn of(word: u64) -> Option<(Mark, u64)> {
        let mark = match word >> 56 {
            1 => Mark::OperationBegin,
            2 => Mark::OperationEnd,
            3 => Mark::Record,
            4 => Mark::Observe,
            5 => Mark::Quiet,
            6 => Mark::Cover,
            _ => return None,
        };
        Some((mark, word & ((1 << 56) - 1)))
    }
}

/// Words of the ring, after [`RING_HEAD`] bytes with the two positions.
pub const RING_WORDS: u64 = 4 << 20;
pub const RING_HEAD: u64 = 4096;
/// Position of the writer, in words since the start.
pub const RING_WRITTEN_AT: u64 = 0;
/// Position of the reader.
pub const RING_READ_AT: u64 = 64;
/// Code whose edges are wanted, written by the host: the number of ranges, then beginning and end of each.
pub const RING_CODE_AT: u64 = 128;
pub const MAX_CODE_RANGES: usize = 240;

/// The first word of a record.
///
/// ```text
///   bits 0..8 kind, 8..16 detail, 16..24 bytes of a store, 24..32 frames, 32..40 words of the record after this one
///   Store, Flush, Fence: offset in PM, instruction, stack, bytes (padded to words), return addresses (innermost first)
///   Mark: the mark.   ReadLine, WroteLine: the line.   Edge: stands for where a jump came from and went to
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum GuestRecordKind {
    Store = 1,
    Flush = 2,
    Fence = 3,
    Mark = 4,
    ReadLine = 5,
    WroteLine = 6,
    Edge = 7,
}

impl GuestRecordKind {
    pub const fn of(word: u64) -> Option<GuestRecordKind> {
        Some(match word as u8 {
            1 => GuestRecordKind::Store,
            2 => GuestRecordKind::Flush,
            3 => GuestRecordKind::Fence,
            4 => GuestRecordKind::Mark,
            5 => GuestRecordKind::ReadLine,
            6 => GuestRecordKind::WroteLine,
            7 => GuestRecordKind::Edge,
            _ => return None,
        })
    }
}

/// Details of a store.
pub const PLAIN: u8 = 0;
pub const NON_TEMPORAL: u8 = 1;
/// One piece of a string instruction.
pub const STRING: u8 = 2;
/// Details of a flush.
pub const CLFLUSH: u8 = 0;
pub const CLFLUSHOPT: u8 = 1;
pub const CLWB: u8 = 2;
/// Details of a fence.
pub const SFENCE: u8 = 0;
pub const MFENCE: u8 = 1;

/// Return addresses beyond this are left out.
pub const MAX_FRAMES: usize = 24;

/// A first word.
pub const fn head(kind: GuestRecordKind, detail: u8, bytes: u8, frames: u8, words: u8) -> u64 {
    kind as u64 | (detail as u64) << 8 | (bytes as u64) << 16 | (frames as u64) << 24 | (words as u64) << 32
}
