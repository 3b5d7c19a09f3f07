//! What the parts of a search cost, without any recovery, on a trace or on a synthetic run shaped like PMDK transactions.
//!
//! `cargo run --release -p crash --example search_speed [TRACE | million events] [lines that recovery reads] \
//! [occurrences of each failure point]`

use std::time::Instant;

use crash::image::CrashImage;
use crash::points::Density;
use crash::recovery::{Observation, Recovery, RecoveryError};
use crash::rounds::Selection;
use crash::search::{Search, SearchOptions};
use crash::strategy::StrategySpec;
use crash::survey::Survey;
use crash::walk::{Rules, Walk};
use persistency::line::LineId;
use trace::*;
use verdict::read::Read;
use verdict::verdict::Verdict;

const LOG: u64 = 128 << 20;

/// Reads the beginning of the pool, from first line to last, and likes it.
struct Reader {
    lines: u64,
}

impl Recovery for Reader {
    fn run(&mut self, _: &CrashImage<'_>) -> Result<Observation, RecoveryError> {
        let line = |line| Read::Line(LineId { pool: PoolId(0), line: LineNo(line) });
        Ok(Observation { verdict: Verdict::Pass, reads: Some((0..self.lines).map(line).collect()) })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "5".to_owned());
    let lines: u64 = args.next().as_deref().unwrap_or("20000").parse()?;
    let occurrences: u64 = args.next().as_deref().unwrap_or("4").parse()?;
    let folder = tempfile::tempdir()?;
    let mut path = folder.path().join("t.fptrace");
    match what.parse::<u64>() {
        Ok(millions) => write(&path, millions * 1_000_000)?,
        Err(_) => path = what.into(),
    }
    let reader = TraceReader::open(&path)?;

    let start = Instant::now();
    let survey = Survey::of(&reader, Density::Fences, &|_, _| false)?;
    let known = survey.failure_points().len();
    println!("survey: {:.2} s, {} crash points, {known} failure points", seconds(start), survey.len());

    let start = Instant::now();
    let mut walk = Walk::new(&reader, Rules::default())?;
    walk.advance_to(EventId(u64::MAX))?;
    println!("walk: {:.2} s, {} lines dirty at the end", seconds(start), walk.tracker().dirty_line_count());

    for strategies in ["program-order,guaranteed-only", "few-lines:2:500", "visible:500"] {
        let options = SearchOptions {
            selection: Selection { occurrences: Some(occurrences), ..Selection::default() },
            strategies: StrategySpec::list(strategies)?,
            ..SearchOptions::default()
        };
        let start = Instant::now();
        let found = Search::new(&reader, &survey, &options).run(&mut [Reader { lines }])?;
        let coverage = found.coverage;
        println!(
            "{strategies}: {:.2} s, {} points, {} states decided, {} run, {} saved",
            seconds(start),
            coverage.points_finished,
            coverage.states_decided,
            coverage.recovery_runs,
            coverage.runs_saved
        );
    }
    Ok(())
}

fn seconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64()
}

fn write(path: &std::path::Path, events: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut writer = TraceWriter::create(path, Meta::default())?;
    let pool = writer.pool(PoolInfo { path: "pool".into(), len: 256 << 20 }, &mut &[0u8; 0][..])?;
    let module = writer.module(CodeModule { path: "program".into(), build_id: None, kind: ModuleKind::Elf });
    let contexts: Vec<_> =
        (1..200).map(|addr| writer.context(ContextId(0), CodeAddr { module, addr }, false)).collect();
    let mut random = 1u64;
    let at = |offset| Place { pool, offset: PoolOffset(offset) };
    while writer.events().0 < events {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let context = contexts[(random >> 40) as usize % contexts.len()];
        let mut push = |kind: EventKind<'_>, addr| {
            let event = Event { thread: ThreadId(0), context, pc: CodeAddr { module, addr }, kind };
            writer.push(&event)
        };
        let log = at(LOG + (random >> 20) % 64 * 4096);
        push(EventKind::Store { place: log, kind: StoreKind::NonTemporal, bytes: &[1; 64] }, 1)?;
        push(EventKind::Fence { kind: FenceKind::Sfence }, 2)?;
        for object in 0..4 {
            let object = (random >> (8 + 4 * object)) % (1 << 16) * 64;
            for field in 0..4 {
                let bytes = (random ^ field).to_le_bytes();
                let place = at(object + field * 8);
                push(EventKind::Store { place, kind: StoreKind::Plain, bytes: &bytes }, 3 + field)?;
            }
            push(EventKind::Flush { kind: FlushKind::Clwb, target: FlushTarget::Pool(at(object)) }, 8)?;
        }
        push(EventKind::Fence { kind: FenceKind::Sfence }, 9)?;
        // A statistics counter that nobody flushes.
        let place = at(LOG - 64 * (1 + random % 1000));
        push(EventKind::Store { place, kind: StoreKind::Plain, bytes: &[3; 8] }, 10)?;
    }
    writer.finish(&mut [], Outcome::Ended(ExitStatus::Code(0)))?;
    Ok(())
}
