//! If the engine cannot handle something, it prints a message and the process stops. It never silently records a wrong trace.

use alloc::format;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::ring;
use crate::sys::{nr, sys};
use crate::thread::Thread;

/// Exit code of a target process that the engine ended (the message tells why).
pub const EXIT: u64 = 70;

/// Tells the host that the recording cannot go on, and why; ends the process.
pub fn refuse(thread: &mut Thread, what: fmt::Arguments<'_>) -> ! {
    let text = format!("{what}");
    ring::message(thread, 2, &text);
    exit()
}

#[macro_export]
macro_rules! refuse {
    ($thread:expr, $($arg:tt)*) => { $crate::fail::refuse($thread, format_args!($($arg)*)) };
}

/// The host is gone or told us to stop: nothing can be recorded any more.
pub fn host_gone() -> ! {
    exit()
}

/// Before there is a ring: a line on standard error.
pub fn early(text: &str) -> ! {
    sys!(nr::WRITE, 2, text.as_ptr(), text.len());
    exit()
}

fn exit() -> ! {
    loop {
        sys!(nr::EXIT_GROUP, EXIT);
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    static PANICKED: AtomicBool = AtomicBool::new(false);
    let text = format!("internal error in the probe: {info}; please report this");
    // A second one, or one before there is a thread: the way to the host may be what is broken.
    if PANICKED.swap(true, Ordering::Relaxed) || !crate::thread::any() {
        early(&format!("fencepost: {text}\n"));
    }
    // SAFETY: there is a thread, and nobody comes back to it.
    unsafe { Thread::with_current(|thread| ring::message(thread, 3, &text)) };
    exit()
}

/// The precompiled `alloc` refers to these; with `panic = "abort"` nothing ever calls them.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    exit()
}
