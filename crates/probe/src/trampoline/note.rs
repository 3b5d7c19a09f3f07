//! Notes from inside a block what a recovery run reads and writes in the pools: the same call as `trampoline_record`, but it only sets
//! a bit in the shadow of the line; only the first read and the first write of a line are reported to the host.
//!
//! The shadow of a line is a word with the bytes that this process has written, and a byte with what was noted already
//! (`recover::notes`). A load of bytes that were all written before does not read the crash image.

use core::arch::global_asm;
use core::mem::offset_of;

use wire::control::Control;
use wire::record::kind;

use crate::layout;
use crate::pm::{RANGE_COUNT, RANGES, SHADOWS, Shadow};
use crate::recover::notes::{DIRTY_NOTED, READ_NOTED};
use crate::site::{SITE_SHIFT, Site};
use crate::thread::Thread;

global_asm!(
    ".globl trampoline_note_keep", "trampoline_note_keep:",
    "push rax", "lahf", "seto al", "push rax", "mov rax, [rsp+8]",
    "call trampoline_note",
    "pop rax", "add al, 0x7f", "sahf", "pop rax", "ret",

    ".globl trampoline_note", "trampoline_note:",
    "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
    "mov esi, gs:[{site}]",
    "shl rsi, {site_shift}",
    "add rsi, {sites}",
    "movzx esi, byte ptr [rsi+{s_kind}]",
    "mov rdi, gs:[{ea}]",
    // The size: of a load in `old`, else the site's.
    "mov ecx, gs:[{old}]",
    "cmp esi, {load}", "je 2f",
    "cmp esi, {rmw}", "ja 9f",
    "mov ecx, gs:[{site}]", "shl rcx, {site_shift}", "mov ecx, [rcx+{sites}+{s_size}]",
    "2:",
    // --- the range and its shadow -> r8, r11
    "mov edx, [{range_count}]", "shl edx, 4",
    "3:", "sub edx, 16", "js 9f",
    "mov rax, rdi", "sub rax, [rdx+{ranges}]", "cmp rax, [rdx+{ranges}+8]", "jae 3b",
    "mov r8, [rdx+{shadows}+{written}]", "mov r11, [rdx+{shadows}+{noted}]",
    // --- inside one line, and not all of it?
    "mov eax, edi", "and eax, 63", "lea r9d, [rax+rcx]", "cmp r9d, 64", "ja 8f",
    "cmp ecx, 63", "ja 8f",
    "mov r10d, 1", "shl r10, cl", "dec r10", "mov ecx, eax", "shl r10, cl",
    "mov r9, rdi", "shr r9, 6",
    "cmp esi, {store}", "je 5f",
    // --- a read
    "test byte ptr [r11+r9], {read_noted}", "jnz 4f",
    "test byte ptr [r11+r9], {dirty_noted}", "jz 8f",
    "mov rax, [r8+r9*8]", "not rax", "test rax, r10", "jnz 8f",
    "4:", "cmp esi, {load}", "je 9f",
    // --- a write
    "5:", "or [r8+r9*8], r10",
    "test byte ptr [r11+r9], {dirty_noted}", "jz 8f",
    "9:",
    "cmp qword ptr gs:[{holds_order}], 0", "jne 95f",
    "10:",
    "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax", "ret",
    // The first time, or several lines: in Rust, which looks at everything again.
    "8:",
    "push rbp", "mov rbp, rsp",
    "sub rsp, 256", "and rsp, -16",
    "movups [rsp], xmm0", "movups [rsp+16], xmm1", "movups [rsp+32], xmm2", "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4", "movups [rsp+80], xmm5", "movups [rsp+96], xmm6", "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8", "movups [rsp+144], xmm9", "movups [rsp+160], xmm10", "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12", "movups [rsp+208], xmm13", "movups [rsp+224], xmm14", "movups [rsp+240], xmm15",
    "mov rdi, gs:[0]", "call engine_note",
    "movups xmm0, [rsp]", "movups xmm1, [rsp+16]", "movups xmm2, [rsp+32]", "movups xmm3, [rsp+48]",
    "movups xmm4, [rsp+64]", "movups xmm5, [rsp+80]", "movups xmm6, [rsp+96]", "movups xmm7, [rsp+112]",
    "movups xmm8, [rsp+128]", "movups xmm9, [rsp+144]", "movups xmm10, [rsp+160]", "movups xmm11, [rsp+176]",
    "movups xmm12, [rsp+192]", "movups xmm13, [rsp+208]", "movups xmm14, [rsp+224]", "movups xmm15, [rsp+240]",
    "mov rsp, rbp", "pop rbp",
    "jmp 9b",
    "95:",
    "mov qword ptr gs:[{holds_order}], 0", "mov dword ptr [{order_lock}], 0", "jmp 10b",

    site = const offset_of!(Thread, site),
    ea = const offset_of!(Thread, ea),
    old = const offset_of!(Thread, old),
    holds_order = const offset_of!(Thread, holds_order),
    sites = const layout::SITES,
    site_shift = const SITE_SHIFT,
    s_size = const offset_of!(Site, size),
    s_kind = const offset_of!(Site, kind_aux),
    store = const kind::STORE,
    rmw = const kind::RMW,
    load = const kind::LOAD,
    read_noted = const READ_NOTED,
    dirty_noted = const DIRTY_NOTED,
    range_count = sym RANGE_COUNT,
    ranges = sym RANGES,
    shadows = sym SHADOWS,
    written = const offset_of!(Shadow, written),
    noted = const offset_of!(Shadow, noted),
    order_lock = const layout::CONTROL as usize + offset_of!(Control, order_lock),
);

unsafe extern "C" {
    pub fn trampoline_note();
    pub fn trampoline_note_keep();
}

#[unsafe(no_mangle)]
extern "C" fn engine_note(thread: &mut Thread) {
    let site = crate::site::get(thread.site as u32);
    let kind = site.kind_aux as u8;
    let size = if kind == kind::LOAD { thread.old[0] } else { site.size as u64 };
    crate::recover::notes::access(kind, thread.ea, size);
}

// Ranges and shadows have the same stride.
const _: () = assert!(size_of::<Shadow>() == 16);
const _: () = assert!(kind::STORE < kind::RMW && kind::LOAD > kind::RMW);
