//! Facts about x86-64 instructions: their length and what the engine must do with them ([`scan`]), their effect on
//! persistent memory ([`effect`]), and what flow mode logs of them ([`flow`]).
#![no_std]

extern crate alloc;

pub mod effect;
pub mod flow;
pub mod scan;
