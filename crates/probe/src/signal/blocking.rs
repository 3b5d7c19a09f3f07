//! System calls that may wait. A signal that arrives before the call has begun prevents the call, so that no wait
//! starts with an undelivered signal; the call is made again after the handler, as the kernel restarts calls.

use core::arch::global_asm;
use core::mem::offset_of;

use super::set::SignalSet;
use super::state::Restart;
use crate::load::user;
use crate::sys::nr;
use crate::thread::Thread;

/// The kernel's `ERESTARTSYS`; it never reaches a program.
const RESTART: i64 = 512;

global_asm!(
    // rdi = number, rsi = six arguments.
    ".globl signal_blocking", "signal_blocking:",
    "mov rax, rdi", "mov r11, rsi",
    "mov rdi, [r11]", "mov rsi, [r11+8]", "mov rdx, [r11+16]", "mov r10, [r11+24]", "mov r8, [r11+32]", "mov r9, [r11+40]",
    ".globl signal_blocking_check", "signal_blocking_check:",
    "cmp dword ptr gs:[{signal_waits}], 0", "jne signal_blocking_not_begun",
    // The kernel's restart of a call sets rip back to here.
    ".globl signal_blocking_call", "signal_blocking_call:",
    "syscall",
    "ret",
    ".globl signal_blocking_not_begun", "signal_blocking_not_begun:",
    "mov rax, -{restart}",
    "ret",
    signal_waits = const offset_of!(Thread, signal_waits),
    restart = const RESTART,
);

unsafe extern "C" {
    fn signal_blocking(nr: u64, args: *const u64) -> i64;
    fn signal_blocking_check();
    fn signal_blocking_call();
    fn signal_blocking_not_begun();
}

/// Makes a system call of the program. If a signal comes first, the answer is an error that the caller passes on like any
/// other: the way out of the engine sees to it that the call is made again after the handler.
pub fn blocking_syscall(thread: &mut Thread, number: u64, args: [u64; 6]) -> i64 {
    let program_rax = thread.regs.rax;
    thread.signals.temporary = temporary_mask(number, &args);
    // SAFETY: the caller vouches for the call, which is the program's own.
    let result = unsafe { signal_blocking(number, args.as_ptr()) };
    if result == -RESTART {
        thread.signals.restart = Restart::Call(program_rax);
        thread.signals.temporary = None;
    }
    if !waits(thread) {
        thread.signals.temporary = None;
    }
    result
}

/// A call of the engine's own that must not be made with a signal waiting. False: it was not made.
pub fn unless_waiting(number: u64, args: [u64; 6]) -> bool {
    // SAFETY: the caller vouches for the call.
    unsafe { signal_blocking(number, args.as_ptr()) != -RESTART }
}

fn waits(thread: &Thread) -> bool {
    // SAFETY: a plain read that must see what a signal handler of this thread wrote.
    unsafe { core::ptr::read_volatile(&thread.signal_waits) != 0 }
}

/// For a call that must not be made with a signal waiting (`fork`: the child would get it too). All signals are blocked.
/// True: the call fails with the error that makes the program make it again after the handler.
pub fn begin_again(thread: &mut Thread) -> bool {
    if !waits(thread) {
        return false;
    }
    thread.signals.restart = Restart::Call(thread.regs.rax);
    thread.regs.rax = -RESTART as u64;
    true
}

/// The mask that the call sets for its own time.
fn temporary_mask(number: u64, args: &[u64; 6]) -> Option<SignalSet> {
    let address = match number {
        nr::RT_SIGSUSPEND => args[0],
        nr::PPOLL => args[3],
        nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2 => args[4],
        nr::PSELECT6 if args[5] != 0 => user::read(args[5])?,
        _ => 0,
    };
    (address != 0).then(|| user::read(address).map(SignalSet))?
}

/// For a signal that finds the thread here: the call has not begun; go there instead.
pub fn not_begun(rip: u64) -> Option<u64> {
    let check = signal_blocking_check as *const () as u64;
    let call = signal_blocking_call as *const () as u64;
    (check..=call).contains(&rip).then_some(signal_blocking_not_begun as *const () as u64)
}

/// If the system call that just ended was not made: the program makes it again.
pub fn apply_restart(thread: &mut Thread) {
    if let Restart::Call(rax) = core::mem::replace(&mut thread.signals.restart, Restart::No)
        && thread.regs.rax as i64 == -RESTART
    {
        const SYSCALL_BYTES: u64 = 2;
        thread.regs.rax = rax;
        thread.pc -= SYSCALL_BYTES;
    }
}
