//! The callbacks: what the guest does to its PM region.

use std::ffi::{c_uint, c_void};

use qemu_plugin_sys::{
    qemu_plugin_get_hwaddr, qemu_plugin_hwaddr_is_io, qemu_plugin_hwaddr_phys_addr, qemu_plugin_mem_get_value,
    qemu_plugin_mem_is_store, qemu_plugin_mem_size_shift, qemu_plugin_mem_value_type, qemu_plugin_meminfo_t,
};
use wire::guest::{self, GuestRecordKind, MAX_FRAMES, Mark, PM_BASE};

use crate::stacks::stack;
use crate::state::{self, Mode, READ, State, WROTE};
use crate::translate::{Instruction, Role};

/// Where x86-64 Linux maps all physical memory with four levels of page tables and without randomisation.
const DIRECT_MAP: u64 = 0xffff_8880_0000_0000;
const DIRECT_MAP_END: u64 = 0xffff_c880_0000_0000;
/// The kernel's own code and data.
const KERNEL_IMAGE: u64 = 0xffff_ffff_8000_0000;

/// The guest physical address, where it can be of interest.
fn physical(info: qemu_plugin_meminfo_t, address: u64) -> Option<u64> {
    if (DIRECT_MAP..DIRECT_MAP_END).contains(&address) {
        return Some(address - DIRECT_MAP);
    }
    if address >= KERNEL_IMAGE {
        return None;
    }
    // SAFETY: we are in the callback of this access.
    let found = unsafe { qemu_plugin_get_hwaddr(info, address) };
    // SAFETY: QEMU's answer is valid during this callback.
    (!found.is_null() && unsafe { !qemu_plugin_hwaddr_is_io(found) })
        // SAFETY: as above.
        .then(|| unsafe { qemu_plugin_hwaddr_phys_addr(found) })
}

fn value(info: qemu_plugin_meminfo_t) -> ([u64; 2], u8) {
    use qemu_plugin_mem_value_type::*;
    // SAFETY: we are in the callback of this access.
    let value = unsafe { qemu_plugin_mem_get_value(info) };
    // SAFETY: the type says which part of the union holds the value.
    unsafe {
        match value.type_ {
            QEMU_PLUGIN_MEM_VALUE_U8 => ([value.data.u8_.into(), 0], 1),
            QEMU_PLUGIN_MEM_VALUE_U16 => ([value.data.u16_.into(), 0], 2),
            QEMU_PLUGIN_MEM_VALUE_U32 => ([value.data.u32_.into(), 0], 4),
            QEMU_PLUGIN_MEM_VALUE_U64 => ([value.data.u64_, 0], 8),
            QEMU_PLUGIN_MEM_VALUE_U128 => ([value.data.u128_.low, value.data.u128_.high], 16),
        }
    }
}

/// A load or store.
pub unsafe extern "C" fn access(_: c_uint, info: qemu_plugin_meminfo_t, address: u64, data: *mut c_void) {
    let Some(at) = physical(info, address).filter(|&at| at >= PM_BASE) else { return };
    // SAFETY: registered with a leaked instruction.
    let instruction = unsafe { &*data.cast::<Instruction>() };
    // SAFETY: we are in the callback of this access.
    let is_store = unsafe { qemu_plugin_mem_is_store(info) };
    state::with(|state| {
        if at == state.mark_at && is_store {
            mark(state, value(info).0[0]);
        } else if at - PM_BASE < state.pm {
            match (state.mode, is_store) {
                (Mode::Record, true) => {
                    let (value, len) = value(info);
                    let words = &value[..usize::from(len).div_ceil(8)];
                    event(state, GuestRecordKind::Store, instruction.store, len, at - PM_BASE, instruction.at, words);
                }
                (Mode::Observe, _) => {
                    // SAFETY: as above.
                    let len = 1 << unsafe { qemu_plugin_mem_size_shift(info) };
                    lines(state, at - PM_BASE, len, is_store);
                }
                (Mode::Record | Mode::Quiet | Mode::Cover, _) => {}
            }
        }
    });
}

fn mark(state: &mut State, word: u64) {
    let Some((mark, _)) = Mark::of(word) else { return };
    match mark {
        Mark::Record => state.switch(Mode::Record),
        Mark::Observe => state.switch(Mode::Observe),
        Mark::Quiet => state.switch(Mode::Quiet),
        Mark::Cover => state.switch(Mode::Cover),
        Mark::OperationBegin => state.edges.begin(),
        Mark::OperationEnd => {}
    }
    state.ring.put(&[guest::head(GuestRecordKind::Mark, 0, 0, 0, 1), word]);
}

/// The first load and the first store of each line.
fn lines(state: &mut State, offset: u64, len: u64, is_store: bool) {
    let (bit, kind) = if is_store { (WROTE, GuestRecordKind::WroteLine) } else { (READ, GuestRecordKind::ReadLine) };
    for line in offset / 64..=(offset + len - 1) / 64 {
        let Some(flags) = state.lines.get_mut(line as usize) else { return };
        if *flags & bit != 0 {
            continue;
        }
        if *flags == 0 {
            state.touched.push(line as u32);
        }
        *flags |= bit;
        state.ring.put(&[guest::head(kind, 0, 0, 0, 1), line]);
    }
}

/// A store, flush or fence, with its call path.
fn event(state: &mut State, kind: GuestRecordKind, detail: u8, len: u8, offset: u64, at: u64, value: &[u64]) {
    let pointer = state.registers.stack_pointer();
    let mut record = [0; 4 + 2 + MAX_FRAMES];
    record[1..4].copy_from_slice(&[offset, at, stack(pointer)]);
    record[4..4 + value.len()].copy_from_slice(value);
    let mut end = 4 + value.len();
    let first = end;
    for to in state.stacks.path(pointer).take(MAX_FRAMES) {
        record[end] = to;
        end += 1;
    }
    record[0] = guest::head(kind, detail, len, (end - first) as u8, (end - 1) as u8);
    state.ring.put(&record[..end]);
}

/// A call is about to be made.
pub unsafe extern "C" fn call(_: c_uint, data: *mut c_void) {
    // SAFETY: registered with a leaked instruction.
    let instruction = unsafe { &*data.cast::<Instruction>() };
    state::with(|state| {
        let pointer = state.registers.stack_pointer();
        state.stacks.call(pointer, instruction.at + u64::from(instruction.len));
    });
}

/// A block of kernel code runs, while edges are wanted.
pub unsafe extern "C" fn block(_: c_uint, at: *mut c_void) {
    state::with(|state| {
        if let Some(edge) = state.edges.block(at as u64) {
            state.ring.put(&[guest::head(GuestRecordKind::Edge, 0, 0, 0, 1), edge]);
        }
    });
}

pub unsafe extern "C" fn fence(_: c_uint, data: *mut c_void) {
    // SAFETY: registered with a leaked instruction.
    let instruction = unsafe { &*data.cast::<Instruction>() };
    state::with(|state| {
        if let (Mode::Record, Role::Fence(kind)) = (state.mode, instruction.role) {
            event(state, GuestRecordKind::Fence, kind, 0, 0, instruction.at, &[]);
        }
    });
}

/// QEMU has no access for a flush: its address is worked out from the registers. Flushes of anything but the direct map of PM are none
/// of ours; the kernel flushes there, and user space that maps PM is told of by [`access`] only.
pub unsafe extern "C" fn flush(_: c_uint, data: *mut c_void) {
    // SAFETY: registered with a leaked instruction.
    let instruction = unsafe { &*data.cast::<Instruction>() };
    state::with(|state| {
        let Role::Flush { kind, base, index, scale, displacement } = instruction.role else { return };
        if state.mode != Mode::Record {
            return;
        }
        let scaled = state.registers.value(index).wrapping_mul(u64::from(scale));
        let address = state.registers.value(base).wrapping_add(scaled).wrapping_add(displacement);
        let offset = address.wrapping_sub(DIRECT_MAP).wrapping_sub(PM_BASE);
        if offset < state.pm {
            event(state, GuestRecordKind::Flush, kind, 0, offset, instruction.at, &[]);
        }
    });
}
