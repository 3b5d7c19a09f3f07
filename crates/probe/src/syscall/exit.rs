//! The end of a process.

use core::sync::atomic::Ordering;

use wire::record::{Header, kind};

use super::dispatch::Call;
use super::{event, operations};
use crate::ring;
use crate::sys::{nr, sys};
use crate::thread::Thread;

/// `exit_group`: the host hears of it first.
pub fn group(thread: &mut Thread, call: Call) -> i64 {
    // Others may still be at work on it.
    if ring::control().live_processes.load(Ordering::Relaxed) == 1 {
        operations::finish(thread);
    }
    let header = Header { address: call.args[0] & 0xff, ..event::header(thread, kind::PROCESS_EXIT) };
    ring::order(thread).put(header, &[]);
    crate::recover::undo::end((call.args[0] as i32 & 0xff) << 8);
    ring::control().live_processes.fetch_sub(1, Ordering::SeqCst);
    ring::ring_doorbell();
    loop {
        sys!(nr::EXIT_GROUP, call.args[0]);
    }
}
