//! Which locks a thread holds: it panics where it takes one out of order.

use std::cell::RefCell;

use crate::lock::LockName;
use crate::threads::thread_local;

thread_local! {
    static HELD: RefCell<Vec<LockName>> = const { RefCell::new(Vec::new()) };
}

/// Before the lock is taken.
pub fn take(name: LockName) {
    HELD.with(|held| {
        let mut held = held.borrow_mut();
        let last = held.iter().max();
        assert!(last.is_none_or(|last| *last < name), "{name:?} is taken while {last:?} is held");
        held.push(name);
    });
}

pub fn give(name: LockName) {
    HELD.with(|held| {
        let mut held = held.borrow_mut();
        if let Some(at) = held.iter().rposition(|other| *other == name) {
            held.remove(at);
        }
    });
}
