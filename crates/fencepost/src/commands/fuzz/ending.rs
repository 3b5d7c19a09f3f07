//! What a campaign prints and writes at its end: its numbers, documents with all findings, the HTML report.

use std::env;
use std::io::{self, Write};
use std::time::SystemTime;

use finding::evidence::Evidence;
use finding::finding::Finding;
use fleet::redis::coordinator::Coordinator;
use fuzz::campaign::state::{Sample, State, samples};
use report::html::campaign::{CampaignHistory, Moment};
use report::html::run::{Run, VERSION};
use report::json;

use super::super::options::fleet::finish;
use super::super::options::gate::{Gate, Judged};
use super::super::output::document::Document;
use super::super::output::html::{excerpts, keep_run, write_page};
use super::FuzzOptions;
use super::screen::found_by_whom;
use crate::cli::FindingFormat;
use crate::exit::Exit;
use crate::render;

/// Counters that two runs of a case agree on, at least.
const STABLE: f64 = 0.9;

/// A campaign that is over.
pub struct Ending<'a> {
    pub options: &'a FuzzOptions,
    pub state: &'a State,
    /// Where the program runs.
    pub folder: String,
    pub command: Vec<String>,
    pub pools: Vec<String>,
    pub interrupted: bool,
}

impl Ending<'_> {
    pub fn tell(&self, gate: Gate, fleet: Option<Coordinator>) -> Exit {
        let state = self.state;
        let findings: Vec<Finding> = state.findings.all().iter().map(|found| found.finding.clone()).collect();
        let judged = gate.judge(findings, 0);
        if state.has_helper {
            render::note(found_by_whom(state));
        }
        let unstable = self.unstable();
        unstable.iter().for_each(render::warning);
        let mut notes = self.notes();
        notes.iter().for_each(render::note);
        notes.splice(0..0, unstable);
        let exit = match (self.interrupted, judged.any_fails()) {
            (true, _) => Exit::Interrupted,
            (false, true) => Exit::Findings,
            (false, false) => Exit::Clean,
        };
        let printed = self.print(&judged, &notes, exit);
        let exit = judged.finish(state.executions, exit);
        let exit = self.page(&judged, exit);
        let exit = finish(fleet, &self.document(&judged, &notes, exit), self.options.html.as_deref(), exit);
        match render::ended(printed) {
            Exit::Clean => exit,
            failed => failed,
        }
    }

    fn document<'d>(&'d self, judged: &'d Judged, notes: &'d [String], exit: Exit) -> Document<'d> {
        let events = self.state.executions;
        Document { recorded_in: &self.folder, events, judged, exit, notes, crash: None }
    }

    /// Runs of the same case differ too much.
    fn unstable(&self) -> Option<String> {
        let (agreed, all) = self.state.stable;
        let share = agreed as f64 / all.max(1) as f64;
        (all > 0 && share < STABLE).then(|| {
            format!(
                "the program is not deterministic: two runs of the same case agree on {:.0} % of their PM counters; cases may not \
                 show again what they showed",
                share * 100.0
            )
        })
    }

    fn notes(&self) -> Vec<String> {
        let state = self.state;
        let mut notes = state.set_aside.clone();
        if let Some(why) = &state.helper_trouble {
            notes.push(format!("solving: a case could not be followed: {why}"));
        }
        if let Some(why) = &state.unchecked_why {
            notes.push(format!("{} could not be checked; the first: {why}", cases(state.unchecked)));
        }
        if state.waiting_checks() > 0 && self.options.check_share > 0.0 {
            let were = if state.waiting_checks() == 1 { "was" } else { "were" };
            notes.push(format!("{} {were} not checked for lack of time", cases(state.waiting_checks() as u64)));
        }
        notes
    }

    fn print(&self, judged: &Judged, notes: &[String], exit: Exit) -> io::Result<()> {
        let sample = self.state.sample();
        let document = self.document(judged, notes, exit);
        match self.options.message_format {
            FindingFormat::Human => writeln!(
                io::stdout(),
                "{} executions, {} PM transitions, {} edges, {} cases, {} images, {} findings in {}",
                sample.executions,
                sample.pm_transitions,
                sample.edges,
                sample.cases,
                sample.images,
                sample.findings,
                self.options.out.display()
            ),
            FindingFormat::Json => {
                writeln!(io::stdout(), "{}", json::summary(&judged.findings, &judged.summary(sample.executions)))
            }
            FindingFormat::Sarif => document.print(FindingFormat::Sarif),
            FindingFormat::Junit => document.print(FindingFormat::Junit),
        }
    }

    /// Keeps the run for `fencepost report`, and writes the page that was asked for.
    fn page(&self, judged: &Judged, exit: Exit) -> Exit {
        let bundles = self.options.out.join("findings");
        let evidence: Vec<Evidence> = judged
            .findings
            .iter()
            .filter_map(|finding| {
                // Misuse and breakdowns have none; words of the campaign are on the finding only.
                let evidence = evidence::file::read(&bundles, &finding.id).ok()?;
                Some(Evidence { finding: finding.clone(), ..evidence })
            })
            .collect();
        let run = self.run(judged, &evidence);
        keep_run(&bundles, &run);
        match &self.options.html {
            Some(path) => write_page(path, &run, &evidence, exit),
            None => exit,
        }
    }

    fn run(&self, judged: &Judged, evidence: &[Evidence]) -> Run {
        let state = self.state;
        let has_evidence = |finding: &&Finding| !evidence.iter().any(|other| other.finding.id == finding.id);
        let others: Vec<Finding> = judged.findings.iter().filter(has_evidence).cloned().collect();
        let is_known = |finding: &&Finding| judged.baseline().is_some_and(|baseline| baseline.knows(finding));
        let sample = state.sample();
        let explored = vec![
            format!("{} inputs, on no pool, on what others left and on what a power failure left", sample.executions),
            format!(
                "{} cases with new PM coverage, linted, and those with new PM transitions crash-checked",
                sample.cases
            ),
        ];
        let explored: Vec<String> =
            explored.into_iter().chain(state.has_helper.then(|| found_by_whom(state))).collect();
        let not_explored = self.unstable().into_iter().chain(self.notes());
        let rest = "inputs that nobody made yet: a longer campaign may find more".to_owned();
        let moments = samples(state.folder()).unwrap_or_default();
        Run {
            fencepost_run: VERSION,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            date: SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(|time| time.as_secs()),
            arguments: env::args_os().skip(1).map(|text| text.to_string_lossy().into_owned()).collect(),
            target: self.command.clone(),
            folder: self.folder.clone(),
            pools: self.pools.clone(),
            explored,
            not_explored: not_explored.chain([rest]).collect(),
            interrupted: self.interrupted,
            suppressed: judged.suppressed,
            known: judged.findings.iter().filter(is_known).map(|finding| finding.id.clone()).collect(),
            campaign: Some(CampaignHistory {
                moments: moments.into_iter().map(moment).collect(),
                broken: state.hangs + state.crashes,
            }),
            bundled: evidence.iter().map(|evidence| evidence.finding.id.clone()).collect(),
            excerpts: excerpts(&others, &self.folder),
            others,
            ..Run::default()
        }
    }
}

fn cases(count: u64) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}

fn moment(sample: Sample) -> Moment {
    Moment {
        second: sample.second,
        executions: sample.executions,
        pm_transitions: sample.pm_transitions as u64,
        edges: sample.edges as u64,
        cases: sample.cases as u64,
        images: sample.images as u64,
        findings: sample.findings as u64,
    }
}
