//! Checks a program: records it, looks for misuse, simulates power failures, runs its recovery, and names the stores to blame.
//!
//! [`run()`] is the whole of it, for programs that bring their own harness; a [`Request`] says what to run. [`search`] does the same for an
//! existing recording. Beneath, [`session`] ties a search together: analyse, explain, confirm, write bundles;
//! [`again`] crashes recoveries in turn.

pub mod again;
mod analysis_deadline;
pub mod checked;
pub mod code_path;
mod confirm;
pub mod elsewhere;
mod forgive;
mod further;
mod hint;
mod locked;
mod lost;
pub mod operations;
mod passes;
pub mod recording;
mod recovery_hints;
mod representatives;
pub mod request;
pub mod run;
pub mod search;
pub mod session;
pub mod settings;
mod stopping;
mod threads;
pub mod transient;

pub use request::Request;
pub use run::run;
