//! A second Ctrl-C ends this process at once.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use record::stop::StopRequest;

use crate::exit::Exit;

const BETWEEN_LOOKS: Duration = Duration::from_millis(20);
/// Runs that are cancelled and files that are removed need a moment.
const TO_CLEAN_UP: Duration = Duration::from_millis(300);

/// Ends the process at the second request from now on, until it is dropped.
#[derive(Debug)]
pub struct AtOnce {
    _alive: Sender<()>,
}

impl AtOnce {
    pub fn watch(stop: &'static StopRequest) -> AtOnce {
        let before = stop.count();
        let (alive, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            while ended.recv_timeout(BETWEEN_LOOKS) == Err(RecvTimeoutError::Timeout) {
                if stop.count() > before + 1 {
                    break;
                }
            }
            if ended.recv_timeout(TO_CLEAN_UP) == Err(RecvTimeoutError::Timeout) {
                // Supervisors end with this process, and the next one removes its temporary files.
                std::process::exit(Exit::Interrupted.code().into());
            }
        });
        AtOnce { _alive: alive }
    }
}
