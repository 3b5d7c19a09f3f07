//! Facts about x86-64 instructions: how long they are and what the engine must do with them ([`scan`]), and what
//! they do to persistent memory ([`effect`]).
#![no_std]

pub mod effect;
pub mod scan;
