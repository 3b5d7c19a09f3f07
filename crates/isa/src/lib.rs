//! Facts about x86-64 instructions: how long they are and what the engine must do with them ([`scan`]).
#![no_std]

pub mod scan;
