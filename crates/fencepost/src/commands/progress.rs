//! Progress of long work: one line on a terminal that is written over, nothing elsewhere.

use std::io::{self, IsTerminal, Write};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cause::hunt::Phase;

use crate::render;

/// Seldom enough to cost nothing, often enough to look alive.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub struct ProgressLine {
    begun: Instant,
    budget: Option<Duration>,
    /// None: not a terminal.
    last: Option<Mutex<Option<Instant>>>,
}

impl ProgressLine {
    pub fn new(budget: Option<Duration>, wanted: bool) -> ProgressLine {
        let shown = wanted && io::stderr().is_terminal();
        ProgressLine { begun: Instant::now(), budget, last: shown.then(|| Mutex::new(None)) }
    }

    pub fn show(&self, phase: Phase) {
        let Some(last) = &self.last else { return };
        let Ok(mut last) = last.lock() else { return };
        let now = Instant::now();
        let due = last.is_none_or(|last| now - last >= INTERVAL)
            || !matches!(phase, Phase::Search(_) | Phase::Rehearse { .. } | Phase::Analyse(_));
        if due {
            *last = Some(now);
            // Nobody can be told that the terminal is gone.
            let _ = write!(io::stderr(), "\r\x1b[K{}", self.text(phase));
            let _ = io::stderr().flush();
        }
    }

    fn text(&self, phase: Phase) -> String {
        match phase {
            Phase::Survey => "looking for crash points".to_owned(),
            Phase::Rehearse { next, operations } => {
                format!("running the operations without a crash: {next} of {operations}")
            }
            Phase::Infer => "looking at what recoveries depend on".to_owned(),
            Phase::Analyse(failing) => format!("finding the causes of {} failing states", render::count(failing)),
            Phase::Again => "crashing recoveries".to_owned(),
            Phase::Confirm => "confirming findings on the plain program".to_owned(),
            Phase::Search(progress) => {
                let seconds = self.begun.elapsed().as_secs_f64().max(0.001);
                let left = self.budget.map_or_else(String::new, |budget| {
                    format!(", {} s left", budget.saturating_sub(self.begun.elapsed()).as_secs())
                });
                format!(
                    "crash points {}/{} (stage {} of {}), {} states decided ({:.0}/s), {} failing{left}",
                    render::count(progress.points_done),
                    render::count(progress.points),
                    progress.stage,
                    progress.stages,
                    render::count(progress.states_decided),
                    progress.states_decided as f64 / seconds,
                    render::count(progress.states_failing),
                )
            }
        }
    }

    /// The line is gone; other output may come.
    pub fn clear(&self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
