//! What a lock guards is changed by one thread at a time.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicU64, Ordering};
use shuttle::thread;

use crate::explore;
use crate::lock::{self, LockName, Locked};

const THREADS: u64 = 3;
const TIMES: u64 = 2;

/// Two numbers that differ while they are changed, and a change that takes two steps.
#[derive(Debug, Default)]
struct Pair {
    first: AtomicU64,
    second: AtomicU64,
}

impl Pair {
    fn advance(&self) {
        let before = self.first.load(Ordering::SeqCst);
        assert_eq!(before, self.second.load(Ordering::SeqCst), "somebody is in the middle of a change");
        self.first.store(before + 1, Ordering::SeqCst);
        self.second.store(before + 1, Ordering::SeqCst);
    }
}

fn in_threads(work: impl Fn() + Send + Sync + 'static) {
    let work = Arc::new(work);
    let start = |_| {
        let work = work.clone();
        thread::spawn(move || (0..TIMES).for_each(|_| work()))
    };
    let threads: Vec<_> = (0..THREADS).map(start).collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

fn locked() {
    lock::parallel();
    let pair = Arc::new(Locked::new(LockName::Heap, Pair::default()));
    let own = pair.clone();
    in_threads(move || own.lock().advance());
    assert_eq!(pair.lock().first.load(Ordering::SeqCst), THREADS * TIMES);
}

#[test]
fn a_locked_value_is_changed_by_one_thread_at_a_time() {
    explore(2000, locked);
}

/// Looks whether the lock is free, and then takes it.
fn badly_locked() {
    let shared = Arc::new((AtomicU64::new(0), Pair::default()));
    in_threads(move || {
        while shared.0.load(Ordering::SeqCst) != 0 {
            thread::yield_now();
        }
        shared.0.store(1, Ordering::SeqCst);
        shared.1.advance();
        shared.0.store(0, Ordering::SeqCst);
    });
}

#[test]
#[should_panic(expected = "somebody is in the middle of a change")]
fn a_lock_that_does_not_lock_is_noticed() {
    explore(2000, badly_locked);
}

fn released_after_fork() {
    lock::parallel();
    let list = Arc::new(Locked::new(LockName::Heap, vec![1]));
    // The thread that had it does not exist in the child.
    std::mem::forget(list.lock());
    list.reset(vec![2]);
    let own = list.clone();
    in_threads(move || own.lock().push(3));
    assert_eq!(list.lock().len() as u64, 1 + THREADS * TIMES);
}

#[test]
fn a_lock_that_was_held_at_fork_serves_again() {
    explore(500, released_after_fork);
}

/// Two threads that take two locks, each in its own order.
fn in_different_orders() {
    lock::parallel();
    let first = Arc::new(Locked::new(LockName::PmRanges, 0));
    let second = Arc::new(Locked::new(LockName::Modules, 0));
    let (own_first, own_second) = (first.clone(), second.clone());
    let other = thread::spawn(move || {
        let mut first = own_first.lock();
        *first += *own_second.lock();
    });
    {
        let mut second = second.lock();
        *second += *first.lock();
    }
    other.join().unwrap();
}

/// Without the check, only a schedule that comes to a deadlock would show it.
#[test]
#[should_panic(expected = "PmRanges is taken while Some(Modules) is held")]
fn locks_out_of_order_are_noticed() {
    explore(1, in_different_orders);
}
