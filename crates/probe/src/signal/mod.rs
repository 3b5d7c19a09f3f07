//! The program's signals.
//!
//! The kernel delivers every signal to the engine ([`catch`]), on a separate engine stack. The engine either handles it
//! itself (a store to PM, translated code that changed: [`fault`]) or enters the program's
//! handler exactly as the kernel would have entered it ([`deliver`], [`frame`]), with the *program's* pc,
//! registers, mask and alternate stack.
//!
//! Where a thread may be when a signal arrives, and what happens:
//! - in translated code between two instructions: it is delivered at once;
//! - in translated code inside a sequence of ours, or in a trampoline called from there: the thread is single-stepped to the
//!   next boundary ([`step`]);
//! - in the engine: it is kept ([`state::Kept`]) with all signals blocked, and delivered when the engine is left
//!   ([`leave`]); a blocking system call that has not begun yet is not begun ([`blocking`]).
//!
//! The program's mask and actions are kept here. The kernel's differ from them only in that the faults that the engine
//! relies on are never blocked, and their actions are always the engine's.

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

pub use abi::KernelAction;
pub use action::put_back;
pub use blocking::{begin_again, blocking_syscall};
pub use catch::{give_back_stack, init};
pub use end::would_end;
pub use leave::before_entering;
pub use mask::{block_all, prepare_exec, unblock, undo_exec};
pub use raise::no_code;
pub use set::is_fault;
pub use table::syscall;
