//! The translator: generates code that does what the program's code does, and records what reaches PM.
//!
//! Registers keep their places, so most instructions are copied byte for byte. Only control flow, rip-relative operands,
//! flushes, fences, locked instructions and *instrumented* instructions (those that have accessed PM) are rewritten.

pub mod arena;
pub mod block;
pub mod branch;
pub mod build;
pub mod code;
pub mod emit;
pub mod emulate;
pub mod guarded;
pub mod hints;
pub mod implicit;
pub mod instrumented;
pub mod link;
pub mod live;
pub mod loads;
pub mod locate;
pub mod marked;
pub mod marks;
pub mod order;
pub mod vector;
pub mod watch;
pub mod written;

pub use locate::{Where, locate, undo};

use crate::lock::{LockName, SpinLock};
use crate::thread::Thread;

static ENGINE: SpinLock = SpinLock::new(LockName::Engine);

/// The engine lock: guards code caches, blocks, sites and instrumented instructions of this process.
pub fn lock() -> &'static SpinLock {
    &ENGINE
}

/// Before the first block is built.
pub fn init() {
    link::init();
}

/// The instruction at `pc` touches PM: from now on it is instrumented wherever it is translated.
pub fn instrument(thread: &mut Thread, pc: u64) {
    instrumented::instrument(thread, pc);
}

/// The site of the `syscall` instruction that is being carried out (its event's place in the program).
pub fn syscall_site(thread: &mut Thread) -> u32 {
    instrumented::plain_site(thread, thread.pc.wrapping_sub(2), &[0x0f, 0x05])
}
