//! One default check of a program, and which of its bugs it reports.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, ensure};
use serde_json::Value;
use targets::blind::{Reported, Tally};
use targets::crash::{CrashTarget, SETUP, SETUP_FUNCTIONS, TWIN, Variant};
use targets::generated::{Bug, complaint, function, source};
use trace::TraceReader;
use trace::event::EventKind;
use trace::symbol::Symbolizer;

use super::programs::{Case, Program};
use super::share::{share, stretched};
use super::table::Row;
use super::{Blind, BlindKind};
use crate::build;

impl Case {
    pub fn check(&self, fencepost: &Path, folder: &Path, options: &Blind) -> anyhow::Result<Row> {
        let check = Check { fencepost, folder, options };
        match &self.program {
            Program::Target(target, bugs) => check.target(target, bugs),
            Program::Generated(bugs) => check.generated(bugs),
        }
    }
}

/// What the bugs before the last one are known by.
const KNOWN: &str = "known.json";

#[derive(Clone, Copy, Debug)]
struct Check<'a> {
    fencepost: &'a Path,
    folder: &'a Path,
    options: &'a Blind,
}

impl Check<'_> {
    fn target(self, target: &CrashTarget, bugs: &[Variant]) -> anyhow::Result<Row> {
        let (own, more) = match (self.options.kind, bugs) {
            (BlindKind::OneMore, [others @ .., last]) => {
                self.findings(&self.of_target(target, others, &["--write-baseline", KNOWN])?, &target.env)?;
                (std::slice::from_ref(last), &["--baseline", KNOWN][..])
            }
            _ => (bugs, &[][..]),
        };
        let (mut findings, runs) = self.findings(&self.of_target(target, bugs, more)?, &target.env)?;
        let file = target.source.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let in_setup = findings.extract_if(.., |finding| is_in_setup(finding)).count();
        let reported: Vec<Reported> = findings.iter().map(|finding| reported(finding, file)).collect();
        let stored = stored_lines(&self.folder.join("trace"), file)?;
        let is_executed = |bug: &Variant| target.expected(*bug).any(|guilty| stored.contains(&guilty.line));
        let seeded: Vec<Variant> = own.iter().copied().filter(|bug| *bug != TWIN && *bug != SETUP).collect();
        let tally = Tally::of(target, &seeded, &reported);
        let executed: Vec<_> = tally.found.iter().filter(|(bug, _)| is_executed(bug)).collect();
        let missed = executed.iter().filter(|(_, finding)| finding.is_none());
        let mut row = Row {
            seeded: seeded.len(),
            executed: executed.len(),
            found: executed.iter().filter(|(_, finding)| finding.is_some()).count(),
            more: tally.again.len(),
            strange: tally.strange.len(),
            recoveries: runs,
            missed: missed.map(|(bug, _)| bug.to_string()).collect(),
            ..Row::default()
        };
        if own.contains(&SETUP) {
            // It is executed by every run.
            row.seeded += 1;
            row.executed += 1;
            row.found += in_setup.min(1);
            row.more += in_setup.saturating_sub(1);
            row.missed.extend((in_setup == 0).then(|| "set-up".to_owned()));
        } else {
            row.strange += in_setup;
        }
        Ok(row)
    }

    /// The arguments of a check of the program with these bugs.
    fn of_target(self, target: &CrashTarget, bugs: &[Variant], more: &[&str]) -> anyhow::Result<Vec<String>> {
        let program = target.build_together(bugs, &build::targets_folder()?.join("blind"))?;
        let pool = self.folder.join("pool");
        let mut arguments: Vec<String> = more.iter().copied().map(str::to_owned).collect();
        match &target.grammar {
            Some(grammar) => {
                let grammar = match self.options.kind {
                    BlindKind::Twins => self.with_listing(target, grammar)?,
                    _ => grammar.clone(),
                };
                arguments.extend(["--grammar".to_owned(), grammar.display().to_string()]);
                arguments.extend(["--count".to_owned(), self.options.count.to_string()]);
                arguments.extend(["--seed".to_owned(), self.options.seed.to_string()]);
                if target.run.iter().any(|word| word == "{socket}") {
                    arguments.extend(["--op-socket", "{socket}"].map(str::to_owned));
                }
            }
            None => arguments.extend(["--recover".to_owned(), target.recover_command(&program, &pool).join(" ")]),
        }
        arguments.extend(target.options.iter().cloned());
        arguments.push("--".to_owned());
        arguments.extend(target.run_command(&program, &pool));
        Ok(arguments)
    }

    /// The grammar, with a query that lists everything, where the program has one.
    fn with_listing(self, target: &CrashTarget, grammar: &Path) -> anyhow::Result<PathBuf> {
        let lists = fs::read_to_string(&target.source)?.contains("kv.h\"");
        let text = fs::read_to_string(grammar)?;
        let path = self.folder.join("grammar.toml");
        fs::write(&path, if lists { text.replace("queries = [", "queries = [\"l\", ") } else { text })?;
        Ok(path)
    }

    fn generated(self, bugs: &[Bug]) -> anyhow::Result<Row> {
        let mut slots: Vec<usize> = (0..bugs.len()).filter(|&slot| bugs[slot] != Bug::None).collect();
        let mut more = &[][..];
        if let (BlindKind::OneMore, Some(last)) = (self.options.kind, slots.last().copied()) {
            let mut others = bugs.to_vec();
            others[last] = Bug::None;
            self.findings(&self.of_generated(&others, &["--write-baseline", KNOWN])?, &[])?;
            (slots, more) = (vec![last], &["--baseline", KNOWN]);
        }
        let (findings, runs) = self.findings(&self.of_generated(bugs, more)?, &[])?;
        let mut row = Row { seeded: slots.len(), executed: slots.len(), recoveries: runs, ..Row::default() };
        let mut left: Vec<&Value> = findings.iter().collect();
        for slot in slots {
            let (own, others): (Vec<&Value>, Vec<&Value>) =
                left.into_iter().partition(|finding| finding["locations"][0]["function"] == function(slot));
            left = others;
            row.found += usize::from(!own.is_empty());
            row.more += own.len().saturating_sub(1);
            let foreign = |finding: &&&Value| !finding["symptom"].to_string().contains(&complaint(slot));
            // What the lint says alone has no symptom.
            row.foreign += own.iter().filter(|finding| !finding["symptom"].is_null()).filter(foreign).count();
            if own.is_empty() {
                row.missed.push(function(slot));
            }
        }
        row.strange = left.len();
        Ok(row)
    }

    fn of_generated(self, bugs: &[Bug], more: &[&str]) -> anyhow::Result<Vec<String>> {
        let (program, text) = (self.folder.join("many"), self.folder.join("many.c"));
        fs::write(&text, source(bugs))?;
        let mut cc = Command::new("cc");
        let status = cc.args(["-O1", "-g", "-mclwb", "-o"]).arg(&program).arg(&text).status()?;
        ensure!(status.success(), "{cc:?}: {status}");
        let [program, pool] = [program, self.folder.join("pool")].map(|path| path.display().to_string());
        let check = ["--recover", &format!("{program} {pool} check"), "--", &program, &pool];
        Ok(more.iter().copied().chain(check).map(str::to_owned).collect())
    }

    /// The findings of severity error that no baseline knows, and the recoveries that were run.
    fn findings(self, arguments: &[String], env: &[(String, String)]) -> anyhow::Result<(Vec<Value>, u64)> {
        let file = |name: &str| self.folder.join(name);
        // Each check begins without a pool.
        if file("pool").exists() {
            fs::remove_file(file("pool"))?;
        }
        let share = if self.options.shared { share()? } else { 1.0 };
        let budget = stretched(self.options.budget, share);
        let mut command = Command::new(self.fencepost);
        command.current_dir(self.folder).envs(env.iter().map(|(name, value)| (name, value)));
        command.args(["check", "--message-format", "json", "--budget", &budget, "--output", "trace"]);
        command.args(&self.options.options).args(arguments);
        command.stdin(Stdio::null()).stdout(File::create(file("stdout"))?).stderr(File::create(file("stderr"))?);
        let status = command.status()?;
        let stderr = String::from_utf8_lossy(&fs::read(file("stderr"))?).into_owned();
        ensure!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}\n{stderr}");
        let text = fs::read_to_string(file("stdout"))?;
        let lines = text.lines().filter(|line| line.starts_with('{'));
        let mut values: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        let summary = values.pop().context("there is no summary")?;
        values
            .retain(|value| value["type"] == "finding" && value["severity"] == "error" && value["baseline"] != "known");
        Ok((values, summary["recovery_runs"].as_u64().unwrap_or(0)))
    }
}

/// Is it about the bug that every program can have in its set-up?
fn is_in_setup(finding: &Value) -> bool {
    let function = finding["locations"][0]["function"].as_str().unwrap_or_default();
    SETUP_FUNCTIONS.iter().any(|name| function.contains(name))
}

/// What a finding names of this file.
fn reported(finding: &Value, file: &str) -> Reported {
    let places = ["locations", "missing", "present"].iter().filter_map(|list| finding[list].as_array()).flatten();
    let own = places.filter(|place| place["file"].as_str().is_some_and(|path| path.ends_with(file)));
    let lines = own.filter_map(|place| Some(place["line"].as_u64()? as u32)).collect();
    Reported { class: finding["class"].as_str().unwrap_or_default().to_owned(), lines }
}

/// The lines of this file whose stores are in the recording, those of functions that were called there included.
fn stored_lines(trace: &Path, file: &str) -> anyhow::Result<BTreeSet<u32>> {
    let reader = TraceReader::open(trace)?;
    let mut symbols = Symbolizer::new(reader.tables());
    let mut places = BTreeSet::new();
    let mut events = reader.events();
    while let Some(event) = events.next()? {
        if matches!(event.kind, EventKind::Store { .. } | EventKind::Rmw { .. } | EventKind::KernelWrite { .. }) {
            places.insert((event.context, event.pc));
        }
    }
    let mut lines = BTreeSet::new();
    for (context, pc) in places {
        let mut take = |frames: &[trace::symbol::SourceFrame]| {
            let own =
                frames.iter().filter_map(|frame| frame.source.as_ref()).filter(|source| source.file.ends_with(file));
            lines.extend(own.map(|source| source.line));
        };
        take(&symbols.frames(pc));
        for call in reader.tables().call_path(context) {
            take(&symbols.call_frames(call));
        }
    }
    Ok(lines)
}
