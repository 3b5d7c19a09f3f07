//! One program's trial: natively, under the reference, under the engine, and all of them against each other.

use std::fs;
use std::path::{Path, PathBuf};

use targets::{Linkage, Program};

use crate::backend::{Backend, Run};
use crate::files::Files;
use crate::{compare, stream};

/// These programs are about system calls and signals, not about how code is loaded: statically linked, the reference has to step through far fewer
/// instructions. Every night they are linked dynamically.
const STATIC: [&str; 5] = ["determinism/", "mmap/", "process/", "signals/", "syscalls/"];

fn linkage(program: &Program) -> Linkage {
    let is_one = STATIC.iter().any(|folder| program.name.starts_with(folder));
    let all_dynamic = std::env::var("FENCEPOST_SUITE_LINKAGE").is_ok_and(|linkage| linkage == "dynamic");
    if is_one && !all_dynamic { Linkage::Static } else { Linkage::Dynamic }
}

/// All complaints about one program, in the order of the checks; empty where it passed.
pub fn run(program: &Program) -> Result<(), String> {
    let space = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance");
    let built = space.join("built");
    let executable = program.build_linked(&built, linkage(program)).map_err(|error| error.to_string())?;
    let folder = space.join("run").join(&program.name);
    let run = Run { program, executable: &executable, built: &built, folder: &folder };

    fresh(&folder)?;
    run.natively()?;
    let native = files(&folder)?;
    let mut complaints = Vec::new();
    let mut recordings = Vec::new();
    for backend in Backend::wanted() {
        match (record(&run, backend, "1", &native), program.refusal()) {
            (Ok(_), Some(text)) if backend == Backend::Probe => complaints.push(format!("not refused: {text}")),
            (Err(told), Some(text)) if backend == Backend::Probe && told.contains(text) => {}
            (Ok(trace), _) => recordings.push((backend, trace)),
            (Err(complaint), _) => complaints.push(complaint),
        }
    }
    complaints.extend(recordings.iter().filter_map(|(backend, trace)| {
        let report = verify(trace, program);
        report.err().map(|error| format!("verify of the {backend} recording: {error}"))
    }));
    if let [(_, step), (_, probe)] = &recordings[..] {
        let compared = program.compare();
        let (a, b) = (stream::load(step, compared)?, stream::load(probe, compared)?);
        complaints.extend(compare::difference(&a, &b, compared));
    }
    if let Some((_, first)) = recordings.iter().find(|(backend, _)| *backend == Backend::Probe)
        && !program.compare().unordered
        && !program.compare().thread_events_float
    {
        complaints.extend(repeat(&run, first, &native).err());
    }
    if complaints.is_empty() {
        // Failed runs stay for a look; the others would fill the disk.
        let _ = fs::remove_dir_all(&folder);
        return Ok(());
    }
    Err(complaints.join("\n"))
}

/// Records into a fresh folder; returns the trace's path.
fn record(run: &Run<'_>, backend: Backend, number: &str, native: &Files) -> Result<PathBuf, String> {
    fresh(run.folder)?;
    let trace = run.folder.with_extension(format!("{backend}{number}.fptrace"));
    let _ = fs::remove_file(&trace);
    run.recorded(backend, &trace)?;
    if run.program.has_fixed_pool()
        && let Some(difference) = native.difference(&files(run.folder)?)
    {
        return Err(format!("under {backend} it leaves other files than natively: {difference}"));
    }
    Ok(trace)
}

/// Two recordings by the engine are the same file.
fn repeat(run: &Run<'_>, first: &Path, native: &Files) -> Result<(), String> {
    let second = record(run, Backend::Probe, "2", native)?;
    let (a, b) = (read(first)?, read(&second)?);
    if a == b {
        return Ok(());
    }
    // Where values may hold what differs from run to run, only the rest is the same.
    let compared = if run.program.compare().lengths { run.program.compare() } else { targets::Compare::default() };
    let told = compare::difference(&stream::load(first, compared)?, &stream::load(&second, compared)?, compared);
    if told.is_none() && compared.lengths {
        return Ok(());
    }
    let told = told.unwrap_or_else(|| "the events are the same, the files are not".to_owned());
    Err(format!("two recordings by the probe differ (read `step` as the first, `probe` as the second): {told}"))
}

fn verify(trace: &Path, program: &Program) -> Result<(), String> {
    let mut report = trace::verify(trace).map_err(|error| error.to_string())?;
    if program.record_args().iter().any(|argument| argument == "--pm") {
        // A file that is mapped but no pool is stored to without an event: its content is not known.
        report.names.retain(|name| !name.differs_in_content_only());
    }
    if report.complete && report.is_same() { Ok(()) } else { Err(format!("{report:?}")) }
}

fn fresh(folder: &Path) -> Result<(), String> {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn files(folder: &Path) -> Result<Files, String> {
    Files::below(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}
