//! The reference recorder: the target runs uninstrumented, one instruction at a time, under `ptrace`.
//!
//! It is the slow, plain twin of the probe and shares no code with it: another decoder (`yaxpeax-x86`), another
//! table of what stores, another way to find call paths (a shadow stack kept by watching calls), no translation.
//! Where both give the same stream, both are very likely right.
//!
//! How it works: before each instruction the operands tell where it will store ([`effect`]); after it the bytes are
//! read back ([`execute`]). System calls are noted at the `syscall` instruction and settled afterwards ([`kernel`]).
//! One thread moves at a time ([`runner`]), which makes the total order trivial.
//!
//! # What it cannot do
//! - It is slow: about 20 µs per instruction in a virtual machine, 3 seconds for `/bin/true`.
//! - Threads never run at the same time: races show only as interleavings of whole instructions.
//! - Instructions that the decoder does not know and that could touch PM (a memory operand, and the process has
//!   mapped a pool) end the recording with an error.
//! - 32-bit code, `int 0x80`, far transfers: refused.
//! - Programs that are tracers themselves, or that set the trap flag, do not work.
//! - User-level context switches (`swapcontext`, coroutines): call paths can hold frames of the other stack.
//! - A scatter that faults half-way loses the elements it had stored.
//! - System calls that write in parts (`ioctl`, `poll`, `select`) show what they *changed* in PM; bytes overwritten with the same
//!   value do not show.
//!   `io_uring`, and what the kernel writes when a thread ends (`set_tid_address`, robust futexes), do not show at all.
//! - Timeouts of `poll`, `futex` and kin are real time. Job control stops (`SIGSTOP`, Ctrl-Z) are not passed on.
//! - Where PID namespaces are not allowed, process and thread ids are the real ones.

mod births;
mod buffers;
mod code;
mod effect;
mod error;
mod execute;
mod file_calls;
mod flow;
mod image;
mod kernel;
mod mapping_calls;
mod name_calls;
mod operand;
mod operations;
mod pools;
mod prototypes;
mod ptrace;
mod recorder;
mod runner;
mod scatter;
mod session;
mod shadow;
mod signals;
mod space;
mod start;
mod table;
mod types;
mod unknown;
mod virtual_calls;
mod world;
mod xstate;

pub use error::StepError;
pub use recorder::StepRecorder;
