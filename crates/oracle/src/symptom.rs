//! How a failure shows: a key that is the same for the same failure, and a sentence for people.
//!
//! Keys: `hang` · `limit NAME` · `output: LINE` · `signal NAME[ in MODULE+ADDRESS]` · `exit CODE[: LINE]`, with `checker `
//! before it if the checker failed. Lines come without their numbers.

use std::borrow::Cow;
use std::collections::BTreeSet;

use recover::report::RunReport;
use verdict::end::Limit;
use verdict::end::{End, Frame};
use verdict::symptom::Symptom;

use crate::normal::normal;
use crate::pattern::Pattern;

/// The longest complaint in a sentence.
const LONGEST_QUOTE: usize = 200;

/// Does the second symptom confirm the first? Native mode sees no call path, and a complaint may name what differs.
pub fn confirms(first: &Symptom, second: &Symptom) -> bool {
    fn head(key: &str) -> &str {
        let end = [": ", " in "].iter().filter_map(|mark| key.find(mark)).min();
        &key[..end.unwrap_or(key.len())]
    }
    head(&first.key) == head(&second.key)
}

/// Looks for what is wrong with one run.
pub(crate) struct Finder<'a> {
    /// "recovery" or "checker".
    pub who: &'a str,
    pub run: &'a RunReport,
    pub names: &'a dyn Fn(&Frame) -> Option<String>,
}

impl Finder<'_> {
    /// The most telling symptom, if there is any.
    pub fn find(&self, exit_ok: &BTreeSet<i32>, patterns: &[Pattern]) -> Option<Symptom> {
        match &self.run.end {
            End::Hung => return Some(self.hung()),
            End::OverLimit(limit) => return Some(self.over(*limit)),
            End::Exited(_) | End::Signalled { .. } => {}
        }
        if let Some(line) = self.matching_line(patterns) {
            return Some(self.symptom(format!("output: {}", normal(&line)), format!("printed: {}", quote(&line))));
        }
        match &self.run.end {
            End::Signalled { signal, path } => Some(self.signalled(*signal, path)),
            End::Exited(code) if !exit_ok.contains(code) => Some(self.exited(*code)),
            _ => None,
        }
    }

    fn symptom(&self, key: String, text: String) -> Symptom {
        let key = if self.who == "recovery" { key } else { format!("{} {key}", self.who) };
        Symptom { key, text: format!("{} {text}", self.who) }
    }

    fn hung(&self) -> Symptom {
        self.symptom("hang".into(), format!("was not done after {:.1} s (--timeout)", self.run.wall.as_secs_f64()))
    }

    fn over(&self, limit: Limit) -> Symptom {
        let (name, text) = match limit {
            Limit::Cpu => ("cpu", "used more processor time than it may"),
            Limit::Memory => ("memory", "used more memory than it may (--memory)"),
            Limit::Output => ("output", "wrote more output than it may"),
            Limit::Processes => ("processes", "started more processes than it may (--processes)"),
        };
        self.symptom(format!("limit {name}"), text.into())
    }

    fn signalled(&self, signal: i32, path: &[Frame]) -> Symptom {
        let signal = signal_name(signal);
        let Some(frame) = blamed(path) else {
            return self.symptom(format!("signal {signal}"), format!("was killed by {signal}"));
        };
        let place = format!("{}+{:#x}", file_name(&frame.module), frame.address);
        let key = format!("signal {signal} in {place}");
        match (self.names)(frame) {
            Some(name) => self.symptom(key, format!("was killed by {signal} in {name} ({place})")),
            None => self.symptom(key, format!("was killed by {signal} in {place}")),
        }
    }

    fn exited(&self, code: i32) -> Symptom {
        match lines(&self.run.stderr).find(|line| !line.trim().is_empty()) {
            Some(line) => self.symptom(
                format!("exit {code}: {}", normal(&line)),
                format!("ended with exit code {code}: {}", quote(&line)),
            ),
            None => self.symptom(format!("exit {code}"), format!("ended with exit code {code}")),
        }
    }

    fn matching_line(&self, patterns: &[Pattern]) -> Option<String> {
        let streams = [&self.run.stderr, &self.run.stdout];
        let line = streams
            .into_iter()
            .flat_map(|stream| stream.split(|&byte| byte == b'\n'))
            .find(|line| patterns.iter().any(|pattern| pattern.matches(line)))?;
        Some(String::from_utf8_lossy(line).into_owned())
    }
}

fn lines(stream: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    stream.split(|&byte| byte == b'\n').map(String::from_utf8_lossy)
}

/// A complaint, on one line and of bearable length.
fn quote(line: &str) -> String {
    let line = line.trim();
    match line.char_indices().nth(LONGEST_QUOTE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.into(),
    }
}

/// The innermost frame that is not in the libraries through which every program aborts and every bad pointer is followed.
fn blamed(path: &[Frame]) -> Option<&Frame> {
    let of_system = |frame: &&Frame| {
        let name = file_name(&frame.module);
        ["libc.so", "libc-", "ld-linux", "libpthread", "libstdc++", "libgcc_s", "libc++"]
            .iter()
            .any(|library| name.starts_with(library))
            || name.is_empty()
    };
    path.iter().find(|frame| !of_system(frame)).or(path.first())
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// signal(7); numbers of x86-64.
fn signal_name(signal: i32) -> String {
    let names = [
        "SIGHUP",
        "SIGINT",
        "SIGQUIT",
        "SIGILL",
        "SIGTRAP",
        "SIGABRT",
        "SIGBUS",
        "SIGFPE",
        "SIGKILL",
        "SIGUSR1",
        "SIGSEGV",
        "SIGUSR2",
        "SIGPIPE",
        "SIGALRM",
        "SIGTERM",
        "SIGSTKFLT",
        "SIGCHLD",
        "SIGCONT",
        "SIGSTOP",
        "SIGTSTP",
        "SIGTTIN",
        "SIGTTOU",
        "SIGURG",
        "SIGXCPU",
        "SIGXFSZ",
        "SIGVTALRM",
        "SIGPROF",
        "SIGWINCH",
        "SIGIO",
        "SIGPWR",
        "SIGSYS",
    ];
    let known = usize::try_from(signal).ok().and_then(|number| names.get(number.wrapping_sub(1)));
    known.map_or_else(|| signal.to_string(), |name| (*name).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symptom(key: &str) -> Symptom {
        Symptom { key: key.into(), text: String::new() }
    }

    #[test]
    fn names_of_signals() {
        let all =
            [(libc::SIGSEGV, "SIGSEGV"), (libc::SIGBUS, "SIGBUS"), (libc::SIGSYS, "SIGSYS"), (libc::SIGHUP, "SIGHUP")];
        for (signal, name) in all {
            assert_eq!(signal_name(signal), name);
        }
        assert_eq!((signal_name(0), signal_name(40)), ("0".into(), "40".into()));
    }

    #[test]
    fn plain_mode_confirms_without_a_call_path() {
        let same = |a, b| confirms(&symptom(a), &symptom(b));
        assert!(same("signal SIGSEGV in kv+0x1", "signal SIGSEGV"));
        assert!(same("exit 1: key # lost", "exit 1: key # is lost"));
        assert!(same("hang", "hang"));
        assert!(!same("exit 1: key # lost", "exit 2: key # lost"));
        assert!(!same("signal SIGSEGV", "signal SIGBUS"));
        assert!(!same("checker exit 1", "exit 1"));
    }
}
