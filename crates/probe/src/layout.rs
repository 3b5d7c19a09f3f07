//! Where the engine is in the target's address space.
//!
//! Everything that translated code accesses is below 2 GiB, so that any code cache can reach it with a 32-bit absolute
//! operand. The engine uses no address where the kernel would place the target's own mappings, so the target's
//! addresses are those of a native run without randomisation.

/// The probe's own image: fixed by the linker (`build.rs`).
pub const IMAGE: u64 = 0x7000_0000;
/// `wire::control::Control`, then the ring, twice.
pub const CONTROL: u64 = 0x7100_0000;
pub const RING: u64 = 0x7120_0000;
/// Indirect branch table: one pointer per low 16 bits of a target.
pub const BRANCH_TABLE: u64 = 0x7180_0000;
pub const BRANCH_TABLE_BYTES: u64 = 8 << 16;
/// Site table (`site::Site`), grown on demand.
pub const SITES: u64 = 0x7200_0000;
pub const SITES_BYTES: u64 = 0x0200_0000;
/// The engine's heap: threads, blocks, tables.
pub const HEAP: u64 = 0x7400_0000;
pub const HEAP_END: u64 = 0x7ef0_0000;
/// Maps of coverage mode (`wire::cover`): edges, then PM.
pub const COVER: u64 = 0x7ef0_0000;
/// What a recovery run reads and changes (`wire::recover`).
pub const NOTES: u64 = 0x7f00_0000;
pub const ENGINE_END: u64 = 0x8000_0000;

/// What puts the process of a recovery run back (`recover::undo`): it is itself never put back.
pub const UNDO: u64 = 0x2aff_0000_0000;
pub const UNDO_BYTES: u64 = (2 << 20) + UNDO_PAGES * 4096;
/// Pages that can be kept as they were.
pub const UNDO_PAGES: u64 = 8192;

/// A PM address and its writable alias differ in this bit.
pub const ALIAS_BIT: u32 = 46;
/// The alias of a PM address (and back).
pub const fn alias(address: u64) -> u64 {
    address ^ (1 << ALIAS_BIT)
}

/// Does an address belong to the engine's fixed area?
pub const fn is_engine(address: u64) -> bool {
    address >= IMAGE && address < ENGINE_END
}
