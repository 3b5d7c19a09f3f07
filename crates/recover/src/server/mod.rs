//! The fork server: the recovery command waits in a process under the probe at its first use of a pool, and every run is a
//! fork of that process. What a run read of the pools comes with its report.

mod attendant;
mod output;
mod private;
mod reference;
mod report;
mod run;
mod stop;
mod watch;

pub use reference::{ReferenceRun, ReferenceStep};
pub use run::{Server, ServerError};
pub use stop::Arrival;
