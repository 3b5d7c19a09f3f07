//! System calls with their pointers into a pool that the conformance suite leaves out, because kernels and rights differ: from a pool they do what
//! they do from ordinary memory.

use std::ffi::OsString;
use std::path::Path;
use std::process::{self, Command};

use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder as _};
use record::stop::StopRequest;
use record::target::Target;
use trace::event::ExitStatus;
use trace::{Meta, TraceWriter};

#[test]
fn calls_do_from_a_pool_what_they_do_from_memory() {
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("other_calls-{}", process::id()));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut cc = Command::new("cc");
    cc.args(["-O1", "-I"]).arg(root.join("targets/conformance")).arg("-o").arg(&program);
    let status = cc.arg(root.join("crates/record/tests/programs/other_calls.c")).status();
    assert!(status.expect("cc is installed").success());
    let pool = folder.path().join("pool");
    let native = Command::new(&program).arg(&pool).current_dir(folder.path()).status().unwrap();
    assert!(native.success(), "natively");

    let command = [OsString::from(&program), OsString::from(&pool)];
    let environment: Vec<_> = std::env::vars_os().collect();
    let target = Target::resolve_in(&command, &environment, Some(folder.path())).unwrap();
    for loads in [false, true] {
        let trace = folder.path().join("t.fptrace");
        let writer = TraceWriter::create(&trace, Meta::default()).unwrap();
        let options = RecordOptions { loads, ..RecordOptions::default() };
        let recorded = ProbeRecorder::new(&StopRequest::new()).record(&target, &options, writer).unwrap();
        assert_eq!(recorded.status, ExitStatus::Code(0), "loads: {loads}");
        // What the kernel wrote to the pool is in the trace, and nothing else.
        let report = trace::verify(&trace).unwrap();
        assert!(!report.pools.is_empty() && report.pools.iter().all(trace::PoolVerdict::is_same), "{report:?}");
    }
    std::fs::remove_file(program).unwrap();
}
