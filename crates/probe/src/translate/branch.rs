//! Control flow: direct branches are linked, indirect ones go through the branch table, calls push the program's own return
//! address, so the stack is the same as in a native run.

use core::mem::offset_of;

use isa::scan::Class;

use super::arena::trampoline;
use super::build::{Builder, Instruction, slot_t0};
use super::code::Bytes;
use super::emit::{RCX, RDX};
use super::instrumented;
use super::live::relative_target;
use super::marks::Flavour;
use crate::thread::Thread;
use crate::{cover, layout};

/// What comes after a branch in the block.
#[derive(Debug)]
pub enum After {
    NotABranch,
    /// The instruction behind it.
    Next,
    /// Go on at this address.
    Jump(u64),
    End,
}

pub fn emit(b: &mut Builder<'_>, i: Instruction) -> After {
    let target = || relative_target(i.pc, &i.bytes, i.scan.len, i.scan.imm_at);
    match i.scan.class {
        Class::JccRel => {
            let at = b.emit.jcc(i.scan.cond);
            if cover::on() {
                cover::emit::conditional(b, i, at, target())
            } else {
                b.exit(at, target())
            }
            After::Next
        }
        Class::JmpRel => After::Jump(target()),
        Class::CallRel => {
            let target = target();
            push_return(b, i);
            b.mark(Flavour::Clean, target, 0);
            b.jump_out(target);
            After::End
        }
        Class::LoopLike => {
            // These have an 8-bit displacement only: hop to a long jump. The prefix 67 stays.
            let opcode_at = i.scan.imm_at as usize - 1;
            b.emit.bytes(&i.bytes[..opcode_at]);
            let taken = b.emit.short(i.bytes[opcode_at]);
            b.mark(Flavour::Clean, i.next(), 0);
            let over = b.emit.short(0xeb);
            b.emit.here(taken);
            if cover::on() {
                cover::emit::outcome(b, i, target(), true);
            }
            b.mark(Flavour::Clean, target(), 0);
            b.jump_out(target());
            b.emit.here(over);
            if cover::on() {
                cover::emit::outcome(b, i, i.next(), false);
            }
            After::Next
        }
        Class::Ret | Class::RetImm => {
            spill(b);
            b.mark(Flavour::Clean, i.pc, 0);
            b.emit.u8(0x5a); // pop rdx
            b.mark(Flavour::Busy, i.pc, 0);
            if i.scan.class == Class::RetImm {
                let at = i.scan.imm_at as usize;
                let extra = u16::from_le_bytes([i.bytes[at], i.bytes[at + 1]]);
                b.emit.bytes(&[0x48, 0x8d, 0xa4, 0x24]); // lea rsp, [rsp + disp32]
                b.emit.u32(extra as u32);
            }
            through_table(b);
            After::End
        }
        Class::JmpInd | Class::CallInd => {
            if i.scan.seg == 0x65 {
                super::emulate::emit_class(b, i, Class::GsAccess);
                return After::End;
            }
            spill(b);
            if i.scan.has_modrm_memory() && instrumented::loading() && instrumented::is_known(i.pc) {
                super::loads::branch_target(b, i);
            } else {
                b.mark(Flavour::Clean, i.pc, 0);
                load_target(b, i);
            }
            if i.scan.class == Class::CallInd {
                b.mark(Flavour::SpilledT1, i.pc, RDX);
                push_return(b, i);
            }
            b.mark(Flavour::Busy, i.pc, 0);
            through_table(b);
            After::End
        }
        Class::Syscall => {
            b.emit.save_imm64(offset_of!(Thread, target), i.next());
            b.emit.jump_through(trampoline!(syscall));
            After::End
        }
        _ => After::NotABranch,
    }
}

/// The two registers that an indirect branch needs.
fn spill(b: &mut Builder<'_>) {
    b.emit.save(slot_t0(), RCX);
    b.emit.save(offset_of!(Thread, t1), RDX);
}

/// rdx holds the target: through the table. From here to the landing (`Builder::landing`) nothing touches the flags: only
/// the target itself could know whether they are needed, and it may turn out to be the wrong one.
fn through_table(b: &mut Builder<'_>) {
    b.emit.bytes(&[0x0f, 0xb7, 0xca]); // movzx ecx, dx
    b.emit.bytes(&[0xff, 0x24, 0xcd]); // jmp [rcx*8 + table]
    b.emit.u32(layout::BRANCH_TABLE as u32);
}

/// `mov rdx, operand` from the bytes of `jmp/call operand`: FF /4 and FF /2 become 8B with register rdx.
fn load_target(b: &mut Builder<'_>, i: Instruction) {
    let mut bytes = [0u8; 16];
    let mut len = 0;
    let modrm_at = i.scan.modrm_at as usize;
    let mut rex = 0x48;
    for &byte in &i.bytes[..modrm_at - 1] {
        match byte {
            0x40..=0x4f => rex |= byte & 0x43,
            // `notrack`, `bnd` and `data16` mean nothing here.
            0x3e | 0xf2 | 0xf3 | 0x66 => {}
            prefix => {
                bytes[len] = prefix;
                len += 1;
            }
        }
    }
    bytes[len] = rex;
    bytes[len + 1] = 0x8b;
    bytes[len + 2] = i.bytes[modrm_at] & 0xc7 | RDX << 3;
    len += 3;
    let rest = &i.bytes[modrm_at + 1..i.scan.len as usize];
    bytes[len..len + rest.len()].copy_from_slice(rest);
    let new_disp_at = if i.scan.disp_at == 0 { 0 } else { len + (i.scan.disp_at as usize - modrm_at - 1) };
    len += rest.len();
    let mut scan = i.scan;
    scan.class = Class::Plain;
    if new_disp_at == 0 {
        b.emit.bytes(&bytes[..len]);
        return;
    }
    // rip-relative: re-based so that `copy` computes the same absolute address.
    let target = i.rip_target();
    scan.len = len as u8;
    scan.disp_at = new_disp_at as u8;
    scan.modrm_at = (new_disp_at - 1) as u8;
    let moved = Instruction { pc: i.pc, bytes: Bytes::from(&bytes[..len]), scan };
    let disp = target.wrapping_sub(moved.next()) as i64;
    match i32::try_from(disp) {
        Ok(disp) => {
            bytes[new_disp_at..new_disp_at + 4].copy_from_slice(&disp.to_le_bytes());
            let moved = Instruction { pc: i.pc, bytes: Bytes::from(&bytes[..len]), scan };
            let end = b.emit.at + len as u64;
            if i32::try_from(target.wrapping_sub(end) as i64).is_ok() || target < 1 << 31 {
                b.copy(moved);
            } else {
                far_target(b, target);
            }
        }
        Err(_) => far_target(b, target),
    }
}

fn far_target(b: &mut Builder<'_>, target: u64) {
    b.emit.constant(RDX, target);
    b.emit.bytes(&[0x48, 0x8b, 0x12]); // mov rdx, [rdx]
}

/// Pushes the return address that the program expects.
fn push_return(b: &mut Builder<'_>, i: Instruction) {
    let instrumented = instrumented::is_known(i.pc);
    if instrumented {
        super::implicit::before(b, i);
    }
    let value = i.next();
    if value < 1 << 31 {
        b.emit.u8(0x68);
        b.emit.u32(value as u32);
    } else {
        b.emit.bytes(&[0xff, 0x35]); // push [rip + disp32]
        b.emit.u32(0);
        let at = b.emit.at - 4;
        b.literal(at, value);
    }
    if instrumented {
        super::implicit::after(b, i);
    }
}
