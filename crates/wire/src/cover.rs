//! Coverage of a run: two maps of 8-bit counters in shared memory, and the ids that lead into them.
//!
//! An id is made of a module's file name and an address in that file, so it means the same in every process, run and machine.
//!
//! - The *edge map* counts what decides the way of a run: each outcome of a conditional branch, and each place that an indirect
//!   branch or a return leads to. Direct calls and jumps follow from these. An indirect branch is told by where it leads: the
//!   return tells where a call came from.
//! - The *PM map* counts transitions between PM operations (PMFuzz, Algorithm 1): `current ^ previous`, and then
//!   `previous = current >> 1`, per thread. PM operations are stores, flushes and fences that reach PM, by instruction, and system
//!   calls that write or synchronise a pool. Loads are none of them.
//!
//! A counter that overflows goes on at 1: zero means "never".

/// Counters of the edge map.
pub const EDGES: usize = 1 << 18;
/// Counters of the PM map.
pub const PM: usize = 1 << 17;
/// Both maps, edges first, behind the notes in the memfd.
pub const COVER_BYTES: usize = EDGES + PM;

/// What stands for a module: its file name, without folders (FNV-1a). Code that is in no file has 0.
pub const fn module(path: &[u8]) -> u64 {
    let mut start = path.len();
    while start > 0 && path[start - 1] != b'/' {
        start -= 1;
    }
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    while start < path.len() {
        hash = (hash ^ path[start] as u64).wrapping_mul(0x100_0000_01b3);
        start += 1;
    }
    hash
}

/// A place in a module; `address` as its file numbers them. (SplitMix64's finaliser.)
pub const fn location(module: u64, address: u64) -> u64 {
    let mut z = module ^ address.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The conditional branch at `location` goes this way.
pub const fn branch(location: u64, taken: bool) -> usize {
    ((location >> 24) as usize).wrapping_add(if taken { 0x1_5555 } else { 0 }) % EDGES
}

/// An indirect branch or a return leads to `location`.
pub const fn arrival(location: u64) -> usize {
    (location >> 7) as usize % EDGES
}

/// The id of the PM operation of the instruction at `location`.
pub const fn operation(location: u64) -> u32 {
    (location >> 40) as u32 % PM as u32
}

/// The transition from the operation before to this one, and what to remember of this one.
pub const fn transition(before: u32, operation: u32) -> (usize, u32) {
    ((before ^ operation) as usize % PM, operation >> 1)
}

/// One more.
pub const fn counted(counter: u8) -> u8 {
    if counter == u8::MAX { 1 } else { counter + 1 }
}
