//! Away from the stack that is put back, and to where it was left.

use core::arch::global_asm;
use core::mem::offset_of;

use super::region::Region;

global_asm!(
    // rdi: the region. Returns 0 at once, and 1 each time the process has been put back. The other half of the registers (SDM vol. 1 §13.7
    // and §13.8: all that the system has enabled) belongs to the program.
    ".globl undo_mark", "undo_mark:",
    "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
    "mov rbx, rdi",
    "mov eax, -1", "mov edx, -1", "xsave64 [rbx + {xsave}]",
    "mov [rbx + {rsp}], rsp",
    "mov rsp, [rbx + {stack_top}]",
    "mov rdi, rbx", "call {marked}",
    "xor eax, eax",
    "jmp 2f",
    // rdi: the region. Does not come back here.
    ".globl undo_back", "undo_back:",
    "mov rbx, rdi",
    "mov rsp, [rbx + {stack_top}]",
    "call {put_back}",
    "mov eax, -1", "mov edx, -1", "xrstor64 [rbx + {xsave}]",
    "mov eax, 1",
    "2:",
    "mov rsp, [rbx + {rsp}]",
    "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
    "ret",
    xsave = const offset_of!(Region, xsave),
    rsp = const offset_of!(Region, rsp),
    stack_top = const offset_of!(Region, stack_top),
    marked = sym super::end::marked,
    put_back = sym super::end::put_back,
);

unsafe extern "C" {
    /// Keeps the state of the process; 1: it is in that state again.
    ///
    /// As with `fork`, memory and registers are those of the first return, but for the region and what is shared.
    pub fn undo_mark(region: *const Region) -> u64;
    /// Puts the process back, and waits to be told to go on.
    pub fn undo_back(region: *const Region) -> !;
}

/// Does the processor keep its registers with `xsave`, within the room that there is? Asked once: a virtual machine takes long to answer.
pub fn can_save() -> bool {
    use core::arch::x86_64::{__cpuid, __cpuid_count};
    use core::sync::atomic::{AtomicU32, Ordering};
    static ANSWER: AtomicU32 = AtomicU32::new(0);
    const YES: u32 = 1;
    const NO: u32 = 2;
    let known = ANSWER.load(Ordering::Relaxed);
    if known != 0 {
        return known == YES;
    }
    const OSXSAVE: u32 = 1 << 27;
    let can = __cpuid(1).ecx & OSXSAVE != 0 && __cpuid_count(13, 0).ebx as usize <= super::region::XSAVE;
    ANSWER.store(if can { YES } else { NO }, Ordering::Relaxed);
    can
}
