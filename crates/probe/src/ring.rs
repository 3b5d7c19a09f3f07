//! Writing records into the shared ring, from Rust. (The hot path for stores, flushes and fences is in `trampoline/record.rs`.)

use core::sync::atomic::Ordering;

use wire::control::{Control, MAX_PAYLOAD, RING_BYTES};
use wire::record::{HEADER_BYTES, Header, kind, record_bytes};

use crate::layout;
use crate::sys::{self, nr, raw, sys};
use crate::thread::Thread;

/// The control area, mapped at its fixed place by `load::start`.
pub fn control() -> &'static Control {
    // SAFETY: mapped before anything else runs; only its atomics change afterwards.
    unsafe { &*(layout::CONTROL as *const Control) }
}

const FUTEX_WAIT: u64 = 0;
const FUTEX_WAKE: u64 = 1;

pub fn futex_wait(word: &core::sync::atomic::AtomicU32, value: u32, timeout_ns: u64) {
    let time = [timeout_ns / 1_000_000_000, timeout_ns % 1_000_000_000];
    // SAFETY: the kernel only reads the word and `time`.
    unsafe { raw!(nr::FUTEX, word.as_ptr(), FUTEX_WAIT, value, time.as_ptr()) };
}

pub fn futex_wake(word: &core::sync::atomic::AtomicU32) {
    // SAFETY: the kernel only looks for those who wait at this address.
    unsafe { raw!(nr::FUTEX, word.as_ptr(), FUTEX_WAKE, i32::MAX) };
}

/// Wakes the host if it sleeps.
pub fn ring_doorbell() {
    let control = control();
    wire::ring::wake(&control.doorbell, &control.host_sleeps, futex_wake);
}

/// Waits until `bytes` more fit into the ring. The order lock is held or there is one task only.
pub fn wait_for_space(bytes: usize) {
    let control = control();
    loop {
        let head = control.head.load(Ordering::Relaxed);
        let tail = control.tail.load(Ordering::Acquire);
        if head + bytes as u64 - tail <= RING_BYTES as u64 {
            return;
        }
        if control.stop.load(Ordering::Relaxed) != 0 {
            crate::fail::host_gone();
        }
        let still_full = || {
            ring_doorbell();
            control.tail.load(Ordering::SeqCst) == tail
        };
        wire::ring::sleep(&control.tail_moved, &control.probe_sleeps, still_full, |moved, before| {
            futex_wait(moved, before, 20_000_000);
        });
    }
}

/// Holds the order lock for the time of some records (a no-op while there is only one task).
#[derive(Debug)]
pub struct Order<'a> {
    thread: &'a mut Thread,
    taken: bool,
}

pub fn order(thread: &mut Thread) -> Order<'_> {
    let taken = control().many_tasks.load(Ordering::Relaxed) != 0 && thread.holds_order == 0;
    if taken {
        take_order_lock(thread.tid as u32);
        thread.holds_order = 1;
    }
    Order { thread, taken }
}

impl Drop for Order<'_> {
    fn drop(&mut self) {
        if self.taken {
            self.thread.holds_order = 0;
            control().order_lock.store(0, Ordering::Release);
        }
    }
}

/// Takes the lock that makes the order of records the order of memory. If its owner has died (SIGKILL), takes it over.
pub fn take_order_lock(tid: u32) {
    let lock = &control().order_lock;
    let mut tries = 0u32;
    loop {
        match lock.compare_exchange(0, tid, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => return,
            Err(owner) => {
                tries += 1;
                if !tries.is_multiple_of(64) {
                    core::hint::spin_loop();
                    continue;
                }
                sys!(nr::SCHED_YIELD);
                const ESRCH: i64 = 3;
                if tries.is_multiple_of(1 << 16) && sys!(nr::TKILL, owner, 0) == -ESRCH {
                    let _ = lock.compare_exchange(owner, 0, Ordering::Relaxed, Ordering::Relaxed);
                }
            }
        }
    }
}

impl Order<'_> {
    /// Appends one record. `parts` are written one after the other as its payload (at most `MAX_PAYLOAD` bytes and a
    /// short prefix).
    pub fn put(&mut self, mut header: Header, parts: &[&[u8]]) {
        let size: usize = parts.iter().map(|p| p.len()).sum();
        debug_assert!(size <= MAX_PAYLOAD + 64);
        if crate::recover::on() && header.kind != kind::MESSAGE {
            crate::cover::system_call(self.thread, &header);
            return crate::recover::notes::instead(&header, parts, size);
        }
        crate::flow::buffer::before_record(self);
        header.thread = self.thread.number as u16;
        self.write(header, parts);
    }

    /// As [`Order::put`], of the thread in the header, and of any size that fits into the ring.
    pub fn write(&mut self, mut header: Header, parts: &[&[u8]]) {
        let size: usize = parts.iter().map(|p| p.len()).sum();
        header.size = size as u32;
        let total = record_bytes(size);
        wait_for_space(total);
        let control = control();
        let head = control.head.load(Ordering::Relaxed);
        let start = layout::RING + head % RING_BYTES as u64;
        // SAFETY: the ring is mapped twice in a row, so `total` bytes from `start` are ours.
        unsafe {
            (start as *mut Header).write(header);
            let mut at = (start + HEADER_BYTES as u64) as *mut u8;
            for part in parts {
                core::ptr::copy_nonoverlapping(part.as_ptr(), at, part.len());
                at = at.add(part.len());
            }
        }
        control.head.store(head + total as u64, Ordering::Release);
    }

    pub fn thread(&mut self) -> &mut Thread {
        self.thread
    }

    /// Asks the host to catch up; returns the request's number for [`wait_for_answer`].
    pub fn ask(&mut self) -> u32 {
        let number = control().request.fetch_add(1, Ordering::SeqCst) + 1;
        self.put(Header { kind: kind::PLEASE, address: number as u64, ..Header::default() }, &[]);
        number
    }
}

/// Waits until the host has worked off everything up to request `number`.
pub fn wait_for_answer(number: u32) {
    let control = control();
    ring_doorbell();
    loop {
        let answered = control.answered.load(Ordering::Acquire);
        if answered.wrapping_sub(number) as i32 >= 0 {
            return;
        }
        if control.stop.load(Ordering::Relaxed) != 0 {
            crate::fail::host_gone();
        }
        futex_wait(&control.answered, answered, 20_000_000);
        ring_doorbell();
    }
}

/// Sends a message to the user. `aux`: 0 note, 1 warning, 2 fatal, 3 a mistake of ours.
pub fn message(thread: &mut Thread, aux: u8, text: &str) {
    let text = &text.as_bytes()[..text.len().min(MAX_PAYLOAD)];
    order(thread).put(Header { kind: kind::MESSAGE, aux, ..Header::default() }, &[text]);
    ring_doorbell();
}

const _: () = assert!(sys::PROT_READ == 1);
