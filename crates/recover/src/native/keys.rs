//! The terminal's keys belong to the command that is attended.

use std::mem;
use std::ptr;

/// While it lives, Ctrl-C and Ctrl-\\ do not end this process.
pub(super) struct IgnoredKeys {
    before: [(i32, libc::sigaction); 2],
}

impl IgnoredKeys {
    pub fn ignore() -> IgnoredKeys {
        let before = [libc::SIGINT, libc::SIGQUIT].map(|signal| {
            // SAFETY: all-zero actions are valid; ignoring a signal needs no handler.
            unsafe {
                let mut ignoring: libc::sigaction = mem::zeroed();
                let mut before: libc::sigaction = mem::zeroed();
                ignoring.sa_sigaction = libc::SIG_IGN;
                libc::sigaction(signal, &raw const ignoring, &raw mut before);
                (signal, before)
            }
        });
        IgnoredKeys { before }
    }
}

impl Drop for IgnoredKeys {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: the action that was there before.
            unsafe { libc::sigaction(*signal, before, ptr::null_mut()) };
        }
    }
}
