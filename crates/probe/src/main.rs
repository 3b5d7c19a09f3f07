//! The probe: runs in the target's process, translates its code block by block, and records what reaches PM.
//!
//! How it works: `docs/design/engine.md`. Modules: [`load`] loads the program, [`translate`] generates code, [`trampoline`] is
//! the assembly between translated code and the engine, [`context`] finds call paths, [`syscall`], [`signal`] and [`task`] are the program's
//! view of the kernel, [`pm`] knows which memory is PM, [`ring`] and [`site`] report to the host, [`flow`] is a mode that
//! reports every executed block, [`cover`] is a mode that counts branches and PM operations, [`recover`] is the fork server for recovery runs.
#![no_std]
#![no_main]

extern crate alloc;

mod atomic;
mod context;
mod cover;
mod fail;
mod flow;
mod layout;
mod load;
mod lock;
mod map;
mod memory;
mod pm;
mod recover;
mod ring;
mod signal;
mod site;
mod sys;
mod syscall;
mod task;
mod thread;
mod trampoline;
mod translate;

core::arch::global_asm!(
    ".globl _start", "_start:", "xor ebp, ebp", "mov rdi, rsp", "and rsp, -16", "call {start}", "ud2",
    start = sym load::start,
);
