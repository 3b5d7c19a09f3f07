//! The whole check: record, look for misuse, simulate power failures, name the causes.

use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::time::{Duration, SystemTime};

use crash::rounds::Shard;
use crash::strategy::inferred::KnownConditions;
use drive::driver::Driver;
use finding::finding::Finding;
use finding::note::RunNote;
use lint::lint::{LintError, Options};
use lint::registry;
use operation::boundaries::{BoundarySource, OperationBoundaries};
use record::recording::Recording;
use record::request::{Failed, Stream};
use runner::reference::error::ReferenceError;
use runner::reference::run::all_read;
use supervise::memory_file;
use supervise::temporary::Temporary;
use trace::{ReadError, TraceReader};

use crate::checked::Checked;
use crate::operations::Operations;
use crate::recording::{RecordError, Recorded, record};
use crate::request::Request;
use crate::search::{Search, SearchFailed};
use crate::transient;

/// What a check brought home.
#[derive(Debug)]
pub struct CheckOutcome {
    pub recording: Recording,
    /// The trace, for reports.
    pub reader: TraceReader,
    /// What power failures break: confirmed, with bundles.
    pub checked: Checked,
    /// What the rules found.
    pub misuse: Vec<Finding>,
    /// Remarks on performance that lie wholly inside a PM library.
    pub inside_libraries: Vec<Finding>,
    /// The user ended the search early.
    pub interrupted: bool,
    /// The trace is in it, unless it is kept.
    _folder: Temporary,
}

impl CheckOutcome {
    /// What power failures break, then misuse.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.checked.findings.iter().chain(&self.misuse)
    }
}

/// Nothing could be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error("cannot make a temporary folder for the trace: {0}")]
    Temporary(io::Error),
    #[error("cannot give the program its operations: {0}")]
    Operations(io::Error),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the recording was interrupted")]
    Interrupted,
    #[error("no persistent-memory activity: there is nothing to check")]
    NoActivity,
    /// The program has done nothing, and the reason is that it did not read its operations.
    #[error(transparent)]
    Unread(Box<ReferenceError>),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Lint(#[from] LintError),
    #[error(transparent)]
    Search(#[from] SearchFailed),
}

/// Records the program of a request once and checks that run: misuse, and what a power failure at any point breaks.
pub fn run(request: Request<'_>) -> Result<CheckOutcome, CheckError> {
    let folder = Temporary::new("check").map_err(CheckError::Temporary)?;
    let trace = request.trace.clone().unwrap_or_else(|| folder.path().join("check.fptrace"));
    let Request { recording, operations, rules, libraries, settings, stop, observer, fleet, .. } = request;
    let env = recording.env.clone();
    let real_time = recording.options.real_time;
    let begun = SystemTime::now();
    let infer = settings.breaks_conditions(operations.as_ref());
    let (recorded, answers) = {
        let mut recording = recording;
        recording.trace.clone_from(&trace);
        recording.options.watch.extend(registry::watches(&rules));
        recording.options.watch.extend(operations.iter().flat_map(Operations::watches));
        let answers = serve(&mut recording, operations.as_ref()).map_err(CheckError::Operations)?;
        let recorded = record(recording, infer, stop).map_err(|error| match error {
            // It goes with its folder.
            RecordError::Failed(failed) if request.trace.is_none() => Failed { salvaged: None, ..failed }.into(),
            error => error,
        })?;
        (recorded, answers)
    };
    if request.trace.is_some() || fleet.is_some() {
        recorded.save_conditions(&trace)?;
    }
    let since = recorded.budget_begins(settings.budget);
    let Recorded { recording, conditions, .. } = recorded;
    let answers = answers.map(read_back).transpose().map_err(CheckError::Operations)?;
    if recording.interrupted {
        return Err(CheckError::Interrupted);
    }
    let reader = TraceReader::open(&trace)?;
    observer.recorded(&recording, &reader);
    if !recording.activity.any() {
        return Err(unread(&reader, operations.as_ref())
            .map_or(CheckError::NoActivity, |error| CheckError::Unread(Box::new(error))));
    }
    let options = Options { model: settings.model, fences: settings.fences, libraries: libraries.clone() };
    let linted = if rules.is_empty() { None } else { Some(lint::lint::lint(&reader, rules, &options)?) };
    let (mut misuse, inside_libraries) =
        linted.map_or_else(Default::default, |report| (report.findings, report.inside_libraries));
    let search = Search {
        reader: &reader,
        trace: &trace,
        settings: &settings,
        operations: operations.as_ref(),
        env: &env,
        libraries: &libraries,
        shard: Shard::WHOLE,
        journal: None,
        merge: &[],
        recorded: answers,
        served: None,
        real_time,
        fleet,
        repaired: &[],
        conditions: conditions.map(KnownConditions::new),
        since,
    };
    let (mut checked, interrupted) = search.run(stop, &|phase| observer.phase(phase))?;
    let older: Vec<String> =
        recording.pools.iter().map(|pool| pool.path.clone()).filter(|path| is_older(path, begun)).collect();
    if !older.is_empty() {
        checked.notes.push(RunNote::PoolsExisted { pools: older });
    }
    if operations.as_ref().is_some_and(Operations::are_known) {
        transient::confirm(&mut misuse, &checked);
    }
    Ok(CheckOutcome { recording, reader, checked, misuse, inside_libraries, interrupted, _folder: folder })
}

/// Was there a file with this name before the run began? Not every file system knows when it made a file; then nothing is said.
fn is_older(path: &str, begun: SystemTime) -> bool {
    /// File systems look at a clock that goes by leaps.
    const LEAP: Duration = Duration::from_millis(20);
    let made = fs::metadata(path).and_then(|metadata| metadata.created());
    made.is_ok_and(|made| made + LEAP < begun)
}

/// Gives the program its operations, and takes its answers.
fn serve(recording: &mut record::request::Request, operations: Option<&Operations>) -> io::Result<Option<File>> {
    let Some(operations) = operations else { return Ok(None) };
    let given = operations.fed().map(operation::workload::Workload::operations);
    let answers = memory_file::create(c"answers")?;
    recording.options.operations_stdin = given.is_some();
    recording.stdin = Stream::File(memory_file::holding(c"operations", given.unwrap_or_default())?);
    recording.stdout = Stream::File(answers.try_clone()?);
    Ok(Some(answers))
}

fn read_back(mut answers: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    answers.rewind()?;
    answers.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Why the program has not read its operations, if that is so.
fn unread(reader: &TraceReader, operations: Option<&Operations>) -> Option<ReferenceError> {
    let workload = operations?.fed()?;
    let read = OperationBoundaries::of(reader, &BoundarySource::Events)
        .map_err(ReferenceError::from)
        .and_then(|boundaries| all_read(reader, &boundaries, workload));
    let driven = Driver::of(&reader.tables().meta.command).is_some();
    read.err().map(|error| if driven { error.driven() } else { error })
}
