//! Locks with threads that really contend.

use std::thread;

use crate::lock::{self, LockName, Locked, SpinLock};

static COUNTER: Locked<(u64, u64)> = Locked::new(LockName::Heap, (0, 0));

#[test]
fn a_locked_value_is_changed_by_one_thread_at_a_time() {
    const THREADS: u64 = 4;
    const TIMES: u64 = 20_000;
    lock::parallel();
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..TIMES {
                    let mut pair = COUNTER.lock();
                    // Torn apart on purpose: another thread in between would be seen.
                    let first = pair.0;
                    assert_eq!(first, pair.1);
                    pair.0 = first + 1;
                    std::hint::spin_loop();
                    pair.1 = first + 1;
                }
            });
        }
    });
    assert_eq!(*COUNTER.lock(), (THREADS * TIMES, THREADS * TIMES));
}

#[test]
fn a_reset_value_is_free_and_new() {
    let list = Locked::new(LockName::Heap, vec![1, 2, 3]);
    lock::parallel();
    std::mem::forget(list.lock());
    list.reset(vec![4]);
    assert_eq!(*list.lock(), [4]);
    std::mem::forget(list.lock());
    list.release();
    assert_eq!(*list.lock(), [4]);
}

#[test]
fn a_lock_is_held_as_long_as_its_guard_lives() {
    let lock = SpinLock::new(LockName::Engine);
    assert!(!lock.is_held());
    let guard = lock.lock();
    assert!(lock.is_held());
    drop(guard);
    assert!(!lock.is_held());
}
