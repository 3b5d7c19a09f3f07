//! The program's signals.
//!
//! The kernel delivers every signal to the engine ([`catch`]), on an engine stack of its own. From there it is either the
//! engine's business (a store to PM, translated code that changed: [`fault`]) or the program's: then the program's
//! handler is entered exactly as the kernel would have entered it ([`deliver`], [`frame`]), with the *program's* pc,
//! registers, mask and alternate stack.
//!
//! Where a signal may find a thread, and what happens:
//! - in translated code between two instructions: it is delivered at once;
//! - in translated code inside a sequence of ours, or in a trampoline called from there: the thread is single-stepped to the
//!   next boundary ([`step`]);
//! - in the engine: it is kept ([`state::Kept`]) with all signals blocked, and delivered when the engine is left
//!   ([`leave`]); a blocking system call that has not begun yet is not begun ([`blocking`]).
//!
//! The program's mask and actions are kept here; the kernel's differ from them only in this: the faults that the engine
//! lives from are never blocked, and their actions are always ours.

mod abi;
mod action;
mod alternate;
mod blocking;
pub mod careful;
mod catch;
mod deliver;
mod end;
mod fault;
mod frame;
mod giveback;
mod leave;
mod mask;
mod raise;
mod set;
pub mod state;
mod step;
mod table;

pub use blocking::{begin_again, blocking_syscall};
pub use catch::{give_back_stack, init};
pub use leave::before_entering;
pub use mask::{block_all, prepare_exec, unblock, undo_exec};
pub use raise::no_code;
pub use set::is_fault;
pub use table::syscall;
