//! System calls that the recorder does not support, or only in part: it says so, or answers like a kernel without the call.

use core::sync::atomic::{AtomicBool, Ordering};

use super::buffers;
use super::dispatch::Call;
use crate::load::user;
use crate::pm::pools;
use crate::refuse;
use crate::ring;
use crate::sys::{EINVAL, ENOSYS, nr, sys};
use crate::thread::Thread;

pub fn answer(thread: &mut Thread, call: Call) -> i64 {
    match call.nr {
        // The kernel would jump into the middle of code that we have translated; libraries do without.
        nr::RSEQ => -ENOSYS,
        nr::ARCH_PRCTL => arch_prctl(thread, call),
        nr::PRCTL => prctl(thread, call),
        nr::SECCOMP => seccomp(thread, call),
        nr::MODIFY_LDT => modify_ldt(thread, call),
        // The kernel would read and write behind our back. Programs fall back to ordinary calls.
        nr::IO_URING_SETUP => -ENOSYS,
        nr::IO_SUBMIT => io_submit(thread, call),
        nr::PERSONALITY => personality(call),
        _ => buffers::pass(thread, call),
    }
}

fn arch_prctl(thread: &mut Thread, call: Call) -> i64 {
    const ARCH_SET_GS: u64 = 0x1001;
    const ARCH_GET_GS: u64 = 0x1004;
    const ARCH_SHSTK_ENABLE: u64 = 0x5001;
    match call.args[0] {
        ARCH_SET_GS => refuse!(thread, "the program sets its GS base, which the recorder needs for itself"),
        ARCH_GET_GS if user::write(call.args[1], &0u64) => 0,
        // A shadow stack would hold our return addresses.
        ARCH_SHSTK_ENABLE => -EINVAL,
        _ => buffers::pass(thread, call),
    }
}

fn prctl(thread: &mut Thread, call: Call) -> i64 {
    const PR_SET_SECCOMP: u64 = 22;
    const PR_SET_TSC: u64 = 26;
    const PR_SET_SYSCALL_USER_DISPATCH: u64 = 59;
    match call.args[0] {
        PR_SET_SECCOMP => without_filter(thread),
        PR_SET_TSC => 0,
        PR_SET_SYSCALL_USER_DISPATCH => -EINVAL,
        _ => buffers::pass(thread, call),
    }
}

fn seccomp(thread: &mut Thread, call: Call) -> i64 {
    const SET_MODE_STRICT: u64 = 0;
    const SET_MODE_FILTER: u64 = 1;
    const NEW_LISTENER: u64 = 8;
    match call.args[0] {
        SET_MODE_FILTER if call.args[1] & NEW_LISTENER != 0 => -EINVAL,
        // Asking whether filters exist: natively a null pointer is found to be bad.
        SET_MODE_FILTER if call.args[2] == 0 => -crate::sys::EFAULT,
        SET_MODE_STRICT | SET_MODE_FILTER => without_filter(thread),
        _ => buffers::pass(thread, call),
    }
}

/// A filter would hit the recorder's own calls: the program goes on without.
fn without_filter(thread: &mut Thread) -> i64 {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        ring::message(thread, 1, "the program asked for a seccomp filter; it runs without one while it is recorded");
    }
    0
}

fn modify_ldt(thread: &mut Thread, call: Call) -> i64 {
    const WRITE: u64 = 1;
    const WRITE_NEW: u64 = 0x11;
    if matches!(call.args[0], WRITE | WRITE_NEW) {
        refuse!(
            thread,
            "the program makes its own memory segments (modify_ldt): 16- and 32-bit code cannot be recorded"
        );
    }
    buffers::pass(thread, call)
}

/// Asynchronous I/O is fine as long as no pool takes part.
fn io_submit(thread: &mut Thread, call: Call) -> i64 {
    // struct iocb: the descriptor at 20, the buffer at 24.
    if pools::any() {
        for i in 0..call.args[1].min(1024) {
            let Some(block) = user::read::<u64>(call.args[2] + i * 8) else { break };
            let fd = user::read::<i32>(block + 20).unwrap_or(-1);
            let buffer = user::read::<u64>(block + 24).unwrap_or(0);
            if pools::of_fd(fd).is_some() || crate::pm::is_pm(buffer) {
                refuse!(thread, "the program uses asynchronous I/O (io_submit) on a pool, which cannot be recorded");
            }
        }
    }
    call.pass(thread)
}

/// The recorder's own setting stays, and stays invisible.
fn personality(call: Call) -> i64 {
    const ADDR_NO_RANDOMIZE: u64 = 0x4_0000;
    const QUERY: u64 = 0xffff_ffff;
    static ASKED: AtomicBool = AtomicBool::new(false);
    let wanted = call.args[0] & 0xffff_ffff;
    let was = ASKED.load(Ordering::Relaxed);
    let result =
        if wanted == QUERY { sys!(nr::PERSONALITY, QUERY) } else { sys!(nr::PERSONALITY, wanted | ADDR_NO_RANDOMIZE) };
    if wanted != QUERY && result >= 0 {
        ASKED.store(wanted & ADDR_NO_RANDOMIZE != 0, Ordering::Relaxed);
    }
    if result >= 0 && !was { result & !(ADDR_NO_RANDOMIZE as i64) } else { result }
}
