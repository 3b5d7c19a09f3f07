//! Locks of the engine, and the one order in which they are taken.
//!
//! State that threads share is in a [`Locked`], which gives access only while its lock is held. State that the engine lock guards is in a
//! `translate::guarded::UnderEngineLock`. Each lock has a [`LockName`]. A thread that holds locks may take another one only if its name is
//! *below* all of theirs there.
//!
//! No lock is held when the engine returns to the program or waits in one of the program's system calls, with one exception: fork holds
//! them (`task::clone`), so that the child finds them free. The child initialises or frees those that fork does not hold. A signal that arrives in the engine waits until the
//! thread leaves it, so no handler finds a lock held by its own thread; handlers of faults that the engine expects ([`crate::signal::careful`]) take none.
//!
//! `crates/probe-tests` compiles this file for the host: with threads that really contend, and with schedules that a test chooses. There, every lock
//! checks the order when it is taken.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};

use crate::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sys;

/// Every lock of the engine, in the order in which a thread takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockName {
    /// One change of the address space at a time (`syscall::memory`).
    AddressSpace,
    /// Everything about translated code ([`crate::translate::lock`]).
    Engine,
    /// The order of records, which all processes of the recording share (`ring::order`).
    #[cfg_attr(not(test), expect(dead_code, reason = "it lies in shared memory, and holds the thread that has it"))]
    Records,
    // From here on they are held for look-ups and single changes.
    /// Shared mappings of files (`pm::shared`).
    SharedMappings,
    /// Which memory is PM (`pm`).
    PmRanges,
    /// Mapped modules (`load::modules`).
    Modules,
    /// The path of the target's executable (`load::modules`).
    Executable,
    /// The engine's own free memory (`load::space`).
    FreeSpace,
    /// Numbers of call paths (`context::path`).
    CallPaths,
    /// How to unwind at an address (`context::rule`).
    UnwindRules,
    /// Regions of the program's code (`translate::code`).
    CodeRegions,
    /// Processes that the program may wait for (`task::wait`).
    Children,
    /// What the program does about signals (`signal::action`).
    SignalActions,
    /// Descriptors of random devices (`syscall::random`).
    RandomDescriptors,
    /// Timers that the program has armed (`syscall::timers`).
    Timers,
    /// Folders that the program reads (`recover::listing`).
    Listings,
    /// Operations that were read and not yet served (`recover::script`).
    ReadAhead,
    /// All threads (`thread`).
    Threads,
    /// Every allocation takes it (`memory`).
    Heap,
}

impl LockName {
    /// What the lock holds while it is held, so that a dump of the memory says which it is.
    const fn mark(self) -> u64 {
        self as u64 + 1
    }

    #[cfg(test)]
    pub const ALL: [LockName; 19] = [
        LockName::AddressSpace,
        LockName::Engine,
        LockName::Records,
        LockName::SharedMappings,
        LockName::PmRanges,
        LockName::Modules,
        LockName::Executable,
        LockName::FreeSpace,
        LockName::CallPaths,
        LockName::UnwindRules,
        LockName::CodeRegions,
        LockName::Children,
        LockName::SignalActions,
        LockName::RandomDescriptors,
        LockName::Timers,
        LockName::Listings,
        LockName::ReadAhead,
        LockName::Threads,
        LockName::Heap,
    ];
}

/// More than one thread has run in this address space.
static PARALLEL: AtomicBool = AtomicBool::new(false);

/// A second thread is about to start. The caller holds no lock.
pub fn parallel() {
    PARALLEL.store(true, Ordering::SeqCst);
}

/// A spin lock for short critical sections of the engine; yields the processor when it is contended.
#[derive(Debug)]
pub struct SpinLock {
    state: AtomicU64,
    name: LockName,
}

impl SpinLock {
    pub const fn new(name: LockName) -> Self {
        SpinLock { state: AtomicU64::new(0), name }
    }
    pub fn lock(&self) -> SpinGuard<'_> {
        #[cfg(test)]
        crate::held::take(self.name);
        if !PARALLEL.load(Ordering::Relaxed) {
            // A locked instruction would wait for the program's flushes and non-temporal stores: hundreds of cycles.
            self.state.store(self.name.mark(), Ordering::Relaxed);
            return SpinGuard(self);
        }
        while self.state.compare_exchange_weak(0, self.name.mark(), Ordering::Acquire, Ordering::Relaxed).is_err() {
            sys::sys!(sys::nr::SCHED_YIELD);
        }
        SpinGuard(self)
    }
    /// Does a thread hold it?
    pub fn is_held(&self) -> bool {
        self.state.load(Ordering::Relaxed) != 0
    }
    /// After fork: the child is the only thread.
    pub fn reset(&self) {
        #[cfg(test)]
        crate::held::give(self.name);
        self.state.store(0, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct SpinGuard<'a>(&'a SpinLock);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        #[cfg(test)]
        crate::held::give(self.0.name);
        self.0.state.store(0, Ordering::Release);
    }
}

/// A value and its lock, by name.
#[derive(Debug)]
pub struct Locked<T> {
    lock: SpinLock,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached only through `Guard`, which holds the lock, or with nobody else there (`reset`).
unsafe impl<T: Send> Sync for Locked<T> {}

impl<T> Locked<T> {
    pub const fn new(name: LockName, value: T) -> Locked<T> {
        Locked { lock: SpinLock::new(name), value: UnsafeCell::new(value) }
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
