//! The cases of a campaign on disk: `queue/` has their inputs, as AFL++ has them, and `cases.jsonl` what is known of each. What is on the
//! list is whole: a process may be killed at any moment.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::case::{Case, CaseId};
use crate::journal::{Journal, write_whole};

/// Bumped when an older program cannot go on with what a newer one wrote, or the other way round.
pub const VERSION: u32 = 2;

/// What a folder is a corpus of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    pub version: u32,
    pub command: Vec<String>,
    pub delivery: String,
    pub pools: Vec<PathBuf>,
    pub seed: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error(
        "{} was made by another version of Fencepost (its format is {found}, this one writes {VERSION}); take another --out, and \
         give its inputs as --seeds {}/queue", folder.display(), folder.display()
    )]
    Version { folder: PathBuf, found: u32 },
    #[error(
        "{} belongs to another campaign (`{found}`, not `{wanted}`); take another --out", folder.display()
    )]
    Other { folder: PathBuf, found: String, wanted: String },
    #[error("{} is not the folder of a campaign: it has no fuzz.json", folder.display())]
    None { folder: PathBuf },
}

fn advice(source: &io::Error) -> &'static str {
    match source.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => {
            "; the disk is full: what was found so far is safe, make room and run the same command again"
        }
        _ => "",
    }
}

pub fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CorpusError {
    move |source| CorpusError::Io { action, path: path.to_owned(), source }
}

#[derive(Debug)]
pub struct Corpus {
    folder: PathBuf,
    journal: Journal,
    cases: Vec<Case>,
    inputs: Vec<Arc<[u8]>>,
}

impl Corpus {
    /// What the folder is a corpus of, if it is one.
    pub fn about(folder: &Path) -> Result<About, CorpusError> {
        let path = folder.join("fuzz.json");
        let text = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(CorpusError::None { folder: folder.to_owned() });
            }
            read => read.map_err(failed("read", &path))?,
        };
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let damaged = |error: serde_json::Error| failed("understand", &path)(io::Error::other(error));
        let Versioned { version } = serde_json::from_slice(&text).map_err(damaged)?;
        if version != VERSION {
            return Err(CorpusError::Version { folder: folder.to_owned(), found: version });
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// Opens a folder, or makes it; what is there is gone on with.
    pub fn open(folder: &Path, about: &About) -> Result<Corpus, CorpusError> {
        let queue = folder.join("queue");
        fs::create_dir_all(&queue).map_err(failed("make", &queue))?;
        match Corpus::about(folder) {
            Ok(found) => {
                let same = |about: &About| (about.command.clone(), about.delivery.clone(), about.pools.clone());
                if same(&found) != same(about) {
                    let (found, wanted) = (found.command.join(" "), about.command.join(" "));
                    return Err(CorpusError::Other { folder: folder.to_owned(), found, wanted });
                }
            }
            Err(CorpusError::None { .. }) => {
                let path = folder.join("fuzz.json");
                let text = serde_json::to_vec_pretty(about).unwrap_or_default();
                write_whole(&path, &text).map_err(failed("write", &path))?;
            }
            Err(error) => return Err(error),
        }
        Corpus::load(folder)
    }

    /// What is in a folder.
    pub fn load(folder: &Path) -> Result<Corpus, CorpusError> {
        let list = folder.join("cases.jsonl");
        let (journal, cases) = Journal::open::<Case>(&list).map_err(failed("read", &list))?;
        if cases.iter().zip(0..).any(|(case, number)| case.id != CaseId(number)) {
            let damaged = io::Error::new(io::ErrorKind::InvalidData, "its cases are not numbered from 0 on");
            return Err(failed("read", &list)(damaged));
        }
        let read = |case: &Case| {
            let path = folder.join("queue").join(&case.file);
            Ok(Arc::from(fs::read(&path).map_err(failed("read", &path))?))
        };
        let inputs = cases.iter().map(read).collect::<Result<_, CorpusError>>()?;
        Ok(Corpus { folder: folder.to_owned(), journal, cases, inputs })
    }

    pub fn cases(&self) -> &[Case] {
        &self.cases
    }

    pub fn input(&self, id: CaseId) -> &Arc<[u8]> {
        &self.inputs[id.0 as usize]
    }

    pub fn get(&self, id: CaseId) -> Option<&Case> {
        self.cases.get(id.0 as usize)
    }

    /// Keeps a case; its id and file name are given to it here.
    pub fn add(&mut self, mut case: Case, input: &[u8]) -> Result<CaseId, CorpusError> {
        case.id = CaseId(self.cases.len() as u32);
        let from = case.parent.map_or_else(|| "orig:seed".to_owned(), |parent| format!("src:{parent}"));
        let priority = format!("{:?}", case.priority).to_lowercase();
        case.file = format!("id:{},{from},execs:{},pm:{priority}", case.id, case.execution);
        let path = self.folder.join("queue").join(&case.file);
        write_whole(&path, input).map_err(failed("write", &path))?;
        let list = self.folder.join("cases.jsonl");
        self.journal.add(&case).map_err(failed("write", &list))?;
        self.inputs.push(Arc::from(input));
        self.cases.push(case);
        Ok(CaseId(self.cases.len() as u32 - 1))
    }

    /// The inputs of the cases that made the starting pool of a case, the first one first, and its own.
    pub fn lineage(&self, id: CaseId, tree: &crate::tree::Tree) -> Vec<CaseId> {
        let (mut chain, mut at) = (vec![id], id);
        while let Some(node) = self.get(at).and_then(|case| tree.node(case.start)) {
            // A node's case is older than every case that begins with it.
            if node.case >= at {
                break;
            }
            at = node.case;
            chain.push(at);
        }
        chain.reverse();
        chain
    }
}

/// Inputs of a folder that somebody else made: files, also those of AFL++'s `queue/`; in the order of their names.
pub fn seeds(folder: &Path) -> Result<Vec<Vec<u8>>, CorpusError> {
    let inner = folder.join("queue");
    let folder = if inner.is_dir() { &inner } else { folder };
    let entries = fs::read_dir(folder).map_err(failed("read the seeds in", folder))?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).map_err(failed("read", path))).collect()
}
