//! What the kernel wrote for the program, including ordinary memory: it overwrites the values that were there.
//!
//! Calls whose pointers depend on a command (`ioctl`, `prctl`) are assumed to write nothing, except a terminal's settings and size.

use core::sync::atomic::{AtomicU64, Ordering};

use syscalls::{Access, Shape};
use wire::record::{Header, kind};

use super::buffer;
use crate::load::user;
use crate::pm;
use crate::ring;
use crate::sys::nr;
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

/// Before a system call: other threads may act on it.
pub fn before(thread: &mut Thread, call: Call) {
    if super::values() {
        super::input::before(thread, call);
    }
    if ring::control().many_tasks.load(Ordering::Relaxed) != 0 {
        buffer::flush(thread);
    }
}

/// Tells the host of a range. The thread has no open entry.
pub fn wrote(thread: &mut Thread, address: u64, len: u64) {
    if address == 0 || len == 0 || !super::on() {
        return;
    }
    buffer::flush(thread);
    let header = Header { kind: kind::FLOW_WRITE, address, ..Header::default() };
    ring::order(thread).put(header, &[&len.to_le_bytes()]);
}

/// After a system call that returned `result`.
pub fn after(thread: &mut Thread, call: Call, result: i64) {
    if result < 0 {
        return;
    }
    told(thread, call, result);
    if super::values() {
        super::input::after(thread, call, result as u64);
    }
}

fn told(thread: &mut Thread, call: Call, result: i64) {
    const TCGETS: u64 = 0x5401;
    const TIOCGWINSZ: u64 = 0x5413;
    let (a, result) = (call.args, result as u64);
    match call.nr {
        nr::MMAP if !pm::is_pm(result) => wrote(thread, result, a[1]),
        nr::BRK => grown(thread, result),
        nr::IOCTL if a[1] == TCGETS => wrote(thread, a[2], 36),
        nr::IOCTL if a[1] == TIOCGWINSZ => wrote(thread, a[2], 8),
        // A wait for a word, or for a thread, changes nothing; what else they write is the engine's affair.
        nr::FUTEX | nr::CLONE => {}
        _ => by_table(thread, call, result),
    }
}

/// What the call's row says that it wrote; what it may have changed in parts counts as written.
fn by_table(thread: &mut Thread, call: Call, result: u64) {
    let Some(entry) = syscalls::entry(call.nr) else { return };
    let number_at = |address: u64| user::read::<u32>(address);
    for used in entry.uses.iter().filter(|used| matches!(used.access, Access::Written | Access::Changed)) {
        let address = call.args[used.argument as usize];
        match used.shape {
            Shape::Bytes(length) => {
                let most = length.most(&call.args, number_at);
                wrote(thread, address, length.done(most, &call.args, result, number_at));
            }
            Shape::Vector { count } if used.access == Access::Written => {
                vectors(thread, address, call.args[count as usize], result);
            }
            Shape::Message => message(thread, address, result),
            _ => {}
        }
    }
}

/// Where the heap ended at the last look.
static HEAP_END: AtomicU64 = AtomicU64::new(0);

fn grown(thread: &mut Thread, end: u64) {
    let before = HEAP_END.swap(end, Ordering::Relaxed);
    if before != 0 && end > before {
        wrote(thread, before, end - before);
    }
}

fn vectors(thread: &mut Thread, list: u64, count: u64, mut left: u64) {
    for n in 0..count {
        let Some((address, len)) = user::read::<(u64, u64)>(list + n * 16) else { return };
        let len = len.min(left);
        wrote(thread, address, len);
        left -= len;
    }
}

/// A `struct msghdr`: its vectors, and what it says of itself.
fn message(thread: &mut Thread, header: u64, received: u64) {
    if let Some((list, count)) = user::read::<(u64, u64)>(header + 16) {
        vectors(thread, list, count.min(1024), received);
    }
    wrote(thread, header, 56);
}
