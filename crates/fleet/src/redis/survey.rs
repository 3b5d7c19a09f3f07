//! The status of a campaign, for people.

use std::collections::HashMap;

use redis::{Value, cmd, pipe};

use super::address::Address;
use super::coordinator::remove;
use super::keys::{GROUP, Keys, fields};
use super::link::{Link, LinkError};
use super::store;
use crate::dispatch::SetAside;

/// A worker that was silent for so many seconds is taken for dead.
pub const SILENT: i64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Running,
    Finished,
    Cancelled,
}

impl Standing {
    pub fn name(self) -> &'static str {
        match self {
            Standing::Running => "running",
            Standing::Finished => "finished",
            Standing::Cancelled => "cancelled",
        }
    }

    fn of(name: &str) -> Option<Standing> {
        [Standing::Running, Standing::Finished, Standing::Cancelled].into_iter().find(|state| state.name() == name)
    }
}

/// A worker, as it was heard of last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkerStatus {
    pub name: String,
    pub jobs: u64,
    pub done: u64,
    pub version: String,
    /// Seconds since.
    pub silent: i64,
}

/// A campaign.
#[derive(Clone, Debug)]
pub struct Status {
    pub standing: Standing,
    pub kind: String,
    pub version: String,
    pub has_coordinator: bool,
    /// Units that were handed out so far; more may follow.
    pub units: u64,
    pub done: u64,
    /// Not done, and those of them that a worker has.
    pub waiting: u64,
    pub under_way: u64,
    pub aside: Vec<(String, SetAside)>,
    pub workers: Vec<WorkerStatus>,
    /// Workers that went away, and why.
    pub refusals: Vec<(String, String)>,
    pub exit: Option<u8>,
}

/// None: there is no such campaign.
pub fn status(address: &Address, link: &mut Link) -> Result<Option<Status>, LinkError> {
    let keys = Keys::of(address);
    let campaign: HashMap<String, String> = link.query(cmd("HGETALL").arg(keys.campaign()))?;
    let field = |name: &str| campaign.get(name).cloned().unwrap_or_default();
    let Some(standing) = Standing::of(&field(fields::STATE)) else { return Ok(None) };
    let (time, has_coordinator, done, waiting): (Vec<i64>, bool, u64, u64) = link.pipeline(
        pipe()
            .cmd("TIME")
            .cmd("EXISTS")
            .arg(keys.coordinator())
            .cmd("HLEN")
            .arg(keys.done())
            .cmd("XLEN")
            .arg(keys.units()),
    )?;
    let pending: Result<Vec<Value>, _> = link.once(cmd("XPENDING").arg(keys.units()).arg(GROUP));
    let under_way = match pending.ok().as_deref() {
        Some([Value::Int(count), ..]) => *count as u64,
        _ => 0,
    };
    let aside: HashMap<String, Vec<u8>> = link.query(cmd("HGETALL").arg(keys.aside()))?;
    let mut aside: Vec<(String, SetAside)> =
        aside.into_iter().filter_map(|(unit, why)| Some((unit, serde_json::from_slice(&why).ok()?))).collect();
    aside.sort_by(|one, other| one.0.cmp(&other.0));
    let refusals: HashMap<String, String> = link.query(cmd("HGETALL").arg(keys.refusals()))?;
    let mut refusals: Vec<(String, String)> = refusals.into_iter().collect();
    refusals.sort();
    let now = time.first().copied().unwrap_or(0);
    Ok(Some(Status {
        standing,
        kind: field(fields::KIND),
        version: field(fields::VERSION),
        has_coordinator,
        units: field(fields::UNITS).parse().unwrap_or(0),
        done,
        waiting,
        under_way,
        aside,
        workers: workers(link, &keys, now)?,
        refusals,
        exit: field(fields::EXIT).parse().ok(),
    }))
}

fn workers(link: &mut Link, keys: &Keys, now: i64) -> Result<Vec<WorkerStatus>, LinkError> {
    let about: HashMap<String, String> = link.query(cmd("HGETALL").arg(keys.workers()))?;
    let beats: HashMap<String, f64> = link.query(cmd("ZRANGE").arg(keys.beats()).arg(0).arg(-1).arg("WITHSCORES"))?;
    let mut workers: Vec<WorkerStatus> = about
        .into_iter()
        .map(|(name, about)| {
            let about: serde_json::Value = serde_json::from_str(&about).unwrap_or_default();
            let silent = beats.get(&name).map_or(i64::MAX, |beat| (now - *beat as i64).max(0));
            let number = |field: &str| about[field].as_u64().unwrap_or(0);
            let version = about["version"].as_str().unwrap_or_default().to_owned();
            WorkerStatus { jobs: number("jobs"), done: number("done"), version, silent, name }
        })
        .collect();
    workers.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(workers)
}

/// Workers that were heard of lately.
pub(super) fn workers_alive(link: &mut Link, keys: &Keys) -> Result<u64, LinkError> {
    let time: Vec<i64> = link.query(&cmd("TIME"))?;
    let since = time.first().copied().unwrap_or(0) - SILENT;
    link.query(cmd("ZCOUNT").arg(keys.beats()).arg(since).arg("+inf"))
}

/// A document of a finished campaign.
pub fn document(address: &Address, link: &mut Link, name: &str) -> Result<Option<Vec<u8>>, LinkError> {
    let packed: Option<Vec<u8>> = link.query(cmd("HGET").arg(Keys::of(address).report()).arg(name))?;
    Ok(packed.and_then(|packed| store::unpacked(&packed)))
}

/// Ends a campaign: its workers go, its coordinator ends with a message. False: there is none.
pub fn cancel(address: &Address, link: &mut Link) -> Result<bool, LinkError> {
    let keys = Keys::of(address);
    let there: bool = link.query(cmd("EXISTS").arg(keys.campaign()))?;
    if there {
        let () = link.query(cmd("HSET").arg(keys.campaign()).arg(fields::STATE).arg(Standing::Cancelled.name()))?;
        // Whoever is still there reads that it is over.
        remove(link, &keys, &[keys.campaign(), keys.coordinator()])?;
        let () = link.query(cmd("EXPIRE").arg(keys.campaign()).arg(3600))?;
    }
    Ok(there)
}
