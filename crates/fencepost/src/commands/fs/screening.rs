//! Runs random workloads without a crash first: an operation that already fails there is removed, with one warning.

use std::collections::BTreeSet;

use fs::workload::FsWorkload;
use fuse::screen::{LeftOut, Screen};

use super::check::Failed;
use crate::render;

/// What was taken out so far.
#[derive(Debug)]
pub struct Screening {
    screen: Option<Screen>,
    /// Kinds of operations that the user knows of.
    told: BTreeSet<&'static str>,
    operations: usize,
    workloads: usize,
}

impl Screening {
    /// Without a screen, workloads stay as they are.
    pub fn new(screen: Option<Screen>) -> Screening {
        Screening { screen, told: BTreeSet::new(), operations: 0, workloads: 0 }
    }

    /// What is left of these.
    pub fn screened(&mut self, workloads: Vec<FsWorkload>) -> Result<Vec<FsWorkload>, Failed> {
        let Some(screen) = &self.screen else { return Ok(workloads) };
        let all = screen.all(workloads).map_err(|error| Failed::Usage(error.to_string()))?;
        let mut kept = Vec::new();
        for screened in all {
            self.operations += screened.left_out.len();
            self.workloads += usize::from(!screened.left_out.is_empty());
            for LeftOut { op, why } in &screened.left_out {
                if self.told.insert(op.kind()) {
                    render::warning(format_args!("`{op}` is left out of a random workload: {why}"));
                }
            }
            kept.extend(screened.workload);
        }
        Ok(kept)
    }

    /// Says how much it was.
    pub fn tell(&self) {
        if self.operations > 0 {
            render::note(format_args!(
                "left out {} operations of {} random workloads for what they do without a crash",
                self.operations, self.workloads
            ));
        }
    }
}
