//! Shortens a random workload that found something: operations are left out as long as the same root cause is found.

use check::checked::Checked;
use finding::finding::{Finding, FindingId};
use fs::workload::Workload;
use operation::boundaries::OperationBoundaries;
use trace::event::EventId;
use verdict::position::CrashPosition;

use super::check::{Failed, FsCheck, Place};
use super::session::Batched;
use crate::commands::options::crash::CrashOptions;
use crate::render;

/// Checks for one finding: each takes seconds.
const TRIES: usize = 24;
/// Beside the bundle's own files.
const FILE: &str = "workload.ops";

/// What is needed to check again.
pub struct Shorten<'a> {
    pub place: &'a mut Place,
    pub options: &'a CrashOptions,
    pub check: &'a FsCheck,
    /// Found before, and shortened then.
    pub known: &'a [Finding],
    /// Is there no more time? What is not short then stays as it is.
    pub is_over: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for Shorten<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shorten").field("place", self.place).finish_non_exhaustive()
    }
}

impl Shorten<'_> {
    /// Every finding gets the shortest workload that still shows it, and is told as that shows it.
    pub fn all(
        &mut self,
        checked: &mut Checked,
        workloads: &[Workload],
        boundaries: &OperationBoundaries,
    ) -> Result<(), Failed> {
        let is_new = |finding: &&mut Finding| self.known.iter().all(|known| known.id != finding.id);
        for finding in checked.findings.iter_mut().filter(is_new) {
            let Some(at) = finding.failure.as_ref().map(|failure| failure.crash_point.event) else { continue };
            let Some(workload) = of_event(workloads, boundaries, at) else { continue };
            let (shortest, told) = self.one(&finding.id, workload.clone())?;
            let file = self.options.bundles.join(&finding.id.0).join(FILE);
            if let Err(error) = std::fs::write(&file, shortest.to_string()) {
                return Err(Failed::Usage(format!("cannot write {}: {error}", file.display())));
            }
            render::note(format_args!(
                "finding {}: {} of {} operations show it: {}",
                finding.id,
                shortest.steps.len(),
                workload.steps.len(),
                file.display()
            ));
            if let Some(told) = told {
                *finding = told;
            }
        }
        Ok(())
    }

    fn one(&mut self, id: &FindingId, mut workload: Workload) -> Result<(Workload, Option<Finding>), Failed> {
        let (mut told, mut tries) = (None, 0);
        let mut at = workload.steps.len();
        // From the end: what comes after the crash goes first.
        while at > 0 && tries < TRIES && workload.steps.len() > 1 && !(self.is_over)() {
            at -= 1;
            tries += 1;
            let mut shorter = workload.clone();
            shorter.steps.remove(at);
            if let Some(finding) = self.still(id, &shorter) {
                (workload, told) = (shorter, Some(finding));
            }
        }
        Ok((workload, told))
    }

    /// The finding, if this workload alone shows it.
    fn still(&mut self, id: &FindingId, workload: &Workload) -> Option<Finding> {
        // Without one of its operations a workload may not run at all: then it is none.
        let Batched { checked, .. } =
            self.place.check(&self.check.batch_of(std::slice::from_ref(workload)), self.options).ok()?;
        checked.findings.into_iter().find(|finding| finding.id == *id)
    }
}

/// The workload in which the crash came.
fn of_event<'a>(workloads: &'a [Workload], boundaries: &OperationBoundaries, at: EventId) -> Option<&'a Workload> {
    let number = match boundaries.position(at) {
        CrashPosition::Before => return None,
        CrashPosition::During(number) | CrashPosition::After(number) => number,
    };
    let places = Workload::places(workloads);
    workloads.iter().zip(places).find(|(_, place)| place.contains(&number)).map(|(workload, _)| workload)
}
