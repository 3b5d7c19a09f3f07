//! Code caches. Each is within reach (±2 GiB) of the code that it translates, so that rip-relative operands need only a new
//! displacement.

use alloc::vec::Vec;

use super::emit::Emit;
use super::guarded::UnderEngineLock;
use crate::ring::control;
use crate::sys::{self, PROT_EXEC, PROT_READ, PROT_WRITE};
use crate::trampoline::pass;

const DEFAULT_BYTES: u64 = 64 << 20;
/// Room that a block may need at most.
pub const BLOCK_ROOM: u64 = 32 << 10;

#[derive(Debug)]
pub struct Arena {
    pub start: u64,
    pub end: u64,
    pub at: u64,
    /// A `jmp` to the trampoline for unknown indirect targets, within reach of this arena's blocks.
    pub miss: u64,
    /// (start of a block in the cache, block), ascending.
    pub blocks: Vec<(u64, u32)>,
    /// No new code goes here; unmapped when every thread has been seen outside the cache since this generation began.
    retired: Option<u64>,
}

impl Arena {
    /// Code of this block was written, up to `end`.
    pub fn filled(&mut self, start: u64, end: u64, block: u32) {
        self.at = end;
        self.blocks.push((start, block));
    }
}

/// All code caches together may have this many times the size of one; then everything is translated anew.
const MAX_ARENAS: usize = 8;

static ARENAS: UnderEngineLock<Vec<Arena>> = UnderEngineLock::new(Vec::new());

/// Pointers for `jmp [absolute]` into the trampolines: at fixed low addresses, since the probe is linked there.
#[repr(C)]
#[derive(Debug)]
pub struct Trampolines {
    pub exit: unsafe extern "C" fn(),
    pub miss: unsafe extern "C" fn(),
    pub syscall: unsafe extern "C" fn(),
    pub emulate: unsafe extern "C" fn(),
    pub call: unsafe extern "C" fn(),
    pub record: unsafe extern "C" fn(),
    pub record_keep: unsafe extern "C" fn(),
    pub note: unsafe extern "C" fn(),
    pub note_keep: unsafe extern "C" fn(),
    pub cover: unsafe extern "C" fn(),
    pub cover_keep: unsafe extern "C" fn(),
    pub take_order: unsafe extern "C" fn(),
    pub is_pm: unsafe extern "C" fn(),
    pub flow: unsafe extern "C" fn(),
}
pub static TRAMPOLINES: Trampolines = Trampolines {
    exit: pass::trampoline_exit,
    miss: pass::trampoline_miss,
    syscall: pass::trampoline_syscall,
    emulate: pass::trampoline_emulate,
    call: pass::trampoline_call,
    record: crate::trampoline::record::trampoline_record,
    record_keep: crate::trampoline::record::trampoline_record_keep,
    note: crate::trampoline::note::trampoline_note,
    note_keep: crate::trampoline::note::trampoline_note_keep,
    cover: crate::cover::trampoline::trampoline_cover,
    cover_keep: crate::cover::trampoline::trampoline_cover_keep,
    take_order: crate::trampoline::record::trampoline_take_order,
    is_pm: crate::trampoline::record::trampoline_is_pm,
    flow: crate::flow::trampoline::trampoline_flow,
};

/// The address of a trampoline's pointer.
macro_rules! trampoline {
    ($name:ident) => {
        &raw const $crate::translate::arena::TRAMPOLINES as u64
            + core::mem::offset_of!($crate::translate::arena::Trampolines, $name) as u64
    };
}
pub(crate) use trampoline;

/// The arena for code at `pc`: an existing one in reach with room, or a new one. `None`: no place in reach or no memory.
pub fn for_code(pc: u64) -> Option<usize> {
    let usable = |a: &Arena| a.retired.is_none() && in_reach(a.start, a.end, pc) && a.at + BLOCK_ROOM <= a.end;
    let found = ARENAS.with(|arenas| arenas.iter().rposition(usable));
    found.or_else(|| create(pc))
}

/// The caches are full: all that was translated shall be translated anew.
pub fn is_full() -> bool {
    ARENAS.with(|arenas| {
        arenas.iter().filter(|a| a.retired.is_none()).count() >= MAX_ARENAS
            && arenas.iter().all(|a| a.retired.is_some() || a.at + BLOCK_ROOM > a.end)
    })
}

static GENERATION: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);

pub fn generation() -> u64 {
    GENERATION.load(core::sync::atomic::Ordering::Relaxed)
}

/// Takes all arenas out of use; their blocks are unlinked already. Threads may still be running in them.
pub fn retire_all() {
    let next = GENERATION.fetch_add(1, core::sync::atomic::Ordering::Relaxed) + 1;
    ARENAS.with(|arenas| {
        for arena in arenas.iter_mut().filter(|a| a.retired.is_none()) {
            arena.retired = Some(next);
        }
    });
}

/// Unmaps retired arenas that no thread can be in. `oldest`: the oldest generation that a thread in the cache has seen.
pub fn reclaim(oldest: u64) {
    let reclaim = |arena: &mut Arena| {
        if arena.end != arena.start && arena.retired.is_some_and(|generation| generation <= oldest) {
            // SAFETY: an arena that no thread runs in any more.
            unsafe { sys::raw!(sys::nr::MUNMAP, arena.start, arena.end - arena.start) };
            arena.blocks = Vec::new();
            // Blocks name arenas by their place in the list: it stays, empty.
            arena.end = arena.start;
        }
    };
    ARENAS.with(|arenas| arenas.iter_mut().for_each(reclaim));
}

/// Is this code here to stay? Else it has been given back, or will be soon.
pub fn is_in_use(address: u64) -> bool {
    ARENAS.with(|arenas| arenas.iter().any(|a| (a.start..a.end).contains(&address) && a.retired.is_none()))
}

/// One arena, for a look or a change; `change` asks for no other.
pub fn with<R>(index: usize, change: impl FnOnce(&mut Arena) -> R) -> R {
    ARENAS.with(|arenas| change(&mut arenas[index]))
}

/// The trampoline for unknown indirect targets that is in reach of this arena's blocks.
pub fn miss(index: u32) -> u64 {
    with(index as usize, |arena| arena.miss)
}

/// The arena with this address.
pub fn at(address: u64) -> Option<usize> {
    ARENAS.with(|arenas| arenas.iter().position(|arena| (arena.start..arena.end).contains(&address)))
}

fn in_reach(start: u64, end: u64, pc: u64) -> bool {
    // Rip-relative operands reach up to 1 GiB beyond the code with this margin.
    const REACH: u64 = 1 << 30;
    pc.abs_diff(start) < REACH + (REACH / 2) && pc.abs_diff(end) < REACH + (REACH / 2)
}

/// Where the kernel's mappings end without randomisation (rounded up); 128 MiB lie between it and the top of the stack.
const MAPPINGS_END: u64 = 0x7fff_f800_0000;

/// May the stack grow into that gap?
fn stack_is_large() -> bool {
    const RLIMIT_STACK: u64 = 3;
    let mut limit = [0u64; 2];
    // SAFETY: the kernel fills `limit`.
    let answer = unsafe { sys::raw!(sys::nr::PRLIMIT64, 0, RLIMIT_STACK, 0, limit.as_mut_ptr()) };
    answer != 0 || limit[0] > 32 << 20
}

fn create(pc: u64) -> Option<usize> {
    let bytes = match control().cache_bytes {
        0 => DEFAULT_BYTES,
        small => small.max(4 * BLOCK_ROOM),
    };
    // First choice by region: below a PIE or the libraries (their heaps and mappings grow away from there), above a
    // low executable (its heap gets the room in between). Then anywhere in reach.
    let mut candidates = Vec::new();
    if pc < 0x6000_0000 {
        candidates.push(0x5800_0000);
    }
    // The gap that the kernel keeps free between the mappings and the stack: nothing of the program's is displaced.
    if (MAPPINGS_END - (1 << 30)..MAPPINGS_END).contains(&pc) && !stack_is_large() {
        candidates.push(MAPPINGS_END);
    }
    for step in 0..40u64 {
        let below = pc.wrapping_sub((700 << 20) + step * (18 << 20));
        let above = pc.wrapping_add((500 << 20) + step * (18 << 20));
        candidates.push(below & !0xff_ffff);
        candidates.push(above & !0xff_ffff);
    }
    for start in candidates {
        if !(0x1_0000..1 << 47).contains(&start) || !in_reach(start, start + bytes, pc) {
            continue;
        }
        if sys::map_anonymous(start, bytes, PROT_READ | PROT_WRITE | PROT_EXEC) == start as i64 {
            let mut emit = Emit { at: start, end: start + bytes, full: false };
            emit.jump_through(trampoline!(miss));
            let arena =
                Arena { start, end: start + bytes, at: emit.at, miss: start, blocks: Vec::new(), retired: None };
            return Some(ARENAS.with(|arenas| {
                arenas.push(arena);
                arenas.len() - 1
            }));
        }
    }
    None
}

/// The block whose code contains this cache address.
pub fn block_at(address: u64) -> Option<u32> {
    ARENAS.with(|arenas| {
        let arena = arenas.iter().find(|a| (a.start..a.end).contains(&address))?;
        let after = arena.blocks.partition_point(|&(start, _)| start <= address);
        Some(arena.blocks[after.checked_sub(1)?].1)
    })
}

/// The code caches, for hiding them from the program's view of its memory.
pub fn regions() -> Vec<(u64, u64)> {
    let _guard = super::lock().lock();
    ARENAS.with(|arenas| arenas.iter().map(|a| (a.start, a.end)).collect())
}
