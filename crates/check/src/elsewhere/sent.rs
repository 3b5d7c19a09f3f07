//! What is sent from one machine to another.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use crash::assumed::AssumedRepairs;
use crash::elsewhere::{PointsDone, PointsUnit};
use crash::outcome::PointOutcome;
use crash::search::SearchOptions;
use fleet::blob::BlobId;
use fleet::same::SameFile;
use operation::equivalence::Equivalence;
use recover::command::{Command, Input};
use serde::{Deserialize, Serialize};
use verdict::position::CrashPositions;

/// What kind of campaign this is.
pub const KIND: &str = "crash points";

/// A command as it is sent. Texts are bytes, see [`fleet::text`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SentCommand {
    pub(super) program: String,
    pub(super) args: Vec<String>,
    pub(super) dir: String,
    pub(super) stdin: Option<String>,
    /// Beside the worker's own.
    pub(super) env: Vec<(String, String)>,
}

pub(super) fn sent(bytes: impl AsRef<std::ffi::OsStr>) -> String {
    fleet::text::of(bytes.as_ref().as_bytes())
}

pub(super) fn received(text: &str) -> Option<OsString> {
    fleet::text::bytes(text).map(OsString::from_vec)
}

impl SentCommand {
    pub(super) fn of(command: &Command, takes_over: impl Fn(&str) -> bool) -> SentCommand {
        let taken = command.env.iter().filter(|(name, _)| name.to_str().is_some_and(&takes_over));
        SentCommand {
            program: sent(&command.program),
            args: command.args.iter().map(sent).collect(),
            dir: sent(&command.dir),
            stdin: match &command.stdin {
                Input::File(path) => Some(sent(path)),
                // Those of operations depend on the crash.
                Input::Empty | Input::Bytes(_) | Input::Operations(_) => None,
            },
            env: taken.map(|(name, value)| (sent(name), sent(value))).collect(),
        }
    }

    pub(super) fn command(&self, own: &[(OsString, OsString)]) -> Option<Command> {
        let given: Option<Vec<(OsString, OsString)>> =
            self.env.iter().map(|(name, value)| Some((received(name)?, received(value)?))).collect();
        let given = given?;
        let mut env: Vec<(OsString, OsString)> =
            own.iter().filter(|(name, _)| given.iter().all(|(other, _)| other != name)).cloned().collect();
        env.extend(given);
        Some(Command {
            program: received(&self.program)?.into(),
            args: self.args.iter().map(|arg| received(arg)).collect::<Option<_>>()?,
            env,
            dir: received(&self.dir)?.into(),
            stdin: match &self.stdin {
                Some(path) => Input::File(received(path)?.into()),
                None => Input::Empty,
            },
        })
    }
}

/// What all units of a check have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) trace: BlobId,
    pub(super) conditions: Option<BlobId>,
    pub(super) options: SearchOptions,
    pub(super) equivalence: bool,
    pub(super) recovery: SentCommand,
    pub(super) checker: Option<SentCommand>,
    pub(super) exit_codes: Vec<i32>,
    pub(super) patterns: Vec<String>,
    pub(super) wall: Duration,
    pub(super) cpu: Duration,
    pub(super) memory: u64,
    pub(super) output: u64,
    pub(super) processes: u32,
    pub(super) native: bool,
    pub(super) real_time: bool,
    pub(super) pools: Vec<(String, u64)>,
    pub(super) names: Vec<String>,
    pub(super) folders: Vec<String>,
    pub(super) same: Vec<SameFile>,
}

/// What the units of a pass have in common.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Pass {
    pub(super) assumed: AssumedRepairs,
    pub(super) positions: CrashPositions,
    pub(super) answers: Option<Equivalence>,
    /// Why the fork server cannot be used.
    pub(super) native: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Unit {
    pub(super) pass: BlobId,
    pub(super) work: Work,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    Points(PointsUnit),
    /// Failing states whose causes are wanted.
    Causes(Vec<PointOutcome>),
}

/// What came of a unit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct UnitDone {
    pub(super) points: PointsDone,
    /// Files that recoveries have changed where later ones see it.
    pub(super) outside: Vec<String>,
    /// Why the fork server was not used, if it should have been.
    pub(super) native: Option<String>,
    /// A recovery showed something else in a process that was used before than in a fresh one.
    pub(super) reuse_differs: bool,
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data has a form in JSON")
}
