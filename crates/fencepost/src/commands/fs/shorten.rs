//! Shortens a random workload that found something: operations are left out as long as the same root cause is found.

use std::time::{Duration, Instant};

use check::checked::Checked;
use finding::evidence::Evidence;
use finding::finding::{Finding, FindingId, Location};
use fs::workload::FsWorkload;
use operation::boundaries::OperationBoundaries;
use trace::event::EventId;
use verdict::position::CrashPosition;

use super::check::{Failed, FsCheck, Place, lost_stores};
use super::session::{Batch, Batched};
use super::staged::Staged;
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
    /// What all findings of a batch may take together.
    pub time: Option<Duration>,
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
        workloads: &[FsWorkload],
        boundaries: &OperationBoundaries,
    ) -> Result<(), Failed> {
        let end = self.time.map(|time| Instant::now() + time);
        let found = checked.findings.clone();
        let is_new = |finding: &&mut Finding| self.known.iter().all(|known| known.id != finding.id);
        let Checked { findings, evidence, .. } = checked;
        for finding in findings.iter_mut().filter(is_new) {
            let Some(at) = finding.failure.as_ref().map(|failure| failure.crash_point.event) else { continue };
            let Some((workload, step)) = of_event(workloads, boundaries, at) else { continue };
            let mut try_out = Try {
                repaired: others(finding, self.known.iter().chain(&found)),
                wanted: &finding.id,
                end,
                left: TRIES,
                shorten: self,
            };
            let (shortest, told) = try_out.shortest(workload, step);
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
            if let Some(Told { finding: shorter, evidence: shown }) = told {
                *finding = shorter;
                evidence.retain(|known| known.finding.id != finding.id);
                evidence.extend(shown);
            }
        }
        Ok(())
    }
}

/// Code whose stores other bugs lose: what that breaks need not be looked into again.
fn others<'f>(finding: &Finding, all: impl Iterator<Item = &'f Finding>) -> Vec<Location> {
    let mut lost = lost_stores(all.filter(|other| other.id != finding.id));
    let own = lost_stores([finding]);
    lost.retain(|location| !own.contains(location));
    lost
}

/// A finding, and what reports show of it.
struct Told {
    finding: Finding,
    evidence: Option<Evidence>,
}

/// Tries for one finding.
struct Try<'a, 'b> {
    shorten: &'a mut Shorten<'b>,
    wanted: &'a FindingId,
    repaired: Vec<Location>,
    end: Option<Instant>,
    left: usize,
}

impl Try<'_, '_> {
    /// The workload with as few operations as show the finding, and how that shows it.
    fn shortest(&mut self, workload: &FsWorkload, step: usize) -> (FsWorkload, Option<Told>) {
        // What comes after the crash has no part in it, and power need not fail anywhere else.
        let mut first = FsWorkload { name: workload.name.clone(), steps: workload.steps[..=step].to_vec() };
        first.steps.iter_mut().enumerate().for_each(|(number, other)| other.crash = number == step);
        let Some(told) = self.still(&first) else { return (workload.clone(), None) };
        let (mut shortest, mut told) = (first, told);
        // Many operations at a time first. The last one is crashed.
        let mut size = (shortest.steps.len() - 1).div_ceil(2);
        while size > 0 {
            let mut end = shortest.steps.len() - 1;
            while end > 0 {
                let begin = end.saturating_sub(size);
                let mut shorter = shortest.clone();
                shorter.steps.drain(begin..end);
                if let Some(finding) = self.still(&shorter) {
                    (shortest, told) = (shorter, finding);
                }
                end = begin;
            }
            size /= 2;
        }
        (shortest, Some(told))
    }

    /// The finding, if this workload alone shows it; none when there is no more time. Its bundle takes the place of the one before.
    fn still(&mut self, workload: &FsWorkload) -> Option<Told> {
        let is_late = self.end.is_some_and(|end| Instant::now() >= end);
        if self.left == 0 || is_late || (self.shorten.is_over)() {
            return None;
        }
        self.left -= 1;
        let Shorten { place, options, check, .. } = self.shorten;
        let staged = Staged::new(options).ok()?;
        let mut options = staged.options(options);
        options.budget = options.budget.until(self.end);
        let batch = Batch { repaired: self.repaired.clone(), ..check.batch_of(std::slice::from_ref(workload)) };
        // Without one of its operations a workload may not run at all: then it is none.
        let Batched { checked, .. } = place.check(&batch, &options).ok()?;
        let finding = checked.findings.into_iter().find(|finding| finding.id == *self.wanted)?;
        let evidence = checked.evidence.into_iter().find(|evidence| evidence.finding.id == *self.wanted);
        staged.keep(self.wanted).ok()?;
        Some(Told { finding, evidence })
    }
}

/// The workload in which the crash came, and in which step of it.
fn of_event<'a>(
    workloads: &'a [FsWorkload],
    boundaries: &OperationBoundaries,
    at: EventId,
) -> Option<(&'a FsWorkload, usize)> {
    let number = match boundaries.position(at) {
        CrashPosition::Before => return None,
        CrashPosition::During(number) | CrashPosition::After(number) => number,
    };
    let places = FsWorkload::places(workloads);
    let found = workloads.iter().zip(places).find(|(_, place)| place.contains(&number));
    found.map(|(workload, place)| (workload, number - place.start))
}
