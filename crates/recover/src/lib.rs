//! Recovery runs: a crash image is put where the program expects its pool, and the program's own recovery runs on it.
//!
//! ```text
//!   Command + Limits + slot ──► server   forks of a warm process under the probe, with what each read ──► RunReport
//!   Command + Limits + images ─► native   exec of the uninstrumented binary, isolated by namespaces    ──► RunReport
//! ```
//!
//! Both start and watch their processes through the crate `supervise`. Nothing here knows why an image was chosen, nor whether what recovery did was right.

pub mod command;
mod folders;
mod leftovers;
pub mod native;
pub mod pages;
pub mod place;
pub mod report;
mod scratch;
pub mod server;
pub mod slot;
pub mod space;

pub use supervise::limits;
