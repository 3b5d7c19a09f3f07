//! What both ends of the wire compute, against slow references.

mod flow;
mod virtual_time;
