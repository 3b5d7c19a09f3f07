//! Files whose content at the end is not what the recorded changes made of them: another process changed them, or the target did in a way
//! that is not recorded (a writable mapping that is no pool, `FICLONE`).
//!
//! How such a file was at a crash point is not known. A search shows it as it is now, from its creation on: as the whole run left it.

use std::fs::File;
use std::sync::OnceLock;

use crate::error::ReadError;
use crate::event::{EventKind, FileId};
use crate::file_tree::{FileTree, FileTreeEntry, FoundName};
use crate::image::PoolImage;
use crate::pages::read_image;
use crate::reader::TraceReader;

/// A file that the trace does not explain.
#[derive(Clone, Debug)]
pub struct UnexplainedFile {
    /// Its name at the end.
    pub path: String,
    pub file: FileId,
    /// What it holds now; none if it cannot be read any more.
    now: Option<PoolImage>,
}

/// What a reader has found out.
#[derive(Debug, Default)]
pub(crate) struct Unexplained {
    files: OnceLock<Vec<UnexplainedFile>>,
}

impl TraceReader {
    /// The files that the trace does not explain. Replays the changes of files once, if there are any beside those of pools.
    pub fn unexplained_files(&self) -> Result<&[UnexplainedFile], ReadError> {
        let known = &self.unexplained().files;
        if let Some(files) = known.get() {
            return Ok(files);
        }
        let found = find(self)?;
        Ok(known.get_or_init(|| found))
    }

    /// As [`initial_files`](Self::initial_files), for a search: what is not explained stays as the whole run left it.
    pub fn files_to_restore(&self) -> Result<FileTree, ReadError> {
        let mut tree = self.initial_files()?;
        for UnexplainedFile { file, now, .. } in self.unexplained_files()? {
            if let Some(now) = now {
                tree.leave(*file, now.clone());
            }
        }
        Ok(tree)
    }
}

fn content(found: &FoundName) -> Option<u128> {
    match found {
        FoundName::Regular { content, .. } => *content,
        _ => None,
    }
}

fn find(reader: &TraceReader) -> Result<Vec<UnexplainedFile>, ReadError> {
    let finals = reader.final_names();
    if !reader.is_complete() || finals.iter().all(|(_, found)| content(found).is_none()) {
        return Ok(Vec::new());
    }
    let mut tree = reader.initial_files()?;
    let mut events = reader.events();
    while let Some(event) = events.next()? {
        if let EventKind::File(change) = &event.kind {
            // One that cannot be replayed is found where it is used.
            let _ = tree.apply(change, reader.tables());
        }
    }
    let mut found: Vec<UnexplainedFile> = Vec::new();
    for (path, recorded) in finals {
        let Some(FileTreeEntry::File(file)) = tree.find(path) else { continue };
        let differs = match (content(&tree.found(path)), content(recorded)) {
            (Some(replayed), Some(recorded)) => replayed != recorded,
            _ => false,
        };
        if differs && found.iter().all(|other| other.file != *file) {
            let now = File::open(path).and_then(|mut file| read_image(&mut file)).ok();
            found.push(UnexplainedFile { path: path.clone(), file: *file, now });
        }
    }
    Ok(found)
}
