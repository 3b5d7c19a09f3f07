//! Tests file systems: workloads of system calls, the trees that they leave, and what must hold after a crash.
//!
//! ```text
//!   ace, generate ──► workload ──► execute ──► answers        op: one system call per line
//!                                     │
//!                        walk: the whole tree as data (tree, content)
//!                                     │   before and after each operation, and after the crash
//!                                     ▼
//!                                  oracle ──► which promise broke
//! ```
//! Source: Chipmunk (EuroSys 2023), §3 and §4. This crate does not know how a file system is recorded or crashed: the same code runs
//! beside a FUSE daemon and inside a virtual machine. It makes plain system calls and needs no other process.

pub mod ace;
pub mod agent;
pub mod campaign;
pub mod content;
mod data_synced;
pub mod errno;
pub mod execute;
pub mod generate;
pub mod needs;
pub mod op;
pub mod oracle;
mod parse;
pub mod promise;
pub mod split;
pub mod sys;
pub mod tree;
pub mod usable;
pub mod walk;
pub mod workload;
