//! Tests of the trace file through the crate's public face.

mod called;
mod damage;
mod round_trip;
mod support;
mod symbols;
mod verify;
