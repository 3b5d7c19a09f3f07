//! How many events per second the tracker takes, on a synthetic run shaped like PMDK transactions: a few small
//! objects stored field by field, logged by a non-temporal copy, flushed and fenced; some lines never flushed.
//!
//! `cargo run --release -p persistency --example model_throughput [adr|eadr] [million events]`

use std::time::Instant;

use persistency::domain::Detail;
use persistency::model::{Fences, ModelKind};
use persistency::tracker::Tracker;
use trace::event::{
    CodeAddr, ContextId, Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, Place, PoolId, PoolOffset,
    StoreKind, ThreadId,
};

const POOL: PoolId = PoolId(0);
const LOG: u64 = 1 << 30;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let kind: ModelKind = args.next().as_deref().unwrap_or("adr").parse()?;
    let millions: u64 = args.next().as_deref().unwrap_or("20").parse()?;
    for detail in [Detail::LastWriters, Detail::Stores, Detail::Bytes] {
        let mut tracker = Tracker::new(kind.build(Fences::All), detail);
        let mut run = Run { tracker: &mut tracker, next: 0, settled: 0, most_dirty: 0 };
        let start = Instant::now();
        run.go(millions * 1_000_000);
        let (events, settled, most_dirty) = (run.next, run.settled, run.most_dirty);
        let rate = events as f64 / start.elapsed().as_secs_f64() / 1e6;
        println!("{kind} {detail:?}: {rate:.1} M events/s; {settled} stores settled, at most {most_dirty} dirty lines");
    }
    Ok(())
}

struct Run<'t> {
    tracker: &'t mut Tracker,
    next: u64,
    settled: usize,
    most_dirty: usize,
}

impl Run<'_> {
    fn go(&mut self, events: u64) {
        let mut random = 1u64;
        while self.next < events {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let thread = ThreadId((random >> 60) as u32 % 2);
            let log = LOG + (random >> 20) % 64 * 4096;
            self.store(thread, log, StoreKind::NonTemporal, &[1; 64]);
            self.fence(thread);
            for object in 0..4u64 {
                let at = (random >> (8 + 4 * object)) % (1 << 20) * 64;
                for field in 0..4 {
                    self.store(thread, at + field * 8, StoreKind::Plain, &[2; 8]);
                }
                self.flush(thread, at);
            }
            self.fence(thread);
            // A statistics counter that nobody flushes.
            self.store(thread, LOG - 64 * (1 + random % 1000), StoreKind::Plain, &[3; 8]);
            self.store(thread, log, StoreKind::Plain, &[0; 8]);
            self.flush(thread, log);
            self.fence(thread);
        }
    }

    fn apply(&mut self, thread: ThreadId, kind: EventKind<'_>) {
        let event = Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind };
        self.settled += self.tracker.apply(EventId(self.next), &event).guaranteed().len();
        self.most_dirty = self.most_dirty.max(self.tracker.dirty_line_count());
        self.next += 1;
    }

    fn store(&mut self, thread: ThreadId, offset: u64, kind: StoreKind, bytes: &[u8]) {
        self.apply(thread, EventKind::Store { place: place(offset), kind, bytes });
    }

    fn flush(&mut self, thread: ThreadId, offset: u64) {
        let target = FlushTarget::Pool(place(offset));
        self.apply(thread, EventKind::Flush { kind: FlushKind::Clwb, target });
    }

    fn fence(&mut self, thread: ThreadId) {
        self.apply(thread, EventKind::Fence { kind: FenceKind::Sfence });
    }
}

fn place(offset: u64) -> Place {
    Place { pool: POOL, offset: PoolOffset(offset) }
}
