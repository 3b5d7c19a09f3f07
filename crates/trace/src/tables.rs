//! What events refer to by number: modules, contexts, pools, watches; and what a recording says about itself.

use std::collections::BTreeMap;

use crate::event::{CodeAddr, ContextId, EventId, ExitStatus, FileId, ModuleId, PathId, PoolId, WatchId};

/// How the recording was made. Holds nothing that differs between two equal recordings (no time, no pids).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meta {
    pub command: Vec<String>,
    /// Working directory of the command; empty if the recorder does not tell.
    pub cwd: String,
    /// "probe" or "step".
    pub recorder: String,
    /// Options that influence the recording, as the user could give them again.
    pub options: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ModuleKind {
    /// An ELF file.
    #[default]
    Elf,
    /// The kernel's vDSO.
    Vdso,
    /// Code that no file holds (a JIT's); addresses are those the program saw.
    Anonymous,
    /// Not code at all: the place of events that have no instruction.
    None,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CodeModule {
    pub path: String,
    pub build_id: Option<Vec<u8>>,
    pub kind: ModuleKind,
}

impl CodeModule {
    /// Module 0 of every trace, so that `CodeAddr::default()` is valid for events that have no instruction.
    pub(crate) fn none() -> CodeModule {
        CodeModule { path: String::new(), build_id: None, kind: ModuleKind::None }
    }
}

/// One call path: its innermost call, and the path that led there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct ContextNode {
    pub parent: ContextId,
    pub return_to: CodeAddr,
    /// The frames above are unknown.
    pub partial: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolInfo {
    pub path: String,
    pub len: u64,
}

/// A pool as the trace holds it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    pub info: PoolInfo,
    /// Number of 4 KiB pages of its initial content that are stored because they are not zero.
    pub initial_pages: u64,
}

/// A name that was there before the recording, and what was behind it before the target changed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileInfo {
    pub path: String,
    pub kind: FileKind,
    /// The permission bits.
    pub mode: u32,
    pub xattrs: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// `pool`: it became this pool without a change before; the pool has its content.
    Regular {
        file: FileId,
        len: u64,
        pool: Option<PoolId>,
    },
    Directory,
    Symlink {
        target: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    Note,
    Warning,
    Fatal,
}

/// A message of the recorder to whoever reads the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub severity: Severity,
    pub text: String,
}

/// How the recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The first target process ended so.
    Ended(ExitStatus),
    /// The user stopped the recording.
    Interrupted,
    /// The recorder could not go on.
    Failed,
}

/// What `TraceWriter::finish` has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    pub events: EventId,
    pub pools: u32,
    pub bytes: u64,
}

/// Everything that events refer to by number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub meta: Meta,
    pub modules: Vec<CodeModule>,
    pub contexts: Vec<ContextNode>,
    pub pools: Vec<Pool>,
    pub watches: Vec<String>,
    /// Every path that a change of files names.
    pub paths: Vec<String>,
    /// What was there before.
    pub files: Vec<FileInfo>,
    pub notes: Vec<Note>,
    /// Names of the PM instruction kinds that the recorder met, sorted.
    pub instructions_seen: Vec<String>,
}

impl Tables {
    pub fn module(&self, id: ModuleId) -> &CodeModule {
        &self.modules[id.0 as usize]
    }

    pub fn context(&self, id: ContextId) -> &ContextNode {
        &self.contexts[id.0 as usize]
    }

    pub fn pool(&self, id: PoolId) -> &Pool {
        &self.pools[id.0 as usize]
    }

    pub fn watch(&self, id: WatchId) -> &str {
        &self.watches[id.0 as usize]
    }

    pub fn path(&self, id: PathId) -> &str {
        self.paths.get(id.0 as usize).map(String::as_str).unwrap_or_default()
    }

    /// Return addresses of a call path, innermost call first.
    pub fn call_path(&self, id: ContextId) -> impl Iterator<Item = CodeAddr> + '_ {
        let mut at = id;
        std::iter::from_fn(move || {
            if at == ContextId(0) {
                return None;
            }
            let node = self.context(at);
            at = node.parent;
            Some(node.return_to)
        })
    }
}
