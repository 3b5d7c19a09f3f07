//! Flow mode: every executed block and every address it accesses goes to the host (`record::flow`).
//!
//! A block then ends at its first branch, and at everything that is not simply copied: instrumented instructions, fences, locked
//! instructions, system calls. Its code appends to a buffer of the thread ([`buffer`]): a word with its number, then the words of
//! its `isa::flow::Layout`. Two registers that the block does not use are put away for that; no flag is touched.
//!
//! The entry is *open* from the block's first instruction to the one that ends it, and *closed* before that one runs: branches and
//! instrumented instructions find all registers in place, as without flow mode. Whoever leaves a block early (a signal, a fault)
//! has its entry cut to what was executed ([`cut`]).

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
