//! How the two ends of the ring sleep and wake each other.
//!
//! The sleeper says that it sleeps and then looks once more whether there is something to do; the waker publishes and then looks whether somebody
//! sleeps. One of them sees the other, so no wake-up is lost: both stand on opposite sides of sequentially consistent operations. And as the
//! bell was read before, one that rings between the second look and the sleep ends the sleep at once. At most one task sleeps on a bell.
//!
//! `crates/probe-tests/tests/schedules` runs this code under every kind of schedule.

use core::sync::atomic::{AtomicU32, Ordering, fence};

/// A word of the control area.
pub trait Word {
    fn load(&self) -> u32;
    fn store(&self, value: u32);
    fn advance(&self);
    /// Orders all that came before it and all that comes after it.
    fn full_fence();
}

impl Word for AtomicU32 {
    fn load(&self) -> u32 {
        AtomicU32::load(self, Ordering::SeqCst)
    }

    fn store(&self, value: u32) {
        AtomicU32::store(self, value, Ordering::SeqCst);
    }

    fn advance(&self) {
        self.fetch_add(1, Ordering::SeqCst);
    }

    fn full_fence() {
        fence(Ordering::SeqCst);
    }
}

/// Sleeps until the bell rings, if there is still nothing to do. `wait` returns at once if the bell is not what it is given; it may return for
/// other reasons, so that callers go on in a loop.
pub fn sleep<W: Word>(bell: &W, asleep: &W, nothing_to_do: impl FnOnce() -> bool, wait: impl FnOnce(&W, u32)) {
    let before = bell.load();
    asleep.store(1);
    if nothing_to_do() {
        wait(bell, before);
    }
    asleep.store(0);
}

/// Wakes who sleeps on the bell; what there is to do has been published before.
pub fn wake<W: Word>(bell: &W, asleep: &W, wake: impl FnOnce(&W)) {
    W::full_fence();
    if asleep.load() != 0 {
        bell.advance();
        wake(bell);
    }
}
