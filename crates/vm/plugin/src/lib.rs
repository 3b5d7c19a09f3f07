//! Observes every store, flush and fence of a guest to its PM region, and reports it to the host through a ring in shared memory.
//!
//! ```text
//!   translate   for each instruction, once: what it does to memory (the crate `isa`), which callbacks it gets
//!   observe     the callbacks: stores, flushes, fences, calls; first loads and stores of lines
//!   edges       coverage: which block of the wanted code runs after which
//!   stacks      return addresses by kernel stack, so that each event has its call path
//!   ring        words to the host; waits while it is full
//! ```
//! The guest has one processor (`-smp 1`), so all callbacks come from one thread.

mod edges;
mod observe;
mod registers;
mod ring;
mod stacks;
mod state;
mod translate;

use std::ffi::{CStr, c_char, c_int};

use qemu_plugin_sys::{
    qemu_info_t, qemu_plugin_id_t, qemu_plugin_register_vcpu_init_cb, qemu_plugin_register_vcpu_tb_trans_cb,
};

use crate::state::{Settings, State};

/// The version of the interface that this was built for.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = qemu_plugin_sys::QEMU_PLUGIN_VERSION as c_int;

/// QEMU calls this when it loads the plugin.
///
/// # Safety
/// `argv` holds `argc` strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu_plugin_id_t,
    _info: *const qemu_info_t,
    argc: c_int,
    argv: *const *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    let words = (0..argc as usize).map(|number| unsafe { CStr::from_ptr(*argv.add(number)) });
    let settings: Option<Settings> = Settings::parse(words.map(|word| word.to_string_lossy().into_owned()));
    let Some(state) = settings.and_then(|settings| State::open(&settings)) else {
        eprintln!("fencepost-qemu: bad arguments, or the ring cannot be opened");
        return 1;
    };
    state::set(state);
    // SAFETY: both callbacks live as long as the plugin, which is never unloaded.
    unsafe {
        qemu_plugin_register_vcpu_init_cb(id, Some(registers::processor_started));
        qemu_plugin_register_vcpu_tb_trans_cb(id, Some(translate::block));
    }
    0
}
