//! How many records a second the host takes: `host_throughput PROBE POOL COUNT`, where PROBE is the stand-in of
//! `tests/fake_probe` (built with `cc -O2 -static -DWIRE_VERSION=1`), which does nothing but produce records.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Instant;

use record::probe_host::ProbeRecorder;
use record::recorder::RecordOptions;
use record::stop::StopRequest;
use record::target::Target;
use supervise::probe::ProbeImage;
use trace::{Meta, TraceWriter};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let [_, probe, pool, count] = arguments.as_slice() else {
        return Err("usage: host_throughput PROBE POOL COUNT".into());
    };
    let target = Target::resolve(&["/bin/true".into(), "many".into(), pool.clone(), count.clone()])?;
    let output = PathBuf::from(pool).with_extension("fptrace");
    let writer = TraceWriter::create(&output, Meta::default())?;
    let stop = StopRequest::new();
    let mut recorder = ProbeRecorder::new(&stop);
    recorder.probe = ProbeImage::File(PathBuf::from(probe));
    let start = Instant::now();
    let recording = recorder.run(&target, &RecordOptions::default(), writer)?;
    let seconds = start.elapsed().as_secs_f64();
    let events = recording.summary.events.0;
    println!(
        "{events} events in {seconds:.2} s: {:.1} M/s, {} bytes",
        events as f64 / seconds / 1e6,
        recording.summary.bytes
    );
    Ok(())
}
