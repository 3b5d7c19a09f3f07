//! The coordinator: puts units into Redis, waits for results, and puts back what got lost.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::streams::{StreamRangeReply, StreamReadReply};
use redis::{Value, cmd, pipe};

use super::address::Address;
use super::heart::Lock;
use super::keys::{GROUP, KEPT, Keys, fields};
use super::link::{Link, LinkError};
use super::store::{self, StoreError};
use super::survey::{Standing, workers_alive};
use super::units::{UnitEntry, text};
use crate::blob::BlobId;
use crate::dispatch::{Campaign, CampaignError, Dispatch, Fate, SetAside, Watch};

/// How long Redis may be gone.
pub const AWAY_LIMIT: Duration = Duration::from_secs(600);
/// Between two looks at whether the work is stopped.
const LOOK: Duration = Duration::from_millis(250);
/// What units under way have to hand in what they know, once nobody wants the rest.
const GRACE: Duration = Duration::from_secs(3);
/// Units that one command names.
const AT_ONCE: usize = 256;
/// Without any worker for so long, the user is told.
const LONELY: Duration = Duration::from_secs(5);

#[derive(Debug, thiserror::Error)]
pub enum CoordinatorError {
    #[error(transparent)]
    Link(#[from] LinkError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot read {} to send it: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("campaign `{campaign}` is being run by another coordinator ({who}); give this one another name")]
    Taken { campaign: String, who: String },
    #[error(
        "campaign `{campaign}` holds unfinished work of another command; run that one again to go on with it, or remove it with \
         `fencepost fleet cancel {address}`"
    )]
    OtherWork { campaign: String, address: String },
    #[error("campaign `{0}` was cancelled")]
    Cancelled(String),
    #[error("another coordinator has taken over campaign `{0}`")]
    TakenOver(String),
}

/// What the user should know while the work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetEvent {
    /// Nobody works.
    NoWorker,
    /// So many do.
    Workers(u64),
    /// A worker will not work for this campaign.
    Refusal { worker: String, why: String },
    /// Redis had forgotten the campaign; it was put back.
    PutBack,
    /// So many units had results already.
    Resumed { units: usize },
}

/// What a campaign is.
#[derive(Clone, Debug)]
pub struct Opening {
    /// That of this program; workers of another one refuse.
    pub version: String,
    /// What kind of work.
    pub kind: String,
    /// What the user asked for.
    pub request: BlobId,
    /// A worker that is silent for longer has lost its units.
    pub lease: Duration,
}

#[derive(Clone, Debug)]
enum Source {
    Bytes(Arc<[u8]>),
    File(PathBuf),
}

/// A campaign that this process runs.
pub struct Coordinator {
    address: Address,
    link: Link,
    keys: Keys,
    opening: Opening,
    lock: Lock,
    /// What was put there, in case that Redis forgets.
    blobs: BTreeMap<BlobId, Source>,
    job: Option<BlobId>,
    /// The list of units that is worked on.
    list: String,
    /// Up to where news have been read.
    heard: String,
    units: usize,
    /// The last ones that were performed.
    last: Vec<String>,
    /// Workers whose refusal was told.
    told: HashSet<String>,
    seen: Option<u64>,
    lonely: Option<Instant>,
    on_event: Box<dyn Fn(FleetEvent) + Send + Sync>,
}

impl std::fmt::Debug for Coordinator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Coordinator").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Units that have no fate yet, by hash: their numbers in the list.
type Open = HashMap<String, Vec<usize>>;

impl Coordinator {
    /// Becomes the coordinator of a campaign: of a new one, or of one whose coordinator died.
    pub fn open(
        address: &Address,
        opening: Opening,
        give_up: Option<Arc<AtomicBool>>,
        on_event: Box<dyn Fn(FleetEvent) + Send + Sync>,
    ) -> Result<Coordinator, CoordinatorError> {
        let mut link = Link::new(address, Duration::from_secs(10))?;
        link.give_up = give_up;
        let keys = Keys::of(address);
        let lock = Lock::take(&mut link, &keys, &address.campaign)?;
        // Once it was there, it may be gone for longer.
        link.away_limit = AWAY_LIMIT;
        let known: HashMap<String, String> = link.query(cmd("HGETALL").arg(keys.campaign()))?;
        let is_running = known.get(fields::STATE).map(String::as_str) == Some(Standing::Running.name());
        let request = opening.request.to_string();
        if is_running && known.get(fields::REQUEST) != Some(&request) {
            let (campaign, address) = (address.campaign.clone(), address.to_string());
            return Err(CoordinatorError::OtherWork { campaign, address });
        }
        if !is_running {
            remove(&mut link, &keys, &[keys.coordinator(), keys.refusals(), keys.workers(), keys.beats()])?;
        }
        Ok(Coordinator {
            address: address.clone(),
            link,
            keys,
            opening,
            lock,
            blobs: BTreeMap::new(),
            job: None,
            list: String::new(),
            heard: "0".into(),
            units: 0,
            last: Vec::new(),
            told: HashSet::new(),
            seen: None,
            lonely: None,
            on_event,
        })
    }

    fn declare(&mut self) -> Result<(), CoordinatorError> {
        let Some(job) = self.job else { return Ok(()) };
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        let keys = &self.keys;
        let made: Result<Value, _> =
            self.link.once(cmd("XGROUP").arg("CREATE").arg(keys.units()).arg(GROUP).arg("0").arg("MKSTREAM"));
        // It is there already; if anything else is wrong, the next command says it.
        drop(made);
        let () = self.link.pipeline(
            pipe()
                .atomic()
                .cmd("HSETNX")
                .arg(keys.campaign())
                .arg(fields::BEGUN)
                .arg(seconds)
                .ignore()
                .cmd("HSET")
                .arg(keys.campaign())
                .arg(fields::VERSION)
                .arg(&self.opening.version)
                .arg(fields::KIND)
                .arg(&self.opening.kind)
                .arg(fields::REQUEST)
                .arg(self.opening.request.to_string())
                .arg(fields::LEASE)
                .arg(self.opening.lease.as_millis() as u64)
                .arg(fields::EPOCH)
                .arg(&self.list)
                .arg(fields::UNITS)
                .arg(self.units)
                .arg(fields::JOB)
                .arg(job.to_string())
                .arg(fields::STATE)
                .arg(Standing::Running.name())
                .ignore()
                .cmd("EXPIRE")
                .arg(keys.campaign())
                .arg(KEPT)
                .ignore(),
        )?;
        Ok(())
    }

    /// Has everything that was put there been forgotten? Then it is put there again.
    fn restore(&mut self) -> Result<(), CoordinatorError> {
        let state: Option<String> = self.link.query(cmd("HGET").arg(self.keys.campaign()).arg(fields::STATE))?;
        match state.as_deref() {
            Some(state) if state == Standing::Cancelled.name() => {
                return Err(CoordinatorError::Cancelled(self.address.campaign.clone()));
            }
            Some(_) => {}
            None => {
                (self.on_event)(FleetEvent::PutBack);
                self.heard = "0".into();
            }
        }
        for (id, source) in self.blobs.clone() {
            let key = self.keys.blob(&id.to_string());
            let there: bool = self.link.query(cmd("HEXISTS").arg(key).arg("pieces"))?;
            if !there {
                match source {
                    Source::Bytes(bytes) => store::put_as(&mut self.link, &self.keys, id, &bytes)?,
                    Source::File(path) => store::put_as(&mut self.link, &self.keys, id, &read(&path)?)?,
                }
            }
        }
        self.declare()
    }

    /// Looks at everything: what is done, and what has got lost.
    fn reconcile(
        &mut self,
        open: &mut Open,
        units: &[Vec<u8>],
        watch: &Watch<'_, Vec<u8>, CampaignError>,
    ) -> Result<(), CampaignError> {
        self.restore()?;
        let waiting: u64 = self.link.query(cmd("XLEN").arg(self.keys.units()))?;
        let waiting: Option<HashSet<String>> = match (waiting as usize) < open.len() {
            true => {
                let range: StreamRangeReply =
                    self.link.query(cmd("XRANGE").arg(self.keys.units()).arg("-").arg("+"))?;
                Some(range.ids.iter().filter_map(UnitEntry::of).map(|entry| entry.unit).collect())
            }
            false => None,
        };
        let ids: Vec<String> = open.keys().cloned().collect();
        self.collect(open, &ids, &[self.keys.done(), self.keys.aside()], watch)?;
        let Some(waiting) = waiting else { return Ok(()) };
        let mut missing: Vec<(usize, &String)> = open
            .iter()
            .filter(|(unit, _)| !waiting.contains(*unit))
            .map(|(unit, numbers)| (numbers[0], unit))
            .collect();
        missing.sort_unstable();
        for chunk in missing.chunks(AT_ONCE) {
            let mut adding = pipe();
            for (number, unit) in chunk {
                adding.add_command(UnitEntry::add(&self.keys, unit, &self.list, 0, &units[*number])).ignore();
            }
            let () = self.link.pipeline(&adding)?;
        }
        Ok(())
    }

    /// Takes the fates of these units, as far as they are in these hashes: of results first, then of units that were set aside.
    fn collect(
        &mut self,
        open: &mut Open,
        ids: &[String],
        hashes: &[String],
        watch: &Watch<'_, Vec<u8>, CampaignError>,
    ) -> Result<(), CampaignError> {
        let aside = self.keys.aside();
        for chunk in ids.chunks(AT_ONCE) {
            for hash in hashes {
                let wanted: Vec<&String> = chunk.iter().filter(|unit| open.contains_key(*unit)).collect();
                if wanted.is_empty() {
                    break;
                }
                let values: Vec<Option<Vec<u8>>> = self.link.query(cmd("HMGET").arg(hash).arg(&wanted))?;
                for (unit, value) in wanted.into_iter().zip(values) {
                    // A result that is damaged is none: the unit is performed again.
                    let fate = value.and_then(|value| match *hash == aside {
                        true => serde_json::from_slice::<SetAside>(&value).ok().map(Fate::SetAside),
                        false => store::unpacked(&value).map(Fate::Done),
                    });
                    let Some(fate) = fate else { continue };
                    for number in open.remove(unit).unwrap_or_default() {
                        (watch.take)(number, fate.clone())?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Units that have got a fate since the last time.
    fn news(&mut self) -> Result<Vec<String>, CoordinatorError> {
        let mut read = cmd("XREAD");
        read.arg("COUNT").arg(AT_ONCE).arg("BLOCK").arg(LOOK.as_millis() as u64);
        let reply: Option<StreamReadReply> =
            self.link.query(read.arg("STREAMS").arg(self.keys.news()).arg(&self.heard))?;
        let entries = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids);
        let mut units = Vec::new();
        for entry in entries {
            units.extend(text(&entry.map, "u"));
            self.heard = entry.id;
        }
        Ok(units)
    }

    /// Nobody wants the rest; what is known of units under way is.
    fn stop(&mut self, open: &mut Open, watch: &Watch<'_, Vec<u8>, CampaignError>) -> Result<(), CampaignError> {
        self.list = "stopped".into();
        self.link.away_limit = GRACE;
        let keys = &self.keys;
        let () = self.link.pipeline(
            pipe()
                .cmd("HSET")
                .arg(keys.campaign())
                .arg(fields::EPOCH)
                .arg(&self.list)
                .ignore()
                .cmd("XTRIM")
                .arg(keys.units())
                .arg("MAXLEN")
                .arg("0")
                .ignore(),
        )?;
        let end = Instant::now() + GRACE;
        while !open.is_empty() {
            let pending: Vec<Value> = self.link.query(cmd("XPENDING").arg(self.keys.units()).arg(GROUP))?;
            let is_idle = matches!(pending.first(), Some(Value::Int(0)) | None);
            let ids: Vec<String> = open.keys().cloned().collect();
            self.collect(open, &ids, &[self.keys.done(), self.keys.partial()], watch)?;
            if is_idle || Instant::now() > end {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        self.link.away_limit = AWAY_LIMIT;
        Ok(())
    }

    /// Tells the user who works.
    fn look_at_workers(&mut self) -> Result<(), CoordinatorError> {
        let alive = workers_alive(&mut self.link, &self.keys)?;
        if alive > 0 && self.seen != Some(alive) {
            (self.on_event)(FleetEvent::Workers(alive));
        }
        match self.lonely {
            _ if alive > 0 => self.lonely = None,
            None => self.lonely = Some(Instant::now()),
            Some(since) if since.elapsed() > LONELY && self.seen != Some(0) => {
                (self.on_event)(FleetEvent::NoWorker);
                self.seen = Some(0);
            }
            Some(_) => {}
        }
        if alive > 0 {
            self.seen = Some(alive);
        }
        let refusals: HashMap<String, String> = self.link.query(cmd("HGETALL").arg(self.keys.refusals()))?;
        for (worker, why) in refusals {
            if self.told.insert(worker.clone()) {
                (self.on_event)(FleetEvent::Refusal { worker, why });
            }
        }
        Ok(())
    }

    /// Nothing will come of the campaign: workers need not wait for it.
    pub fn abandon(mut self) {
        if !self.lock.is_lost() {
            let standing = Standing::Cancelled.name();
            // Whoever cannot be told finds out by itself that nobody coordinates.
            let _: Result<Value, _> =
                self.link.once(cmd("HSET").arg(self.keys.campaign()).arg(fields::STATE).arg(standing));
        }
    }

    /// The campaign is over: the documents stay, the work does not.
    pub fn finish(&mut self, exit: u8, documents: &[(&str, Vec<u8>)]) -> Result<(), CoordinatorError> {
        let keys = &self.keys;
        for (name, document) in documents {
            let packed = store::packed(document)?;
            let () = self.link.query(cmd("HSET").arg(keys.report()).arg(name).arg(packed))?;
        }
        let () = self.link.pipeline(
            pipe()
                .cmd("EXPIRE")
                .arg(keys.report())
                .arg(KEPT)
                .ignore()
                .cmd("HSET")
                .arg(keys.campaign())
                .arg(fields::STATE)
                .arg(Standing::Finished.name())
                .arg(fields::EXIT)
                .arg(exit)
                .arg(fields::UNITS)
                .arg(self.units)
                .ignore(),
        )?;
        remove(
            &mut self.link,
            &self.keys,
            &[self.keys.campaign(), self.keys.report(), self.keys.workers(), self.keys.beats()],
        )?;
        Ok(())
    }
}

impl Dispatch<Vec<u8>, Vec<u8>> for Coordinator {
    type Error = CampaignError;

    fn dispatch(&mut self, units: &[Vec<u8>], watch: &Watch<'_, Vec<u8>, CampaignError>) -> Result<(), CampaignError> {
        if units.is_empty() || (watch.is_stopped)() {
            return Ok(());
        }
        let job = self.job.map(|job| job.to_string()).unwrap_or_default();
        let ids: Vec<String> = units.iter().map(|unit| BlobId::of_parts(&[job.as_bytes(), unit]).to_string()).collect();
        let mut open = Open::new();
        for (number, unit) in ids.iter().enumerate() {
            open.entry(unit.clone()).or_default().push(number);
        }
        self.list = BlobId::of_parts(&ids.iter().map(String::as_bytes).collect::<Vec<_>>()).to_string();
        self.units += units.len();
        let all = open.len();
        self.last = ids;
        self.reconcile(&mut open, units, watch)?;
        if open.len() < all {
            (self.on_event)(FleetEvent::Resumed { units: all - open.len() });
        }
        let between = (self.opening.lease / 2).clamp(Duration::from_millis(500), Duration::from_secs(10));
        let mut looked = Instant::now();
        while !open.is_empty() {
            if self.lock.is_lost() {
                return Err(CoordinatorError::TakenOver(self.address.campaign.clone()).into());
            }
            if (watch.is_stopped)() {
                return self.stop(&mut open, watch);
            }
            let news = self.news()?;
            self.collect(&mut open, &news, &[self.keys.done(), self.keys.aside()], watch)?;
            if looked.elapsed() > between {
                self.reconcile(&mut open, units, watch)?;
                self.look_at_workers()?;
                looked = Instant::now();
            }
        }
        Ok(())
    }
}

impl Campaign for Coordinator {
    fn put(&mut self, bytes: Vec<u8>) -> Result<BlobId, CampaignError> {
        let id = store::put(&mut self.link, &self.keys, &bytes)?;
        self.blobs.insert(id, Source::Bytes(bytes.into()));
        Ok(id)
    }

    fn put_file(&mut self, path: &Path) -> Result<BlobId, CampaignError> {
        let id = store::put(&mut self.link, &self.keys, &read(path)?)?;
        self.blobs.insert(id, Source::File(path.to_owned()));
        Ok(id)
    }

    /// From now on workers may come for this job.
    fn begin(&mut self, job: BlobId) -> Result<(), CampaignError> {
        self.job = Some(job);
        let before: Option<String> = self.link.query(cmd("HGET").arg(self.keys.campaign()).arg(fields::JOB))?;
        if before.is_some_and(|before| before != job.to_string()) {
            let keys = &self.keys;
            let old = [keys.units(), keys.done(), keys.partial(), keys.exchanged(), keys.news(), keys.aside()];
            let () = self.link.query(cmd("DEL").arg(&old))?;
        }
        Ok(self.declare()?)
    }

    fn exchanged(&mut self, take: &mut dyn FnMut(&[u8])) -> Result<(), CampaignError> {
        for chunk in std::mem::take(&mut self.last).chunks(AT_ONCE) {
            let exchanged: Vec<Option<Vec<u8>>> =
                self.link.query(cmd("HMGET").arg(self.keys.exchanged()).arg(chunk))?;
            exchanged
                .into_iter()
                .flatten()
                .filter_map(|packed| store::unpacked(&packed))
                .for_each(|bytes| take(&bytes));
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, CoordinatorError> {
    fs::read(path).map_err(|source| CoordinatorError::File { path: path.to_owned(), source })
}

/// Removes all keys of a campaign but these.
pub(super) fn remove(link: &mut Link, keys: &Keys, except: &[String]) -> Result<(), LinkError> {
    let mut cursor = 0u64;
    loop {
        let (next, found): (u64, Vec<String>) =
            link.query(cmd("SCAN").arg(cursor).arg("MATCH").arg(keys.pattern()).arg("COUNT").arg(1000))?;
        let gone: Vec<String> = found.into_iter().filter(|key| !except.contains(key)).collect();
        if !gone.is_empty() {
            let () = link.query(cmd("UNLINK").arg(&gone))?;
        }
        if next == 0 {
            return Ok(());
        }
        cursor = next;
    }
}
