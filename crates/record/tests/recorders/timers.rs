//! Timers, loops that ask for the time, and long computations under the probe: the virtual clock moves. The reference recorder leaves timers
//! to the kernel, so the conformance suite cannot have this one.

use std::ffi::OsString;
use std::path::Path;
use std::process::{self, Command};
use std::time::{Duration, Instant};

use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder as _};
use record::stop::StopRequest;
use record::target::Target;
use trace::event::ExitStatus;
use trace::{Meta, TraceWriter};

#[test]
fn timers_and_computations_move_the_virtual_clock() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("timers-{}", process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/timers.c");
    let status = Command::new("cc").args(["-O1", "-o"]).arg(&program).arg(source).args(["-lrt", "-lpthread"]).status();
    assert!(status.expect("cc is installed").success());
    assert!(Command::new(&program).status().unwrap().success(), "natively");

    let target = Target::resolve(&[OsString::from(&program), "recorded".into()]).unwrap();
    let writer = TraceWriter::create(&folder.path().join("t.fptrace"), Meta::default()).unwrap();
    let stop = StopRequest::new();
    let start = Instant::now();
    let recorded = ProbeRecorder::new(&stop).record(&target, &RecordOptions::default(), writer).unwrap();
    std::fs::remove_file(program).unwrap();
    assert_eq!(recorded.status, ExitStatus::Code(0));
    // Natively it takes two or three seconds; a clock that stands still would take hours, or never end.
    assert!(start.elapsed() < Duration::from_secs(200), "{:?}", start.elapsed());
}
