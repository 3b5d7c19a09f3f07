//! `cargo xtask bench fleet-scale`: a real Redis, a real coordinator, and many workers whose units cost nothing but time. How many units per
//! second does one Redis take, what does a unit cost it, and what does a worker that waits?

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use fleet::blob::BlobId;
use fleet::dispatch::{Campaign, CampaignError, Dispatch, Watch};
use fleet::redis::address::Address;
use fleet::redis::coordinator::{Coordinator, Opening};
use fleet::redis::crew::{Blobs, Crew, Performed, Performer, Team};

use super::fleet::Redis;

#[derive(Args, Debug)]
pub struct ScaleBench {
    /// Numbers of workers.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 50, 200])]
    workers: Vec<usize>,
    /// Units of each worker.
    #[arg(long, default_value_t = 20)]
    units: usize,
    /// How long a unit takes, in milliseconds.
    #[arg(long, default_value_t = 500)]
    unit: u64,
    /// Bytes of a result.
    #[arg(long, default_value_t = 4000)]
    result: usize,
    /// Bytes that a unit tells the other workers; 0: nothing.
    #[arg(long, default_value_t = 2000)]
    exchange: usize,
}

struct Stub {
    unit: Duration,
    result: usize,
    exchange: usize,
}

struct Hand<'s>(&'s Stub, u64);

impl Performer for Hand<'_> {
    fn perform(&mut self, _: &[u8], _: &AtomicBool) -> Result<Performed, String> {
        thread::sleep(self.0.unit);
        // Bytes that do not compress.
        let mut bytes = |count: usize| -> Vec<u8> {
            let mut byte = || {
                self.1 = self.1.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (self.1 >> 56) as u8
            };
            (0..count).map(|_| byte()).collect()
        };
        let exchanged = (self.0.exchange > 0).then(|| bytes(self.0.exchange));
        Ok(Performed { done: bytes(self.0.result), exchanged, is_partial: false })
    }
}

impl Team for Stub {
    fn performer<'t>(&'t self, _: Blobs) -> Result<Box<dyn Performer + 't>, String> {
        Ok(Box::new(Hand(self, Instant::now().elapsed().as_nanos() as u64 ^ self as *const Stub as u64)))
    }
}

impl ScaleBench {
    pub fn run(&self) -> anyhow::Result<ExitCode> {
        more_files();
        println!(
            "| workers | units | s | units/s | of the possible | Redis CPU ms/unit | commands/unit | KB/unit to Redis, from it | idle: Redis CPU ms per worker and s |"
        );
        println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
        for count in &self.workers {
            self.row(*count)?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn row(&self, workers: usize) -> anyhow::Result<()> {
        let redis = Redis::start()?;
        let address = Address::given(&format!("redis://127.0.0.1:{}/scale", redis.port))?;
        let told = |CampaignError(error): CampaignError| anyhow::anyhow!("{error}");
        let opening = Opening {
            version: "1".into(),
            kind: "stub".into(),
            request: BlobId::of(b"r"),
            lease: Duration::from_secs(30),
        };
        let mut coordinator = Coordinator::open(&address, opening, None, Box::new(|_| {}))?;
        let job = coordinator.put(b"job".to_vec()).map_err(told)?;
        coordinator.begin(job).map_err(told)?;
        let stub = Stub { unit: Duration::from_millis(self.unit), result: self.result, exchange: self.exchange };
        let stop: Arc<AtomicBool> = Arc::default();
        let units = workers * self.units;
        let sent: Vec<Vec<u8>> = (0..units).map(|number| format!("{number:0>300}").into_bytes()).collect();
        thread::scope(|scope| -> anyhow::Result<()> {
            for _ in 0..workers {
                scope.spawn(|| {
                    let crew = Crew::join(&address, "1", Duration::from_secs(60), &stop, &|_| {});
                    if let Ok(Some(mut crew)) = crew {
                        let _ = crew.work(&stub, 1, &stop, &|_| {});
                    }
                });
            }
            // They have come, and wait: each asks twice a second.
            for _ in 0..300 {
                if redis.info("blocked_clients")? >= 0.8 * workers as f64 {
                    break;
                }
                thread::sleep(Duration::from_millis(200));
            }
            let idle = (redis.cpu()?, Instant::now());
            thread::sleep(Duration::from_secs(5));
            let idle = (redis.cpu()? - idle.0) / idle.1.elapsed().as_secs_f64() / workers as f64;
            let names = ["total_commands_processed", "total_net_input_bytes", "total_net_output_bytes"];
            let all = |redis: &Redis| names.map(|name| redis.info(name).unwrap_or(0.0));
            let (before, cpu, begun) = (all(&redis), redis.cpu()?, Instant::now());
            let watch = Watch { is_stopped: &|| false, take: &|_, _| Ok(()) };
            coordinator.dispatch(&sent, &watch).map_err(told)?;
            let (took, after) = (begun.elapsed().as_secs_f64(), all(&redis));
            let each = |number: usize| (after[number] - before[number]) / units as f64;
            let possible = workers as f64 / stub.unit.as_secs_f64();
            println!(
                "| {workers} | {units} | {took:.1} | {:.0} | {:.0} % | {:.3} | {:.0} | {:.1}, {:.1} | {:.3} |",
                units as f64 / took,
                units as f64 / took / possible * 100.0,
                (redis.cpu()? - cpu) * 1000.0 / units as f64,
                each(0),
                each(1) / 1000.0,
                each(2) / 1000.0,
                idle * 1000.0
            );
            stop.store(true, Ordering::Relaxed);
            coordinator.finish(0, &[])?;
            Ok(())
        })
    }
}

/// As many connections as the system lets us have.
fn more_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to live memory of the right type.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
