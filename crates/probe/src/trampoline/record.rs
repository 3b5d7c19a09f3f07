//! Writing one record from inside a block.
//!
//! Called on the engine stack with gs:[site], gs:[ea] and gs:[app_rsp] set and every register of the program in place
//! (but rsp). Preserves all registers; `trampoline_record` destroys the arithmetic flags, `trampoline_record_keep` keeps them.
//!
//! The call path is found in a small cache of the thread: first that of last time, then the recent ones with the same innermost frame. Its frames hold
//! every stack word that unwinding read, with its value; if all still hold, unwinding again would give the same path
//! (it is a function of just these words), so its number is exact. Otherwise Rust unwinds (`context::unwind`).

use core::arch::global_asm;
use core::mem::offset_of;

use wire::control::{Control, RING_BYTES};

use crate::context::cache::{NEEDS_RBP, PathCache, PathFrame, SET_SHIFT, SPREAD, WAYS};
use crate::layout;
use crate::site::{SITE_SHIFT, Site, flag};
use crate::thread::Thread;

global_asm!(
    ".globl trampoline_record_keep", "trampoline_record_keep:",
    "push rax", "lahf", "seto al", "push rax", "mov rax, [rsp+8]",
    "call trampoline_record",
    "pop rax", "add al, 0x7f", "sahf", "pop rax", "ret",

    ".globl trampoline_record", "trampoline_record:",
    "push rax", "push rcx", "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11",
    "mov esi, gs:[{site}]",
    "shl rsi, {site_shift}",
    "add rsi, {sites}",
    // --- order lock (sites without a store take it here; stores took it before)
    "cmp dword ptr [{many_tasks}], 0", "jne 50f",
    "201:",
    // --- call path -> edx
    "mov r8d, [rsi+{s_flags}]",
    "test r8d, {same_path}", "jnz 15f",
    "16:",
    "test r8d, {no_rule}", "jnz 30f",
    "mov rdi, gs:[{app_rsp}]",
    "test r8d, {cfa_rbp}", "cmovnz rdi, rbp",
    "movsxd rax, dword ptr [rsi+{s_cfa}]",
    "lea rdi, [rdi+rax-8]",
    ".globl trampoline_record_probe_start", "trampoline_record_probe_start:",
    // The path of last time?
    "xor r10d, r10d",
    "mov rdx, gs:[{last}]",
    "cmp [rdx+{f_return_at}], rdi", "jne 18f",
    "2:",
    "test dword ptr [rdx+{f_flags}], {needs_rbp}", "jnz 20f",
    "19:",
    // Every word of every frame, from the innermost outwards.
    "mov r9, rdx",
    "3:",
    "mov r11, [r9+{f_return_at}]", "mov rcx, [r9+{f_return_to}]", "cmp [r11], rcx", "jne 28f",
    "mov r11, [r9+{f_link_at}]", "mov rcx, [r9+{f_link}]", "cmp [r11], rcx", "jne 28f",
    "mov r9, [r9+{f_outer}]",
    "test r9, r9", "jnz 3b",
    "mov gs:[{last}], rdx",
    "mov edx, [rdx+{f_id}]",
    "17:",
    "mov gs:[{last_path}], rdx",
    // --- room in the ring
    "4:",
    "mov ecx, [rsi+{s_size}]",
    "mov eax, ecx",
    "test r8d, {has_old}", "jz 5f", "add eax, eax", "5:",
    "lea r9d, [rax+31]", "and r9d, -8",      // record_bytes(payload)
    "mov rdi, [{head}]",
    "add r9, rdi",                             // new head
    "mov rax, r9", "sub rax, [{tail}]", "cmp rax, {ring_bytes}", "ja 40f",
    "6:",
    "mov eax, edi", "and eax, {ring_mask}", "lea rdi, [rax+{ring}]",
    // --- header
    "mov eax, [rsi+{s_kind}]", "or rax, gs:[{header_thread}]",
    "test r8d, {has_old}", "jnz 60f",
    "shl rcx, 32", "or rax, rcx", "shr rcx, 32",
    "7:",
    "mov [rdi], rax",
    "mov eax, gs:[{site}]", "shl rdx, 32", "or rax, rdx", "mov [rdi+8], rax",
    "mov rdx, gs:[{ea}]", "mov [rdi+16], rdx",
    // --- value: read from the alias, or captured before (non-temporal)
    "test r8d, {captured}", "jnz 70f",
    "btc rdx, {alias_bit}",
    "8:",
    "cmp ecx, 8", "je 9f", "jb 80f",
    "210:", "mov rax, [rdx]", "mov [rdi+24], rax", "add rdx, 8", "add rdi, 8", "sub ecx, 8", "ja 210b",
    "jmp 211f",
    "9:", "mov rax, [rdx]", "mov [rdi+24], rax",
    "211:",
    // --- publish
    "mov [{head}], r9",
    "test r8d, {pending_bits}", "jnz 90f",
    "12:",
    "cmp qword ptr gs:[{holds_order}], 0", "jne 95f",
    "13:",
    "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx", "pop rcx", "pop rax", "ret",

    // The path depends on the caller's rbp: compare it as well.
    "20:",
    "movsxd r11, dword ptr [rsi+{s_rbp}]", "test r11d, r11d", "jz 21f",
    "mov r11, [rdi+r11+8]", "cmp [rdx+{f_rbp}], r11", "je 19b", "jmp 28f",
    "21:", "cmp [rdx+{f_rbp}], rbp", "je 19b",
    // Not this one: the next of those that began with the same frame lately.
    "28:", "test r10d, r10d", "jnz 29f",
    "18:",
    "mov rcx, [rdi]",
    "mov rax, {spread}", "xor rcx, rdi", "imul rax, rcx", "shr rax, {set_shift}",
    "shl eax, {set_bytes_shift}",
    "add rax, gs:[{recent}]",
    "mov r10d, {ways}",
    "14:",
    "mov rdx, [rax]",
    "test rdx, rdx", "jz 30f",
    "cmp [rdx+{f_return_at}], rdi", "je 2b",
    "29:", "add rax, 8", "dec r10d", "jnz 14b", "jmp 30f",
    ".globl trampoline_record_probe_end", "trampoline_record_probe_end:",
    // Unwind in Rust.
    ".globl trampoline_record_slow", "trampoline_record_slow:",
    "30:",
    "push r8", "push r9", "push r10", "push r11", "push rsi", "push rbp", "mov rbp, rsp",
    "sub rsp, 256", "and rsp, -16",
    "movups [rsp], xmm0", "movups [rsp+16], xmm1", "movups [rsp+32], xmm2", "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4", "movups [rsp+80], xmm5", "movups [rsp+96], xmm6", "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8", "movups [rsp+144], xmm9", "movups [rsp+160], xmm10", "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12", "movups [rsp+208], xmm13", "movups [rsp+224], xmm14", "movups [rsp+240], xmm15",
    "mov rdi, gs:[0]", "mov rdx, [rbp]", "call engine_path",
    "call 99f",
    "pop rbp", "pop rsi", "pop r11", "pop r10", "pop r9", "pop r8",
    "mov edx, eax", "jmp 17b",
    // The same path as the record before, if that was made.
    "15:", "mov rdx, gs:[{last_path}]", "cmp edx, -1", "jne 4b", "jmp 16b",
    // The ring is full.
    "40:",
    "push rcx", "push rdx", "push rdi", "push r8", "push r9", "push r10", "push r11", "push rsi", "push rbp", "mov rbp, rsp",
    "sub rsp, 256", "and rsp, -16",
    "movups [rsp], xmm0", "movups [rsp+16], xmm1", "movups [rsp+32], xmm2", "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4", "movups [rsp+80], xmm5", "movups [rsp+96], xmm6", "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8", "movups [rsp+144], xmm9", "movups [rsp+160], xmm10", "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12", "movups [rsp+208], xmm13", "movups [rsp+224], xmm14", "movups [rsp+240], xmm15",
    "mov rax, r9", "sub rax, rdi", "mov rdi, rax", "call engine_ring_full",
    "call 99f",
    "pop rbp", "pop rsi", "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rdx", "pop rcx",
    "jmp 6b",
    // Reloads xmm0-15 from the aligned area that `mov rbp, rsp; sub rsp, 256; and rsp, -16` made, and drops it.
    "99:",
    "movups xmm0, [rsp+8]", "movups xmm1, [rsp+24]", "movups xmm2, [rsp+40]", "movups xmm3, [rsp+56]",
    "movups xmm4, [rsp+72]", "movups xmm5, [rsp+88]", "movups xmm6, [rsp+104]", "movups xmm7, [rsp+120]",
    "movups xmm8, [rsp+136]", "movups xmm9, [rsp+152]", "movups xmm10, [rsp+168]", "movups xmm11, [rsp+184]",
    "movups xmm12, [rsp+200]", "movups xmm13, [rsp+216]", "movups xmm14, [rsp+232]", "movups xmm15, [rsp+248]",
    "pop rcx", "mov rsp, rbp", "jmp rcx",
    // More than one task: take the order lock unless it is ours already.
    "50:",
    "cmp qword ptr gs:[{holds_order}], 0", "jne 201b",
    "call trampoline_take_order", "jmp 201b",
    // Old bytes come first.
    "60:",
    "lea r9, [rcx+rcx]", "shl r9, 32", "or rax, r9",
    "mov [rdi], rax",
    "mov eax, gs:[{site}]", "shl rdx, 32", "or rax, rdx", "mov [rdi+8], rax",
    "mov rdx, gs:[{ea}]", "mov [rdi+16], rdx",
    "lea r9d, [rcx+rcx+31]", "and r9d, -8", "add r9, [{head}]",
    "btc rdx, {alias_bit}",
    "push rsi", "push rcx",
    "lea rsi, [rdi+24]",
    // old then new, byte by byte: they need not be multiples of eight
    "push rbx", "xor ebx, ebx",
    "61:", "mov al, gs:[{old}+rbx]", "mov [rsi], al", "inc rsi", "inc ebx", "cmp ebx, ecx", "jb 61b",
    "62:", "mov al, [rdx]", "mov [rsi], al", "inc rsi", "inc rdx", "dec ecx", "jnz 62b",
    "pop rbx", "pop rcx", "pop rsi",
    "jmp 211b",
    // Captured value.
    "70:", "mov rdx, gs:[0]", "add rdx, {old}", "jmp 8b",
    // Fewer than eight bytes.
    "80:",
    "test ecx, ecx", "jz 211b",
    "mov qword ptr [rdi+24], 0",
    "test cl, 4", "jz 81f", "mov eax, [rdx]", "mov [rdi+24], eax", "add rdx, 4", "add rdi, 4", "81:",
    "test cl, 2", "jz 82f", "movzx eax, word ptr [rdx]", "mov [rdi+24], ax", "add rdx, 2", "add rdi, 2", "82:",
    "test cl, 1", "jz 83f", "movzx eax, byte ptr [rdx]", "mov [rdi+24], al", "83:",
    "jmp 211b",
    "90:",
    "shr r8d, 2", "and r8d, 1", "mov gs:[{pending}], r8", "jmp 12b",
    "95:",
    "mov qword ptr gs:[{holds_order}], 0", "mov dword ptr [{order_lock}], 0", "jmp 13b",
    ".globl trampoline_record_end", "trampoline_record_end:",

    // Takes the order lock for this thread. Keeps all registers; destroys flags.
    ".globl trampoline_take_order", "trampoline_take_order:",
    "push rax", "push rcx",
    "mov ecx, gs:[{tid}]",
    "xor eax, eax", "lock cmpxchg [{order_lock}], ecx", "jne 2f",
    "201:", "mov qword ptr gs:[{holds_order}], 1", "pop rcx", "pop rax", "ret",
    "2:",
    "push rdx", "push rsi", "push rdi", "push r8", "push r9", "push r10", "push r11", "push rbp", "mov rbp, rsp",
    "sub rsp, 256", "and rsp, -16",
    "movups [rsp], xmm0", "movups [rsp+16], xmm1", "movups [rsp+32], xmm2", "movups [rsp+48], xmm3",
    "movups [rsp+64], xmm4", "movups [rsp+80], xmm5", "movups [rsp+96], xmm6", "movups [rsp+112], xmm7",
    "movups [rsp+128], xmm8", "movups [rsp+144], xmm9", "movups [rsp+160], xmm10", "movups [rsp+176], xmm11",
    "movups [rsp+192], xmm12", "movups [rsp+208], xmm13", "movups [rsp+224], xmm14", "movups [rsp+240], xmm15",
    "mov edi, ecx", "call engine_take_order", "call 99b",
    "pop rbp", "pop r11", "pop r10", "pop r9", "pop r8", "pop rdi", "pop rsi", "pop rdx",
    "jmp 201b",

    // Is gs:[ea] PM, exactly? Carry set: yes. Keeps all registers.
    ".globl trampoline_is_pm", "trampoline_is_pm:",
    "push rax", "push rcx", "push rdx",
    "mov rdx, gs:[{ea}]",
    "mov ecx, [{range_count}]", "shl ecx, 4",
    "2:", "sub ecx, 16", "js 3f",
    "mov rax, rdx", "sub rax, [rcx+{ranges}]", "cmp rax, [rcx+{ranges}+8]", "jae 2b",
    "stc", "jmp 5f",
    "3:", "clc", "5:",
    "pop rdx", "pop rcx", "pop rax", "ret",

    site = const offset_of!(Thread, site),
    ea = const offset_of!(Thread, ea),
    app_rsp = const offset_of!(Thread, app_rsp),
    recent = const offset_of!(Thread, paths) + offset_of!(PathCache, recent),
    last = const offset_of!(Thread, paths) + offset_of!(PathCache, last),
    header_thread = const offset_of!(Thread, header_thread),
    pending = const offset_of!(Thread, pending),
    holds_order = const offset_of!(Thread, holds_order),
    old = const offset_of!(Thread, old),
    tid = const offset_of!(Thread, tid),
    sites = const layout::SITES,
    site_shift = const SITE_SHIFT,
    s_flags = const offset_of!(Site, flags),
    s_cfa = const offset_of!(Site, cfa_offset),
    s_rbp = const offset_of!(Site, rbp_offset),
    s_size = const offset_of!(Site, size),
    s_kind = const offset_of!(Site, kind_aux),
    no_rule = const flag::NO_RULE,
    cfa_rbp = const flag::CFA_RBP,
    has_old = const flag::HAS_OLD,
    captured = const flag::CAPTURED,
    pending_bits = const flag::SETS_PENDING | flag::CLEARS_PENDING,
    spread = const SPREAD as i64,
    set_shift = const SET_SHIFT,
    set_bytes_shift = const (WAYS * 8).ilog2(),
    last_path = const offset_of!(Thread, last_path),
    same_path = const flag::SAME_PATH,
    ways = const WAYS,
    needs_rbp = const NEEDS_RBP,
    f_return_at = const offset_of!(PathFrame, return_at),
    f_return_to = const offset_of!(PathFrame, return_to),
    f_link_at = const offset_of!(PathFrame, link_at),
    f_link = const offset_of!(PathFrame, link),
    f_rbp = const offset_of!(PathFrame, rbp),
    f_outer = const offset_of!(PathFrame, outer),
    f_id = const offset_of!(PathFrame, id),
    f_flags = const offset_of!(PathFrame, flags),
    many_tasks = const layout::CONTROL as usize + offset_of!(Control, many_tasks),
    order_lock = const layout::CONTROL as usize + offset_of!(Control, order_lock),
    head = const layout::CONTROL as usize + offset_of!(Control, head),
    tail = const layout::CONTROL as usize + offset_of!(Control, tail),
    ring = const layout::RING,
    ring_bytes = const RING_BYTES,
    ring_mask = const RING_BYTES - 1,
    alias_bit = const layout::ALIAS_BIT,
    range_count = sym crate::pm::RANGE_COUNT,
    ranges = sym crate::pm::RANGES,
);

unsafe extern "C" {
    pub fn trampoline_record();
    pub fn trampoline_record_keep();
    pub fn trampoline_record_slow();
    pub fn trampoline_record_probe_start();
    pub fn trampoline_record_probe_end();
    pub fn trampoline_take_order();
    pub fn trampoline_is_pm();
}

#[unsafe(no_mangle)]
extern "C" fn engine_path(thread: &mut Thread, site: &Site, rbp: u64) -> u32 {
    crate::context::path::find(thread, site.pc, thread.app_rsp, rbp)
}

#[unsafe(no_mangle)]
extern "C" fn engine_ring_full(bytes: usize) {
    crate::ring::wait_for_space(bytes);
}

#[unsafe(no_mangle)]
extern "C" fn engine_take_order(tid: u32) {
    crate::ring::take_order_lock(tid);
}
