//! The user's wish to end a recording: Ctrl-C and `SIGTERM`.

use std::sync::atomic::{AtomicU32, Ordering};

/// What the user asked for. Set by a signal handler, read by the backend that is at work.
#[derive(Debug, Default)]
pub struct StopRequest {
    /// Signals of the terminal: the target got them too.
    from_terminal: AtomicU32,
    /// Sent to this process alone: to be passed on to the target.
    interrupts: AtomicU32,
    terminations: AtomicU32,
}

/// A signal that the target has to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PassOn {
    Interrupt,
    Terminate,
}

static FROM_USER: StopRequest = StopRequest::new();

impl StopRequest {
    /// Nothing asked for yet.
    pub const fn new() -> StopRequest {
        StopRequest { from_terminal: AtomicU32::new(0), interrupts: AtomicU32::new(0), terminations: AtomicU32::new(0) }
    }

    /// From now on `SIGINT`, `SIGQUIT`, `SIGTERM` and `SIGHUP` no longer end this process but are noted in the request returned.
    /// A trace that grows past the file size limit becomes an error instead of a signal.
    pub fn from_signals() -> &'static StopRequest {
        // SAFETY: the handler only touches atomics; the zeroed action is filled in before use. Without SA_RESTART the
        // host wakes from its sleep at once.
        unsafe {
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO;
            for signal in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP] {
                let mut before: libc::sigaction = std::mem::zeroed();
                libc::sigaction(signal, std::ptr::null(), &raw mut before);
                // Under nohup and in background jobs of plain shells signals are ignored: so they stay.
                if before.sa_sigaction != libc::SIG_IGN {
                    libc::sigaction(signal, &raw const action, std::ptr::null_mut());
                }
            }
        }
        &FROM_USER
    }

    /// How often the user asked.
    pub fn count(&self) -> u32 {
        self.from_terminal.load(Ordering::Relaxed)
            + self.interrupts.load(Ordering::Relaxed)
            + self.terminations.load(Ordering::Relaxed)
    }

    /// What the target has to be sent for the newest request; none if the terminal did that.
    pub fn pass_on(&self) -> Option<PassOn> {
        if self.terminations.load(Ordering::Relaxed) > 0 {
            Some(PassOn::Terminate)
        } else if self.interrupts.load(Ordering::Relaxed) > 0 {
            Some(PassOn::Interrupt)
        } else {
            None
        }
    }

    /// Notes an interrupt as if it had been sent to this process.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::Relaxed);
    }
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel hands a valid `siginfo_t` to SA_SIGINFO handlers.
    let code = unsafe { (*info).si_code };
    let counter = match signal {
        _ if code == libc::SI_KERNEL => &FROM_USER.from_terminal,
        libc::SIGINT => &FROM_USER.interrupts,
        _ => &FROM_USER.terminations,
    };
    counter.fetch_add(1, Ordering::Relaxed);
}
