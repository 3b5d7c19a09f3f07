//! The program's signal mask.

use super::abi::Info;
use super::blocking;
use super::set::SignalSet;
use crate::load::user;
use crate::sys::{EFAULT, EINVAL, nr, raw, sys};
use crate::syscall::{event, timers};
use crate::thread::Thread;

const SIZE: u64 = 8;
const SIG_BLOCK: u64 = 0;
const SIG_UNBLOCK: u64 = 1;
const SIG_SETMASK: u64 = 2;

fn set_real(mask: SignalSet) {
    // SAFETY: the kernel only reads `mask`.
    unsafe { raw!(nr::RT_SIGPROCMASK, SIG_SETMASK, &raw const mask, 0, SIZE) };
}

/// The first thread takes the mask that the process was started with.
pub fn inherit(thread: &mut Thread) {
    let mut mask = SignalSet::EMPTY;
    // SAFETY: the kernel fills `mask`, which has `SIZE` bytes.
    unsafe { raw!(nr::RT_SIGPROCMASK, SIG_SETMASK, 0, &raw mut mask, SIZE) };
    thread.signals.mask = mask;
    set_real(mask.real());
}

/// Blocks everything that can be (around clone and exec).
pub fn block_all() {
    set_real(SignalSet::ALL.real());
}

/// The program's mask holds again, unless a signal waits to be delivered: then it will hold afterwards.
pub fn unblock(thread: &Thread) {
    let real = thread.signals.mask.real();
    blocking::unless_waiting(nr::RT_SIGPROCMASK, [SIG_SETMASK, &raw const real as u64, 0, SIZE, 0, 0]);
}

/// The new image inherits what the program believes to be its mask and its ignored signals.
pub fn prepare_exec(thread: &mut Thread) {
    block_all();
    thread.signals.actions().before_exec();
    set_real(thread.signals.mask);
}

/// The exec failed.
pub fn undo_exec(thread: &mut Thread) {
    thread.signals.actions().after_failed_exec();
    unblock(thread);
}

/// Changes the program's mask, and the kernel's where they differ.
pub fn set(thread: &mut Thread, new: SignalSet) {
    let new = new.blockable();
    let before = core::mem::replace(&mut thread.signals.mask, new);
    if before.real() != new.real() {
        unblock(thread);
    }
    release_held(thread);
}

/// A fault's signal that was sent while the program blocks it.
pub fn hold(thread: &mut Thread, info: &Info) {
    let held = &mut thread.signals.held;
    if held.iter().flatten().any(|h| h.signo == info.signo) {
        return;
    }
    if let Some(slot) = held.iter_mut().find(|slot| slot.is_none()) {
        *slot = Some(*info);
    }
}

fn release_held(thread: &mut Thread) {
    for at in 0..thread.signals.held.len() {
        if let Some(info) = thread.signals.held[at]
            && !thread.signals.mask.has(info.signo)
        {
            thread.signals.held[at] = None;
            queue(thread, &info);
        }
    }
}

/// Sends a signal to the thread itself, as if it came now.
pub fn queue(thread: &Thread, info: &Info) {
    let pid = sys!(nr::GETPID);
    sys!(nr::RT_TGSIGQUEUEINFO, pid, thread.tid, info.signo, info as *const Info);
}

/// `rt_sigprocmask`.
pub fn syscall(thread: &mut Thread) -> i64 {
    let (how, new, old, size) = (thread.regs.rdi, thread.regs.rsi, thread.regs.rdx, thread.regs.r10);
    if size != SIZE {
        return -EINVAL;
    }
    let before = thread.signals.mask;
    if new != 0 {
        let Some(bits) = user::read::<u64>(new) else { return -EFAULT };
        let mask = match how {
            SIG_BLOCK => before.and(SignalSet(bits)),
            SIG_UNBLOCK => before.without(SignalSet(bits)),
            SIG_SETMASK => SignalSet(bits),
            _ => return -EINVAL,
        };
        set(thread, mask);
    }
    if old != 0 && !user::give(thread, old, &before) {
        return -EFAULT;
    }
    0
}

/// `rt_sigpending`: what the kernel has, and what is held here for it.
pub fn pending(thread: &mut Thread) -> i64 {
    let (address, size) = (thread.regs.rdi, thread.regs.rsi);
    if size > SIZE {
        return -EINVAL;
    }
    let mut set = SignalSet::EMPTY;
    // SAFETY: the kernel fills `set`, which has `SIZE` bytes.
    unsafe { raw!(nr::RT_SIGPENDING, &raw mut set, SIZE) };
    for info in thread.signals.held.iter().flatten() {
        set = set.with(info.signo);
    }
    let bytes = set.0.to_le_bytes();
    if !user::copy_out(address, &bytes[..size as usize]) {
        return -EFAULT;
    }
    event::kernel_write(thread, address, size);
    0
}

/// `rt_sigsuspend`: the kernel gets the mask without the faults' signals.
pub fn suspend(thread: &mut Thread) -> i64 {
    let (address, size) = (thread.regs.rdi, thread.regs.rsi);
    if size != SIZE {
        return -EINVAL;
    }
    let Some(bits) = user::read::<u64>(address) else { return -EFAULT };
    let mask = SignalSet(bits).blockable().real();
    let result = blocking::blocking_syscall(thread, nr::RT_SIGSUSPEND, [&raw const mask as u64, SIZE, 0, 0, 0, 0]);
    timers::catch_up();
    result
}
