//! The journal of a search: a file of lines of JSON, one per finished point, so that a search that was stopped, or killed,
//! goes on where it was, and several searches can be put together.
//!
//! The first line says of which trace and with which options; a journal of others is refused. A last line that is
//! cut off is what a kill leaves: it is dropped.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use trace::TraceReader;

use crate::outcome::PointOutcome;
use crate::search::SearchOptions;

/// Changes with the meaning of what is written.
const VERSION: u32 = 3;

#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    #[error("cannot read or write the journal {}: {source}", .path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} is not a journal of a search: {what}; give another file", .path.display())]
    NotAJournal { path: PathBuf, what: String },
    #[error("the journal {} belongs to another trace; delete it, or give another file, to search this one", .path.display())]
    OtherTrace { path: PathBuf },
    #[error("the journal {} was written with other options (its {what} differ); use them again, or give another file", .path.display())]
    OtherOptions { path: PathBuf, what: String },
    #[error("line {line} of the journal {} makes no sense ({what}); delete the file to start anew", .path.display())]
    Damaged { path: PathBuf, line: usize, what: String },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    fencepost_journal: u32,
    /// The trace's fingerprint in hexadecimal.
    trace: String,
    options: SearchOptions,
}

/// An open journal.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: Mutex<File>,
    known: Vec<PointOutcome>,
}

impl Journal {
    /// Opens a journal to go on with it, or begins one.
    pub fn open(path: &Path, reader: &TraceReader, options: &SearchOptions) -> Result<Journal, JournalError> {
        let failed = |source| JournalError::Io { path: path.to_owned(), source };
        let mut file =
            File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(failed)?;
        let own = Header::of(reader, options);
        let (known, good) = read(path, &file, &own)?;
        // What comes next must not be appended to half a line.
        file.set_len(good).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if good == 0 {
            file.write_all(&line_of(&own)).map_err(failed)?;
        }
        Ok(Journal { path: path.to_owned(), file: Mutex::new(file), known })
    }

    /// What earlier searches have found out.
    pub fn outcomes(&self) -> Vec<PointOutcome> {
        self.known.clone()
    }

    pub(crate) fn add(&self, outcome: &PointOutcome) -> Result<(), JournalError> {
        // One write per line: a kill in between leaves whole lines and at most one that is cut.
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&line_of(outcome)).map_err(|source| JournalError::Io { path: self.path.clone(), source })
    }

    /// The outcomes in the journals of several searches, not yet [merged](crate::outcome::merge).
    pub fn read_all(
        paths: &[PathBuf],
        reader: &TraceReader,
        options: &SearchOptions,
    ) -> Result<Vec<PointOutcome>, JournalError> {
        let own = Header::of(reader, options);
        let mut all = Vec::new();
        for path in paths {
            let file = File::open(path).map_err(|source| JournalError::Io { path: path.clone(), source })?;
            all.extend(read(path, &file, &own)?.0);
        }
        Ok(all)
    }
}

impl Header {
    fn of(reader: &TraceReader, options: &SearchOptions) -> Header {
        let trace = format!("{:032x}", reader.fingerprint());
        Header { fencepost_journal: VERSION, trace, options: options.clone() }
    }

    fn check(&self, path: &Path, own: &Header) -> Result<(), JournalError> {
        let path = path.to_owned();
        let other = |what: &str| Err(JournalError::OtherOptions { path: path.clone(), what: what.to_owned() });
        let (theirs, ours) = (&self.options, &own.options);
        if self.fencepost_journal != VERSION {
            let what = format!("its version is {}, not {VERSION}", self.fencepost_journal);
            return Err(JournalError::NotAJournal { path, what });
        }
        if self.trace != own.trace {
            return Err(JournalError::OtherTrace { path });
        }
        if theirs.rules != ours.rules {
            return other("model or fences");
        }
        if theirs.selection != ours.selection {
            return other("crash points");
        }
        if theirs.strategies != ours.strategies {
            return other("strategies");
        }
        if theirs.recovery != ours.recovery {
            return other("recovery or oracles");
        }
        if theirs != ours { other("settings") } else { Ok(()) }
    }
}

fn line_of(value: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(value).expect("plain data has a form in JSON");
    line.push(b'\n');
    line
}

/// The outcomes, and how many bytes of the file are whole lines.
fn read(path: &Path, file: &File, own: &Header) -> Result<(Vec<PointOutcome>, u64), JournalError> {
    let mut input = BufReader::new(file);
    let (mut outcomes, mut good, mut number) = (Vec::new(), 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let len =
            input.read_until(b'\n', &mut line).map_err(|source| JournalError::Io { path: path.to_owned(), source })?;
        if line.last() != Some(&b'\n') {
            // The end, or what a kill has left of a line. Something that is no journal at all is not to be cut.
            if number == 0 && !line_of(own).starts_with(&line) {
                let what = "it has other content".to_owned();
                return Err(JournalError::NotAJournal { path: path.to_owned(), what });
            }
            return Ok((outcomes, good));
        }
        number += 1;
        if number == 1 {
            let header: Header = serde_json::from_slice(&line)
                .map_err(|error| JournalError::NotAJournal { path: path.to_owned(), what: error.to_string() })?;
            header.check(path, own)?;
        } else {
            outcomes.push(serde_json::from_slice(&line).map_err(|error| JournalError::Damaged {
                path: path.to_owned(),
                line: number,
                what: error.to_string(),
            })?);
        }
        good += len as u64;
    }
}
