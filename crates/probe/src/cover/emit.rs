//! Code that counts branches.

use core::mem::offset_of;

use wire::cover;

use crate::layout;
use crate::thread::Thread;
use crate::translate::build::{Builder, Instruction, slot_t0};
use crate::translate::emit::{RCX, RDX};
use crate::translate::live;
use crate::translate::marks::Flavour;

/// The conditional jump at `i` was just emitted, with its displacement at `at`: counts both ways.
pub fn conditional(b: &mut Builder<'_>, i: Instruction, at: u64, target: u64) {
    outcome(b, i, i.next(), false);
    b.tail(move |b| {
        let here = b.emit.at;
        b.emit.patch(at, here);
        outcome(b, i, target, true);
        b.mark(Flavour::Clean, target, 0);
        b.jump_out(target);
    });
}

/// Counts that the conditional branch at `i` went to `target`.
pub fn outcome(b: &mut Builder<'_>, i: Instruction, target: u64, taken: bool) {
    let counter = layout::COVER + cover::branch(super::location(i.pc), taken) as u64;
    b.mark(Flavour::Busy, target, 0);
    if live::flags_before(target) {
        b.emit.save(slot_t0(), RCX);
        b.emit.save(offset_of!(Thread, t1), RDX);
        without_flags(b, counter);
        b.emit.load(RDX, offset_of!(Thread, t1));
        b.emit.load(RCX, slot_t0());
        return;
    }
    b.emit.bytes(&[0x80, 0x04, 0x25]); // add byte ptr [counter], 1
    b.emit.u32(counter as u32);
    b.emit.u8(1);
    b.emit.bytes(&[0x80, 0x14, 0x25]); // adc byte ptr [counter], 0
    b.emit.u32(counter as u32);
    b.emit.u8(0);
}

/// Counts that an indirect branch led to `pc`. In a landing, where rcx and rdx are free.
pub fn arrival(b: &mut Builder<'_>, pc: u64) {
    without_flags(b, layout::COVER + cover::arrival(super::location(pc)) as u64);
}

/// Adds one, and one more if that gives zero; destroys rcx and rdx, and keeps the flags.
fn without_flags(b: &mut Builder<'_>, counter: u64) {
    b.emit.bytes(&[0x0f, 0xb6, 0x0c, 0x25]); // movzx ecx, byte ptr [counter]
    b.emit.u32(counter as u32);
    b.emit.bytes(&[0x8d, 0x49, 0x01]); // lea ecx, [rcx + 1]
    b.emit.bytes(&[0x0f, 0xb6, 0xd5]); // movzx edx, ch
    b.emit.bytes(&[0x8d, 0x0c, 0x11]); // lea ecx, [rcx + rdx]
    b.emit.bytes(&[0x88, 0x0c, 0x25]); // mov byte ptr [counter], cl
    b.emit.u32(counter as u32);
}
