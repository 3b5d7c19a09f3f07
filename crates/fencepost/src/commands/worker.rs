//! `fencepost worker`: performs units of a campaign that another machine coordinates.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use check::elsewhere::{Judge, KIND, Post};
use clap::Args;
use fleet::blob::BlobId;
use fleet::program::{self, ProgramRuns};
use fleet::redis::address::Address;
use fleet::redis::crew::{Awaited, Blobs, Crew, CrewError, Ended, Performed, Performer, Team};
use record::stop::StopRequest;
use supervise::temporary::Temporary;

use super::options::crash::duration;
use super::options::fleet::version;
use crate::exit::Exit;
use crate::render;

const EXAMPLES: &str = "\
Examples:
  fencepost check --fleet redis://main:6379/nightly -- ./kv pool     on one machine
  fencepost worker redis://main:6379/nightly                         on every machine

A worker runs the recovery of the target: it needs the same Fencepost, and the same target under the
same path. Workers may come and go at any time; others take over unfinished units. A password comes
from FENCEPOST_FLEET_PASSWORD, or from the file of @FILE. See docs/fleet.md.";

/// Do the work of a campaign that another machine started (`--fleet`).
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Worker {
    /// The campaign: redis://HOST[:PORT]/CAMPAIGN, or @FILE for a file with the URL.
    #[arg(value_name = "URL")]
    url: String,
    /// Number of recoveries to run in parallel. [default: the number of processors]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// How long to wait for the campaign to begin.
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = duration)]
    wait: Duration,
    /// Do not use what other workers find out.
    #[arg(long, hide = true)]
    no_exchange: bool,
}

impl Worker {
    pub fn run(&self) -> Exit {
        let address = match Address::given(&self.url) {
            Ok(address) => address,
            Err(error) => {
                render::error(error);
                return Exit::Usage;
            }
        };
        let stop = watched(StopRequest::from_signals());
        loop {
            match self.campaign(&address, &stop) {
                Ok(Ended::Over) => {
                    render::note(format_args!("{address} is over"));
                    return Exit::Clean;
                }
                Ok(Ended::Stopped) => return Exit::Interrupted,
                Ok(Ended::OtherJob) => {}
                Err(error) => {
                    render::error(&error);
                    return match error {
                        CrewError::Useless(_) => Exit::TargetFailed,
                        _ => Exit::Usage,
                    };
                }
            }
        }
    }

    fn campaign(&self, address: &Address, stop: &Arc<AtomicBool>) -> Result<Ended, CrewError> {
        let seconds = self.wait.as_secs();
        let on_wait = |awaited: Awaited| match awaited {
            Awaited::Server(why) => render::note(format_args!(
                "Redis at {} cannot be reached yet ({why}); trying for {seconds} s",
                address.server()
            )),
            Awaited::Campaign => render::note(format_args!("waiting up to {seconds} s for {address} to begin")),
        };
        let Some(mut crew) = Crew::join(address, &version(), self.wait, stop, &on_wait)? else {
            return Ok(Ended::Stopped);
        };
        let team = match self.team(&crew) {
            Ok(team) => team,
            Err(why) => {
                crew.refuse(&why)?;
                return Err(CrewError::Unfit(why));
            }
        };
        let jobs = self.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
        let what = if crew.kind == KIND { "recoveries" } else { "units" };
        render::note(format_args!("working for {address}: {jobs} {what} at a time"));
        crew.work(team.as_ref(), jobs, stop, &|_| {})
    }

    /// Whoever performs units of this kind. The message says why nobody does.
    fn team(&self, crew: &Crew) -> Result<Box<dyn Team>, String> {
        let mut blobs = crew.blobs();
        let mut fetch = |id: BlobId| blobs.get(id).map_err(|error| error.to_string());
        match crew.kind.as_str() {
            KIND => {
                let post = Post::open(crew.job, &mut fetch)?;
                Ok(Box::new(Judges { post, exchange: !self.no_exchange }))
            }
            program::KIND => {
                let folder = Temporary::new("worker").map_err(|error| error.to_string())?;
                let own = std::env::current_exe().map_err(|error| error.to_string())?;
                let runs = ProgramRuns::open(own, &fetch(crew.job)?, folder.path())?;
                Ok(Box::new(Runs { runs, _folder: folder }))
            }
            other => Err(format!("this version does not know campaigns of the kind `{other}`")),
        }
    }
}

/// True once the user wants to stop.
fn watched(request: &'static StopRequest) -> Arc<AtomicBool> {
    let flag = Arc::new(AtomicBool::new(false));
    let watched = Arc::downgrade(&flag);
    thread::spawn(move || {
        while let Some(flag) = watched.upgrade() {
            flag.store(request.count() > 0, Ordering::Relaxed);
            thread::sleep(Duration::from_millis(20));
        }
    });
    flag
}

/// Judges of crash points.
struct Judges {
    post: Post,
    exchange: bool,
}

impl Team for Judges {
    fn performer<'t>(&'t self, blobs: Blobs) -> Result<Box<dyn Performer + 't>, String> {
        Ok(Box::new(Hand { judge: Judge::new(&self.post), blobs: Mutex::new(blobs) }))
    }

    fn learn(&self, exchanged: &[u8]) {
        if self.exchange {
            self.post.learn(exchanged);
        }
    }
}

/// Runs of this program.
struct Runs {
    runs: ProgramRuns,
    _folder: Temporary,
}

impl Team for Runs {
    fn performer<'t>(&'t self, blobs: Blobs) -> Result<Box<dyn Performer + 't>, String> {
        Ok(Box::new(Runner { runs: &self.runs, blobs }))
    }
}

struct Runner<'r> {
    runs: &'r ProgramRuns,
    blobs: Blobs,
}

impl Performer for Runner<'_> {
    fn perform(&mut self, unit: &[u8], unwanted: &AtomicBool) -> Result<Performed, String> {
        let blobs = &mut self.blobs;
        let mut fetch = |id: BlobId| blobs.get(id).map_err(|error| error.to_string());
        let done = self.runs.perform(unit, unwanted, &mut fetch)?;
        Ok(Performed { done, exchanged: None, is_partial: false })
    }
}

struct Hand<'p> {
    judge: Judge<'p>,
    blobs: Mutex<Blobs>,
}

impl Performer for Hand<'_> {
    fn perform(&mut self, unit: &[u8], unwanted: &AtomicBool) -> Result<Performed, String> {
        let blobs = &self.blobs;
        let mut fetch = |id: BlobId| {
            blobs.lock().unwrap_or_else(PoisonError::into_inner).get(id).map_err(|error| error.to_string())
        };
        let judged = self.judge.perform(unit, unwanted, &mut fetch)?;
        Ok(Performed { done: judged.done, exchanged: judged.exchanged, is_partial: judged.is_partial })
    }
}
