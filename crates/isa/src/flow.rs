//! What flow mode logs: for each executed block, the few words from which the address of every memory access follows.
//!
//! One table for the three that must agree: the probe, which emits the code that logs; the single-step reference, which
//! computes the same words from registers; and the analysis, which turns them back into addresses.
//!
//! [`logged`] says which *values* an instruction has (the address of its operand, the stack pointer, …). [`Layout`] says
//! how the values of a whole block follow from its *slots*, the words that are really logged: a base register that
//! was not written in between is logged once, however many accesses go through it; rip-relative addresses are not logged at all.
//!
//! In *values mode* the words have the operands of everything that computes as well ([`wanted`]).
//!
//! Not data, hence not logged: `lea`, hinting nops, prefetches, flushes, and the like.
//!
//! What the log does not tell ([`Value::opaque`]; the address is then a starting point only):
//! - gathers and scatters: the base alone; which elements, and where, stays unknown;
//! - `bt`, `bts`, `btr`, `btc` of memory with a register: they reach beyond the operand;
//! - `xsave` and its kin: the address is right, the extent is not known; `enter` with nested frames; AMX tiles;
//! - masks of masked moves: the whole operand counts. These are not marked opaque: the extent is right, only larger.

mod layout;
mod logged;
mod track;
mod wanted;

pub use layout::{Layout, LoggedWord, Place, Root, Value, When};
pub use logged::{List, Logged, logged};
pub use wanted::{CARRY, Wanted, WantedList, wanted};
