//! The guest's general registers, for addresses of flushes and for the stack pointer.

use std::ffi::{CStr, c_uint};
use std::slice;

use iced_x86::Register;
use qemu_plugin_sys::{
    GByteArray, qemu_plugin_get_registers, qemu_plugin_id_t, qemu_plugin_read_register, qemu_plugin_reg_descriptor,
    qemu_plugin_register,
};

use crate::state;

// QEMU's interface speaks in types of glib, which QEMU has loaded.
unsafe extern "C" {
    fn g_byte_array_new() -> *mut GByteArray;
    fn g_byte_array_set_size(array: *mut GByteArray, length: c_uint) -> *mut GByteArray;
}

const NAMES: [&str; 16] =
    ["rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"];
const RSP: usize = 4;

pub struct Registers {
    handles: [*mut qemu_plugin_register; 16],
    buffer: *mut GByteArray,
}

impl Default for Registers {
    fn default() -> Registers {
        Registers { handles: [std::ptr::null_mut(); 16], buffer: std::ptr::null_mut() }
    }
}

/// QEMU calls this on the thread of the processor.
pub unsafe extern "C" fn processor_started(_: qemu_plugin_id_t, _: c_uint) {
    // SAFETY: we are in the callback in which QEMU allows the question.
    let found = unsafe { &*qemu_plugin_get_registers() };
    // SAFETY: an array of glib with so many descriptors.
    let found = unsafe { slice::from_raw_parts(found.data.cast::<qemu_plugin_reg_descriptor>(), found.len as usize) };
    state::with(|state| {
        // SAFETY: glib is loaded.
        state.registers.buffer = unsafe { g_byte_array_new() };
        for descriptor in found {
            // SAFETY: a name of QEMU's.
            let name = unsafe { CStr::from_ptr(descriptor.name) };
            if let Some(number) = NAMES.iter().position(|known| known.as_bytes() == name.to_bytes()) {
                state.registers.handles[number] = descriptor.handle;
            }
        }
    });
}

impl Registers {
    fn read(&self, number: usize) -> u64 {
        let handle = self.handles[number];
        if handle.is_null() {
            return 0;
        }
        // SAFETY: handle and buffer are QEMU's and ours; the callback was registered with leave to read registers.
        let bytes = unsafe {
            g_byte_array_set_size(self.buffer, 0);
            let len = qemu_plugin_read_register(handle, self.buffer);
            slice::from_raw_parts((*self.buffer).data, len.clamp(0, 8) as usize)
        };
        bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    pub fn stack_pointer(&self) -> u64 {
        self.read(RSP)
    }

    /// A 64-bit general register; 0 for `None`.
    pub fn value(&self, register: Register) -> u64 {
        let number = register as usize;
        let first = Register::RAX as usize;
        if (first..first + 16).contains(&number) { self.read(number - first) } else { 0 }
    }
}
