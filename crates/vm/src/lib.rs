//! Kernel file systems in a virtual machine: QEMU executes the guest, a plugin reports every store, flush and fence to its PM region, and a
//! small agent in the guest mounts, runs operations and walks trees.
//!
//! ```text
//!   kernel, modules, libraries ──► initramfs ──► machine ──► ask: requests of lines, answered by the agent
//!   ring ──► recorder ──► trace                     │
//!   symbols: names of kernel functions              └──► guest: a crash image, mounted and walked ──► RunReport
//! ```

pub mod debian;
pub mod debug_info;
pub mod debugger;
mod delay;
pub mod guest;
pub mod initramfs;
pub mod kit;
pub mod laboratory;
pub mod libraries;
pub mod machine;
pub mod machines;
pub mod memory;
pub mod modules;
pub mod recipe;
pub mod recorder;
pub mod ring;
mod spawn;
mod symbol_file;
pub mod symbols;

/// Where the guest's memory ends.
fn memory_end(pm: u64) -> u64 {
    wire::guest::memory_len(pm)
}
