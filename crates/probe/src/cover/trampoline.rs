//! A PM operation of a block: counts its transition, then continues as in a recovery run without coverage (`trampoline::note`), so that the
//! host knows which lines were changed.

use core::arch::global_asm;
use core::mem::offset_of;

use wire::record::kind;

use crate::layout;
use crate::site::{SITE_SHIFT, Site, flag};
use crate::thread::Thread;

global_asm!(
    ".globl trampoline_cover_keep", "trampoline_cover_keep:",
    "push rax", "lahf", "seto al", "push rax", "mov rax, [rsp+8]",
    "call trampoline_cover",
    "pop rax", "add al, 0x7f", "sahf", "pop rax", "ret",

    ".globl trampoline_cover", "trampoline_cover:",
    "push rax", "push rcx",
    "mov ecx, gs:[{site}]",
    "shl rcx, {site_shift}",
    "add rcx, {sites}",
    // A locked instruction is a fence only while something is pending.
    "mov eax, [rcx+{s_flags}]",
    "test eax, {pending_bits}", "jz 2f",
    "shr eax, 2", "and eax, 1", "mov gs:[{pending}], rax",
    "2:",
    // A flush of other memory is no PM operation.
    "cmp byte ptr [rcx+{s_kind}], {flush}", "jne 3f",
    "call trampoline_is_pm", "jnc 4f",
    "3:",
    "mov rcx, [rcx+{s_operation}]",
    "mov rax, gs:[{before}]",
    "xor eax, ecx",
    "shr ecx, 1",
    "mov gs:[{before}], rcx",
    "add byte ptr [rax+{map}], 1",
    "adc byte ptr [rax+{map}], 0",
    "4:",
    "pop rcx", "pop rax",
    "jmp trampoline_note",

    site = const offset_of!(Thread, site),
    before = const offset_of!(Thread, cover_before),
    pending = const offset_of!(Thread, pending),
    sites = const layout::SITES,
    site_shift = const SITE_SHIFT,
    s_flags = const offset_of!(Site, flags),
    s_kind = const offset_of!(Site, kind_aux),
    s_operation = const offset_of!(Site, operation),
    pending_bits = const flag::SETS_PENDING | flag::CLEARS_PENDING,
    flush = const kind::FLUSH,
    map = const super::PM_MAP,
);

unsafe extern "C" {
    pub fn trampoline_cover();
    pub fn trampoline_cover_keep();
}
