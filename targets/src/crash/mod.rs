//! The programs that a power failure breaks (`targets/crash/README.md`), and those that it breaks silently
//! (`targets/ops/README.md`): found, read and built.

mod function;
mod head;
mod marker;
mod target;

pub use function::Function;
pub use head::Bug;
pub use marker::{Class, Expectation};
pub use target::{CrashTarget, SETUP, SETUP_FUNCTIONS, TWIN, Variant, all, rare, with_operations};
