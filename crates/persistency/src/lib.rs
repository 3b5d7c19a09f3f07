//! Persistency models: track what a power failure can leave of every dirty line along a trace.
//!
//! ```text
//!   Event ──► Tracker ──► Applied         what this event did: a flush that wasted its time, a fence and
//!               │                         the stores that it made guaranteed
//!               └───────► CrashPoint      if power fails here: per dirty line the stores of which any prefix
//!                                         may be in PM; how many crash states; all of them, nearest first
//! ```
//!
//! A [`Model`](model::Model) says which events settle what; one file each: [`adr`], [`eadr`]. Everything
//! that all models share (lines, pending stores, what a thread still waits for) is [`domain`].
//! Plain Rust, no I/O; memory grows with the dirty lines, not with the trace (see [`Detail`](domain::Detail)).

pub mod adr;
pub mod content;
pub mod domain;
pub mod eadr;
pub mod effect;
pub mod files;
pub mod line;
pub mod model;
mod pending;
pub mod point;
mod range;
pub mod states;
mod threads;
pub mod tracker;
