//! Where the trace goes: under a temporary name until it is whole.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The name of a trace and the name that it has while it is written.
#[derive(Debug)]
pub(crate) struct TraceFile {
    wanted: PathBuf,
    partial: PathBuf,
}

impl TraceFile {
    pub fn new(wanted: &Path) -> TraceFile {
        // Devices and pipes are written to as they are; renaming over them would replace them.
        let special = fs::metadata(wanted).is_ok_and(|m| !m.is_file() && !m.is_dir());
        let partial = if special {
            wanted.to_owned()
        } else {
            let mut name = wanted.as_os_str().to_owned();
            name.push(".partial");
            PathBuf::from(name)
        };
        TraceFile { wanted: wanted.to_owned(), partial }
    }

    /// Where to write.
    pub fn partial(&self) -> &Path {
        &self.partial
    }

    /// The trace is whole: gives it its name.
    pub fn complete(&self) -> io::Result<()> {
        if self.partial == self.wanted { Ok(()) } else { fs::rename(&self.partial, &self.wanted) }
    }

    /// The recording failed: keeps what can be read, and says where it is.
    pub fn salvage(&self) -> Option<&Path> {
        if self.partial == self.wanted {
            return None;
        }
        let readable = trace::TraceReader::open(&self.partial)
            .and_then(|reader| reader.events().next().map(|event| event.is_some()))
            .unwrap_or(false);
        if readable {
            Some(&self.partial)
        } else {
            // Nothing in it: a file that nobody can use only confuses. If it cannot be removed it stays.
            let _ = fs::remove_file(&self.partial);
            None
        }
    }
}
