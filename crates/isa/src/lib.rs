//! Facts about x86-64 instructions: how long they are and what the engine must do with them ([`scan`]), and what
//! they do to persistent memory ([`effect`]), and what is logged of them to follow the flow of data ([`flow`]).
#![no_std]

extern crate alloc;

pub mod effect;
pub mod flow;
pub mod scan;
