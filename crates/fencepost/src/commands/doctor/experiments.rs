//! Checks of `fencepost doctor` that run something: a recording, a step under ptrace, and a run in isolation.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use fuse::mounting::Mounting;
use record::probe_host::ProbeRecorder;
use record::recorder::RecordOptions;
use record::stop::StopRequest;
use record::target::Target;
use recover::native::{Isolation, Method};
use trace::event::ExitStatus;
use trace::{Meta, TraceReader, TraceWriter};

use super::Check;

const PROGRAM: &str = "/bin/true";

/// Records a program that does nothing with the engine.
pub(super) fn probe() -> Check {
    const NAME: &str = "engine (probe)";
    match recording() {
        Ok(()) => Check::ok(NAME, format!("recorded {PROGRAM}"), "record, check, lint and crash work"),
        Err(error) => Check::missing(
            NAME,
            format!("cannot record {PROGRAM}: {error}"),
            "no check, and no record but the very slow `--backend step`; lint and trace work on traces of other machines",
        ),
    }
}

/// What the reference and debuggers need. A whole recording would take it seconds.
pub(super) fn step() -> Check {
    const NAME: &str = "ptrace (step)";
    match single_step() {
        Ok(()) => {
            Check::ok(NAME, format!("single-stepped {PROGRAM}"), "`record --backend step` works, and debuggers can")
        }
        Err(error) => Check::fallback(
            NAME,
            format!("cannot single-step {PROGRAM}: {error}"),
            "no `record --backend step` and probably no `debug`; the engine does not need ptrace",
        ),
    }
}

/// Lets a child make one step.
fn single_step() -> io::Result<()> {
    let mut command = Command::new(PROGRAM);
    // SAFETY: `ptrace` is async-signal-safe; the request has no arguments and concerns the child alone.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        });
    }
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let stepped = one_step(child.id() as libc::pid_t);
    // It may have ended already, which is as good.
    let _ = child.kill();
    child.wait()?;
    stepped
}

fn one_step(pid: libc::pid_t) -> io::Result<()> {
    // The new program stops before its first instruction.
    stopped(pid)?;
    // SAFETY: our own child, which is stopped; nothing of ours is read or written.
    if unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, pid, 0, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    stopped(pid)
}

fn stopped(pid: libc::pid_t) -> io::Result<()> {
    let mut status = 0;
    // SAFETY: our own child, and room for the answer.
    if unsafe { libc::waitpid(pid, &mut status, 0) } == -1 {
        return Err(io::Error::last_os_error());
    }
    if libc::WIFSTOPPED(status) { Ok(()) } else { Err(io::Error::other("it did not stop")) }
}

/// How native recovery runs are isolated.
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

/// Where `fs check` can mount file systems.
pub(super) fn file_systems() -> Check {
    const NAME: &str = "FUSE";
    match fuse::mounting::possible() {
        Ok(Mounting::Private) => Check::ok(
            NAME,
            "mounts in a namespace of their own",
            "`fs check` mounts in private, and leaves no mount behind, also if it is killed",
        ),
        Ok(Mounting::Helper) => Check::fallback(
            NAME,
            "mounts through fusermount3",
            "everybody sees the mounts of `fs check`, and a kill may leave one behind; allow mount namespaces",
        ),
        Err(error) => Check::fallback(NAME, error.to_string(), "`fs check --fuse` cannot be used"),
    }
}

/// Records to a temporary trace, which must then be whole.
fn recording() -> Result<(), String> {
    // A missing TMPDIR does not keep `record` from writing elsewhere; other checks report it.
    let directory = tempfile::tempdir()
        .or_else(|_| tempfile::tempdir_in("/dev/shm"))
        .map_err(|e| format!("no temporary directory: {e}"))?;
    let path = directory.path().join("doctor.fptrace");
    let target = Target::resolve(&[OsString::from(PROGRAM)]).map_err(|e| e.to_string())?;
    let meta = Meta {
        command: vec![PROGRAM.to_owned()],
        cwd: String::new(),
        recorder: "probe".to_owned(),
        options: Vec::new(),
    };
    let writer = TraceWriter::create(&path, meta).map_err(|e| e.to_string())?;
    let recorder = ProbeRecorder::new(StopRequest::from_signals());
    let recording = recorder.run(&target, &RecordOptions::default(), writer).map_err(|e| e.to_string())?;
    match recording.target {
        ExitStatus::Code(0) => {}
        other => return Err(format!("it ended with {other:?}")),
    }
    TraceReader::open(&path).map(drop).map_err(|e| format!("the trace cannot be read: {e}"))
}
