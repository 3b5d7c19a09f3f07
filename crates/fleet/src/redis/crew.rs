//! A worker: takes units, performs them, acknowledges with results.

use std::collections::HashMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use redis::streams::{StreamAutoClaimReply, StreamPendingCountReply, StreamReadReply};
use redis::{Value, cmd, pipe};

use super::address::Address;
use super::heart::{Face, Pulse, UnderWay, beat, own_name, pause};
use super::keys::{GROUP, KEPT, Keys, fields};
use super::link::{Link, LinkError, is_forgotten};
use super::store::{self, StoreError};
use super::survey::Standing;
use super::units::{UnitEntry, text};
use crate::blob::BlobId;
use crate::dispatch::SetAside;

/// A unit that was lost with so many workers, or given back by so many, is set aside.
pub const MOST_LOST: u64 = 3;
/// A worker that fails so often in a row is of no use.
const MOST_FAILURES: u32 = 5;
/// How long a worker waits for a unit at a time.
const WAIT: Duration = Duration::from_millis(500);
/// News that one look reads.
const NEWS: usize = 64;

/// What a unit brought.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Performed {
    pub done: Vec<u8>,
    /// For other workers.
    pub exchanged: Option<Vec<u8>>,
    /// It was stopped before its end.
    pub is_partial: bool,
}

/// Performs units. Each job of a worker has one of its own.
pub trait Performer {
    /// An error is about this unit here: another worker may do better. `unwanted` is to be looked at while it works.
    fn perform(&mut self, unit: &[u8], unwanted: &AtomicBool) -> Result<Performed, String>;
}

/// All jobs of a worker.
pub trait Team: Sync {
    fn performer<'t>(&'t self, blobs: Blobs) -> Result<Box<dyn Performer + 't>, String>;

    /// What another worker found out.
    fn learn(&self, _exchanged: &[u8]) {}
}

#[derive(Debug, thiserror::Error)]
pub enum CrewError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("there is no campaign `{campaign}` at {server}; start one with --fleet, or wait longer with --wait")]
    NoCampaign { campaign: String, server: String },
    #[error("campaign `{campaign}` is run by fencepost {theirs}, and this is {ours}; use the same version everywhere")]
    OtherVersion { campaign: String, theirs: String, ours: String },
    #[error("this worker has failed {MOST_FAILURES} times in a row; the last time: {0}")]
    Useless(String),
    #[error("this worker cannot work for the campaign: {0}")]
    Unfit(String),
}

/// The blobs of a campaign.
#[derive(Debug)]
pub struct Blobs {
    link: Link,
    keys: Keys,
}

impl Blobs {
    /// Verified.
    pub fn get(&mut self, id: BlobId) -> Result<Vec<u8>, StoreError> {
        store::get(&mut self.link, &self.keys, id)
    }
}

/// A campaign that this process may work for.
#[derive(Debug)]
pub struct Crew {
    address: Address,
    link: Link,
    keys: Keys,
    name: String,
    version: String,
    pub kind: String,
    pub job: BlobId,
    lease: Duration,
}

/// Why there is no more work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The campaign is finished or cancelled.
    Over,
    /// The user wants this worker to stop.
    Stopped,
    /// It is about something else now.
    OtherJob,
}

/// What a worker waits for that cannot join at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// The server cannot be reached; why.
    Server(String),
    /// Nobody coordinates a campaign of that name.
    Campaign,
}

impl Crew {
    /// Waits for a campaign, and tells once for what. None: the user does not want to.
    pub fn join(
        address: &Address,
        version: &str,
        wait: Duration,
        stop: &Arc<AtomicBool>,
        on_wait: &dyn Fn(Awaited),
    ) -> Result<Option<Crew>, CrewError> {
        let keys = Keys::of(address);
        let mut link = Link::new(address, wait.max(Duration::from_secs(5)))?;
        link.give_up = Some(Arc::clone(stop));
        let begun = Instant::now();
        // One that answers, whatever it says, is asked below.
        if let Some(error) = link.once::<String>(&cmd("PING")).err().filter(|error| error.code().is_none()) {
            on_wait(Awaited::Server(error.to_string()));
        }
        let mut is_told = false;
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let campaign: HashMap<String, String> = link.query(cmd("HGETALL").arg(keys.campaign()))?;
            let field = |name: &str| campaign.get(name).map(String::as_str).unwrap_or_default();
            if let (true, Ok(job)) = (field(fields::STATE) == Standing::Running.name(), field(fields::JOB).parse()) {
                let name = own_name();
                let lease = Duration::from_millis(field(fields::LEASE).parse().unwrap_or(30_000).max(100));
                let (kind, theirs) = (field(fields::KIND).to_owned(), field(fields::VERSION).to_owned());
                link.away_limit = super::coordinator::AWAY_LIMIT;
                let mut crew =
                    Crew { address: address.clone(), link, keys, name, version: version.into(), kind, job, lease };
                if theirs != version {
                    let (campaign, ours) = (address.campaign.clone(), version.to_owned());
                    let refused = CrewError::OtherVersion { campaign, theirs, ours };
                    crew.refuse(&refused.to_string())?;
                    return Err(refused);
                }
                return Ok(Some(crew));
            }
            if begun.elapsed() >= wait {
                return Err(CrewError::NoCampaign { campaign: address.campaign.clone(), server: address.server() });
            }
            if !std::mem::replace(&mut is_told, true) {
                on_wait(Awaited::Campaign);
            }
            pause(WAIT, stop);
        }
    }

    pub fn blobs(&self) -> Blobs {
        Blobs { link: self.link.another(), keys: self.keys.clone() }
    }

    /// Says for everybody why this worker does not work.
    pub fn refuse(&mut self, why: &str) -> Result<(), CrewError> {
        let key = self.keys.refusals();
        let () = self.link.pipeline(
            pipe().cmd("HSET").arg(&key).arg(&self.name).arg(why).ignore().cmd("EXPIRE").arg(&key).arg(KEPT).ignore(),
        )?;
        Ok(())
    }

    /// Works until there is nothing more to do. `stop` ends it after the units under way; `on_unit` hears of every unit.
    pub fn work(
        &mut self,
        team: &dyn Team,
        jobs: usize,
        stop: &Arc<AtomicBool>,
        on_unit: &(dyn Fn(u64) + Sync),
    ) -> Result<Ended, CrewError> {
        let pulse = Pulse::default();
        let face = Face { name: self.name.clone(), jobs, version: self.version.clone() };
        let heard = Mutex::new("0".to_owned());
        let job = self.job.to_string();
        let result = std::thread::scope(|scope| {
            let mut heart = self.link.another();
            let (keys, lease) = (&self.keys, self.lease);
            let (pulse, face, heard, job) = (&pulse, &face, &heard, &job);
            scope.spawn(move || beat(&mut heart, keys, face, lease, job, pulse));
            let hands: Vec<_> = (0..jobs.max(1))
                .map(|number| {
                    let mut hand = Hand {
                        link: self.link.another(),
                        keys,
                        consumer: format!("{}.{number}", self.name),
                        lease,
                        pulse,
                        stop,
                        claimed: Instant::now(),
                        heard,
                        fails: 0,
                    };
                    let blobs = self.blobs();
                    scope.spawn(move || {
                        hand.work(team, blobs, on_unit).inspect_err(|_| pulse.over.store(true, Ordering::Relaxed))
                    })
                })
                .collect();
            let results: Vec<Result<(), CrewError>> =
                hands.into_iter().map(|hand| hand.join().unwrap_or_else(|panic| panic::resume_unwind(panic))).collect();
            pulse.ended.store(true, Ordering::Relaxed);
            results.into_iter().collect::<Result<(), CrewError>>()
        });
        let _: Result<Value, _> = self.link.once(cmd("ZREM").arg(self.keys.beats()).arg(&self.name));
        match result {
            Err(CrewError::Link(LinkError::Interrupted)) => return Ok(Ended::Stopped),
            result => result?,
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(Ended::Stopped);
        }
        let state: Option<String> = self.link.query(cmd("HGET").arg(self.keys.campaign()).arg(fields::STATE))?;
        Ok(if state.as_deref() == Some(Standing::Running.name()) { Ended::OtherJob } else { Ended::Over })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }
}

/// One job of a worker.
struct Hand<'a> {
    link: Link,
    keys: &'a Keys,
    consumer: String,
    lease: Duration,
    pulse: &'a Pulse,
    stop: &'a AtomicBool,
    /// When units of the dead were looked for.
    claimed: Instant,
    /// Up to where news have been read.
    heard: &'a Mutex<String>,
    /// Failures in a row.
    fails: u32,
}

impl Hand<'_> {
    fn work(&mut self, team: &dyn Team, blobs: Blobs, on_unit: &(dyn Fn(u64) + Sync)) -> Result<(), CrewError> {
        let mut performer = team.performer(blobs).map_err(CrewError::Unfit)?;
        while !self.stop.load(Ordering::Relaxed) && !self.pulse.over.load(Ordering::Relaxed) {
            match self.next() {
                Ok(Some((entry, lost))) => {
                    self.learn(team)?;
                    self.perform(performer.as_mut(), &entry, lost)?;
                    on_unit(self.pulse.done.load(Ordering::Relaxed));
                }
                Ok(None) => {}
                // Redis has forgotten the campaign; its coordinator puts it back.
                Err(error) if is_forgotten(&error) => pause(WAIT, self.stop),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// A unit, and how many workers were lost with it.
    fn next(&mut self) -> Result<Option<(UnitEntry, u64)>, LinkError> {
        if self.claimed.elapsed() > self.lease / 2
            && let Some(entry) = self.claim()?
        {
            return Ok(Some(entry));
        }
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.consumer).arg("COUNT").arg(1).arg("BLOCK").arg(WAIT.as_millis() as u64);
        let reply: Option<StreamReadReply> = self.link.query(read.arg("STREAMS").arg(self.keys.units()).arg(">"))?;
        let entry = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).next();
        Ok(entry.and_then(|entry| UnitEntry::of(&entry)).map(|entry| (entry, 0)))
    }

    /// A unit whose worker has been silent for longer than its lease.
    fn claim(&mut self) -> Result<Option<(UnitEntry, u64)>, LinkError> {
        let mut claim = cmd("XAUTOCLAIM");
        claim.arg(self.keys.units()).arg(GROUP).arg(&self.consumer).arg(self.lease.as_millis() as u64);
        let reply: StreamAutoClaimReply = self.link.query(claim.arg("0-0").arg("COUNT").arg(1))?;
        let Some(entry) = reply.claimed.iter().find_map(UnitEntry::of) else {
            self.claimed = Instant::now();
            return Ok(None);
        };
        let pending: StreamPendingCountReply = self
            .link
            .query(cmd("XPENDING").arg(self.keys.units()).arg(GROUP).arg(&entry.place).arg(&entry.place).arg(1))?;
        let delivered = pending.ids.first().map_or(1, |pending| pending.times_delivered as u64);
        Ok(Some((entry, delivered.saturating_sub(1))))
    }

    fn perform(&mut self, performer: &mut dyn Performer, entry: &UnitEntry, lost: u64) -> Result<(), CrewError> {
        if lost + entry.failed >= MOST_LOST {
            return Ok(self.set_aside(entry, lost)?);
        }
        let unwanted = Arc::new(AtomicBool::new(false));
        self.pulse.under_way.lock().unwrap_or_else(PoisonError::into_inner).push(UnderWay {
            place: entry.place.clone(),
            consumer: self.consumer.clone(),
            list: entry.list.clone(),
            unwanted: Arc::clone(&unwanted),
            renewed: Instant::now(),
        });
        let performed = panic::catch_unwind(AssertUnwindSafe(|| performer.perform(&entry.work, &unwanted)));
        let performed = performed.unwrap_or_else(|panic| Err(message(&*panic)));
        let handed = match performed {
            Ok(performed) => {
                self.fails = 0;
                self.hand_in(entry, &performed)
            }
            Err(why) => {
                self.fails += 1;
                self.give_back(entry, lost, &why)?;
                if self.fails >= MOST_FAILURES {
                    return Err(CrewError::Useless(why));
                }
                // Somebody else shall have it first.
                pause(WAIT * self.fails, self.stop);
                Ok(())
            }
        };
        self.pulse.under_way.lock().unwrap_or_else(PoisonError::into_inner).retain(|unit| unit.place != entry.place);
        handed
    }

    fn hand_in(&mut self, entry: &UnitEntry, performed: &Performed) -> Result<(), CrewError> {
        let keys = self.keys;
        let hash = if performed.is_partial { keys.partial() } else { keys.done() };
        let mut all = pipe();
        // The first result counts; any other is the same.
        all.atomic().cmd("HSETNX").arg(&hash).arg(&entry.unit).arg(store::packed(&performed.done)?).ignore();
        all.cmd("EXPIRE").arg(&hash).arg(KEPT).ignore();
        if let Some(exchanged) = &performed.exchanged {
            all.cmd("HSETNX").arg(keys.exchanged()).arg(&entry.unit).arg(store::packed(exchanged)?).ignore();
            all.cmd("EXPIRE").arg(keys.exchanged()).arg(KEPT).ignore();
        }
        self.announce(&mut all, entry);
        let () = self.link.pipeline(&all)?;
        self.pulse.done.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Its fate is known: it leaves the stream, and everybody hears of it.
    fn announce(&self, all: &mut redis::Pipeline, entry: &UnitEntry) {
        let (units, news) = (self.keys.units(), self.keys.news());
        all.cmd("XADD").arg(&news).arg("*").arg("u").arg(&entry.unit).arg("c").arg(&self.consumer).ignore();
        all.cmd("EXPIRE").arg(&news).arg(KEPT).ignore();
        all.cmd("XACK").arg(&units).arg(GROUP).arg(&entry.place).ignore();
        all.cmd("XDEL").arg(&units).arg(&entry.place).ignore();
    }

    fn give_back(&mut self, entry: &UnitEntry, lost: u64, why: &str) -> Result<(), CrewError> {
        let (failures, units) = (self.keys.failures(&entry.unit), self.keys.units());
        let () = self.link.pipeline(
            pipe()
                .cmd("RPUSH")
                .arg(&failures)
                .arg(format!("{}: {why}", self.consumer))
                .ignore()
                .cmd("EXPIRE")
                .arg(&failures)
                .arg(KEPT)
                .ignore(),
        )?;
        if lost + entry.failed + 1 >= MOST_LOST {
            return Ok(self.set_aside(entry, lost)?);
        }
        let mut all = pipe();
        all.atomic()
            .add_command(UnitEntry::add(self.keys, &entry.unit, &entry.list, lost + entry.failed + 1, &entry.work))
            .ignore();
        all.cmd("XACK").arg(&units).arg(GROUP).arg(&entry.place).ignore();
        all.cmd("XDEL").arg(&units).arg(&entry.place).ignore();
        let () = self.link.pipeline(&all)?;
        Ok(())
    }

    fn set_aside(&mut self, entry: &UnitEntry, lost: u64) -> Result<(), LinkError> {
        let failures: Vec<String> =
            self.link.query(cmd("LRANGE").arg(self.keys.failures(&entry.unit)).arg(0).arg(-1))?;
        let lost = (lost + entry.failed).saturating_sub(failures.len() as u64).max(lost);
        let why = serde_json::to_vec(&SetAside { lost, failures }).expect("plain data has a form in JSON");
        let mut all = pipe();
        all.atomic().cmd("HSET").arg(self.keys.aside()).arg(&entry.unit).arg(why).ignore();
        all.cmd("EXPIRE").arg(self.keys.aside()).arg(KEPT).ignore();
        self.announce(&mut all, entry);
        self.link.pipeline(&all)
    }

    /// What others have found out since the last time. One job of the worker at a time.
    fn learn(&mut self, team: &dyn Team) -> Result<(), LinkError> {
        let Ok(mut heard) = self.heard.try_lock() else { return Ok(()) };
        loop {
            let read = cmd("XREAD").arg("COUNT").arg(NEWS).arg("STREAMS").arg(self.keys.news()).arg(&*heard).clone();
            let reply: Option<StreamReadReply> = self.link.query(&read)?;
            let entries: Vec<_> = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids).collect();
            let Some(last) = entries.last() else { return Ok(()) };
            heard.clone_from(&last.id);
            let own = self.consumer.rsplit_once('.').map_or("", |(name, _)| name);
            let is_own = |consumer: &str| consumer.rsplit_once('.').is_some_and(|(name, _)| name == own);
            let others = entries.iter().filter(|entry| !text(&entry.map, "c").is_some_and(|who| is_own(&who)));
            let units: Vec<String> = others.filter_map(|entry| text(&entry.map, "u")).collect();
            if !units.is_empty() {
                let exchanged: Vec<Option<Vec<u8>>> =
                    self.link.query(cmd("HMGET").arg(self.keys.exchanged()).arg(&units))?;
                exchanged
                    .into_iter()
                    .flatten()
                    .filter_map(|packed| store::unpacked(&packed))
                    .for_each(|l| team.learn(&l));
            }
            if entries.len() < NEWS {
                return Ok(());
            }
        }
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("nobody knows why"))
}
