//! Tests the pure parts of the probe on the host. The probe is freestanding and cannot be tested by `cargo test`; this crate compiles the
//! same files.
#![cfg(test)]

extern crate alloc;

#[path = "../../probe/src/atomic.rs"]
mod atomic;
/// As in the probe, without what needs a process.
#[path = "../../probe/src/context"]
mod context {
    #[path = "cache.rs"]
    pub mod cache;
    #[path = "numbers.rs"]
    pub mod numbers;
    #[path = "unwind.rs"]
    pub mod unwind;
}
#[path = "../../probe/src/translate/emit.rs"]
#[expect(dead_code, reason = "the tests use a part of it")]
mod emit;
#[path = "../../probe/src/pm/glob.rs"]
#[expect(dead_code, reason = "the patterns of a recording are the host's")]
mod glob;
#[path = "../../probe/src/layout.rs"]
#[expect(dead_code, reason = "the tests use a part of it")]
mod layout;
#[path = "../../probe/src/lock.rs"]
mod lock;
#[path = "../../probe/src/map.rs"]
mod map;
#[path = "../../probe/src/translate/marks.rs"]
mod marks;

mod call_paths;
mod emitted_code;
mod held;
mod lock_names;
mod shared_state;
mod sys;
mod tables;

/// Threads of the machine.
mod threads {
    pub use std::thread::yield_now;
    pub use std::thread_local;
}

/// The way to the host, which these parts name but the tests do not go.
mod ring {
    pub fn control() -> &'static wire::control::Control {
        panic!("there is no host");
    }
}
