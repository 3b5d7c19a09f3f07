//! Guests for the workers of a search. A guest that is no longer needed waits for the next search, since booting is expensive.

use std::sync::{Arc, Mutex, PoisonError};

use recover::limits::Limits;
use recover::report::RunReport;
use runner::machine::{Machine, MachineFailed, Machines};
use supervise::cancel::Cancel;

use crate::guest::Guest;
use crate::machine::MachineError;
use crate::recipe::Prepared;

type Idle = Arc<Mutex<Vec<Guest>>>;

/// Makes guests of one recipe.
#[derive(Debug)]
pub struct Guests {
    prepared: Arc<Prepared>,
    mount: String,
    watched: bool,
    idle: Idle,
}

impl Guests {
    /// `watched`: what a mount reads is told, so that images that it cannot tell apart are mounted once. Without that a mount is quicker, but
    /// all of the next image has to be put there.
    pub fn new(prepared: Arc<Prepared>, mount: String, watched: bool) -> Guests {
        Guests { prepared, mount, watched, idle: Idle::default() }
    }

    /// How often any of those that are idle now was booted.
    pub fn boots(&self) -> u64 {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|guest| guest.boots).sum()
    }
}

impl Machines for Guests {
    fn machine(&self) -> Result<Box<dyn Machine>, MachineFailed> {
        let waiting = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let guest = waiting.unwrap_or_else(|| Guest::new(self.prepared.spec.clone(), self.mount.clone(), self.watched));
        Ok(Box::new(Lent { guest: Some(guest), home: Arc::clone(&self.idle) }))
    }
}

/// A guest that goes home when it is not used any more.
#[derive(Debug)]
struct Lent {
    guest: Option<Guest>,
    home: Idle,
}

fn failed(error: MachineError) -> MachineFailed {
    match error {
        MachineError::Cancelled => MachineFailed::Cancelled,
        error => MachineFailed::Failed(Box::new(error)),
    }
}

impl Lent {
    fn guest(&mut self) -> Result<&mut Guest, MachineFailed> {
        self.guest.as_mut().ok_or_else(|| failed(MachineError::Garbled))
    }
}

impl Machine for Lent {
    fn clear(&mut self) -> Result<(), MachineFailed> {
        self.guest()?.clear().map_err(failed)
    }

    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MachineFailed> {
        self.guest()?.put(offset, bytes).map_err(failed)
    }

    fn run(&mut self, limits: &Limits, cancel: &Cancel) -> Result<RunReport, MachineFailed> {
        let guest = self.guest()?;
        guest.cancel = cancel.clone();
        guest.run(limits.wall).map_err(failed)
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.home.lock().unwrap_or_else(PoisonError::into_inner).extend(self.guest.take());
    }
}
