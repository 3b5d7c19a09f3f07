//! Takes records out of the ring until no process of the run is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use supervise::probe::{Shared, futex_wait, futex_wake};
use supervise::supervised::Supervised;
use wire::control::RING_BYTES;
use wire::record::{HEADER_BYTES, Header, record_bytes};

use super::error::HostError;
use super::translate::{Refusal, Translator};
use crate::stop::{PassOn, StopRequest};

/// Room is given back to the producers this often.
const STRIDE: u64 = RING_BYTES as u64 / 16;
/// The probe rings the doorbell only if it waits; otherwise records may pile up this long, so that the host takes
/// many at a time.
const NAP: Duration = Duration::from_millis(1);
/// After so many naps without a record the target is idle, and the host sleeps longer.
const NAPS_UNTIL_IDLE: u32 = 64;
const IDLE_NAP: Duration = Duration::from_millis(10);

/// How the collection came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    AllProcessesEnded,
    /// The user asked a second time, and everything was killed.
    Killed,
}

#[derive(Debug)]
pub(super) struct Collector<'a> {
    pub shared: &'a Shared,
    pub running: &'a Supervised,
    /// Set, and the doorbell rung, when no process is left.
    pub all_ended: &'a AtomicBool,
    pub stop: &'a StopRequest,
}

impl Collector<'_> {
    pub fn run(&self, translator: &mut Translator<'_>) -> Result<End, HostError> {
        let control = self.shared.control();
        let mut tail = control.tail.load(Ordering::Relaxed);
        let mut idle = 0;
        let mut stops_seen = 0;
        let mut end = End::AllProcessesEnded;
        loop {
            // The order matters: what ended processes wrote is in `head`.
            let over = self.all_ended.load(Ordering::Acquire);
            let head = control.head.load(Ordering::Acquire);
            // Asked for also while records keep coming: a target may store, or tell its flow, for ever.
            let stops = self.stop.count();
            if stops > stops_seen && !over {
                if stops_seen > 0 || stops > 1 {
                    end = End::Killed;
                }
                stops_seen = stops;
                self.end_target(end);
            }
            if head != tail {
                idle = 0;
                tail = self.take(translator, tail, head)?;
                continue;
            }
            if over {
                return Ok(end);
            }
            idle += 1;
            self.sleep(tail, if idle < NAPS_UNTIL_IDLE { NAP } else { IDLE_NAP });
        }
    }

    fn end_target(&self, end: End) {
        match (end, self.stop.pass_on()) {
            (End::Killed, _) => self.running.end_all(),
            (_, Some(PassOn::Interrupt)) => self.running.interrupt(),
            (_, Some(PassOn::Terminate)) => self.running.terminate(),
            (_, None) => {}
        }
    }

    fn sleep(&self, tail: u64, longest: Duration) {
        let control = self.shared.control();
        let nothing_new = || control.head.load(Ordering::SeqCst) == tail && !self.all_ended.load(Ordering::SeqCst);
        wire::ring::sleep(&control.doorbell, &control.host_sleeps, nothing_new, |bell, before| {
            futex_wait(bell, before, longest);
        });
    }

    /// Translates the records from `tail` to `head`.
    fn take(&self, translator: &mut Translator<'_>, mut tail: u64, head: u64) -> Result<u64, HostError> {
        let mut given_back = tail;
        if head.wrapping_sub(tail) > RING_BYTES as u64 {
            return Err(HostError::Damaged { what: "more bytes than the ring holds", at: tail });
        }
        while tail != head {
            let left = head - tail;
            let damaged = |what| HostError::Damaged { what, at: tail };
            if left < HEADER_BYTES as u64 {
                return Err(damaged("a cut record"));
            }
            // SAFETY: the producers published everything up to `head`, and `tail` in the control area is behind.
            let header = unsafe { self.shared.bytes(tail, HEADER_BYTES).as_ptr().cast::<Header>().read_unaligned() };
            let bytes = record_bytes(header.size as usize) as u64;
            if bytes > left {
                return Err(damaged("a record longer than the stream"));
            }
            // SAFETY: as above; the whole record is before `head`.
            let payload = unsafe { self.shared.bytes(tail + HEADER_BYTES as u64, header.size as usize) };
            translator.record(&header, payload).map_err(|refusal| match refusal {
                Refusal::Damaged(what) => damaged(what),
                Refusal::Host(error) => error,
            })?;
            tail += bytes;
            if tail - given_back >= STRIDE {
                self.give_back(tail);
                given_back = tail;
            }
        }
        self.give_back(tail);
        Ok(tail)
    }

    fn give_back(&self, tail: u64) {
        let control = self.shared.control();
        control.tail.store(tail, Ordering::Release);
        wire::ring::wake(&control.tail_moved, &control.probe_sleeps, futex_wake);
    }
}
