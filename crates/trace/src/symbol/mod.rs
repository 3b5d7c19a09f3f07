//! From code addresses to functions and source lines, inlined ones included.
//!
//! Debug information is looked for in the module's own file, then by build id, then by `.gnu_debuglink`
//! (`debug_file`); without any, symbol tables give the function's name, and for inner
//! functions of stripped libraries the call that led there does (`called`). A file that is no longer the one that was
//! recorded (its build id differs) is never used: a wrong name is worse than none.

mod called;
mod code;
mod crc;
mod debug_file;
mod named;
mod symbolizer;

pub use debug_file::SymbolProblem;
pub use named::is_named;
pub use symbolizer::{SourceFrame, SourceLine, Symbolizer};
