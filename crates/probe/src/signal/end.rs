//! Processes that a signal ends.

use core::fmt::Write;
use core::sync::atomic::Ordering;

use wire::record::{Header, kind};

use super::abi::{Context, Info, KernelAction, SIG_DFL};
use super::set::SignalSet;
use crate::fail;
use crate::ring;
use crate::sys::{nr, raw, sys};
use crate::thread::Thread;

/// The process dies of this signal, as it would natively: default action, not blocked, sent to this thread.
pub fn end_by(thread: &mut Thread, signal: i32) -> ! {
    const SIG_UNBLOCK: u64 = 1;
    let header = Header { kind: kind::PROCESS_EXIT, aux: 1, address: signal as u64, ..Header::default() };
    // The thread has left its block.
    crate::flow::buffer::flush(thread);
    ring::order(thread).put(header, &[]);
    // Runs leave no core.
    crate::recover::undo::end(signal);
    ring::control().live_processes.fetch_sub(1, Ordering::SeqCst);
    ring::ring_doorbell();
    let default = KernelAction::default();
    // SAFETY: the kernel only reads `default`: no handler.
    unsafe { raw!(nr::RT_SIGACTION, signal, &raw const default, 0, 8) };
    let set = SignalSet::EMPTY.with(signal);
    // SAFETY: the kernel only reads `set`.
    unsafe { raw!(nr::RT_SIGPROCMASK, SIG_UNBLOCK, &raw const set, 0, 8) };
    loop {
        sys!(nr::TGKILL, sys!(nr::GETPID), sys!(nr::GETTID), signal);
    }
}

/// Would this signal, sent by the thread to itself, end the process?
pub fn would_end(thread: &Thread, signal: i32) -> bool {
    thread.signals.actions().get(signal).handler == SIG_DFL && !thread.signals.mask.has(signal)
}

/// A fault where the engine must not have one. No allocation: the heap may be what is broken.
pub fn internal_error(thread: &mut Thread, info: &Info, context: &Context) -> ! {
    struct Message {
        bytes: [u8; 256],
        len: usize,
    }
    impl Write for Message {
        fn write_str(&mut self, text: &str) -> core::fmt::Result {
            let room = self.bytes.len() - self.len;
            let take = text.len().min(room);
            self.bytes[self.len..self.len + take].copy_from_slice(&text.as_bytes()[..take]);
            self.len += take;
            Ok(())
        }
    }
    let mut line = Message { bytes: [0; 256], len: 0 };
    let machine = &context.machine;
    let _ = write!(
        line,
        "internal error in the probe: signal {} (code {}, address {:#x}) at {:#x}, rsp {:#x}, program pc {:#x}; please report this",
        info.signo, info.code, info.address, machine.rip, machine.rsp, thread.pc
    );
    let text = core::str::from_utf8(&line.bytes[..line.len]).unwrap_or("internal error in the probe");
    ring::message(thread, 3, text);
    loop {
        sys!(nr::EXIT_GROUP, fail::EXIT);
    }
}
