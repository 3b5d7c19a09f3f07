//! The trace file: what a recording consists of, how it is written, read, indexed and symbolised.
//! The only place that knows the file format; knows nothing of how a trace was recorded.

pub mod event;
