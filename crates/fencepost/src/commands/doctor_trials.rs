//! Checks of `fencepost doctor` that try the real thing: a recording with each backend, and a run in isolation.

use std::ffi::OsString;

use record::probe_host::ProbeRecorder;
use record::recorder::{RecordOptions, Recorder};
use record::step::StepRecorder;
use record::stop::StopRequest;
use record::target::Target;
use recover::plain::{Isolation, Method};
use trace::event::ExitStatus;
use trace::{Meta, TraceReader, TraceWriter};

use super::doctor::Check;

const PROGRAM: &str = "/bin/true";

/// Records a program that does nothing with the engine.
pub(super) fn probe() -> Check {
    const NAME: &str = "engine (probe)";
    let recorded = recording("probe", |target, options, writer| {
        let recording =
            ProbeRecorder::new(StopRequest::from_signals()).run(target, options, writer).map_err(|e| e.to_string())?;
        Ok(recording.target)
    });
    match recorded {
        Ok(()) => Check::ok(NAME, format!("recorded {PROGRAM}"), "record, check, lint and crash work"),
        Err(error) => Check::missing(
            NAME,
            format!("cannot record {PROGRAM}: {error}"),
            "nothing can be recorded; traces of other machines can be linted and inspected here",
        ),
    }
}

/// The same with the reference, which needs ptrace.
pub(super) fn step() -> Check {
    const NAME: &str = "ptrace (step)";
    let recorded = recording("step", |target, options, writer| {
        StepRecorder.record(target, options, writer).map(|recorded| recorded.status).map_err(|e| e.to_string())
    });
    match recorded {
        Ok(()) => Check::ok(NAME, format!("recorded {PROGRAM}"), "`record --backend step` works, and debuggers can"),
        Err(error) => Check::fallback(
            NAME,
            format!("cannot record {PROGRAM}: {error}"),
            "no `record --backend step` and probably no `debug`; the engine does not need ptrace",
        ),
    }
}

/// How recoveries in plain mode are kept apart from everything else.
pub(super) fn isolation() -> Check {
    const NAME: &str = "namespaces";
    let isolation = Isolation::detect();
    let best = isolation.method == Method::Overlay && isolation.namespaces.pid;
    if best {
        return Check::ok(NAME, isolation.to_string(), "recoveries see crash images at the pools' paths, in private");
    }
    let consequence = match isolation.method {
        Method::Overlay | Method::Bind => "recoveries are private, with less isolation than possible elsewhere",
        Method::Swap => "findings are confirmed one at a time, and other programs must not use the pools meanwhile",
    };
    let refused = isolation.refused.first().map(|why| format!("; refused: {why}")).unwrap_or_default();
    Check::fallback(NAME, format!("{isolation}{refused}"), consequence)
}

/// Records to a temporary trace, which must then be whole.
fn recording(
    recorder: &str,
    run: impl FnOnce(&Target, &RecordOptions, TraceWriter) -> Result<ExitStatus, String>,
) -> Result<(), String> {
    // A missing TMPDIR does not keep `record` from writing elsewhere; other checks report it.
    let directory = tempfile::tempdir()
        .or_else(|_| tempfile::tempdir_in("/dev/shm"))
        .map_err(|e| format!("no temporary directory: {e}"))?;
    let path = directory.path().join("doctor.fptrace");
    let target = Target::resolve(&[OsString::from(PROGRAM)]).map_err(|e| e.to_string())?;
    let meta = Meta {
        command: vec![PROGRAM.to_owned()],
        cwd: String::new(),
        recorder: recorder.to_owned(),
        options: Vec::new(),
    };
    let writer = TraceWriter::create(&path, meta).map_err(|e| e.to_string())?;
    match run(&target, &RecordOptions::default(), writer)? {
        ExitStatus::Code(0) => {}
        other => return Err(format!("it ended with {other:?}")),
    }
    TraceReader::open(&path).map(drop).map_err(|e| format!("the trace cannot be read: {e}"))
}
