//! `fs check --fleet`: batches of workloads are units. The coordinator checks the first batch itself, to notice at once if a file system
//! does not work at all; workers run this command for the others. Their findings are merged in the order of
//! the batches, as on one machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use check::checked::Checked;
use drive::template::words;
use finding::note::RunNote;
use fleet::dispatch::{CampaignError, Dispatch, Fate, Watch};
use fleet::folder;
use fleet::program::{ProgramUnit, UnitFolder};
use fleet::redis::coordinator::Coordinator;
use record::stop::StopRequest;
use serde::{Deserialize, Serialize};

use super::check::{Failed, FsCheck, Place};
use super::session::Batched;
use crate::commands::crash::printed;
use crate::commands::options::crash::CrashOptions;
use crate::commands::options::fleet::finish;
use crate::commands::options::gate::Gate;
use crate::commands::output::findings::{print, with_document};
use crate::commands::output::html::HtmlInput;
use crate::exit::Exit;
use crate::render;

/// Where a unit leaves what it found, and the bundles of that.
const CHECKED: &str = "checked.json";
const BUNDLES: &str = "bundles";

/// A unit: some workloads, in the order that all machines count them in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Range {
    first: usize,
    count: usize,
}

impl FsCheck {
    /// Checks the workloads of a unit.
    pub(super) fn perform(&self, folder: &Path) -> Result<Exit, Failed> {
        let failed = |error: std::io::Error| Failed::Usage(format!("{}: {error}", folder.display()));
        let unit = UnitFolder(folder.to_owned());
        let Range { first, count } = unit.what().map_err(failed)?;
        let batch: Vec<_> = self.workloads().map_err(Failed::Usage)?.skip(first).take(count).collect();
        let mut options = self.crash_options()?;
        options.jobs = Some(1);
        options.bundles_shown = Some(std::mem::replace(&mut options.bundles, unit.done().join(BUNDLES)));
        let Batched { checked, interrupted, .. } = self.place()?.check(&self.batch_of(&batch), &options)?;
        if interrupted {
            return Ok(Exit::Interrupted);
        }
        let text = serde_json::to_vec(&checked).map_err(|error| Failed::Usage(error.to_string()))?;
        fs::write(unit.done().join(CHECKED), text).map_err(failed)?;
        Ok(Exit::Clean)
    }

    /// Checks all workloads with the help of other machines.
    pub(super) fn check_elsewhere(&self, gate: Gate, options: &CrashOptions) -> Result<Exit, Failed> {
        if self.fuzz.is_some() {
            return Err(Failed::Usage(
                "--fuzz makes workloads from what the ones before them reached, on one machine; with --fleet, give --ace or --ops".into(),
            ));
        }
        let total = self.workloads().map_err(Failed::Usage)?.count();
        let batch = self.per_batch();
        let ranges: Vec<Range> =
            (0..total).step_by(batch).map(|first| Range { first, count: batch.min(total - first) }).collect();
        let Some((own, others)) = ranges.split_first() else {
            return Err(Failed::Usage("there is no workload to check".into()));
        };
        // Before there are threads: the mount namespace is the process's.
        let mut place = self.place()?;
        let lines = [&self.fuse, &self.mkfs].into_iter().flatten();
        let commands: Vec<_> = lines.map(|line| words(line).unwrap_or_default()).collect();
        let files = [self.preload.as_deref(), self.ops.as_deref(), self.kernel.as_deref()];
        let campaign = self.fleet.open_runs(&["fs", "check"], &commands, &files).map_err(Failed::Usage)?;
        let Some(mut campaign) = campaign else { return Err(Failed::Usage("--fleet names no campaign".into())) };
        match self.divided(&mut campaign, &mut place, *own, others, options) {
            Ok((batched, count)) => Ok(self.told(campaign, gate, options, batched, count)),
            Err(failed) => {
                // Nobody shall wait for units of a file system that does not work.
                campaign.abandon();
                Err(failed)
            }
        }
    }

    /// What came of all batches, and how many workloads they had.
    fn divided(
        &self,
        campaign: &mut Coordinator,
        place: &mut Place,
        own: Range,
        others: &[Range],
        options: &CrashOptions,
    ) -> Result<(Batched, usize), Failed> {
        let stop = StopRequest::from_signals();
        let before = stop.count();
        let unwanted = AtomicBool::new(false);
        let is_stopped = || stop.count() > before || unwanted.load(Ordering::Relaxed);
        let fates: Mutex<Vec<Option<Fate<Vec<u8>>>>> = Mutex::new(vec![None; others.len()]);
        let take = |number: usize, fate: Fate<Vec<u8>>| {
            fates.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(fate);
            Ok(())
        };
        let what = |range: &Range| serde_json::to_value(range).expect("plain data has a form in JSON");
        let units: Vec<Vec<u8>> =
            others.iter().map(|range| ProgramUnit { given: Vec::new(), what: what(range) }.bytes()).collect();
        let (first, ended) = std::thread::scope(|scope| {
            let watch = Watch { is_stopped: &is_stopped, take: &take };
            let campaign = &mut *campaign;
            let units = &units;
            let others = scope.spawn(move || campaign.dispatch(units, &watch));
            let first = self.first(place, own, options);
            unwanted.store(first.is_err(), Ordering::Relaxed);
            (first, others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let mut all = first?;
        ended.map_err(|CampaignError(error)| Failed::Usage(error.to_string()))?;
        let mut count = own.count;
        for (range, fate) in others.iter().zip(fates.into_inner().unwrap_or_else(PoisonError::into_inner)) {
            match fate {
                Some(Fate::Done(done)) => {
                    let checked = received(&done, &all.checked, &options.bundles).map_err(Failed::Usage)?;
                    all.checked.absorb(checked);
                    count += range.count;
                }
                Some(Fate::SetAside(why)) => {
                    let (count, lost, failures) = (range.count as u64, why.lost, why.failures);
                    all.checked.notes.push(RunNote::WorkloadsSetAside { count, lost, failures });
                    all.checked.coverage.complete = false;
                    all.checked.coverage.withdraw_exhaustive();
                }
                None => all.interrupted = true,
            }
        }
        Ok((all, count))
    }

    /// The batch that is checked here.
    fn first(&self, place: &mut Place, own: Range, options: &CrashOptions) -> Result<Batched, Failed> {
        let batch: Vec<_> = self.workloads().map_err(Failed::Usage)?.take(own.count).collect();
        place.check(&self.batch_of(&batch), options)
    }

    fn told(&self, campaign: Coordinator, gate: Gate, options: &CrashOptions, all: Batched, count: usize) -> Exit {
        let Batched { mut checked, reader, interrupted, .. } = all;
        if interrupted {
            render::note("interrupted: the same command goes on with what is not done");
        }
        let (states, saved) = (checked.coverage.states_decided, checked.coverage.runs_saved);
        checked.notes.insert(0, RunNote::Workloads { count: count as u64, states, saved });
        let judged = gate.judge(checked.findings.clone(), 0);
        let exit = options.end(&judged, interrupted, &checked);
        let outcome = HtmlInput { reader: &reader, checked: &checked, judged: &judged, options, interrupted };
        let ended = printed(
            print(&reader, &checked, &judged, self.message_format, exit),
            outcome.write(judged.finish(checked.events, exit)),
        );
        let page = self.html.as_deref();
        with_document(&reader, &checked, &judged, exit, |document| finish(Some(campaign), document, page, ended))
    }
}

/// What a unit found; bundles of findings that are new go to the others.
fn received(done: &[u8], before: &Checked, bundles: &Path) -> Result<Checked, String> {
    let senseless = |why: &dyn std::fmt::Display| format!("a worker sent a result that makes no sense: {why}");
    let mut checked = None;
    let mut kept: Vec<(PathBuf, &[u8])> = Vec::new();
    for file in folder::files(done) {
        let (name, content) = file.map_err(|error| senseless(&error))?;
        match name.strip_prefix(BUNDLES) {
            Ok(name) => kept.push((name.to_owned(), content)),
            Err(_) if name == Path::new(CHECKED) => {
                let found: Checked = serde_json::from_slice(content).map_err(|error| senseless(&error))?;
                checked = Some(found);
            }
            Err(_) => {}
        }
    }
    let checked = checked.ok_or_else(|| senseless(&"there is nothing in it"))?;
    for (name, content) in kept {
        let id = name.components().next().map(|id| id.as_os_str().to_owned());
        if before.findings.iter().any(|finding| Some(finding.id.0.as_ref()) == id.as_deref()) {
            continue;
        }
        let path = bundles.join(&name);
        let written = fs::create_dir_all(path.parent().unwrap_or(bundles)).and_then(|()| fs::write(&path, content));
        written.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crash::outcome::Coverage;
    use runner::plan::JudgedBy;

    fn nothing() -> Checked {
        Checked {
            findings: Vec::new(),
            coverage: Coverage::default(),
            evidence: Vec::new(),
            notes: Vec::new(),
            points: Vec::new(),
            judged_creation: false,
            judged_by: JudgedBy::default(),
            interrupted: false,
            events: 7,
        }
    }

    /// They are refused, or merged; nothing is written beside the bundles.
    #[test]
    fn altered_results_of_workers() {
        let place = tempfile::tempdir().expect("a folder");
        let (done, bundles) = (place.path().join("done"), place.path().join("bundles"));
        fs::create_dir_all(done.join(BUNDLES).join("4633296f")).expect("made");
        fs::write(done.join(BUNDLES).join("4633296f/finding.json"), "{}").expect("written");
        fs::write(done.join(CHECKED), serde_json::to_vec(&nothing()).expect("JSON")).expect("written");
        let packed = folder::pack(&done).expect("packed");
        assert_eq!(received(&packed, &nothing(), &bundles).map(|checked| checked.events), Ok(7));
        parser_tests::hammer::hammer("fs-done", &[packed], &|input| {
            if let Ok(checked) = received(input, &nothing(), &bundles) {
                nothing().absorb(checked);
            }
            assert!(fs::read_dir(place.path()).expect("a folder").count() <= 2, "something is beside the bundles");
        });
        parser_tests::hammer::hammer("fs-unit", &[br#"{"first":20,"count":5}"#.to_vec()], &|input| {
            drop(serde_json::from_slice::<Range>(input));
        });
    }
}
