//! The whole report.

use std::collections::BTreeMap;

use askama::Template;
use finding::evidence::Evidence;
use finding::finding::Finding;
use finding::severity::Severity;

use super::campaign::CampaignHistory;
use super::escape::{prose, with_flags};
use super::overview::{self, Headline, Tile, command_line};
use super::run::Run;
use super::section::{Section, SectionView};
use super::{date, rule};
use crate::sarif::RuleText;
use crate::words;

/// What a report is made of.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub run: &'a Run,
    /// Of the findings that have one, in the order of the run.
    pub evidence: &'a [Evidence],
    /// With their explanation pages.
    pub rules: &'a [RuleText],
}

#[derive(Debug)]
struct Chip {
    key: &'static str,
    count: usize,
}

#[derive(Debug)]
struct RuleView {
    id: String,
    name: String,
    count: usize,
}

#[derive(Debug)]
struct PageView {
    id: String,
    title: String,
    html: String,
}

#[derive(Debug, Template)]
#[template(path = "report.html")]
struct Page {
    css: &'static str,
    js: &'static str,
    version: String,
    mood: &'static str,
    verdict: String,
    short_verdict: String,
    lead: String,
    target: String,
    command: String,
    folder: String,
    pools: Vec<String>,
    date: String,
    date_text: String,
    tiles: Vec<Tile>,
    plot: String,
    explored: Vec<String>,
    not_explored: Vec<String>,
    notes: Vec<String>,
    severities: Vec<Chip>,
    classes: Vec<Chip>,
    rules: Vec<RuleView>,
    findings: Vec<SectionView>,
    clean_words: &'static str,
    pages: Vec<PageView>,
}

/// So many findings are shown whole; of more only the first are, and the rest unfold.
const FEW: usize = 6;
const UNFOLDED: usize = 2;

const CSS: &str = include_str!("page/style.css");
/// One file per thing that the reader can do; they share one scope.
const JS: &str = concat!(
    "(function () {\n\"use strict\";\n",
    include_str!("script/theme.js"),
    include_str!("script/filter.js"),
    include_str!("script/copy.js"),
    include_str!("script/code.js"),
    include_str!("script/model.js"),
    include_str!("script/draw.js"),
    include_str!("script/states.js"),
    include_str!("script/events.js"),
    include_str!("script/timeline.js"),
    "})();\n"
);

impl Report<'_> {
    /// The text of the HTML file.
    pub fn html(&self) -> String {
        self.page().render().expect("writing to a string cannot fail")
    }

    fn page(&self) -> Page {
        let run = self.run;
        let sections = self.sections();
        let findings: Vec<&Finding> = sections.iter().map(|section| section.finding).collect();
        let Headline { mood, title, short, lead } = overview::verdict(run, &findings, self.evidence.len());
        let suppressed = match run.suppressed {
            0 => None,
            1 => Some("1 finding is suppressed and not shown".to_owned()),
            count => Some(format!("{count} findings are suppressed and not shown")),
        };
        let not_explored = run.not_explored.iter().cloned();
        let interrupted = run.interrupted.then(|| "the run was interrupted".to_owned());
        Page {
            css: CSS,
            js: JS,
            version: run.version.clone(),
            mood,
            verdict: title,
            short_verdict: short,
            lead,
            target: command_line(&run.target),
            command: match run.arguments.is_empty() {
                true => String::new(),
                false => format!("fencepost {}", command_line(&run.arguments)),
            },
            folder: run.folder.clone(),
            pools: run.pools.clone(),
            date: run.date.map_or_else(String::new, date::machine),
            date_text: run.date.map_or_else(String::new, date::human),
            tiles: overview::tiles(run),
            plot: run.campaign.as_ref().map_or_else(String::new, CampaignHistory::plot),
            explored: run.explored.iter().map(|line| with_flags(line)).collect(),
            not_explored: interrupted.into_iter().chain(not_explored).map(|line| with_flags(&line)).collect(),
            notes: run.notes.iter().map(words::run_note).chain(suppressed).map(|note| prose(&note)).collect(),
            severities: severities(&findings),
            classes: classes(&findings),
            rules: self.rule_views(&findings),
            pages: self.pages(&findings),
            findings: sections
                .iter()
                .enumerate()
                .map(|(at, section)| self.section(section, at, sections.len()))
                .collect(),
            clean_words: clean_words(run),
        }
    }

    /// The worst first; within a severity in the order of the run.
    fn sections(&self) -> Vec<Section<'_>> {
        let folder = self.run.folder.as_str();
        let mut sections: Vec<Section<'_>> = self
            .evidence
            .iter()
            .map(|evidence| Section {
                finding: &evidence.finding,
                evidence: Some(evidence),
                excerpts: &evidence.excerpts,
                folder,
            })
            .collect();
        let excerpts = self.run.excerpts.as_slice();
        sections.extend(self.run.others.iter().map(|finding| Section { finding, evidence: None, excerpts, folder }));
        sections.sort_by_key(|section| std::cmp::Reverse(section.finding.severity));
        sections
    }

    fn section(&self, section: &Section<'_>, at: usize, of: usize) -> SectionView {
        let has_page = self.rule_text(&section.finding.rule).is_some();
        section.view(has_page, self.run.known.contains(&section.finding.id), of <= FEW || at < UNFOLDED)
    }

    fn rule_text(&self, id: &str) -> Option<&RuleText> {
        self.rules.iter().find(|rule| rule.id == id && !rule.page.is_empty())
    }

    fn rule_views(&self, findings: &[&Finding]) -> Vec<RuleView> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        findings.iter().for_each(|finding| *counts.entry(&finding.rule).or_default() += 1);
        let name =
            |id: &str| self.rules.iter().find(|rule| rule.id == id).map_or_else(String::new, |rule| rule.name.clone());
        counts.into_iter().map(|(id, count)| RuleView { id: id.to_owned(), name: name(id), count }).collect()
    }

    fn pages(&self, findings: &[&Finding]) -> Vec<PageView> {
        let mut used: Vec<&str> = findings.iter().map(|finding| finding.rule.as_str()).collect();
        used.sort_unstable();
        used.dedup();
        let page = |rule: &RuleText| PageView {
            id: rule.id.clone(),
            title: format!("{}: {}", rule.name, rule.title),
            html: rule::page(&rule.page),
        };
        used.into_iter().filter_map(|id| self.rule_text(id)).map(page).collect()
    }
}

/// What is said where findings would be.
fn clean_words(run: &Run) -> &'static str {
    match &run.crash {
        Some(crash) if crash.states_failing > 0 => {
            "Recovery fails on some states, but no finding about that is shown: it is suppressed, or no cause could be confirmed."
        }
        Some(_) => {
            "No crash state that was tried made recovery fail, and the recording shows no misuse of persistent memory. \
             That holds for this workload and for what was explored; the overview says what was not."
        }
        None => {
            "The recording shows no misuse of persistent memory. Power failures were not simulated: fencepost check does that."
        }
    }
}

fn severities(findings: &[&Finding]) -> Vec<Chip> {
    let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
    let chips = Severity::ALL.into_iter().map(|severity| Chip { key: severity.name(), count: count(severity) });
    chips.filter(|chip| chip.count > 0).collect()
}

/// In the order of first appearance.
fn classes(findings: &[&Finding]) -> Vec<Chip> {
    let mut chips: Vec<Chip> = Vec::new();
    for finding in findings {
        let key = finding.class.name();
        match chips.iter_mut().find(|chip| chip.key == key) {
            Some(chip) => chip.count += 1,
            None => chips.push(Chip { key, count: 1 }),
        }
    }
    chips
}
