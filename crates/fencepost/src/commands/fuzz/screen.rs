//! The status of a campaign, on standard error: a screen that is redrawn on a terminal, a line from time to time elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use fuzz::campaign::state::State;
use fuzz::case::FoundBy;

use super::super::output::progress::ProgressStyle;

/// Between two plain lines.
const LINES: Duration = Duration::from_secs(10);
/// Between two screens.
const SCREENS: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct Screen {
    manner: Option<Manner>,
    shown: Mutex<Shown>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Screen,
    Lines,
}

#[derive(Debug, Default)]
struct Shown {
    last: Option<Instant>,
    executions: u64,
    lines: usize,
}

impl Screen {
    pub fn new(style: ProgressStyle) -> Screen {
        let manner = match style {
            ProgressStyle::Never => None,
            ProgressStyle::Auto if io::stderr().is_terminal() => Some(Manner::Screen),
            ProgressStyle::Auto | ProgressStyle::Plain => Some(Manner::Lines),
        };
        Screen { manner, shown: Mutex::new(Shown::default()) }
    }

    /// Takes the screen away, so that something else can be printed.
    pub fn clear(&self) {
        if let Ok(mut shown) = self.shown.lock() {
            erase(&mut shown);
        }
    }

    pub fn show(&self, state: &State) {
        let (Some(manner), Ok(mut shown)) = (self.manner, self.shown.lock()) else { return };
        let now = Instant::now();
        let interval = if manner == Manner::Screen { SCREENS } else { LINES };
        let since = shown.last.map_or(interval, |last| now - last);
        if since < interval {
            return;
        }
        let first = shown.last.is_none();
        let rate =
            if first { 0.0 } else { (state.executions.saturating_sub(shown.executions)) as f64 / since.as_secs_f64() };
        shown.last = Some(now);
        shown.executions = state.executions;
        // The first look knows no rate, and nothing else of interest.
        if first {
            return;
        }
        match manner {
            Manner::Lines => {
                let _ = writeln!(io::stderr(), "fuzz: {}", line(state, rate));
            }
            Manner::Screen => {
                erase(&mut shown);
                let lines = screen(state, rate);
                let _ = writeln!(io::stderr(), "{}", lines.join("\n"));
                shown.lines = lines.len();
            }
        }
    }
}

fn erase(shown: &mut Shown) {
    if shown.lines > 0 {
        let _ = write!(io::stderr(), "\x1b[{}A\x1b[J", shown.lines);
        shown.lines = 0;
    }
}

/// All of it in one line.
fn line(state: &State, rate: f64) -> String {
    let solved = match state.has_helper {
        true => format!(", {} cases solved", state.found_by(FoundBy::Solving).0),
        false => String::new(),
    };
    format!(
        "{} s, {} executions ({rate:.0}/s), {} PM transitions, {} edges, {} cases, {} images, {} findings{solved}",
        state.elapsed().as_secs(),
        state.executions,
        state.covered.pm_transitions,
        state.covered.edges,
        state.corpus.cases().len(),
        state.tree.nodes().len(),
        state.findings.all().len()
    )
}

fn screen(state: &State, rate: f64) -> Vec<String> {
    let seconds = state.elapsed().as_secs();
    let (agreed, all) = state.stable;
    let stability = if all == 0 { 100.0 } else { agreed as f64 * 100.0 / all as f64 };
    let solved = state.has_helper.then(|| format!("  found by        {}", found_by_whom(state)));
    let mut lines = vec![
        format!("fuzzing for {}:{:02}:{:02} with {} jobs", seconds / 3600, seconds / 60 % 60, seconds % 60, state.jobs),
        format!("  executions      {} ({rate:.0} per second)", state.executions),
        format!("  PM transitions  {}", state.covered.pm_transitions),
        format!("  edges           {}", state.covered.edges),
        format!("  cases           {} ({} wait for their check)", state.corpus.cases().len(), state.waiting_checks()),
        format!("  images          {} ({} KiB on disk)", state.tree.nodes().len(), state.tree.stored() >> 10),
        format!("  stability       {stability:.1} %"),
        format!("  findings        {}", state.findings.all().len()),
        format!("  hangs, crashes  {}, {}", state.hangs, state.crashes),
        format!("  last news       {}", state.news),
    ];
    lines.extend(solved);
    lines
}

/// Cases and PM transitions by who found them.
pub fn found_by_whom(state: &State) -> String {
    let of = |by: FoundBy, name: &str| {
        let (cases, transitions) = state.found_by(by);
        format!("{name} {cases} cases with {transitions} new PM transitions")
    };
    let findings = state.findings.all();
    let cases = state.corpus.cases();
    let solved = findings
        .iter()
        .filter(|found| cases.get(found.case.0 as usize).is_some_and(|case| case.found_by == FoundBy::Solving))
        .count();
    format!(
        "{}, {}, {} ({} inputs suggested); {solved} of {} findings are in solved cases",
        of(FoundBy::Seed, "seeds"),
        of(FoundBy::Mutation, "mutation"),
        of(FoundBy::Solving, "solving"),
        state.suggested,
        findings.len()
    )
}
