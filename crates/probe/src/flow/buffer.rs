//! The buffer of a thread: filled by its translated code, emptied into the ring.
//!
//! There is no check for space. Each block first writes [`AHEAD`] bytes ahead of its entry: behind the buffer is a page
//! that cannot be written, so a full buffer faults before the block has begun.

use wire::record::{Header, kind};

use crate::load::space;
use crate::ring::{self, Order};
use crate::sys::{nr, raw};
use crate::thread::{Place, Thread};
use crate::translate::emit::Reg;

/// Of entries; one record takes them all.
pub const BYTES: u64 = 128 << 10;
/// Longest entry, and the size of the guard.
pub const AHEAD: u64 = 4096;

/// Part of [`Thread`]; translated code uses the first three.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Buffer {
    /// Where the open entry is, or the next one will be.
    pub at: u64,
    /// The program's content of the registers that the block under way uses for itself.
    pub x: u64,
    pub y: u64,
    pub start: u64,
    /// The first instruction of the next entry was told already: it was about to run when the buffer was emptied, and faulted.
    pub told: bool,
}

/// Gives a new thread its buffer.
pub fn create(thread: &mut Thread) {
    if !super::on() {
        return;
    }
    let start = space::map_engine(BYTES + AHEAD);
    // SAFETY: pages behind the buffer that was just mapped; nothing lies there yet.
    unsafe { raw!(nr::MPROTECT, start + BYTES, AHEAD, 0) };
    thread.flow = Buffer { at: start, start, ..Buffer::default() };
}

/// The thread is over.
pub fn give_back(thread: &mut Thread) {
    if thread.flow.start != 0 {
        space::unmap_engine(thread.flow.start, BYTES + AHEAD);
        thread.flow = Buffer::default();
    }
}

/// Sends what is in the buffer. The thread has no open entry.
pub fn flush(thread: &mut Thread) {
    if thread.flow.at != thread.flow.start {
        send(&mut ring::order(thread));
    }
}

/// Before another record of the thread. In a signal handler that interrupted translated code an entry may be open.
pub fn before_record(order: &mut Order<'_>) {
    let thread = order.thread();
    if thread.flow.at != thread.flow.start && thread.place == Place::Engine {
        send(order);
    }
}

fn send(order: &mut Order<'_>) {
    let thread = order.thread();
    let (start, at) = (thread.flow.start, thread.flow.at);
    thread.flow.at = start;
    // Not `Thread::number`: that may be another's for the moment (`task::clone::as_thread`).
    let number = (thread.header_thread >> 16) as u16;
    // SAFETY: the thread's own buffer, filled up to `at`.
    let words = unsafe { core::slice::from_raw_parts(start as *const u8, (at - start) as usize) };
    let aux = core::mem::take(&mut order.thread().flow.told).into();
    order.write(Header { kind: kind::FLOW, aux, thread: number, ..Header::default() }, &[words]);
}

/// A fault at `address`: if it is the guard's, makes room. `set` sets the register in which the block has the buffer's
/// position.
pub fn is_full(thread: &mut Thread, rip: u64, address: u64, set: impl FnOnce(Reg, u64)) -> bool {
    let guard = thread.flow.start + BYTES;
    if thread.flow.start == 0 || !(guard..guard + AHEAD).contains(&address) {
        return false;
    }
    let Some(x) = super::cut::position_register(rip) else { return false };
    flush(thread);
    set(x, thread.flow.at);
    true
}
