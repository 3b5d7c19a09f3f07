//! Flow mode: reports every executed block and every address that it accesses to the host (`record::flow`).
//!
//! In this mode a block ends at its first branch, and at every instruction that is not copied unchanged: instrumented instructions, fences, locked
//! instructions, system calls. Its code appends to the thread's buffer ([`buffer`]): a word with its number, then the words of
//! its `isa::flow::Layout`. It saves two registers that the block does not use, and changes no flags.
//!
//! The entry is *open* from the block's first instruction to the one that ends it, and *closed* before that one runs: branches and
//! instrumented instructions find all registers in place, as without flow mode. If a thread leaves a block early (a signal, a fault),
//! its entry is cut to what was executed ([`cut`]).

pub mod body;
pub mod buffer;
pub mod cut;
pub mod input;
pub mod kernel;
pub mod trampoline;

/// Is the flow recorded?
pub fn on() -> bool {
    crate::ring::control().options & wire::control::option::FLOW != 0
}

/// Are operands logged, too?
pub fn values() -> bool {
    crate::ring::control().options & wire::control::option::VALUES != 0
}
