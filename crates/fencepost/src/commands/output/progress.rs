//! Progress of long work, on standard error: one line that is overwritten on a terminal, a few plain lines elsewhere.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use check::session::Phase;
use clap::ValueEnum;

use super::progress_words::{PlainLines, Work};

/// Seldom enough to cost nothing, often enough to look alive.
const INTERVAL: Duration = Duration::from_millis(100);
/// Phases that report nothing while they last are looked at so often.
const TICK: Duration = Duration::from_millis(500);

/// How progress is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProgressStyle {
    /// One updating line on a terminal, plain lines elsewhere.
    #[default]
    Auto,
    /// A line every few seconds, after the first ten.
    Plain,
    Never,
}

/// Shows progress until it is dropped. Nothing else may be printed to standard error meanwhile.
#[derive(Debug)]
pub struct Progress {
    shared: Option<Arc<Shared>>,
    /// To be dropped first: the thread ends when it hears nothing any more.
    alive: Option<Sender<()>>,
    ticker: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    begun: Instant,
    shown: Mutex<Shown>,
}

#[derive(Debug)]
struct Shown {
    work: Work,
    manner: Manner,
}

#[derive(Debug)]
enum Manner {
    /// With the time when it was written last.
    Line(Option<Duration>),
    Lines(PlainLines),
}

impl Progress {
    pub fn new(budget: Option<Duration>, style: ProgressStyle) -> Progress {
        let manner = match style {
            ProgressStyle::Never => return Progress { shared: None, alive: None, ticker: None },
            ProgressStyle::Auto
                if io::stderr().is_terminal() && can_be_written_over(env::var_os("TERM").as_deref()) =>
            {
                Manner::Line(None)
            }
            ProgressStyle::Auto | ProgressStyle::Plain => Manner::Lines(PlainLines::default()),
        };
        let shown = Mutex::new(Shown { work: Work::new(budget), manner });
        let shared = Arc::new(Shared { begun: Instant::now(), shown });
        let (alive, ended) = mpsc::channel();
        let ticking = Arc::clone(&shared);
        let ticker = thread::spawn(move || {
            while ended.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                ticking.show(None);
            }
        });
        Progress { shared: Some(shared), alive: Some(alive), ticker: Some(ticker) }
    }

    pub fn show(&self, phase: Phase) {
        if let Some(shared) = &self.shared {
            shared.show(Some(phase));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        drop(self.alive.take());
        if let Some(ticker) = self.ticker.take() {
            // It has nothing to panic about, and if it had, the work would matter more.
            let _ = ticker.join();
        }
        if let Some(shared) = &self.shared
            && let Ok(shown) = shared.shown.lock()
            && matches!(shown.manner, Manner::Line(Some(_)))
        {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// Not every terminal knows the escape codes for it.
fn can_be_written_over(terminal: Option<&OsStr>) -> bool {
    terminal.is_some_and(|name| !name.is_empty() && name != "dumb")
}

impl Shared {
    /// `phase` is none if nothing is known to have changed.
    fn show(&self, phase: Option<Phase>) {
        let Ok(mut shown) = self.shown.lock() else { return };
        let Shown { work, manner } = &mut *shown;
        let now = self.begun.elapsed();
        let is_new = phase.is_some_and(|phase| work.enter(phase, now));
        let Some(text) = work.text(now) else { return };
        let is_due = match manner {
            Manner::Line(last) => {
                let is_due = is_new || last.is_none_or(|last| now.saturating_sub(last) >= INTERVAL);
                *last = if is_due { Some(now) } else { *last };
                is_due
            }
            Manner::Lines(lines) => lines.is_due(now, is_new),
        };
        // Nobody can be told that the terminal is gone.
        let _ = match manner {
            _ if !is_due => Ok(()),
            Manner::Line(_) => write!(io::stderr(), "\r\x1b[K{text}").and_then(|()| io::stderr().flush()),
            Manner::Lines(_) => writeln!(io::stderr(), "progress: {} s: {text}", now.as_secs()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dumb_terminal_gets_no_escape_codes() {
        assert!(can_be_written_over(Some(OsStr::new("xterm-256color"))));
        for terminal in [None, Some(""), Some("dumb")] {
            assert!(!can_be_written_over(terminal.map(OsStr::new)), "{terminal:?}");
        }
    }
}
