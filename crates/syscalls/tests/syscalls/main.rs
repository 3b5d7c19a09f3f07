//! The table of system calls against the programs that try each.

mod lengths;
mod tried;
