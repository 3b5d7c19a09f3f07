//! A block: up to 65,535 events, encoded by column and compressed as one piece.
//!
//! * Its head, the *directory*, lists the shapes that occur with their number of rows, the threads and the operation
//!   boundaries: enough to index and count without touching the events.
//! * The order of shapes is coded by prediction from the shapes before (`sequence`).
//! * The words of all rows of one shape form columns; each column is predicted from something near it
//!   (`column`), and what is left is stored as planes of bytes.
//!
//! Every block can be decoded on its own, given the table of shapes.

pub(crate) mod column;
pub(crate) mod decode;
pub(crate) mod decoded;
pub(crate) mod directory;
pub(crate) mod encode;
pub(crate) mod pending;
pub(crate) mod sequence;
