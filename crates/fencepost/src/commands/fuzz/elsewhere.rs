//! Slices of a campaign as units: this command runs them, on this machine (`--slice`) or on others (`--fleet`).

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, CampaignError, Fate, Watch};
use fleet::folder;
use fleet::program::{ProgramUnit, RunsHere};
use fleet::redis::coordinator::Coordinator;
use fuzz::campaign::rounds::{Performed, Performers};
use fuzz::campaign::slice::RoundUnit;
use record::stop::StopRequest;
use report::words;
use supervise::temporary::Temporary;

use super::FuzzOptions;

/// Executions in a slice, unless the user says otherwise: some seconds.
pub const SLICE: u64 = 2000;

/// Whoever performs the slices.
pub struct Slices {
    here: Option<(RunsHere, Temporary)>,
    fleet: Option<Coordinator>,
    /// Pieces of the campaign's folder that were sent.
    given: Vec<BlobId>,
    stop: &'static StopRequest,
}

impl Slices {
    /// None: the campaign is not cut into slices.
    pub fn open(options: &FuzzOptions, jobs: usize) -> Result<Option<Slices>, String> {
        let stop = StopRequest::from_signals();
        let mut commands = vec![options.command.clone()];
        commands.extend(options.recover.iter().map(|line| drive::template::words(line).unwrap_or_default()));
        let files = [options.grammar.as_deref(), options.ops.as_deref(), options.dict.as_deref()];
        if let Some(fleet) = options.fleet.open_runs(&["fuzz"], &commands, &files)? {
            return Ok(Some(Slices { here: None, fleet: Some(fleet), given: Vec::new(), stop }));
        }
        if options.slice.is_none() {
            return Ok(None);
        }
        let folder = Temporary::new("slices").map_err(|error| error.to_string())?;
        let own = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut here = RunsHere::new(own, folder.path(), jobs);
        options.fleet.begin_runs(&mut here, &["fuzz"], &commands, &files)?;
        Ok(Some(Slices { here: Some((here, folder)), fleet: None, given: Vec::new(), stop }))
    }

    pub fn into_fleet(self) -> Option<Coordinator> {
        self.fleet
    }

    fn campaign(&mut self) -> Option<&mut dyn Campaign> {
        match (&mut self.fleet, &mut self.here) {
            (Some(fleet), _) => Some(fleet),
            (None, Some((here, _))) => Some(here),
            (None, None) => None,
        }
    }
}

impl Performers for Slices {
    fn perform(
        &mut self,
        piece: &Path,
        units: &[RoundUnit],
        is_stopped: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Performed>, String> {
        let told = |CampaignError(error): CampaignError| error.to_string();
        let (stop, before) = (self.stop, self.stop.count());
        let is_stopped = || is_stopped() || stop.count() > before;
        let packed = folder::pack(piece).map_err(|error| error.to_string())?;
        let mut given = std::mem::take(&mut self.given);
        let Some(campaign) = self.campaign() else { return Err("nobody performs slices".into()) };
        given.push(campaign.put(packed).map_err(told)?);
        let what = |unit: &RoundUnit| serde_json::to_value(unit).expect("plain data has a form in JSON");
        let sent: Vec<Vec<u8>> =
            units.iter().map(|unit| ProgramUnit { given: given.clone(), what: what(unit) }.bytes()).collect();
        let performed: Mutex<Vec<Performed>> = Mutex::new(units.iter().map(|_| Performed::NotDone).collect());
        let take = |number: usize, fate: Fate<Vec<u8>>| {
            let fate = match fate {
                Fate::Done(done) => {
                    let folder = tempfile::tempdir()?;
                    folder::unpack(&done, folder.path())?;
                    Performed::Done(folder)
                }
                Fate::SetAside(why) => Performed::SetAside(words::set_aside("it is", why.lost, &why.failures)),
            };
            performed.lock().unwrap_or_else(PoisonError::into_inner)[number] = fate;
            Ok(())
        };
        campaign.dispatch(&sent, &Watch { is_stopped: &is_stopped, take: &take }).map_err(told)?;
        self.given = given;
        Ok(performed.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}
