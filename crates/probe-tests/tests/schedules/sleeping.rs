//! A ring that is nearly always full or empty: nobody sleeps for ever, and every record arrives, once and in order.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;
use wire::ring::{self, Word};

use crate::explore;

/// Records that fit.
const ROOM: u64 = 2;
const RECORDS: u64 = 5;

/// A word of the control area, and the kernel's side of its futex.
#[derive(Debug, Default)]
struct FutexWord {
    value: AtomicU32,
    sleepers: Mutex<()>,
    woken: Condvar,
}

impl Word for FutexWord {
    fn load(&self) -> u32 {
        self.value.load(Ordering::SeqCst)
    }

    fn store(&self, value: u32) {
        self.value.store(value, Ordering::SeqCst);
    }

    fn advance(&self) {
        self.value.fetch_add(1, Ordering::SeqCst);
    }

    fn full_fence() {}
}

/// Returns at once if the value is another one. (No time limit.)
fn futex_wait(word: &FutexWord, expected: u32) {
    let guard = word.sleepers.lock().unwrap();
    if word.load() == expected {
        drop(word.woken.wait(guard).unwrap());
    }
}

fn futex_wake(word: &FutexWord) {
    let _guard = word.sleepers.lock().unwrap();
    word.woken.notify_all();
}

/// What both ends share, as `wire::control::Control` has it.
#[derive(Debug, Default)]
struct Shared {
    head: AtomicU64,
    tail: AtomicU64,
    slots: [AtomicU64; ROOM as usize],
    doorbell: FutexWord,
    host_sleeps: FutexWord,
    tail_moved: FutexWord,
    probe_sleeps: FutexWord,
    all_ended: AtomicBool,
}

type Sleep = fn(&FutexWord, &FutexWord, &dyn Fn() -> bool);

fn sleep(bell: &FutexWord, asleep: &FutexWord, nothing_to_do: &dyn Fn() -> bool) {
    ring::sleep(bell, asleep, nothing_to_do, futex_wait);
}

/// Looks first, and says afterwards that it sleeps.
fn sleep_badly(bell: &FutexWord, asleep: &FutexWord, nothing_to_do: &dyn Fn() -> bool) {
    if nothing_to_do() {
        let before = bell.load();
        asleep.store(1);
        futex_wait(bell, before);
    }
    asleep.store(0);
}

impl Shared {
    fn ring_doorbell(&self) {
        ring::wake(&self.doorbell, &self.host_sleeps, futex_wake);
    }

    /// As `Order::write` and `wait_for_space` of the probe. It rings only if the ring is full.
    fn put(&self, value: u64, sleep: Sleep) {
        let head = self.head.load(Ordering::SeqCst);
        loop {
            let tail = self.tail.load(Ordering::SeqCst);
            if head + 1 - tail <= ROOM {
                break;
            }
            sleep(&self.tail_moved, &self.probe_sleeps, &|| {
                self.ring_doorbell();
                self.tail.load(Ordering::SeqCst) == tail
            });
        }
        self.slots[(head % ROOM) as usize].store(value, Ordering::SeqCst);
        self.head.store(head + 1, Ordering::SeqCst);
    }

    /// As `Collector::run` of the host.
    fn collect(&self, sleep: Sleep) -> Vec<u64> {
        let mut taken = Vec::new();
        let mut tail = 0;
        loop {
            let over = self.all_ended.load(Ordering::SeqCst);
            let head = self.head.load(Ordering::SeqCst);
            if head == tail && over {
                return taken;
            }
            if head == tail {
                sleep(&self.doorbell, &self.host_sleeps, &|| {
                    self.head.load(Ordering::SeqCst) == tail && !self.all_ended.load(Ordering::SeqCst)
                });
                continue;
            }
            while tail != head {
                taken.push(self.slots[(tail % ROOM) as usize].load(Ordering::SeqCst));
                tail += 1;
                self.tail.store(tail, Ordering::SeqCst);
                ring::wake(&self.tail_moved, &self.probe_sleeps, futex_wake);
            }
        }
    }
}

fn recording(sleep: Sleep) {
    let shared = Arc::new(Shared::default());
    let own = shared.clone();
    let target = thread::spawn(move || (0..RECORDS).for_each(|value| own.put(value, sleep)));
    let own = shared.clone();
    let supervisor = thread::spawn(move || {
        target.join().unwrap();
        own.all_ended.store(true, Ordering::SeqCst);
        own.ring_doorbell();
    });
    assert_eq!(shared.collect(sleep), (0..RECORDS).collect::<Vec<u64>>());
    supervisor.join().unwrap();
}

#[test]
fn every_record_arrives_and_nobody_sleeps_for_ever() {
    explore(3000, || recording(sleep));
}

#[test]
#[should_panic(expected = "deadlock")]
fn a_lost_wake_up_is_noticed() {
    explore(3000, || recording(sleep_badly));
}
