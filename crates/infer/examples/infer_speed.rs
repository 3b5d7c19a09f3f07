//! How fast dependence is followed: runs a command in flow mode, infers, and says what it took.
//!
//! `cargo run --release -p infer --example infer_speed -- COMMAND...`; `INFER_OUTPUT=FILE` keeps the conditions.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use infer::Inference;
use record::flow::FlowHandle;
use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder};
use record::stop::StopRequest;
use record::target::Target;
use trace::{Meta, TraceWriter};

/// Processor time of this process: the host's, not the target's.
fn own_time() -> Duration {
    let fields = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let numbers: Vec<u64> =
        fields.rsplit(')').next().unwrap_or_default().split_whitespace().filter_map(|n| n.parse().ok()).collect();
    // Fields 14 and 15 of proc(5), in hundredths of a second; the state in front is no number.
    Duration::from_millis(numbers.get(10..12).map_or(0, |times| times.iter().sum::<u64>() * 10))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let inference = Arc::new(Mutex::new(Inference::default()));
    let options = RecordOptions { flow: Some(FlowHandle::new(inference.clone())), ..RecordOptions::default() };
    let folder = tempfile::tempdir()?;
    let meta = Meta { command: Vec::new(), cwd: String::new(), recorder: "probe".to_owned(), options: Vec::new() };
    let writer = TraceWriter::create(&folder.path().join("t.fptrace"), meta)?;
    let target = Target::resolve(&command)?;
    let (start, before) = (Instant::now(), own_time());
    let recorded = ProbeRecorder::new(&StopRequest::new()).record(&target, &options, writer)?;
    let (wall, own) = (start.elapsed(), own_time() - before);
    let inference = inference.lock().map_err(|_| "the inference failed")?;
    let start = Instant::now();
    let conditions = inference.conditions();
    let counts = conditions.counts();
    let mut rules = BTreeMap::new();
    for order in conditions.orders() {
        *rules.entry(format!("{:?}", order.rule)).or_insert(0) += 1;
    }
    let speed = |time: Duration| counts.instructions as f64 / time.as_secs_f64().max(0.01) / 1e6;
    eprintln!(
        "{:?}: {} million instructions in {:.2} s ({:.1} million/s), {:.2} s of this process ({:.1} million/s)",
        recorded.status,
        counts.instructions / 1_000_000,
        wall.as_secs_f64(),
        speed(wall),
        own.as_secs_f64(),
        speed(own),
    );
    eprintln!("{rules:?}, {} guardians, {counts:?}", conditions.guardians().len());
    eprintln!("sets and their labels: {:?}; conditions made in {:.2?}", inference.sets(), start.elapsed());
    if let Some(path) = std::env::var_os("INFER_OUTPUT") {
        conditions.save(path.as_ref())?;
    }
    Ok(())
}
