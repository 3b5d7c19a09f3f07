//! Recovery outside of any process of ours: a virtual machine that is given images and mounts them.

use std::fmt;

use recover::limits::Limits;
use recover::report::RunReport;

/// No verdict could be had from a machine.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct MachineFailed(pub Box<dyn std::error::Error + Send + Sync>);

/// One machine, for one worker. It has one pool.
pub trait Machine: fmt::Debug + Send {
    /// The pool is all zero.
    fn clear(&mut self) -> Result<(), MachineFailed>;
    fn put(&mut self, offset: u64, bytes: &[u8]) -> Result<(), MachineFailed>;
    /// Recovers what is there. `pools_replaced` in the report: the pool has to be put there anew.
    fn run(&mut self, limits: &Limits) -> Result<RunReport, MachineFailed>;
}

/// Makes machines.
pub trait Machines: fmt::Debug + Send + Sync {
    fn machine(&self) -> Result<Box<dyn Machine>, MachineFailed>;
}
