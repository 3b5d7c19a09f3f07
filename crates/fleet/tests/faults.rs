//! Campaigns in which something dies at a random moment: coordinator and workers are separate processes, Redis is real, and the
//! campaign must end with every result, each once.
//!
//! The processes run this test program: with `FLEET_ROLE` it is a worker or the coordinator.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, Dispatch, Fate, Watch};
use fleet::redis::address::Address;
use fleet::redis::coordinator::{Coordinator, Opening};
use fleet::redis::crew::{Blobs, Crew, Performed, Performer, Team};
use fleet::redis::link::Link;
use fleet::redis::survey;

const UNITS: usize = 60;
/// Kills its workers, if they are the ones for it.
const POISON: usize = 7;
const PAUSE: Duration = Duration::from_millis(8);
const LEASE: Duration = Duration::from_millis(400);
/// Each fault, at so many random moments.
const TIMES: u64 = 3;
/// A campaign that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn main() {
    match std::env::var("FLEET_ROLE").as_deref() {
        Ok("worker" | "poisoned") => work(),
        Ok("coordinator") => coordinate(),
        _ => test(),
    }
}

fn test() {
    if Command::new("redis-server").arg("--version").stdout(Stdio::null()).status().is_err() {
        assert!(std::env::var_os("FENCEPOST_TESTS_MUST_RUN").is_none(), "there is no redis-server");
        return;
    }
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(1, |time| time.subsec_nanos());
    let mut random = u64::from(seed) | 1;
    let mut moment = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % 40
    };
    type Fault = (&'static str, fn(&mut World));
    let faults: [Fault; 7] = [
        ("a worker is killed", |world| world.kill_worker()),
        ("a worker sleeps for longer than its lease", |world| world.stop_worker()),
        ("redis forgets everything", |world| world.restart(false)),
        ("redis comes back with its append-only file", |world| world.restart(true)),
        ("the way to redis is cut", |world| world.proxy.cut()),
        ("the coordinator is killed and started again", |world| world.restart_coordinator()),
        ("all of them are killed", |world| world.kill_everybody()),
    ];
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, fault) in faults {
        if !wanted.is_empty() && !wanted.iter().any(|part| name.contains(part.as_str())) {
            continue;
        }
        for time in 0..TIMES {
            let at = moment();
            let mut world = World::new(name.contains("append-only"));
            world.wait_for(at);
            fault(&mut world);
            assert_eq!(world.results(), expected(), "{name}, time {time}, after {at} units");
        }
        println!("test {name} ... ok");
    }
    poison();
}

/// A unit that kills every worker that takes it is put aside with the third one, and the others are done.
fn poison() {
    let mut world = World::new(false);
    world.workers = (0..5).map(|_| Process::own("poisoned", &world.url(), &world.out())).collect();
    let results = world.results();
    let expected =
        expected().replace(&format!("{POISON}: {}\n", turned(&unit(POISON))), &format!("{POISON}: 3 lost\n"));
    assert_eq!(results, expected);
    println!("test a unit kills three workers ... ok");
}

fn unit(number: usize) -> Vec<u8> {
    format!("unit {number}").into_bytes()
}

fn expected() -> String {
    (0..UNITS).map(|number| format!("{number}: {}\n", turned(&unit(number)))).collect()
}

fn turned(unit: &[u8]) -> String {
    unit.iter().rev().map(|byte| char::from(*byte)).collect()
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

struct Mirror;

impl Performer for Mirror {
    fn perform(&mut self, unit: &[u8], _: &AtomicBool) -> Result<Performed, String> {
        thread::sleep(PAUSE);
        if variable("FLEET_ROLE") == "poisoned" && unit == self::unit(POISON) {
            std::process::abort();
        }
        Ok(Performed { done: turned(unit).into_bytes(), exchanged: None, is_partial: false })
    }
}

impl Team for Mirror {
    fn performer<'t>(&'t self, _: Blobs) -> Result<Box<dyn Performer + 't>, String> {
        Ok(Box::new(Mirror))
    }
}

fn work() {
    let (address, stop) = (Address::given(&variable("FLEET_URL")).unwrap(), Arc::default());
    let crew = Crew::join(&address, "1", Duration::from_secs(60), &stop, &|_| {}).unwrap();
    crew.unwrap().work(&Mirror, 1, &stop, &|_| {}).unwrap();
}

fn coordinate() {
    let address = Address::given(&variable("FLEET_URL")).unwrap();
    let opening = Opening { version: "1".into(), kind: "test".into(), request: BlobId::of(b"r"), lease: LEASE };
    let mut coordinator = Coordinator::open(&address, opening, None, Box::new(|_| {})).unwrap();
    let job = coordinator.put(b"the job".to_vec()).map_err(|error| error.0).unwrap();
    coordinator.begin(job).map_err(|error| error.0).unwrap();
    let results = Mutex::new(vec![None; UNITS]);
    let take = |number: usize, fate| {
        let done = match fate {
            Fate::Done(done) => done,
            Fate::SetAside(why) => format!("{} lost", why.lost).into_bytes(),
        };
        assert_eq!(results.lock().unwrap()[number].replace(done), None, "told once");
        Ok(())
    };
    let units: Vec<Vec<u8>> = (0..UNITS).map(unit).collect();
    coordinator.dispatch(&units, &Watch { is_stopped: &|| false, take: &take }).map_err(|error| error.0).unwrap();
    coordinator.finish(0, &[]).unwrap();
    let text: String = (results.into_inner().unwrap().into_iter().flatten().enumerate())
        .map(|(number, done)| format!("{number}: {}\n", String::from_utf8(done).unwrap()))
        .collect();
    let unfinished = variable("FLEET_OUT") + ".unfinished";
    fs::write(&unfinished, text).unwrap();
    fs::rename(unfinished, variable("FLEET_OUT")).unwrap();
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Ends with the value.
struct Process(Child);

impl Process {
    fn own(role: &str, url: &str, out: &Path) -> Process {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.env("FLEET_ROLE", role).env("FLEET_URL", url).env("FLEET_OUT", out);
        Process(command.stdin(Stdio::null()).spawn().unwrap())
    }

    fn redis(port: u16, folder: &Path, keeps: bool) -> Process {
        let mut server = Command::new("redis-server");
        server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--dir"]).arg(folder);
        server.args(["--appendonly", if keeps { "yes" } else { "no" }, "--appendfsync", "always"]);
        let server = server.stdout(Stdio::null()).spawn().unwrap();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            thread::sleep(Duration::from_millis(5));
        }
        Process(server)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: the process is a child that was not waited for: its number is its own.
        unsafe { libc::kill(self.0.id() as i32, signal) };
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Between one worker and Redis: while it is cut, what is sent vanishes; then connections are closed.
#[derive(Clone)]
struct Proxy {
    port: u16,
    is_cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Proxy {
    fn to(server: u16) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Proxy { port: listener.local_addr().unwrap().port(), is_cut: Arc::default(), open: Arc::default() };
        let own = proxy.clone();
        thread::spawn(move || {
            for inner in listener.incoming().flatten() {
                let Ok(outer) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                own.open.lock().unwrap().extend([inner.try_clone().unwrap(), outer.try_clone().unwrap()]);
                own.forward(inner.try_clone().unwrap(), outer.try_clone().unwrap());
                own.forward(outer, inner);
            }
        });
        proxy
    }

    fn forward(&self, mut from: TcpStream, mut to: TcpStream) {
        let is_cut = Arc::clone(&self.is_cut);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(len @ 1..) = from.read(&mut buffer) {
                if !is_cut.load(Ordering::Relaxed) && to.write_all(&buffer[..len]).is_err() {
                    break;
                }
            }
            let _ = to.shutdown(Shutdown::Both);
        });
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
        thread::sleep(LEASE * 2);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.is_cut.store(false, Ordering::Relaxed);
    }
}

struct World {
    folder: tempfile::TempDir,
    port: u16,
    redis: Process,
    proxy: Proxy,
    coordinator: Process,
    workers: Vec<Process>,
}

impl World {
    fn new(keeps: bool) -> World {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let redis = Process::redis(port, folder.path(), keeps);
        let proxy = Proxy::to(port);
        let url = |port: u16| format!("redis://127.0.0.1:{port}/faults");
        let out = folder.path().join("results");
        let coordinator = Process::own("coordinator", &url(port), &out);
        let workers = [port, proxy.port].map(|port| Process::own("worker", &url(port), &out)).into();
        World { folder, port, redis, proxy, coordinator, workers }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("results")
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/faults", self.port)
    }

    /// Until so many units are done, or all.
    fn wait_for(&self, units: u64) {
        let address = Address::given(&self.url()).unwrap();
        let mut link = Link::new(&address, Duration::from_secs(5)).unwrap();
        let begun = Instant::now();
        while !self.out().exists() {
            assert!(begun.elapsed() < LIMIT, "the campaign does not begin");
            if survey::status(&address, &mut link).unwrap().is_some_and(|status| status.done >= units) {
                return;
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn kill_worker(&mut self) {
        self.workers[0].kill();
    }

    fn stop_worker(&mut self) {
        self.workers[0].signal(libc::SIGSTOP);
        thread::sleep(LEASE * 3);
        self.workers[0].signal(libc::SIGCONT);
    }

    fn restart(&mut self, keeps: bool) {
        self.redis.kill();
        self.redis = Process::redis(self.port, self.folder.path(), keeps);
    }

    fn restart_coordinator(&mut self) {
        self.coordinator.kill();
        self.coordinator = Process::own("coordinator", &self.url(), &self.out());
    }

    fn kill_everybody(&mut self) {
        self.workers.iter_mut().for_each(Process::kill);
        self.restart_coordinator();
        self.workers = vec![Process::own("worker", &self.url(), &self.out())];
    }

    /// What the coordinator wrote at its end.
    fn results(&mut self) -> String {
        let begun = Instant::now();
        while !self.out().exists() {
            assert!(begun.elapsed() < LIMIT, "the campaign does not end");
            thread::sleep(Duration::from_millis(5));
        }
        fs::read_to_string(self.out()).unwrap()
    }
}
