//! Leaving and entering translated code.
//!
//! Translated code jumps to a trampoline with every register of the program in place. The trampoline saves the general registers, flags and
//! xmm0–15 into the thread's structure, switches to the engine stack and calls Rust. The engine is compiled for plain
//! SSE2, so YMM/ZMM upper halves, mask registers, x87 and MXCSR stay in the processor.

use core::arch::global_asm;
use core::mem::offset_of;

use crate::thread::{Regs, Thread};

macro_rules! reg {
    ($r:ident) => {
        offset_of!(Thread, regs) + offset_of!(Regs, $r)
    };
}

global_asm!(
    ".macro SAVE_STATE",
    "mov gs:[{rax}], rax", "mov gs:[{rcx}], rcx", "mov gs:[{rdx}], rdx", "mov gs:[{rbx}], rbx",
    "mov gs:[{rsp}], rsp", "mov gs:[{rbp}], rbp", "mov gs:[{rsi}], rsi", "mov gs:[{rdi}], rdi",
    "mov gs:[{r8}], r8", "mov gs:[{r9}], r9", "mov gs:[{r10}], r10", "mov gs:[{r11}], r11",
    "mov gs:[{r12}], r12", "mov gs:[{r13}], r13", "mov gs:[{r14}], r14", "mov gs:[{r15}], r15",
    "mov rsp, gs:[{engine_rsp}]",
    "pushfq", "pop qword ptr gs:[{flags}]", "cld",
    "movups gs:[{xmm}], xmm0", "movups gs:[{xmm}+16], xmm1", "movups gs:[{xmm}+32], xmm2", "movups gs:[{xmm}+48], xmm3",
    "movups gs:[{xmm}+64], xmm4", "movups gs:[{xmm}+80], xmm5", "movups gs:[{xmm}+96], xmm6", "movups gs:[{xmm}+112], xmm7",
    "movups gs:[{xmm}+128], xmm8", "movups gs:[{xmm}+144], xmm9", "movups gs:[{xmm}+160], xmm10", "movups gs:[{xmm}+176], xmm11",
    "movups gs:[{xmm}+192], xmm12", "movups gs:[{xmm}+208], xmm13", "movups gs:[{xmm}+224], xmm14", "movups gs:[{xmm}+240], xmm15",
    "mov dword ptr gs:[{place}], 1",
    "mov rdi, gs:[0]",
    ".endm",
    ".macro LOAD_STATE",
    "movups xmm0, gs:[{xmm}]", "movups xmm1, gs:[{xmm}+16]", "movups xmm2, gs:[{xmm}+32]", "movups xmm3, gs:[{xmm}+48]",
    "movups xmm4, gs:[{xmm}+64]", "movups xmm5, gs:[{xmm}+80]", "movups xmm6, gs:[{xmm}+96]", "movups xmm7, gs:[{xmm}+112]",
    "movups xmm8, gs:[{xmm}+128]", "movups xmm9, gs:[{xmm}+144]", "movups xmm10, gs:[{xmm}+160]", "movups xmm11, gs:[{xmm}+176]",
    "movups xmm12, gs:[{xmm}+192]", "movups xmm13, gs:[{xmm}+208]", "movups xmm14, gs:[{xmm}+224]", "movups xmm15, gs:[{xmm}+240]",
    "mov dword ptr gs:[{place}], 0",
    "push qword ptr gs:[{flags}]", "popfq",
    "mov rax, gs:[{rax}]", "mov rcx, gs:[{rcx}]", "mov rdx, gs:[{rdx}]", "mov rbx, gs:[{rbx}]",
    "mov rbp, gs:[{rbp}]", "mov rsi, gs:[{rsi}]", "mov rdi, gs:[{rdi}]",
    "mov r8, gs:[{r8}]", "mov r9, gs:[{r9}]", "mov r10, gs:[{r10}]", "mov r11, gs:[{r11}]",
    "mov r12, gs:[{r12}]", "mov r13, gs:[{r13}]", "mov r14, gs:[{r14}]", "mov r15, gs:[{r15}]",
    "mov rsp, gs:[{rsp}]",
    ".endm",

    // A direct branch whose target is not linked yet; gs:[arg] is the exit's number.
    ".globl trampoline_exit", "trampoline_exit:", "SAVE_STATE", "call engine_exit", "jmp trampoline_enter",
    // An indirect branch to rdx that the table does not know. The program's rcx and rdx are in t0 and t1.
    ".globl trampoline_miss", "trampoline_miss:", "mov gs:[{target}], rdx", "mov rdx, gs:[{t1}]", "mov rcx, gs:[{t0}]", "SAVE_STATE", "call engine_miss", "jmp trampoline_enter",
    // Go on at gs:[target] with the registers as they are (after faults, sigreturn, ...).
    ".globl trampoline_reenter", "trampoline_reenter:", "SAVE_STATE", "call engine_target", "jmp trampoline_enter",
    // A `syscall` instruction; gs:[target] is the pc after it.
    ".globl trampoline_syscall", "trampoline_syscall:", "SAVE_STATE", "call engine_syscall", "jmp trampoline_enter",
    // An instruction that the engine carries out itself; gs:[arg] says which, gs:[target] is the pc after it.
    ".globl trampoline_emulate", "trampoline_emulate:", "SAVE_STATE", "call engine_emulate", "jmp trampoline_enter",

    // Loads the program's state and goes to gs:[resume]. Between these labels the state is half loaded: a signal that
    // arrives here finds everything still in the thread's structure.
    ".globl trampoline_enter", "trampoline_enter:",
    "LOAD_STATE",
    "jmp qword ptr gs:[{resume}]",
    ".globl trampoline_enter_end", "trampoline_enter_end:",

    // A call from inside a block on the engine stack (gs:[app_rsp] holds the program's rsp): Rust may change the
    // saved registers. gs:[arg] says what for.
    ".globl trampoline_call", "trampoline_call:",
    "pop qword ptr gs:[{t2}]",
    "mov rsp, gs:[{app_rsp}]",
    "SAVE_STATE",
    "push qword ptr gs:[{t2}]", "push qword ptr gs:[{t2}]",
    "call engine_call",
    "pop qword ptr gs:[{t2}]",
    "mov rax, gs:[{rsp}]", "mov gs:[{app_rsp}], rax",
    "mov rsp, gs:[{engine_rsp}]",
    "LOAD_STATE",
    "mov rsp, gs:[{engine_rsp}]",
    "jmp qword ptr gs:[{t2}]",
    ".globl trampoline_call_end", "trampoline_call_end:",

    t0 = const offset_of!(Thread, t0),
    t1 = const offset_of!(Thread, t1),
    target = const offset_of!(Thread, target),
    t2 = const offset_of!(Thread, t2),
    app_rsp = const offset_of!(Thread, app_rsp),
    engine_rsp = const offset_of!(Thread, engine_rsp),
    flags = const offset_of!(Thread, flags),
    place = const offset_of!(Thread, place),
    resume = const offset_of!(Thread, resume),
    xmm = const offset_of!(Thread, xmm),
    rax = const reg!(rax), rcx = const reg!(rcx), rdx = const reg!(rdx), rbx = const reg!(rbx),
    rsp = const reg!(rsp), rbp = const reg!(rbp), rsi = const reg!(rsi), rdi = const reg!(rdi),
    r8 = const reg!(r8), r9 = const reg!(r9), r10 = const reg!(r10), r11 = const reg!(r11),
    r12 = const reg!(r12), r13 = const reg!(r13), r14 = const reg!(r14), r15 = const reg!(r15),
);

unsafe extern "C" {
    pub fn trampoline_exit();
    pub fn trampoline_miss();
    pub fn trampoline_reenter();
    pub fn trampoline_syscall();
    pub fn trampoline_emulate();
    pub fn trampoline_enter() -> !;
    pub fn trampoline_enter_end();
    pub fn trampoline_call();
    pub fn trampoline_call_end();
}

/// The engine runs on the engine stack and is done: the program goes on at `thread.pc`.
#[unsafe(no_mangle)]
extern "C" fn engine_exit(thread: &mut Thread) {
    crate::translate::link::take_exit(thread);
    crate::signal::before_entering(thread);
}

#[unsafe(no_mangle)]
extern "C" fn engine_target(thread: &mut Thread) {
    thread.pc = thread.target;
    crate::translate::link::go_on(thread);
    crate::signal::before_entering(thread);
}

#[unsafe(no_mangle)]
extern "C" fn engine_miss(thread: &mut Thread) {
    thread.pc = thread.target;
    crate::translate::link::arrive(thread);
    crate::signal::before_entering(thread);
}

#[unsafe(no_mangle)]
extern "C" fn engine_syscall(thread: &mut Thread) {
    thread.pc = thread.target;
    crate::syscall::handle(thread);
    crate::translate::link::go_on(thread);
    crate::signal::before_entering(thread);
}

#[unsafe(no_mangle)]
extern "C" fn engine_emulate(thread: &mut Thread) {
    thread.pc = thread.target;
    crate::translate::emulate::run(thread);
    crate::translate::link::go_on(thread);
    crate::signal::before_entering(thread);
}

#[unsafe(no_mangle)]
extern "C" fn engine_call(thread: &mut Thread) {
    crate::translate::implicit::call(thread);
}

/// First entry of a thread: its state is in the structure, `pc` is where to start.
pub fn start(thread: &mut Thread) -> ! {
    crate::translate::link::go_on(thread);
    crate::signal::before_entering(thread);
    let rsp = thread.engine_rsp;
    // SAFETY: the state in the structure is complete; `trampoline_enter` uses the top of the engine stack only.
    unsafe {
        core::arch::asm!("mov rsp, {rsp}", "jmp {enter}", rsp = in(reg) rsp, enter = sym trampoline_enter, options(noreturn))
    }
}
