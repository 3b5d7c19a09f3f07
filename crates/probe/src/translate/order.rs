//! Flushes, fences and locked instructions: recognised by their opcode, recorded wherever they run.

use core::mem::offset_of;

use isa::scan::Class;
use wire::control::Control;
use wire::record::{fence, flush, kind};

use super::arena::trampoline;
use super::build::{Builder, Instruction, slot_t0};
use super::emit::{RCX, RSP};
use super::instrumented::{self, NO_REG};
use super::live;
use super::marks::Flavour;
use crate::layout;
use crate::site;
use crate::thread::Thread;

/// Calls the record trampoline on the engine stack. The program's registers are in place; `ea` is set.
pub fn record(b: &mut Builder<'_>, site: u32, keep_flags: bool) {
    b.emit.save_imm(offset_of!(Thread, site), site);
    b.emit.save(offset_of!(Thread, app_rsp), RSP);
    b.emit.load(RSP, offset_of!(Thread, engine_rsp));
    let trampoline = match (crate::cover::on(), crate::recover::on(), keep_flags) {
        (true, _, false) => trampoline!(cover),
        (true, _, true) => trampoline!(cover_keep),
        (_, false, false) => trampoline!(record),
        (_, false, true) => trampoline!(record_keep),
        (_, true, false) => trampoline!(note),
        (_, true, true) => trampoline!(note_keep),
    };
    b.emit.call_through(trampoline);
    b.emit.load(RSP, offset_of!(Thread, app_rsp));
}

/// Flag for a site emitted now: its path may be that of the site before. From here on, a path is known.
pub fn same_path(b: &mut Builder<'_>) -> u32 {
    if core::mem::replace(&mut b.path_known, true) { site::flag::SAME_PATH } else { 0 }
}

/// Recorded first, then executed: a store of another thread in between then counts as not flushed, which is the safe
/// side. (No order is promised to stores that do not synchronise with this thread.)
pub fn emit_flush(b: &mut Builder<'_>, i: Instruction) {
    let aux = match i.scan.class {
        Class::Clflush => flush::CLFLUSH,
        Class::Clflushopt => flush::CLFLUSHOPT,
        Class::Clwb => flush::CLWB,
        _ => flush::CLDEMOTE,
    };
    let bytes = &i.bytes[..i.scan.len as usize];
    let same = same_path(b);
    let site = site::add(b.thread, i.pc, bytes, (kind::FLUSH, aux), 0, same);
    let decoded = instrumented::decode(i);
    let keep = live::flags_before(i.next());
    let reg = instrumented::free_register(&decoded);
    b.emit.save(slot_t0(), reg);
    instrumented::address(b, &decoded, reg);
    b.mark(Flavour::Busy, i.pc, 0);
    b.emit.save(offset_of!(Thread, ea), reg);
    b.emit.load(reg, slot_t0());
    record(b, site, keep);
    if instrumented::loading() {
        return instrumented::on_alias(b, i, &decoded);
    }
    b.mark(Flavour::Alias, i.pc, NO_REG);
    b.copy(i);
}

/// Executed first, then recorded.
pub fn emit_fence(b: &mut Builder<'_>, i: Instruction) {
    let aux = if i.scan.class == Class::Sfence { fence::SFENCE } else { fence::MFENCE };
    let bytes = &i.bytes[..i.scan.len as usize];
    let same = same_path(b);
    let site = site::add(b.thread, i.pc, bytes, (kind::FENCE, aux), 0, same);
    b.copy(i);
    b.mark(Flavour::Busy, i.pc, 0);
    record(b, site, live::flags_before(i.next()));
}

/// In flow mode, if there are several tasks: what this thread did comes before what others do who see the instruction's effect.
fn flush_flow(b: &mut Builder<'_>, pc: u64) {
    b.emit.save(slot_t0(), RCX);
    b.mark(Flavour::Busy, pc, 0);
    b.emit.bytes(&[0x8b, 0x0c, 0x25]); // mov ecx, [absolute]
    b.emit.u32((layout::CONTROL + offset_of!(Control, many_tasks) as u64) as u32);
    let one = b.emit.short(0xe3); // jrcxz
    let many = b.emit.jmp();
    b.emit.here(one);
    let back = b.emit.at;
    b.emit.load(RCX, slot_t0());
    b.tail(move |b| {
        let here = b.emit.at;
        b.emit.patch(many, here);
        instrumented::on_engine_stack(b, trampoline!(flow));
        let jump = b.emit.jmp();
        b.emit.patch(jump, back);
    });
}

/// A locked instruction that was never seen to touch PM: a fence, if the thread has something pending (contract rule 5).
/// The test leaves the flags alone: they are usually what the instruction is for.
pub fn emit_locked(b: &mut Builder<'_>, i: Instruction) {
    if crate::flow::on() {
        flush_flow(b, i.pc);
        b.mark(Flavour::Clean, i.pc, 0);
    }
    b.copy(i);
    b.mark(Flavour::Busy, i.pc, 0);
    b.emit.save(slot_t0(), RCX);
    b.emit.load(RCX, offset_of!(Thread, pending));
    let nothing = b.emit.short(0xe3); // jrcxz
    let pending = b.emit.jmp();
    b.emit.here(nothing);
    b.emit.load(RCX, slot_t0());
    let back = b.emit.at;
    let mut bytes = [0u8; 15];
    let len = i.scan.len as usize;
    bytes[..len].copy_from_slice(&i.bytes[..len]);
    let pc = i.pc;
    b.tail(move |b| {
        let here = b.emit.at;
        b.emit.patch(pending, here);
        b.emit.load(RCX, slot_t0());
        let site = site::add(b.thread, pc, &bytes[..len], (kind::FENCE, fence::LOCKED), 0, 0);
        record(b, site, true);
        let jump = b.emit.jmp();
        b.emit.patch(jump, back);
    });
}
