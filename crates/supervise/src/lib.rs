//! Starts processes and watches them: the recorded target, the fork server of recoveries, and recoveries that run natively.
//!
//! ```text
//!   host                                  supervisor                         the process and its children
//!   ────                                  ──────────                         ────────────────────────────
//!   Start + Surroundings ──► Supervised ──► first of its PID namespace: ────► the program itself (natively), or
//!     (native runs)             │           mounts, /proc, reaps, tells         the probe, which runs it translated
//!   probe::Launch ──────────────┤           how it ended; ends with the host            │
//!     (recording)               │                                                       │
//!   ForkServer ─────────────────┘◄──────── shared memory (`wire`): records, requests, reports ──┘
//!     (recoveries)
//! ```
//!
//! | to know | look at |
//! | --- | --- |
//! | what the process between host and program does | [`supervisor`] |
//! | how a host starts, waits for and ends a run | [`supervised`] |
//! | which namespaces a run gets, what is mounted in them | [`namespaces`], [`mounts`] |
//! | how a program comes under the probe | [`probe`] |
//! | how a recovery is asked to run again and again | [`fork_server`] |
//! | where temporary files lie, and who removes them | [`temporary`] |
//! | what a run may use, and what it uses | [`limits`], [`usage`] |
//! | how runs are ended from outside | [`cancel`] |
//!
//! Nothing here knows what a recording or a recovery is for. `record` and `recover` sit on it.

mod bare;
pub mod cancel;
pub mod fork_server;
mod lasting;
pub mod limits;
pub mod memory_file;
pub mod mounts;
pub mod namespaces;
mod page;
pub mod probe;
pub mod supervised;
pub mod supervisor;
pub mod target;
pub mod temporary;
pub mod usage;

pub use bare::{block_signals, set_signals};
