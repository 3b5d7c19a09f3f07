//! Recovery in a virtual machine, which gets crash images and mounts them.

use std::fmt;

use recover::limits::Limits;
use recover::report::RunReport;
use supervise::cancel::Cancel;

/// No verdict could be had from a machine.
#[derive(Debug, thiserror::Error)]
pub enum MachineFailed {
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    /// The run was ended from outside.
    #[error("the run was cancelled")]
    Cancelled,
}

/// One machine, for one worker. It has one pool.
pub trait Machine: fmt::Debug + Send {
    /// The pool is all zero.
    fn clear(&mut self) -> Result<(), MachineFailed>;
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MachineFailed>;
    /// Recovers what is there. `pools_replaced` in the report: the pool has to be put there anew.
    fn run(&mut self, limits: &Limits, cancel: &Cancel) -> Result<RunReport, MachineFailed>;
}

/// Makes machines.
pub trait Machines: fmt::Debug + Send + Sync {
    fn machine(&self) -> Result<Box<dyn Machine>, MachineFailed>;
}
