//! What is reported: one cause, once.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use trace::event::{EventId, ThreadId};

use crate::failure::{BrokenPromise, CrashFailure};
use crate::note::Note;
use crate::severity::Severity;

/// What kind of harm a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Data that may not be in PM when the program relies on it.
    Durability,
    /// An order in PM that nothing guarantees.
    Ordering,
    /// A change that may be half done.
    Atomicity,
    /// Recovery itself crashes or hangs.
    Recovery,
    /// The program crashes or hangs without any power failure.
    Breakdown,
    /// Waste.
    Performance,
    /// Whatever a custom rule looks for.
    Custom,
}

impl Class {
    pub fn name(self) -> &'static str {
        match self {
            Class::Durability => "durability",
            Class::Ordering => "ordering",
            Class::Atomicity => "atomicity",
            Class::Recovery => "recovery",
            Class::Breakdown => "breakdown",
            Class::Performance => "performance",
            Class::Custom => "custom",
        }
    }
}

/// What a location has to do with the finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    Store,
    Flush,
    Fence,
    Call,
    /// The frame inside a library through which the guilty line acted.
    Library,
    /// A place of an event without a more special role.
    Event,
    /// A store that was not in PM when power failed.
    Missing,
    /// A store that was in PM.
    Present,
    /// A store that had not been executed yet.
    Next,
    /// A frame of the recovery.
    Recovery,
}

impl Role {
    /// Of a store that a failing crash state has, or lacks.
    pub(crate) fn is_of_failing_store(self) -> bool {
        matches!(self, Role::Missing | Role::Present | Role::Next)
    }

    pub fn name(self) -> &'static str {
        match self {
            Role::Store => "store",
            Role::Flush => "flush",
            Role::Fence => "fence",
            Role::Call => "call",
            Role::Library => "library",
            Role::Event => "event",
            Role::Missing => "missing store",
            Role::Present => "present store",
            Role::Next => "next store",
            Role::Recovery => "recovery",
        }
    }
}

/// A place in the code, as far as it has names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Location {
    pub role: Role,
    pub file: Option<String>,
    pub line: Option<u32>,
    pub function: Option<String>,
    /// File name of the executable or library.
    pub module: String,
    /// Address inside the module.
    pub address: u64,
}

impl Location {
    /// What names the location in the next recording, too: source if known, else the function or the address.
    pub(crate) fn key(&self) -> String {
        match (&self.file, self.line, &self.function) {
            (Some(file), Some(line), _) => format!("{file}:{line}"),
            (_, _, Some(function)) => format!("{}!{function}", self.module),
            _ => format!("{}+{:#x}", self.module, self.address),
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let function = self.function.as_deref().unwrap_or("?");
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{function} ({file}:{line})"),
            _ => write!(f, "{function} ({}+{:#x})", self.module, self.address),
        }
    }
}

/// One call path to the guilty line, and how often it was met there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPath {
    pub count: u64,
    /// Innermost frame first; begins at the instruction itself.
    pub frames: Vec<Location>,
}

/// A thread, by its number in the trace, and the function of the program that it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    pub id: ThreadId,
    pub runs: Option<String>,
}

/// The same bug, as another analysis reported it: it is part of this finding and not shown apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Also {
    pub rule: String,
    pub id: FindingId,
    #[serde(deserialize_with = "title_or_words")]
    pub title: Title,
}

/// Older bundles have the words of a rule here.
fn title_or_words<'d, D: Deserializer<'d>>(input: D) -> Result<Title, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Words(String),
        Title(Title),
    }
    Ok(match Either::deserialize(input)? {
        Either::Words(words) => Title::Rule(words),
        Either::Title(title) => title,
    })
}

/// Short name of a finding: the same in every run, as long as rule and guilty line are.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FindingId(#[serde(deserialize_with = "plain_name")] pub String);

/// Bundles are folders of this name, and other machines send findings: it must not lead elsewhere.
fn plain_name<'d, D: Deserializer<'d>>(input: D) -> Result<String, D::Error> {
    let name = String::deserialize(input)?;
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Ok(name);
    }
    Err(D::Error::custom(format_args!("`{name}` is not the id of a finding")))
}

impl FindingId {
    /// FNV-1a over rule and location, folded to 32 bits: enough to tell the findings of one program apart.
    pub fn new(rule: &str, location: &Location) -> FindingId {
        FindingId::of(&format!("{rule} {}", location.key()))
    }

    /// Of two places, where one does not tell it from another finding.
    pub fn of_pair(rule: &str, location: &Location, other: &Location) -> FindingId {
        FindingId::of(&format!("{rule} {} {}", location.key(), other.key()))
    }

    fn of(text: &str) -> FindingId {
        let hash = text
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
        FindingId(format!("{:08x}", (hash >> 32) ^ (hash & 0xffff_ffff)))
    }
}

impl fmt::Display for FindingId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a finding says in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Title {
    /// The words of its rule.
    Rule(String),
    /// The program ends by a signal, or (none) not in its time, without any power failure.
    BreaksDown { signal: Option<i32> },
    /// Follows from what the power failure broke.
    Broken {
        promise: Box<BrokenPromise>,
        /// In the recovery from an earlier power failure.
        during_recovery: bool,
    },
}

/// One cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub id: FindingId,
    pub rule: String,
    pub class: Class,
    pub severity: Severity,
    pub title: Title,
    /// The guilty line first; then the library frame, then the other sides.
    pub locations: Vec<Location>,
    /// How often it happened.
    pub count: u64,
    /// Most frequent first.
    pub paths: Vec<CallPath>,
    /// Where in the trace it happened first.
    pub first: EventId,
    /// Whose event that was.
    #[serde(default)]
    pub thread: Option<Thread>,
    /// What other rules said of the same bug.
    #[serde(default)]
    pub also: Vec<Also>,
    /// What a simulated power failure showed; none of misuse.
    pub failure: Option<Box<CrashFailure>>,
    pub notes: Vec<Note>,
    /// The command that reproduces it.
    pub replay: Option<String>,
}

impl Finding {
    pub fn guilty(&self) -> &Location {
        &self.locations[0]
    }

    /// The ids that it is known by: its own first.
    pub fn ids(&self) -> impl Iterator<Item = &FindingId> {
        std::iter::once(&self.id).chain(self.also.iter().map(|also| &also.id))
    }
}
