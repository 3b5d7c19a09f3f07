//! The decoder and its tables against other decoders, manuals and real code.

#[path = "../corpus/mod.rs"]
mod corpus;
#[path = "../judge/mod.rs"]
mod judge;

mod effect_examples;
mod effects;
mod flow;
mod opcode_maps;
mod random_bytes;
mod real_code;
