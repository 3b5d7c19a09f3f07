//! The contract between code that has units of work and code that performs them.

use std::error::Error;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::blob::BlobId;

/// What became of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<R> {
    Done(R),
    /// Nobody could perform it.
    SetAside(SetAside),
}

/// Why nobody performs a unit any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetAside {
    /// Workers that died or were lost with it.
    pub lost: u64,
    /// What workers that survived it said.
    pub failures: Vec<String>,
}

/// Hears of results, and says when to stop.
pub struct Watch<'a, R, E> {
    /// Asked often. True: what is not done by now is not wanted any more.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Told what became of each unit, by its number.
    pub take: &'a (dyn Fn(usize, Fate<R>) -> Result<(), E> + Sync),
}

impl<R, E> std::fmt::Debug for Watch<'_, R, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Has units performed somewhere. The duties of an implementation:
///
/// 1. Every unit is performed, unless the work is stopped or the unit is set aside. It may be performed more than once.
/// 2. `take` hears of each unit at most once. Results come in any order, from any thread.
/// 3. Units are begun in the order of the list.
/// 4. After the first error no unit is begun, and that error is returned. Only what concerns the whole work is an error.
/// 5. When it returns, nothing calls `take` any more.
pub trait Dispatch<U, R> {
    type Error;

    fn dispatch(&mut self, units: &[U], watch: &Watch<'_, R, Self::Error>) -> Result<(), Self::Error>;
}

/// Work that is shared with other machines: content that all units need goes there first.
pub trait Campaign: Dispatch<Vec<u8>, Vec<u8>, Error = CampaignError> + fmt::Debug + Send {
    fn put(&mut self, bytes: Vec<u8>) -> Result<BlobId, CampaignError>;

    /// The file must stay as long as the campaign.
    fn put_file(&mut self, path: &Path) -> Result<BlobId, CampaignError>;

    /// From now on units are about this job.
    fn begin(&mut self, job: BlobId) -> Result<(), CampaignError>;

    /// What workers found out for each other while they performed the last units.
    fn exchanged(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<(), CampaignError>;
}

/// The campaign cannot go on.
#[derive(Debug)]
pub struct CampaignError(pub Box<dyn Error + Send + Sync>);

impl<E: Error + Send + Sync + 'static> From<E> for CampaignError {
    fn from(error: E) -> Self {
        CampaignError(Box::new(error))
    }
}
