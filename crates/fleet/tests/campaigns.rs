//! Campaigns through a real Redis, with units that cost nothing: lost units are performed again, and count once.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, Dispatch, Fate, Watch};
use fleet::redis::address::Address;
use fleet::redis::coordinator::{Coordinator, FleetEvent, Opening};
use fleet::redis::crew::{Blobs, Crew, CrewError, Ended, Performed, Performer, Team};

const LEASE: Duration = Duration::from_millis(400);
const VERSION: &str = "1";

struct Redis {
    port: u16,
    server: Child,
}

impl Redis {
    /// None if there is no server on this machine, unless tests must run.
    fn start() -> Option<Redis> {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        match serve(port) {
            Ok(server) => Some(Redis { port, server }),
            Err(error) if std::env::var_os("FENCEPOST_TESTS_MUST_RUN").is_some() => panic!("redis-server: {error}"),
            Err(_) => None,
        }
    }

    /// It forgets everything.
    fn restart(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
        self.server = serve(self.port).unwrap();
    }

    fn address(&self, campaign: &str) -> Address {
        Address::given(&format!("redis://127.0.0.1:{}/{campaign}", self.port)).unwrap()
    }
}

fn serve(port: u16) -> std::io::Result<Child> {
    let mut server = Command::new("redis-server");
    server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]);
    let server = server.stdout(Stdio::null()).spawn()?;
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        thread::sleep(Duration::from_millis(10));
    }
    Ok(server)
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Turns units around. Those that begin with `x` make it panic.
#[derive(Default)]
struct Mirror {
    performed: AtomicU64,
    exchanged: AtomicU64,
    pause: Duration,
}

struct Hand<'m>(&'m Mirror);

impl Performer for Hand<'_> {
    fn perform(&mut self, unit: &[u8], _: &AtomicBool) -> Result<Performed, String> {
        thread::sleep(self.0.pause);
        assert!(!unit.starts_with(b"x"), "no such letter");
        self.0.performed.fetch_add(1, Ordering::Relaxed);
        let done: Vec<u8> = unit.iter().rev().copied().collect();
        Ok(Performed { exchanged: Some(done.clone()), done, is_partial: false })
    }
}

impl Team for Mirror {
    fn performer<'t>(&'t self, _: Blobs) -> Result<Box<dyn Performer + 't>, String> {
        Ok(Box::new(Hand(self)))
    }

    fn learn(&self, _: &[u8]) {
        self.exchanged.fetch_add(1, Ordering::Relaxed);
    }
}

fn coordinator(address: &Address, events: &Arc<Mutex<Vec<FleetEvent>>>) -> Coordinator {
    let opening = Opening { version: VERSION.into(), kind: "test".into(), request: BlobId::of(b"r"), lease: LEASE };
    let events = Arc::clone(events);
    let tell = move |event| events.lock().unwrap().push(event);
    let mut coordinator = Coordinator::open(address, opening, None, Box::new(tell)).unwrap();
    let job = coordinator.put(b"the job".to_vec()).unwrap();
    coordinator.begin(job).map_err(|error| error.0).unwrap();
    coordinator
}

type Fates = BTreeMap<usize, Fate<Vec<u8>>>;

fn dispatch(coordinator: &mut Coordinator, units: &[Vec<u8>]) -> Fates {
    let fates = Mutex::new(Fates::new());
    let take = |number, fate| {
        assert!(fates.lock().unwrap().insert(number, fate).is_none(), "told once");
        Ok(())
    };
    coordinator.dispatch(units, &Watch { is_stopped: &|| false, take: &take }).map_err(|error| error.0).unwrap();
    fates.into_inner().unwrap()
}

fn units(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|number| format!("unit {number}").into_bytes()).collect()
}

fn turned(units: &[Vec<u8>]) -> Fates {
    units.iter().map(|unit| Fate::Done(unit.iter().rev().copied().collect())).enumerate().collect()
}

fn work(address: &Address, mirror: &Mirror, jobs: usize, stop: &Arc<AtomicBool>) -> Result<Ended, CrewError> {
    match Crew::join(address, VERSION, Duration::from_secs(30), stop, &|_| {})? {
        Some(mut crew) => crew.work(mirror, jobs, stop, &|_| {}),
        None => Ok(Ended::Stopped),
    }
}

#[test]
fn workers_perform_everything_and_learn_from_each_other() {
    let Some(redis) = Redis::start() else { return };
    let address = redis.address("all");
    // A unit takes some time: otherwise one worker has done all of them before the other has come.
    let mirror = || Mirror { pause: Duration::from_millis(10), ..Mirror::default() };
    let (one, other, stop) = (mirror(), mirror(), Arc::default());
    let units = units(200);
    thread::scope(|scope| {
        let workers = [&one, &other].map(|mirror| scope.spawn(|| work(&address, mirror, 2, &stop).unwrap()));
        let mut coordinator = coordinator(&address, &Arc::default());
        assert_eq!(dispatch(&mut coordinator, &units), turned(&units));
        coordinator.finish(0, &[("json", b"{}".to_vec())]).unwrap();
        workers.into_iter().for_each(|worker| assert_eq!(worker.join().unwrap(), Ended::Over));
    });
    let performed = one.performed.into_inner() + other.performed.into_inner();
    assert!(performed >= 200, "{performed}");
    assert!(one.exchanged.into_inner() + other.exchanged.into_inner() > 0);
}

#[test]
fn a_coordinator_that_comes_back_finds_what_was_done() {
    let Some(redis) = Redis::start() else { return };
    let address = redis.address("back");
    let (mirror, stop) = (Mirror::default(), Arc::default());
    let units = units(20);
    let events = Arc::default();
    thread::scope(|scope| {
        scope.spawn(|| work(&address, &mirror, 1, &stop).unwrap());
        // It goes away without a word.
        let mut first = coordinator(&address, &events);
        dispatch(&mut first, &units[..12]);
        drop(first);
        let mut second = coordinator(&address, &events);
        assert_eq!(dispatch(&mut second, &units), turned(&units));
        second.finish(0, &[]).unwrap();
    });
    assert!(events.lock().unwrap().contains(&FleetEvent::Resumed { units: 12 }));
    assert_eq!(mirror.performed.into_inner(), 20, "nothing is done twice");
}

#[test]
fn a_server_that_forgets_is_told_again() {
    let Some(mut redis) = Redis::start() else { return };
    let address = redis.address("forgets");
    let mirror = Mirror { pause: Duration::from_millis(20), ..Mirror::default() };
    let (stop, events) = (Arc::default(), Arc::default());
    let units = units(60);
    thread::scope(|scope| {
        scope.spawn(|| work(&address, &mirror, 1, &stop).unwrap());
        let (mut coordinator, units) = (coordinator(&address, &events), &units);
        let fates = scope.spawn(move || {
            let fates = dispatch(&mut coordinator, units);
            coordinator.finish(0, &[]).unwrap();
            fates
        });
        while mirror.performed.load(Ordering::Relaxed) < 5 {
            thread::sleep(Duration::from_millis(5));
        }
        redis.restart();
        assert_eq!(fates.join().unwrap(), turned(units));
    });
    assert!(events.lock().unwrap().contains(&FleetEvent::PutBack));
}

#[test]
fn units_of_the_dead_are_claimed() {
    let Some(redis) = Redis::start() else { return };
    let address = redis.address("dead");
    let (mirror, stop) = (Mirror::default(), Arc::default());
    let units = units(5);
    thread::scope(|scope| {
        let (mut coordinator, units) = (coordinator(&address, &Arc::default()), &units);
        let fates = scope.spawn(move || {
            let fates = dispatch(&mut coordinator, units);
            coordinator.finish(0, &[]).unwrap();
            fates
        });
        // A worker that takes two units and dies: nobody hears of them again.
        let client = redis::Client::open(format!("redis://127.0.0.1:{}/", redis.port)).unwrap();
        let mut connection = client.get_connection().unwrap();
        let mut taken = 0;
        while taken < 2 {
            let mut read = redis::cmd("XREADGROUP");
            read.arg("GROUP").arg("workers").arg("dead").arg("COUNT").arg(1).arg("BLOCK").arg(1000);
            let reply: redis::RedisResult<Option<redis::streams::StreamReadReply>> =
                read.arg("STREAMS").arg("fencepost:{dead}:units").arg(">").query(&mut connection);
            taken += usize::from(reply.is_ok_and(|reply| reply.is_some()));
        }
        scope.spawn(|| work(&address, &mirror, 1, &stop).unwrap());
        assert_eq!(fates.join().unwrap(), turned(units));
    });
    assert_eq!(mirror.performed.into_inner(), 5);
}

#[test]
fn a_unit_that_fails_three_times_is_set_aside() {
    let Some(redis) = Redis::start() else { return };
    let address = redis.address("aside");
    let (mirror, stop) = (Mirror::default(), Arc::default());
    let mut units = units(4);
    units[1] = b"x".to_vec();
    thread::scope(|scope| {
        scope.spawn(|| work(&address, &mirror, 1, &stop).unwrap());
        let mut coordinator = coordinator(&address, &Arc::default());
        let mut fates = dispatch(&mut coordinator, &units);
        coordinator.finish(0, &[]).unwrap();
        let Some(Fate::SetAside(why)) = fates.remove(&1) else { panic!("{fates:?}") };
        assert_eq!((why.lost, why.failures.len()), (0, 3));
        assert!(why.failures.iter().all(|failure| failure.contains("no such letter")), "{why:?}");
        assert_eq!(fates.len(), 3);
    });
}

#[test]
fn another_version_refuses_and_says_so() {
    let Some(redis) = Redis::start() else { return };
    let address = redis.address("version");
    let mut coordinator = coordinator(&address, &Arc::default());
    let refused = Crew::join(&address, "2", Duration::from_secs(5), &Arc::default(), &|_| {}).unwrap_err();
    assert!(matches!(refused, CrewError::OtherVersion { .. }), "{refused}");
    let mut link = fleet::redis::link::Link::new(&address, Duration::from_secs(5)).unwrap();
    let status = fleet::redis::survey::status(&address, &mut link).unwrap().unwrap();
    assert_eq!(status.refusals.len(), 1);
    coordinator.finish(0, &[]).unwrap();
}
