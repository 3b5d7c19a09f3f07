//! A helper that finds inputs where mutation is stuck: a solver. The campaign asks once nothing new came for a while; what it gets is run
//! like any mutant, so that a wrong suggestion costs an execution.

use std::sync::Arc;

use crate::case::CaseId;
use crate::execute::Subject;
use crate::image::Image;

/// Executions without news before the helper is asked; more if it knew nothing.
pub const WAIT: u64 = 192;
/// The longest wait.
pub const LONGEST_WAIT: u64 = 1 << 17;

/// Asked by one worker at a time.
pub trait Helper: Send {
    /// Inputs that may have news.
    fn help(&mut self, asked: &Asked<'_>) -> Vec<Suggested>;

    /// Why it could not help, the first time.
    fn trouble(&self) -> Option<String>;
}

/// What a helper gets.
pub struct Asked<'a> {
    pub subject: &'a Subject,
    /// A case that it has not seen; none: all are known to it.
    pub case: Option<Known>,
    /// It shall return soon if this is false.
    pub go_on: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("case", &self.case).finish_non_exhaustive()
    }
}

/// A case, with what it needs to run.
#[derive(Clone, Debug)]
pub struct Known {
    pub id: CaseId,
    pub input: Arc<[u8]>,
    pub start: Arc<Image>,
}

/// An input, and the pool to run it on.
#[derive(Clone, Debug)]
pub struct Suggested {
    pub parent: CaseId,
    pub input: Vec<u8>,
    pub start: Arc<Image>,
}
