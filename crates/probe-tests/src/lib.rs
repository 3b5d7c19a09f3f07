//! The probe is freestanding and cannot be tested by `cargo test`. Its parts that need neither the target's process nor the engine's places in
//! it are compiled here once more, for the host, from the same files.
#![cfg(test)]

extern crate alloc;

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
#[path = "../../probe/src/sys.rs"]
#[expect(dead_code, reason = "only the locks use it")]
mod sys;

mod emitted_code;
mod shared_state;
mod tables;

/// The way to the host, which these parts name but the tests do not go.
#[expect(dead_code, reason = "named, not called")]
mod ring {
    pub fn control() -> &'static wire::control::Control {
        panic!("there is no host");
    }
}
