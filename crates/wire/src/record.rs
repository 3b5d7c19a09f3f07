//! Records in the ring: a [`Header`] of 24 bytes, then `size` payload bytes padded to 8.
//!
//! Numbers of sites and contexts belong to the *process* of the record's thread; a forked child starts
//! with a copy of its parent's (the host copies its tables at `PROCESS_START`), an exec starts with none.

/// First three words of every record.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Header {
    pub kind: u8,
    /// Meaning depends on the kind (store kind, flush kind, ...).
    pub aux: u8,
    /// Number of the thread (see `Control::next_thread`).
    pub thread: u16,
    /// Payload bytes that follow, without padding.
    pub size: u32,
    /// Instruction (see `SITE`); 0 = none.
    pub site: u32,
    /// Call path (see `CONTEXT`); 0 = none known.
    pub context: u32,
    /// Address as the program saw it, or another number.
    pub address: u64,
}

pub const HEADER_BYTES: usize = 24;

/// Bytes that a record with this payload takes in the ring.
pub const fn record_bytes(payload: usize) -> usize {
    HEADER_BYTES + payload.next_multiple_of(8)
}

/// Kinds of records; `P:` is the payload (little-endian).
pub mod kind {
    /// Nothing; skip it.
    pub const PAD: u8 = 0;
    /// aux: store kind. P: the bytes stored at `address`.
    pub const STORE: u8 = 1;
    /// P: old bytes, then new bytes, the same number.
    pub const RMW: u8 = 2;
    /// aux: flush kind. `address`: the operand.
    pub const FLUSH: u8 = 3;
    /// aux: fence kind.
    pub const FENCE: u8 = 4;
    /// `address`, aux unused. P: u64 length.
    pub const LOAD: u8 = 5;
    /// Now mapped: P: u32 pool, u32 0, u64 pool offset, u64 length.
    pub const MAP: u8 = 6;
    /// As `MAP`.
    pub const UNMAP: u8 = 7;
    /// P: u32 pool, u32 0, u64 pool offset, u64 length.
    pub const MSYNC: u8 = 8;
    /// aux: 1 = data only. P: u32 pool.
    pub const FSYNC: u8 = 9;
    /// P: the bytes that the kernel wrote at `address`.
    pub const KERNEL_WRITE: u8 = 10;
    /// `address`: pool offset. P: u32 pool, u32 0, then the bytes.
    pub const FILE_WRITE: u8 = 11;
    /// `address`: pool offset. P: u32 pool, u32 0, u64 length.
    pub const FILE_ZERO: u8 = 12;
    /// `address`: new length. P: u32 pool.
    pub const RESIZE: u8 = 13;
    /// P: u32 process, u32 number of the thread that made it.
    pub const THREAD_START: u8 = 14;
    pub const THREAD_END: u8 = 15;
    /// P: u32 process, u32 parent (!0: none), u32 pid as the process sees it. aux 1: it shares its parent's memory, and
    /// so its tables of sites and contexts, until it execs (`vfork`).
    pub const PROCESS_START: u8 = 16;
    /// aux: 0 = code, 1 = signal; `address`: the number. Comes from the probe for exits it sees; the host
    /// adds it for processes that were killed.
    pub const PROCESS_EXIT: u8 = 17;
    /// P: path.
    pub const EXEC: u8 = 18;
    /// aux: 0 = begin, 1 = end; `address`: index.
    pub const OPERATION: u8 = 19;
    /// `address`: watch. P: six u64.
    pub const CALL: u8 = 20;
    /// `address`: watch. P: u64 value.
    pub const RETURN: u8 = 21;

    /// A call that changes names is about to be made; the probe waits until the host has looked (`PLEASE`). aux: which ([`super::file`]).
    /// P: u32 length of the first path, the path, then the second path or text.
    pub const FILE_BEFORE: u8 = 22;
    /// The call of `FILE_BEFORE` has succeeded. The probe waits again.
    pub const FILE_AFTER: u8 = 23;
    /// A file that is no pool was written. `address`: offset. aux 1: the record before is of the same call. P: u64 device, u64
    /// inode, then the bytes.
    pub const FILE_DATA: u8 = 24;
    /// Such a file has another length: `address`. P: u64 device, u64 inode.
    pub const FILE_LEN: u8 = 25;
    /// Bytes of such a file became zero. `address`: offset. P: u64 device, u64 inode, u64 length.
    pub const FILE_HOLE: u8 = 26;
    /// Such a file was synced; with device and inode 0: every file. aux: 1 = data only. P: u64 device, u64 inode.
    pub const FILE_SYNC: u8 = 27;

    /// Defines instruction `site`: `address` is its pc. P: its bytes.
    pub const SITE: u8 = 32;
    /// Defines call path `context`: `address` is its return address, `site` the number of the path above it.
    /// aux: 1 = frames above are unknown (no unwind information).
    pub const CONTEXT: u8 = 33;
    /// Code is mapped: `address`. P: u64 length, u64 file offset, then the path (empty: anonymous).
    pub const MODULE: u8 = 34;
    /// A file becomes pool `address`; its descriptor comes over the socket, with the pool's number (u32) as data.
    /// aux: 1 = an existing pool under a new path. P: u64 device, u64 inode, u64 length, then the path.
    /// The probe waits for the host's answer (`PLEASE`), which comes when the initial content is saved.
    pub const POOL: u8 = 35;
    /// Something the user should know. aux: 0 note, 1 warning, 2 fatal, 3 a mistake of the probe's. P: text.
    pub const MESSAGE: u8 = 36;
    /// The probe waits until the host has consumed everything up to here: `address` is the request's number.
    pub const PLEASE: u8 = 37;

    /// Defines block `site` of flow mode: `address` is its pc. P: its bytes. Numbers belong to the process, as those of sites.
    pub const BLOCK: u8 = 48;
    /// P: entries of blocks that the thread executed (see [`super::flow`]); longer than other records. aux 1: the first instruction
    /// of the first entry was told before.
    pub const FLOW: u8 = 49;
    /// The kernel wrote at `address`, in PM or not. P: u64 length.
    pub const FLOW_WRITE: u8 = 50;
    /// The input is at `address` now. site: 0: the input file, n + 1: argument n. P: u64 length, u64 where in the input it begins.
    pub const FLOW_INPUT: u8 = 51;
    /// Values mode: the content of `address` goes into a socket or pipe (aux 0), or came out of one (aux 1); or
    /// the kernel takes it as a name or for a file (aux 2). P: the content.
    pub const FLOW_CHANNEL: u8 = 52;
}

/// Entries of `FLOW`: a word that says which block, then the words of the block's `isa::flow::Layout`.
///
/// The low half of the first word is the block's number with the top bit set; the high half is how many of its
/// instructions ran, all bits set if all did: a processor writes that with one instruction.
pub mod flow {
    const ALL: u32 = u32::MAX;
    const BLOCK: u32 = 1 << 31;

    /// The first word of an entry, to be extended by its sign.
    pub const fn whole(block: u32) -> u32 {
        BLOCK | block
    }

    /// The upper half of an entry of the first `instructions` of a block.
    pub const fn part(instructions: u32) -> u32 {
        instructions
    }

    /// Block, and how many instructions ran (`None`: all).
    #[inline]
    pub const fn read(word: u64) -> Option<(u32, Option<u32>)> {
        if word as u32 & BLOCK == 0 {
            return None;
        }
        let instructions = (word >> 32) as u32;
        Some((word as u32 & !BLOCK, if instructions == ALL { None } else { Some(instructions) }))
    }
}

/// aux of `FILE_BEFORE` and `FILE_AFTER`.
pub mod file {
    /// Of a file that was not there before, or to empty it.
    pub const OPEN: u8 = 0;
    pub const UNLINK: u8 = 1;
    pub const RMDIR: u8 = 2;
    pub const RENAME: u8 = 3;
    pub const EXCHANGE: u8 = 4;
    pub const LINK: u8 = 5;
    pub const MKDIR: u8 = 6;
    /// The second text is its target.
    pub const SYMLINK: u8 = 7;
    pub const TRUNCATE: u8 = 8;
    pub const MODE: u8 = 9;
    /// The second text is the attribute's name.
    pub const CHANGE_XATTR: u8 = 10;
    /// As `CHANGE_XATTR`, of a link itself.
    pub const LCHANGE_XATTR: u8 = 11;
    /// Its content is about to be changed through a descriptor; the changes come as records of their own.
    pub const WRITE: u8 = 12;
}

/// aux of `STORE`.
pub mod store {
    pub const PLAIN: u8 = 0;
    pub const NON_TEMPORAL: u8 = 1;
    pub const DIRECT64: u8 = 2;
}

/// aux of `FLUSH`.
pub mod flush {
    pub const CLFLUSH: u8 = 0;
    pub const CLFLUSHOPT: u8 = 1;
    pub const CLWB: u8 = 2;
    pub const CLDEMOTE: u8 = 3;
}

/// aux of `FENCE`.
pub mod fence {
    pub const SFENCE: u8 = 0;
    pub const MFENCE: u8 = 1;
    pub const LOCKED: u8 = 2;
}
