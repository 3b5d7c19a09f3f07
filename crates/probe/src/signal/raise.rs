//! Faults that the engine raises for the program: the program's code cannot, because it never runs at its own address.

use super::abi::{Info, SIGSEGV, TRAP_PAGE_FAULT};
use super::state::Kept;
use super::{careful, mask};
use crate::thread::Thread;

/// The program's instruction at `thread.pc` raised a fault. It is delivered when the engine is left; the state in the
/// structure must be the one before the instruction.
pub fn raise_fault(thread: &mut Thread, signal: i32, code: i32, address: u64, trapno: u64, err: u64) {
    mask::block_all();
    // Faults come before whatever else arrived.
    if let Some(kept) = thread.signals.kept.take() {
        mask::queue(thread, &kept.info);
    }
    thread.signals.kept = Some(Kept { info: Info::new(signal, code, address), err, trapno, cr2: address, fault: true });
    thread.signal_waits = 1;
}

/// The program jumped to `thread.pc`, where there is no code.
pub fn no_code(thread: &mut Thread) {
    const SEGV_MAPERR: i32 = 1;
    const SEGV_ACCERR: i32 = 2;
    // Page-fault error code: user mode, instruction fetch; bit 0 if the page is there (Intel SDM vol. 3 §4.7).
    const FETCH: u64 = 0x14;
    let pc = thread.pc;
    if pc >> 47 != 0 && pc >> 47 != 0x1_ffff {
        // Not a canonical address: a general protection fault, which has no address.
        const TRAP_PROTECTION: u64 = 13;
        return raise_fault(thread, SIGSEGV, super::abi::SI_KERNEL, 0, TRAP_PROTECTION, 0);
    }
    let there = careful::read::<u8>(pc).is_some();
    let code = if there { SEGV_ACCERR } else { SEGV_MAPERR };
    raise_fault(thread, SIGSEGV, code, pc, TRAP_PAGE_FAULT, FETCH | there as u64);
}
