//! Recorders on small programs, and a recording as a library call.

#[path = "../step_support/mod.rs"]
mod step_support;

mod flow;
mod probe_host;
mod request;
mod step_instructions;
mod step_processes;
mod timers;
mod translated_code;
