//! Native runs: the uninstrumented binary runs on private pool content that lies at the pool's usual path.
//!
//! ```text
//!   Native ─► Session: pools are put in place by one of   overlay   the pool's directory, privately
//!                │                                        bind      only the pool's file, privately
//!                │                                        swap      the pool's file, for everybody, and put back
//!                ▼ run(command)
//!   supervise ─► supervisor (first of its PID namespace) ─► recovery and whatever it starts
//!     └─ watch: wall time, CPU, memory, processes, output ─► the whole tree ends ─► RunReport
//! ```
//!
//! What it can miss: a descendant that died by a signal and was waited for by its own parent shows only as that parent
//! shows it (a shell's 139); files that recovery writes outside the pools' directories are written for good.

mod bind;
mod error;
mod isolation;
mod kernel_limits;
mod keys;
mod outcome;
mod overlay;
mod placement;
mod session;
mod streams;
mod swap;
mod watch;
mod watchdog;

pub use error::NativeError;
pub use isolation::{Isolation, Method};
pub use placement::PoolFile;
pub use session::{Native, Session};
pub use supervise::namespaces::Namespaces;
pub use swap::repair;
