//! The program's tasks: how threads and processes start, change their image and end.

mod check;
mod clone;
mod exec;
mod exit;
mod number;
mod request;
mod started;
mod table;
mod wait;

pub use clone::become_run;
pub use table::syscall;
