//! Locks of the engine, and the one order in which they are taken.
//!
//! Whatever threads share lies in a [`Locked`], which gives it out only with its lock held; what the engine lock guards, in a
//! `translate::guarded::UnderEngineLock`. A thread may take a lock while it holds others only if it stands *below* all of them in this list:
//!
//! 1. `syscall::memory`: one change of the address space at a time;
//! 2. `translate`: the engine lock, over everything about translated code ([`crate::translate::lock`]);
//! 3. the order lock (`ring::order`), which all processes of the recording share: the order of records;
//! 4. the short locks, held for look-ups and single changes, in this order: `pm::shared`, `pm`, `load::modules`, `load::space`,
//!    `context` (numbers, then rules), `translate::code` (regions), `task::wait`, `signal::action`,
//!    `syscall::random`, `thread` (the list);
//! 5. the heap (`memory`), which every allocation takes.
//!
//! No lock is held where the engine goes back to the program or waits in a system call of the program's, with one exception: fork takes
//! all of them (`task::clone`), so that the child finds them free. A signal that finds the engine waits until it is left, so no
//! handler meets a lock of its own thread; faults that the engine expects ([`crate::signal::careful`]) take none.
//!
//! `crates/probe-tests` compiles this file for the host: with threads that really contend, and with schedules that a test chooses.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sys;

/// More than one thread has run in this address space.
static PARALLEL: AtomicBool = AtomicBool::new(false);

/// A second thread is about to start. The caller holds no lock.
pub fn parallel() {
    PARALLEL.store(true, Ordering::SeqCst);
}

/// A spin lock for short critical sections of the engine; yields the processor when it is contended.
#[derive(Debug)]
pub struct SpinLock(AtomicU64);

impl SpinLock {
    pub const fn new() -> Self {
        SpinLock(AtomicU64::new(0))
    }
    pub fn lock(&self) -> SpinGuard<'_> {
        if !PARALLEL.load(Ordering::Relaxed) {
            // A locked instruction would wait for the program's flushes and non-temporal stores: hundreds of cycles.
            self.0.store(1, Ordering::Relaxed);
            return SpinGuard(self);
        }
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sys::sys!(sys::nr::SCHED_YIELD);
        }
        SpinGuard(self)
    }
    /// Does a thread hold it?
    pub fn is_held(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
    /// After fork: the child is the only thread.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct SpinGuard<'a>(&'a SpinLock);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

/// A value and its lock.
#[derive(Debug)]
pub struct Locked<T> {
    lock: SpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, which holds the lock, or with nobody else there (`reset`).
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub const fn new(value: T) -> Locked<T> {
        Locked { lock: SpinLock::new(), value: UnsafeCell::new(value) }
    }

    pub fn lock(&self) -> Guard<'_, T> {
        let held = self.lock.lock();
        // SAFETY: the lock is held, and stays so as long as the guard lives.
        Guard { value: unsafe { &mut *self.value.get() }, _held: held }
    }

    /// After fork, where another thread may have held the lock but what it changes is right at every moment.
    pub fn release(&self) {
        self.lock.reset();
    }

    /// After fork, where another thread may have held the lock: it is free, and the value is this one. The old value is not
    /// dropped: the other thread may have been in the middle of it.
    pub fn reset(&self, value: T) {
        // SAFETY: the child of a fork is the only thread.
        unsafe { self.value.get().write(value) };
        self.lock.reset();
    }
}

/// A value whose lock is held.
#[derive(Debug)]
pub struct Guard<'a, T> {
    value: &'a mut T,
    _held: SpinGuard<'a>,
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value
    }
}
