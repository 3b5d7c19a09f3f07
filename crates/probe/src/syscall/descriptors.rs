//! Hides the probe's own descriptors from the program.

use super::buffers;
use super::dispatch::Call;
use crate::load::attach;
use crate::sys::{EBADF, nr, sys};
use crate::thread::Thread;

pub fn answer(thread: &mut Thread, call: Call) -> i64 {
    if call.nr == nr::CLOSE_RANGE {
        return close_range(call);
    }
    let target = matches!(call.nr, nr::DUP2 | nr::DUP3) && attach::is_hidden(call.fd(1));
    if attach::is_hidden(call.fd(0)) || target {
        return -EBADF;
    }
    buffers::pass(thread, call)
}

/// Around our own.
fn close_range(call: Call) -> i64 {
    let [first, last, flags, ..] = call.args;
    let (first, last) = (first as u32, last as u32);
    let (lowest, highest) = (attach::socket_fd() as u32, attach::probe_fd() as u32);
    if first > last || last < lowest || first > highest {
        return sys!(nr::CLOSE_RANGE, first, last, flags);
    }
    let mut result = 0;
    if first < lowest {
        result = sys!(nr::CLOSE_RANGE, first, lowest - 1, flags);
    }
    if result == 0 && last > highest {
        result = sys!(nr::CLOSE_RANGE, highest + 1, last, flags);
    }
    result
}
