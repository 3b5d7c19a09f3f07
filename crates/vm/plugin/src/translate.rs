//! What each instruction of the guest does, and which callbacks it gets.

use std::ffi::c_void;

use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind, Register};
use isa::effect::{Effect, FenceKind, FlushKind, Form, How, effect};
use qemu_plugin_sys::{
    qemu_plugin_cb_flags, qemu_plugin_cond, qemu_plugin_id_t, qemu_plugin_insn, qemu_plugin_insn_data,
    qemu_plugin_insn_vaddr, qemu_plugin_mem_rw, qemu_plugin_register_vcpu_insn_exec_cb,
    qemu_plugin_register_vcpu_insn_exec_cond_cb, qemu_plugin_register_vcpu_mem_cb,
    qemu_plugin_register_vcpu_tb_exec_cond_cb, qemu_plugin_tb, qemu_plugin_tb_get_insn, qemu_plugin_tb_n_insns,
    qemu_plugin_tb_vaddr,
};
use wire::guest;

use crate::observe;
use crate::state::{self, COVERING, RECORDING};

/// No instruction is longer.
const LONGEST: usize = 15;
/// From here on addresses are the kernel's.
const KERNEL: u64 = 0xffff_8000_0000_0000;

/// An instruction, as the callbacks need it. Never freed: QEMU may call back as long as it runs.
#[derive(Debug, PartialEq, Eq)]
pub struct Instruction {
    pub at: u64,
    pub len: u8,
    bytes: [u8; LONGEST],
    /// How its stores reach memory: a detail of [`guest::GuestRecordKind::Store`].
    pub store: u8,
    pub role: Role,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Plain,
    Call,
    Fence(u8),
    Flush { kind: u8, base: Register, index: Register, scale: u8, displacement: u64 },
}

/// QEMU has translated a block.
pub unsafe extern "C" fn block(_: qemu_plugin_id_t, block: *mut qemu_plugin_tb) {
    // SAFETY: the block is QEMU's and valid during this call.
    let count = unsafe { qemu_plugin_tb_n_insns(block) };
    // SAFETY: as above.
    let at = unsafe { qemu_plugin_tb_vaddr(block) };
    if at >= KERNEL {
        state::with(|state| {
            let on = qemu_plugin_cond::QEMU_PLUGIN_COND_EQ;
            let none = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS;
            let data = std::ptr::without_provenance_mut(at as usize);
            // SAFETY: the callback lives as long as the plugin; its data is a number.
            unsafe {
                qemu_plugin_register_vcpu_tb_exec_cond_cb(
                    block,
                    Some(observe::block),
                    none,
                    on,
                    state.following,
                    COVERING,
                    data,
                );
            }
        });
    }
    for number in 0..count {
        // SAFETY: as above; there are `count`.
        let instruction = unsafe { qemu_plugin_tb_get_insn(block, number) };
        state::with(|state| register(state, instruction));
    }
}

fn register(state: &mut state::State, instruction: *mut qemu_plugin_insn) {
    let mut bytes = [0; LONGEST];
    // SAFETY: the buffer is as long as is said.
    let len = unsafe { qemu_plugin_insn_data(instruction, bytes.as_mut_ptr().cast(), LONGEST) };
    // SAFETY: an instruction of the block at hand.
    let at = unsafe { qemu_plugin_insn_vaddr(instruction) };
    let known = state.instructions.get(&at).copied().filter(|known| known.bytes == bytes);
    let known = known.unwrap_or_else(|| {
        let fresh: &'static Instruction = Box::leak(Box::new(look(at, bytes, len)));
        state.instructions.insert(at, fresh);
        fresh
    });
    let data = std::ptr::from_ref(known).cast_mut().cast::<c_void>();
    let reads = qemu_plugin_cb_flags::QEMU_PLUGIN_CB_R_REGS;
    // SAFETY: the data lives for ever, the callbacks as long as the plugin.
    unsafe {
        let both = qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW;
        qemu_plugin_register_vcpu_mem_cb(instruction, Some(observe::access), reads, both, data);
        match known.role {
            Role::Plain => {}
            Role::Call => {
                let on = qemu_plugin_cond::QEMU_PLUGIN_COND_EQ;
                let entry = state.following;
                qemu_plugin_register_vcpu_insn_exec_cond_cb(
                    instruction,
                    Some(observe::call),
                    reads,
                    on,
                    entry,
                    RECORDING,
                    data,
                );
            }
            Role::Fence(_) => {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, Some(observe::fence), reads, data);
            }
            Role::Flush { .. } => {
                qemu_plugin_register_vcpu_insn_exec_cb(instruction, Some(observe::flush), reads, data);
            }
        }
    }
}

fn look(at: u64, bytes: [u8; LONGEST], len: usize) -> Instruction {
    let decoded = Decoder::with_ip(64, &bytes[..len.min(LONGEST)], at, DecoderOptions::NONE).decode();
    let (mut store, mut role) = (guest::PLAIN, Role::Plain);
    match effect(&decoded) {
        Effect::Store(shape) => {
            let string = matches!(shape.form, Form::String { .. });
            store = match shape.how {
                How::Plain if string => guest::STRING,
                How::Plain => guest::PLAIN,
                How::NonTemporal | How::Direct64 => guest::NON_TEMPORAL,
            };
        }
        Effect::Fence(FenceKind::Sfence) => role = Role::Fence(guest::SFENCE),
        Effect::Fence(FenceKind::Mfence) => role = Role::Fence(guest::MFENCE),
        Effect::Flush(kind) => {
            let kind = match kind {
                FlushKind::Clflush => Some(guest::CLFLUSH),
                FlushKind::Clflushopt => Some(guest::CLFLUSHOPT),
                FlushKind::Clwb => Some(guest::CLWB),
                FlushKind::Cldemote => None,
            };
            if let Some(kind) = kind.filter(|_| decoded.op0_kind() == OpKind::Memory) {
                let relative = decoded.is_ip_rel_memory_operand();
                role = Role::Flush {
                    kind,
                    base: if relative { Register::None } else { decoded.memory_base() },
                    index: decoded.memory_index(),
                    scale: decoded.memory_index_scale() as u8,
                    displacement: decoded.memory_displacement64(),
                };
            }
        }
        _ => {}
    }
    if matches!(decoded.flow_control(), FlowControl::Call | FlowControl::IndirectCall) {
        role = Role::Call;
    }
    Instruction { at, len: len as u8, bytes, store, role }
}
