//! What is wrong with a run, as data.

use std::borrow::Cow;
use std::collections::BTreeSet;

use recover::report::RunReport;
use verdict::end::{End, Frame};
use verdict::symptom::{CodePlace, Complaint, Failure, Party, Symptom};

use crate::normal::normal;
use crate::pattern::Pattern;

/// The longest complaint that is kept.
const LONGEST_QUOTE: usize = 200;

/// Looks for what is wrong with one run.
pub(crate) struct Finder<'a> {
    pub who: Party,
    pub run: &'a RunReport,
    pub names: &'a dyn Fn(&Frame) -> Option<String>,
}

impl Finder<'_> {
    /// The most telling symptom, if there is any.
    pub fn find(&self, exit_ok: &BTreeSet<i32>, patterns: &[Pattern]) -> Option<Symptom> {
        Some(Symptom::Failed { by: self.who, how: self.failure(exit_ok, patterns)? })
    }

    fn failure(&self, exit_ok: &BTreeSet<i32>, patterns: &[Pattern]) -> Option<Failure> {
        match &self.run.end {
            End::Hung => return Some(Failure::Hang { after_ms: self.run.wall.as_millis() as u64 }),
            End::OverLimit(limit) => return Some(Failure::OverLimit { limit: *limit }),
            End::Exited(_) | End::Signalled { .. } => {}
        }
        if let Some(line) = self.matching_line(patterns) {
            return Some(Failure::Output { line: complaint(&line) });
        }
        match &self.run.end {
            End::Signalled { signal, path } => {
                let place = blamed(path).map(|frame| CodePlace {
                    module: file_name(&frame.module).to_owned(),
                    address: frame.address,
                    function: (self.names)(frame),
                });
                Some(Failure::Signal { signal: *signal, place })
            }
            End::Exited(code) if !exit_ok.contains(code) => {
                let line = lines(&self.run.stderr).find(|line| !line.trim().is_empty());
                Some(Failure::Exit { code: *code, complaint: line.map(|line| complaint(&line)) })
            }
            _ => None,
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

fn complaint(line: &str) -> Complaint {
    Complaint { text: quote(line), normal: normal(line) }
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
    // A driver of ours ends by the signal that ended what it drives: where it does so says nothing.
    let own = std::env::current_exe().unwrap_or_default();
    if path.iter().any(|frame| std::path::Path::new(&frame.module) == own) {
        return None;
    }
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
