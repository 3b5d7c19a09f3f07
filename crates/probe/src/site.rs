//! Sites: the instrumented instructions. The table is at a fixed address; the record trampoline reads it.

use wire::record::{Header, kind};

use crate::context::rule::UnwindRule;
use crate::layout;
use crate::ring;
use crate::sys::{self, PROT_READ, PROT_WRITE};
use crate::thread::Thread;
use crate::translate::guarded::UnderEngineLock;

/// What `trampoline/record.rs` must know about an instruction. 64 bytes: the trampoline indexes with a shift.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Site {
    /// Low half of a record's first word (kind, aux); the payload size is in `size`.
    pub kind_aux: u32,
    /// Payload bytes: the bytes stored (0 for flushes and fences).
    pub size: u32,
    /// CFA = (rbp or rsp) + this.
    pub cfa_offset: i32,
    /// The caller's rbp is at CFA + this; 0: it is still in rbp.
    pub rbp_offset: i32,
    pub flags: u32,
    /// Length of the instruction.
    pub len: u32,
    pub pc: u64,
    pub bytes: [u8; 16],
    /// In coverage mode: its id as a PM operation (`wire::cover::operation`).
    pub operation: u64,
    _pad: u64,
}

const _: () = assert!(size_of::<Site>() == 1 << SITE_SHIFT);
pub const SITE_SHIFT: u32 = 6;

/// Bits of [`Site::flags`].
pub mod flag {
    /// CFA is computed from rbp instead of rsp.
    pub const CFA_RBP: u32 = 1;
    /// No usable unwind rule: always ask the slow path.
    pub const NO_RULE: u32 = 2;
    /// After this the thread has something pending (flush, non-temporal store).
    pub const SETS_PENDING: u32 = 4;
    pub const CLEARS_PENDING: u32 = 8;
    /// The payload is `old` then the new bytes (read-modify-write).
    pub const HAS_OLD: u32 = 16;
    /// Value of a non-temporal store: was captured in `Thread::old` before the store.
    pub const CAPTURED: u32 = 32;
    /// Another site comes before it in the same block, with no call or return in between: the path is that one's, if it
    /// was recorded this time (else `Thread::last_path` says `NO_PATH`).
    pub const SAME_PATH: u32 = 64;
}

/// The table of sites: how many numbers are given, and up to which address it is mapped.
#[derive(Debug)]
struct SiteTable {
    count: u32,
    mapped: u64,
}

static TABLE: UnderEngineLock<SiteTable> = UnderEngineLock::new(SiteTable { count: 1, mapped: layout::SITES });

/// Adds a site and tells the host of it. The engine lock is held. Number 0 is never given.
pub fn add(thread: &mut Thread, pc: u64, bytes: &[u8], kind_aux: (u8, u8), size: u32, mut flags: u32) -> u32 {
    let rule = if crate::recover::on() { None } else { crate::context::rule::at(pc, true) };
    let (cfa_offset, rbp_offset) = match rule {
        Some(UnwindRule { cfa_rbp, cfa_offset, rbp_offset, deref: false, .. }) => {
            if cfa_rbp {
                flags |= flag::CFA_RBP;
            }
            (cfa_offset, rbp_offset)
        }
        _ => {
            flags |= flag::NO_RULE;
            (0, 0)
        }
    };
    if kind_aux.0 == kind::FLUSH || (kind_aux.0 == kind::STORE && kind_aux.1 != wire::record::store::PLAIN) {
        flags |= flag::SETS_PENDING;
    }
    if kind_aux.0 == kind::FENCE || kind_aux.0 == kind::RMW {
        flags |= flag::CLEARS_PENDING;
    }
    let operation = if crate::cover::on() { crate::cover::operation(pc) } else { 0 };
    let number = TABLE.with(|table| {
        let number = table.count;
        let address = layout::SITES + number as u64 * size_of::<Site>() as u64;
        if address + size_of::<Site>() as u64 > table.mapped {
            if table.mapped >= layout::SITES + layout::SITES_BYTES {
                crate::refuse!(thread, "more than {} instrumented instructions", number);
            }
            sys::map_anonymous(table.mapped, 1 << 16, PROT_READ | PROT_WRITE);
            table.mapped += 1 << 16;
        }
        table.count += 1;
        let kind_aux = kind_aux.0 as u32 | (kind_aux.1 as u32) << 8;
        let (mut copy, len) = ([0u8; 16], bytes.len() as u32);
        copy[..bytes.len()].copy_from_slice(bytes);
        let site = Site { kind_aux, size, cfa_offset, rbp_offset, flags, len, pc, bytes: copy, operation, _pad: 0 };
        // SAFETY: the table is mapped up to here, and nobody has this number yet.
        unsafe { (address as *mut Site).write(site) };
        number
    });
    let header = Header { kind: kind::SITE, site: number, address: pc, ..Header::default() };
    ring::order(thread).put(header, &[bytes]);
    number
}

pub fn get(number: u32) -> &'static Site {
    // SAFETY: numbers come from `add`.
    unsafe { &*((layout::SITES + number as u64 * size_of::<Site>() as u64) as *const Site) }
}
