//! The trace file: what a recording consists of, how it is written, read, indexed and symbolised.
//! The only place that knows the file format; knows nothing of how a trace was recorded.
//!
//! [`TraceWriter`] and [`TraceReader`] are the two ends; [`stat`], [`verify`] and [`dump`] answer the questions
//! that need no analysis. The layout of the file is described in `format.rs`.

mod block;
mod bytes;
mod content;
mod cursor;
mod definitions;
mod dump;
mod error;
pub mod event;
mod file_event;
mod file_tree;
mod format;
#[doc(hidden)]
pub mod fuzzing;
mod image;
mod near;
mod numbered;
mod page_tree;
mod pages;
mod reader;
mod scan;
mod shape;
mod sink;
mod stat;
pub mod symbol;
mod tables;
mod unexplained;
mod verify;
mod writer;

pub use content::PoolContent;
pub use cursor::Events;
pub use dump::{DumpError, DumpOptions, Which, dump};
pub use error::{ReadError, WriteError};
pub use event::*;
pub use file_tree::{Attributes, FileContent, FileState, FileTree, FileTreeEntry, FoundName};
pub use image::{OutOfRange, PoolImage, replay};
pub use near::NearEvents;
pub use pages::read_image;
pub use reader::{Ending, TraceReader};
pub use stat::{Stat, stat, stat_of};
pub use tables::{
    CodeModule, ContextNode, FileInfo, FileKind, Meta, ModuleKind, Note, Outcome, Pool, PoolInfo, Severity, Summary,
    Tables,
};
pub use unexplained::UnexplainedFile;
pub use verify::{NameVerdict, PoolVerdict, VerifyReport, verify};
pub use writer::TraceWriter;
