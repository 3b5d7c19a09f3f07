//! A finding on disk: the crash image and all that is needed to run recovery on it again.
//!
//! ```text
//!   .fencepost/1a2b3c4d/finding.json   commands, environment, limits, what recovery is expected to do
//!                       evidence.json    what a report shows of it (see `evidence`)
//!                       pool-0          the crash image of the first pool (sparse)
//!                       file-0          a file beside the pools, as the crash left it
//! ```

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crash::image::CrashImage;
use finding::finding::{Finding, FindingId};
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::slot::RecordedNames;
use recover::space;
use runner::image_file::write_image;
use serde::{Deserialize, Serialize};
use trace::event::PoolId;

use crate::bundled::{self, BundledName};

/// Where bundles go unless the user says otherwise, in the current directory.
pub const FOLDER: &str = ".fencepost";
const DESCRIPTION: &str = "finding.json";
const VERSION: u32 = 2;

#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("cannot write the bundle {}: {source}; free some space or give another folder with --bundles", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("there is no finding `{id}` in {}; `fencepost check` writes them, and its report names them", folder.display())]
    Missing { id: String, folder: PathBuf },
    #[error("the bundle {} cannot be read: {what}; run the check again", path.display())]
    Damaged { path: PathBuf, what: String },
}

/// Takes the bundle of a finding from one folder to another, in place of the one that may be there.
pub fn take(id: &FindingId, from: &Path, to: &Path) -> Result<(), BundleError> {
    let (from, to) = (from.join(&id.0), to.join(&id.0));
    replace(&from, &to).map_err(|source| BundleError::Write { path: to, source })
}

fn replace(from: &Path, to: &Path) -> io::Result<()> {
    match fs::remove_dir_all(to) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => fs::create_dir_all(to)?,
    }
    // Only on one file system.
    if fs::rename(from, to).is_ok() {
        return Ok(());
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    fs::remove_dir_all(from)
}

/// A command as bytes, since file names need not be text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Words {
    program: Vec<u8>,
    args: Vec<Vec<u8>>,
    env: Vec<(Vec<u8>, Vec<u8>)>,
    dir: Vec<u8>,
    stdin: Vec<u8>,
    /// For people; the bytes above count.
    shown: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PoolImage {
    path: Vec<u8>,
    shown: String,
    file: String,
}

#[derive(Deserialize)]
struct Version {
    fencepost_bundle: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Description {
    fencepost_bundle: u32,
    finding: Finding,
    recovery: Words,
    checker: Option<Words>,
    exit_codes: Vec<i32>,
    patterns: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    answers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    case: Option<String>,
    wall_ms: u64,
    cpu_ms: u64,
    memory: u64,
    output: u64,
    processes: u32,
    pools: Vec<PoolImage>,
    /// Folders whose files recovery finds as they were, beside those of the pools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    folders: Vec<Vec<u8>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    files: Vec<BundledName>,
}

/// How to judge a replay, as the user could say it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// Exit codes that mean success; empty: the default.
    pub exit_codes: Vec<i32>,
    pub patterns: Vec<String>,
    /// What may be answered to the operations on the standard input; empty: anything.
    pub answers: Vec<Vec<u8>>,
    /// Of a file system: what its judge must know of the crash.
    pub case: Option<String>,
}

/// A finding that was read back.
#[derive(Clone, Debug)]
pub struct Bundle {
    pub folder: PathBuf,
    pub finding: Finding,
    pub recovery: Command,
    pub checker: Option<Command>,
    pub expectation: Expectation,
    pub limits: Limits,
    /// The path of each pool, and the file that has its crash image.
    pub pools: Vec<(PathBuf, PathBuf)>,
    pub folders: Vec<PathBuf>,
    /// What the crash left beside the pools.
    pub files: Vec<BundledName>,
}

/// What goes into a bundle beside the finding.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    pub finding: &'a Finding,
    pub recovery: &'a Command,
    pub checker: Option<&'a Command>,
    pub expectation: &'a Expectation,
    pub limits: &'a Limits,
    pub pools: &'a [PathBuf],
    /// Names that the recording tells of, and folders whose files recovery finds as they were.
    pub files: RecordedNames<'a>,
}

impl Contents<'_> {
    /// Writes the bundle, over an older one of the same finding.
    pub fn write(&self, folder: &Path, image: &CrashImage<'_>) -> Result<PathBuf, BundleError> {
        let place = folder.join(&self.finding.id.0);
        let failed = |source| BundleError::Write { path: place.clone(), source };
        fs::create_dir_all(&place).map_err(failed)?;
        let mut pools = Vec::new();
        for (number, path) in self.pools.iter().enumerate() {
            let file = format!("pool-{number}");
            write_image(&place.join(&file), image, PoolId(number as u32)).map_err(failed)?;
            pools.push(PoolImage {
                path: path.as_os_str().as_bytes().to_vec(),
                shown: path.display().to_string(),
                file,
            });
        }
        let roots = roots(self.pools.iter().filter_map(|pool| pool.parent()).map(Path::to_owned), self.files);
        let files = bundled::write(&place, image.guaranteed().files(), &roots, self.files.names).map_err(failed)?;
        let description = Description {
            fencepost_bundle: VERSION,
            finding: self.finding.clone(),
            recovery: words(self.recovery),
            checker: self.checker.map(words),
            exit_codes: self.expectation.exit_codes.clone(),
            patterns: self.expectation.patterns.clone(),
            answers: self.expectation.answers.iter().map(|answers| to_text(answers)).collect(),
            case: self.expectation.case.clone(),
            wall_ms: self.limits.wall.as_millis() as u64,
            cpu_ms: self.limits.cpu.as_millis() as u64,
            memory: self.limits.memory,
            output: self.limits.output,
            processes: self.limits.processes,
            pools,
            folders: self.files.folders.iter().map(|folder| folder.as_os_str().as_bytes().to_vec()).collect(),
            files,
        };
        let text = serde_json::to_vec_pretty(&description).expect("plain data is always JSON");
        fs::write(place.join(DESCRIPTION), text).map_err(failed)?;
        Ok(place)
    }
}

impl Bundle {
    /// Reads the finding with this id, or the only one whose id begins so.
    pub fn read(folder: &Path, id: &str) -> Result<Bundle, BundleError> {
        let missing = || BundleError::Missing { id: id.to_owned(), folder: folder.to_owned() };
        let entries = fs::read_dir(folder).map_err(|_| missing())?;
        let named = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut matching: Vec<String> = named.filter(|name| !id.is_empty() && name.starts_with(id)).collect();
        matching.sort();
        let name = match &matching[..] {
            [only] => only,
            several => several.iter().find(|name| *name == id).ok_or_else(missing)?,
        };
        let place = folder.join(name);
        let damaged = |what: String| BundleError::Damaged { path: place.clone(), what };
        let text = fs::read(place.join(DESCRIPTION)).map_err(|error| damaged(error.to_string()))?;
        // Other versions have other fields.
        let Version { fencepost_bundle } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if fencepost_bundle != VERSION {
            return Err(damaged(format!("it is of version {fencepost_bundle}, not {VERSION}")));
        }
        let read: Description = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        Ok(Bundle {
            finding: read.finding,
            recovery: command(read.recovery),
            checker: read.checker.map(command),
            expectation: Expectation {
                exit_codes: read.exit_codes,
                patterns: read.patterns,
                answers: read.answers.iter().map(|text| from_text(text)).collect(),
                case: read.case,
            },
            limits: Limits {
                wall: Duration::from_millis(read.wall_ms),
                cpu: Duration::from_millis(read.cpu_ms),
                memory: read.memory,
                output: read.output,
                processes: read.processes,
            },
            pools: read
                .pools
                .into_iter()
                .map(|pool| (PathBuf::from(OsString::from_vec(pool.path)), place.join(pool.file)))
                .collect(),
            folders: read.folders.into_iter().map(|folder| OsString::from_vec(folder).into()).collect(),
            files: read.files,
            folder: place.clone(),
        })
    }
}

fn roots(of_pools: impl Iterator<Item = PathBuf>, files: RecordedNames<'_>) -> Vec<PathBuf> {
    space::roots(of_pools.chain(files.folders.iter().cloned()), files.names)
}

fn words(command: &Command) -> Words {
    let shown: Vec<String> = std::iter::once(command.program.display().to_string())
        .chain(command.args.iter().map(|arg| arg.to_string_lossy().into_owned()))
        .collect();
    Words {
        program: command.program.as_os_str().as_bytes().to_vec(),
        args: command.args.iter().map(|arg| arg.as_bytes().to_vec()).collect(),
        env: command.env.iter().map(|(n, v)| (n.as_bytes().to_vec(), v.as_bytes().to_vec())).collect(),
        dir: command.dir.as_os_str().as_bytes().to_vec(),
        stdin: match &command.stdin {
            Input::Empty => Vec::new(),
            Input::Bytes(bytes) => bytes.clone(),
            Input::Operations(operations) => operations.bytes(),
            Input::File(path) => fs::read(path).unwrap_or_default(),
        },
        shown: shown.join(" "),
    }
}

fn command(words: Words) -> Command {
    let text = OsString::from_vec;
    Command {
        program: text(words.program).into(),
        args: words.args.into_iter().map(text).collect(),
        env: words.env.into_iter().map(|(name, value)| (text(name), text(value))).collect(),
        dir: text(words.dir).into(),
        stdin: if words.stdin.is_empty() { Input::Empty } else { Input::Bytes(words.stdin) },
    }
}

/// Answers as text that people can read: what is not ASCII is escaped as in a Rust byte string.
fn to_text(bytes: &[u8]) -> String {
    let escaped = |&byte: &u8| match byte {
        b'\\' => "\\\\".into(),
        b'\n' | b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    bytes.iter().map(escaped).collect()
}

fn from_text(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let digits = || u8::from_str_radix(str::from_utf8(tail.get(1..3)?).ok()?, 16).ok();
        (bytes, rest) = match (first, tail.first()) {
            (b'\\', Some(b'\\')) => (push(bytes, b'\\'), &tail[1..]),
            (b'\\', Some(b'x')) => match digits() {
                Some(byte) => (push(bytes, byte), &tail[3..]),
                None => (push(bytes, *first), tail),
            },
            _ => (push(bytes, *first), tail),
        };
    }
    bytes
}

fn push(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_as_text() {
        let bytes: Vec<u8> = (0..=255).chain(*b"\\x41 \\\\ ok\n").collect();
        assert_eq!(from_text(&to_text(&bytes)), bytes);
    }

    #[test]
    fn a_bundle_takes_the_place_of_another() {
        let place = tempfile::tempdir().unwrap();
        let (id, [from, to]) = (FindingId("4633296f".into()), ["new", "kept"].map(|name| place.path().join(name)));
        let put = |folder: &Path, name: &str| {
            fs::create_dir_all(folder.join(&id.0)).unwrap();
            fs::write(folder.join(&id.0).join(name), name).unwrap();
        };
        let names = |folder: &Path| {
            let entries = fs::read_dir(folder).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        put(&to, "pool-7");
        put(&from, "pool-0");
        take(&id, &from, &to).unwrap();
        assert_eq!((names(&to.join(&id.0)), names(&from)), (vec!["pool-0".to_owned()], Vec::new()));
        assert!(matches!(take(&id, &from, &to), Err(BundleError::Write { .. })), "there is none to take");
    }
}
