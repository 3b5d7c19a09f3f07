//! Keeps the coordinator's lock and the workers' leases alive while others work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use redis::{Value, cmd, pipe};

use super::coordinator::CoordinatorError;
use super::keys::{GROUP, Keys, fields};
use super::link::Link;
use super::survey::Standing;

/// The lock of a coordinator that does not renew it is free after this.
const LOCK: Duration = Duration::from_secs(6);
const BEAT: Duration = Duration::from_millis(500);

/// The right to run a campaign, as long as this process lives.
#[derive(Debug)]
pub(super) struct Lock {
    lost: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Who we are, for others: machine, process, and a number that no other process had.
pub(super) fn own_name() -> String {
    /// Several workers of one process may come in the same millisecond.
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let mut name = [0u8; 256];
    // SAFETY: the pointer and the length are those of `name`.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), name.len() - 1) };
    let len = name.iter().position(|&byte| byte == 0).unwrap_or(0);
    let host: String = String::from_utf8_lossy(&name[..len]).chars().filter(|c| !c.is_whitespace()).collect();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |time| time.as_millis());
    let number = NAMES.fetch_add(1, Ordering::Relaxed);
    format!("{host}-{}-{:x}-{number}", std::process::id(), now % (1 << 24))
}

impl Lock {
    pub fn take(link: &mut Link, keys: &Keys, campaign: &str) -> Result<Lock, CoordinatorError> {
        let (own, key) = (own_name(), keys.coordinator());
        let begun = Instant::now();
        loop {
            let taken: Option<String> =
                link.query(cmd("SET").arg(&key).arg(&own).arg("NX").arg("PX").arg(LOCK.as_millis() as u64))?;
            if taken.is_some() {
                break;
            }
            let who: Option<String> = link.query(cmd("GET").arg(&key))?;
            if let Some(who) = who.filter(|who| *who != own) {
                // One that was killed leaves its lock for a while.
                if begun.elapsed() > LOCK + LOCK / 2 {
                    return Err(CoordinatorError::Taken { campaign: campaign.to_owned(), who });
                }
                std::thread::sleep(BEAT);
            } else {
                break;
            }
        }
        let (lost, ended) = <(Arc<AtomicBool>, Arc<AtomicBool>)>::default();
        let mut link = link.another();
        link.give_up = Some(Arc::clone(&ended));
        let flags = (Arc::clone(&lost), Arc::clone(&ended));
        let thread = std::thread::spawn(move || keep(&mut link, &key, &own, &flags.0, &flags.1));
        Ok(Lock { lost, ended, thread: Some(thread) })
    }

    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

fn keep(link: &mut Link, key: &str, own: &str, lost: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        let who: Result<Option<String>, _> = link.query(cmd("GET").arg(key));
        match who {
            Ok(Some(who)) if who != own => {
                lost.store(true, Ordering::Relaxed);
                return;
            }
            Ok(_) => {
                let _: Result<Value, _> =
                    link.query(cmd("SET").arg(key).arg(own).arg("PX").arg(LOCK.as_millis() as u64));
            }
            // Whoever works sees it, too.
            Err(_) => {}
        }
        pause(BEAT * 2, ended);
    }
    if !lost.load(Ordering::Relaxed) {
        let _: Result<Value, _> = link.once(cmd("DEL").arg(key));
    }
}

/// Sleeps, unless it is over.
pub(super) fn pause(time: Duration, ended: &AtomicBool) {
    let end = Instant::now() + time;
    while Instant::now() < end && !ended.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(10).min(time));
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A unit that this process works on.
#[derive(Debug)]
pub(super) struct UnderWay {
    pub place: String,
    pub consumer: String,
    pub list: String,
    pub unwanted: Arc<AtomicBool>,
    pub renewed: Instant,
}

/// What the threads of a worker share.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    pub under_way: Mutex<Vec<UnderWay>>,
    pub done: std::sync::atomic::AtomicU64,
    /// The campaign is over, or is about something else now.
    pub over: AtomicBool,
    /// This process goes away.
    pub ended: AtomicBool,
}

/// A worker as others see it.
#[derive(Clone, Debug)]
pub(super) struct Face {
    pub name: String,
    pub jobs: usize,
    pub version: String,
}

/// Renews the leases of units under way, and hears when they are not wanted any more.
pub(super) fn beat(link: &mut Link, keys: &Keys, face: &Face, lease: Duration, job: &str, pulse: &Pulse) {
    while !pulse.ended.load(Ordering::Relaxed) {
        let done = pulse.done.load(Ordering::Relaxed);
        let about = serde_json::json!({ "jobs": face.jobs, "version": face.version, "done": done }).to_string();
        let state: Result<(Vec<i64>, Vec<Option<String>>), _> = link.pipeline(
            pipe().cmd("TIME").cmd("HMGET").arg(keys.campaign()).arg(fields::STATE).arg(fields::JOB).arg(fields::EPOCH),
        );
        let Ok((time, state)) = state else {
            pause(BEAT, &pulse.ended);
            continue;
        };
        let seconds = time.first().copied().unwrap_or(0);
        let _: Result<Value, _> = link.pipeline(
            pipe()
                .cmd("HSET")
                .arg(keys.workers())
                .arg(&face.name)
                .arg(about)
                .ignore()
                .cmd("ZADD")
                .arg(keys.beats())
                .arg(seconds)
                .arg(&face.name)
                .ignore(),
        );
        let field = |number: usize| state.get(number).and_then(Option::as_deref);
        // A campaign that Redis forgot comes back: its coordinator sees to it.
        let is_over = field(0).is_some_and(|state| state != Standing::Running.name());
        let is_other = field(1).is_some_and(|other| other != job);
        if is_over || is_other {
            pulse.over.store(true, Ordering::Relaxed);
        }
        let mut due = Vec::new();
        for unit in pulse.under_way.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
            if is_over || is_other || field(2).is_some_and(|list| list != unit.list) {
                unit.unwanted.store(true, Ordering::Relaxed);
            }
            if unit.renewed.elapsed() > lease / 4 {
                unit.renewed = Instant::now();
                due.push((unit.place.clone(), unit.consumer.clone()));
            }
        }
        for (place, consumer) in due {
            renew(link, keys, &place, &consumer);
        }
        pause(BEAT.min(lease / 4), &pulse.ended);
    }
}

/// Only the owner renews: a unit that was claimed by another in the meantime is theirs.
fn renew(link: &mut Link, keys: &Keys, place: &str, consumer: &str) {
    let owned: Result<Vec<Value>, _> =
        link.query(cmd("XPENDING").arg(keys.units()).arg(GROUP).arg(place).arg(place).arg(1).arg(consumer));
    if owned.is_ok_and(|owned| !owned.is_empty()) {
        // JUSTID: it is not delivered once more.
        let _: Result<Value, _> = link.query(
            cmd("XCLAIM").arg(keys.units()).arg(GROUP).arg(consumer).arg(0).arg(place).arg("IDLE").arg(0).arg("JUSTID"),
        );
    }
}
