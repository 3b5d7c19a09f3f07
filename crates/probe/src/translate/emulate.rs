//! Instructions that the engine emulates, and those that it refuses.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use isa::scan::Class;
use wire::control::option;

use super::arena::trampoline;
use super::build::{Builder, Instruction};
use super::marks::Flavour;
use crate::ring::control;
use crate::thread::Thread;

/// What to do at a `trampoline_emulate`. In `Thread::arg`, with a register number in the second byte and an operand size in
/// the third where one is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// There is no executable memory at this pc: the program faults.
    NoCode,
    Rdtsc,
    Rdtscp,
    /// `rdrand`, `rdseed`.
    Random,
    /// Uses the GS segment, which is the engine's.
    Gs,
    Unsupported,
    CodeInPm,
}

/// Leaves for the engine with `what`; the program goes on at `next`.
pub fn emit(b: &mut Builder<'_>, pc: u64, next: u64, what: What) {
    emit_with(b, pc, next, what as u32);
}

fn emit_with(b: &mut Builder<'_>, pc: u64, next: u64, argument: u32) {
    b.mark(Flavour::Clean, pc, 0);
    b.emit.save_imm64(offset_of!(Thread, target), next);
    b.emit.save_imm(offset_of!(Thread, arg), argument);
    b.emit.jump_through(trampoline!(emulate));
}

/// An instruction that the scanner does not know: if it is none at all, it faults as it would natively.
pub fn emit_unknown(b: &mut Builder<'_>, i: Instruction) {
    let mut decoder = iced_x86::Decoder::with_ip(64, &i.bytes, i.pc, iced_x86::DecoderOptions::NONE);
    let decoded = decoder.decode();
    b.mark(Flavour::Clean, i.pc, 0);
    if decoded.is_invalid() {
        b.emit.bytes(&[0x0f, 0x0b]); // ud2: SIGILL at this pc
    } else {
        emit(b, i.pc, i.pc, What::Unsupported);
    }
}

/// Classes that are neither copied nor branches.
pub fn emit_class(b: &mut Builder<'_>, i: Instruction, class: Class) {
    let real_time = control().options & option::REAL_TSC != 0;
    let real_random = control().options & option::REAL_RANDOM != 0;
    let reg = (i.scan.modrm & 7) | (i.scan.rex & 1) << 3;
    let size: u32 = if i.scan.rex & 8 != 0 {
        8
    } else if i.scan.data16 {
        2
    } else {
        4
    };
    match class {
        Class::Rdtsc if !real_time => emit(b, i.pc, i.next(), What::Rdtsc),
        Class::Rdtscp if !real_time => emit(b, i.pc, i.next(), What::Rdtscp),
        Class::Rdrand | Class::Rdseed if !real_random => {
            emit_with(b, i.pc, i.next(), What::Random as u32 | (reg as u32) << 8 | size << 16);
        }
        Class::Rdtsc | Class::Rdtscp | Class::Rdrand | Class::Rdseed => {
            b.copy(i);
        }
        Class::Xbegin => {
            // No transaction ever starts: eax says "aborted, do not retry" and the fallback path runs.
            b.emit.bytes(&[0xb8, 0, 0, 0, 0]);
            let target = super::live::relative_target(i.pc, &i.bytes, i.scan.len, i.scan.imm_at);
            b.jump_out(target);
        }
        Class::GsAccess => emit(b, i.pc, i.pc, What::Gs),
        _ => emit(b, i.pc, i.pc, What::Unsupported),
    }
}

/// Carries out the instruction. `thread.pc` is where the program goes on.
pub fn run(thread: &mut Thread) {
    let argument = thread.arg as u32;
    let what = argument & 0xff;
    if what == What::Rdtsc as u32 || what == What::Rdtscp as u32 {
        let tsc = control().virtual_tsc.fetch_add(wire::virtual_time::TSC_PER_QUERY, Ordering::Relaxed);
        thread.regs.rax = tsc & 0xffff_ffff;
        thread.regs.rdx = tsc >> 32;
        if what == What::Rdtscp as u32 {
            thread.regs.rcx = 0;
        }
    } else if what == What::Random as u32 {
        let value = crate::syscall::random::word();
        let reg = (argument >> 8) as u8;
        let old = thread.regs.get(reg);
        let new = match argument >> 16 {
            8 => value,
            4 => value & 0xffff_ffff,
            _ => old & !0xffff | value & 0xffff,
        };
        thread.regs.set(reg, new);
        // CF = 1: there was a number; the other flags are cleared (SDM vol. 2, RDRAND).
        const FLAGS: u64 = 0x8d5;
        thread.flags = thread.flags & !FLAGS | 1;
    } else if what == What::NoCode as u32 {
        crate::signal::no_code(thread);
    } else if what == What::CodeInPm as u32 {
        let pc = thread.pc;
        crate::refuse!(thread, "the program executes code in a pool, at {pc:#x}; that is not supported");
    } else if what == What::Gs as u32 {
        let pc = thread.pc;
        crate::refuse!(
            thread,
            "the program uses the GS segment at {pc:#x}; the engine needs it for itself (another \
                                engine or an emulator inside the target is not supported)"
        );
    } else {
        let pc = thread.pc;
        let bytes = super::code::bytes(pc);
        let bytes: &[u8] = bytes.as_deref().unwrap_or_default();
        crate::refuse!(thread, "unsupported instruction at {pc:#x}: {bytes:02x?}");
    }
}
