//! What the engine lock guards: tables that change together, so that one lock is enough for all of them.

use core::cell::UnsafeCell;

/// A value of the engine lock ([`super::lock`]). It is given out only inside [`UnderEngineLock::with`], to a thread that holds the lock; builds with
/// debug assertions look.
#[derive(Debug)]
pub struct UnderEngineLock<T>(UnsafeCell<T>);

// SAFETY: the value is reached only in `with`, with the engine lock held.
unsafe impl<T: Send> Sync for UnderEngineLock<T> {}

impl<T> UnderEngineLock<T> {
    pub const fn new(value: T) -> UnderEngineLock<T> {
        UnderEngineLock(UnsafeCell::new(value))
    }

    /// The value, for a look-up or a change. `change` does not come back here for the same value.
    #[inline]
    pub fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        debug_assert!(super::lock().is_held(), "the engine lock is not held");
        // SAFETY: the engine lock is held, by this thread: nobody comes here without it. The reference ends with the closure, and no closure of
        // the engine names the value that it was given.
        change(unsafe { &mut *self.0.get() })
    }
}
