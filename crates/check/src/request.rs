//! A check as a library call: what to run, how power fails, what to look for.

use std::ffi::OsString;
use std::path::PathBuf;

use finding::blame::Libraries;
use lint::lint::Active;
use record::recording::Recording;
use record::request::Request as Recorded;
use record::stop::StopRequest;
use trace::TraceReader;

use crate::elsewhere::Fleet;
use crate::operations::Operations;
use crate::session::Phase;
use crate::settings::Settings;

/// One check of a program.
///
/// ```no_run
/// # fn example() -> Result<(), check::run::CheckError> {
/// let mut request = check::Request::new(["./kv", "kv.pool", "load"]);
/// request.settings.recover = Some("./kv kv.pool verify".into());
/// let outcome = check::run(request)?;
/// assert_eq!(outcome.findings().count(), 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Request<'a> {
    /// What is recorded: the command with its environment (that of recoveries, too), directory and streams; which files are pools. The
    /// operations and the place of the trace are set by the check.
    pub recording: Recorded,
    /// Keeps the trace; none: it is gone with the [`CheckOutcome`](crate::run::CheckOutcome).
    pub trace: Option<PathBuf>,
    /// Lines that the program reads and answers; none: its workload is one whole.
    pub operations: Option<Operations>,
    /// Rules that look for misuse; empty: none does.
    pub rules: Vec<Active>,
    /// Code that is not blamed.
    pub libraries: Libraries,
    pub settings: Settings,
    /// Ends the recording or the search early.
    pub stop: &'a StopRequest,
    pub observer: &'a dyn Observer,
    /// Other machines that judge crash points; none: this one does.
    pub fleet: Option<&'a Fleet>,
}

/// Hears how a check goes.
pub trait Observer: Sync + std::fmt::Debug {
    /// The program has been recorded. Nothing has been looked for yet.
    fn recorded(&self, _recording: &Recording, _reader: &TraceReader) {}

    /// What the search is doing. Called often, by several threads.
    fn phase(&self, _phase: Phase) {}
}

/// Hears nothing.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {}

/// Nobody wants it to stop.
static GO_ON: StopRequest = StopRequest::new();

impl Request<'_> {
    /// The command in the environment of this process, with its streams, in its directory; the rules and settings that
    /// `fencepost check` has without options.
    pub fn new<C: Into<OsString>>(command: impl IntoIterator<Item = C>) -> Request<'static> {
        let none = lint::registry::Settings::default();
        Request {
            recording: Recorded::new(command, PathBuf::new()),
            trace: None,
            operations: None,
            rules: none.activate(Vec::new()).expect("the rules need no setting"),
            libraries: Libraries::default(),
            settings: Settings::default(),
            stop: &GO_ON,
            observer: &Silent,
            fleet: None,
        }
    }
}
