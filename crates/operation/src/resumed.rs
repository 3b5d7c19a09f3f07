//! Programs that read a file of operations themselves: the commands that run them after a crash, and without one operation.
//!
//! In a command, `{pool}` is the path of the first pool, `{next}` the first operation that had not begun when power failed, and `{k}`
//! the one that was under way or, between two, the last one (-1: none); `{end}`, if it is there, is the first one that shall not be run. Operations are counted from 0. Their answers are the
//! lines of standard output, one each; how the command ends counts as one more.

use std::path::Path;

use recover::report::RunReport;
use serde::{Deserialize, Serialize};
use verdict::end::End;

use crate::answers::Answers;
use verdict::position::CrashPosition;

/// What the end of a run is called among the operations.
pub const EXIT: &str = "exit";

/// Words of commands, with places.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Templates {
    /// Goes on after a crash.
    pub resume: Vec<String>,
    /// Runs all operations but one.
    pub without: Vec<String>,
}

impl Templates {
    /// Does the command say where to stop?
    pub fn is_limited(&self) -> bool {
        self.resume.iter().any(|word| word.contains("{end}"))
    }

    /// The command that goes on after a crash in this position, up to the operation `end`.
    pub fn resume(&self, position: CrashPosition, pool: &Path, end: usize) -> Vec<String> {
        let under_way = position.next().checked_sub(1).map_or_else(|| "-1".into(), |number| number.to_string());
        let words = filled(&self.resume, pool, &position.next().to_string(), &under_way);
        words.into_iter().map(|word| word.replace("{end}", &end.to_string())).collect()
    }

    /// The command that leaves this operation out.
    pub fn without(&self, number: usize, pool: &Path) -> Vec<String> {
        filled(&self.without, pool, &(number + 1).to_string(), &number.to_string())
    }
}

fn filled(words: &[String], pool: &Path, next: &str, under_way: &str) -> Vec<String> {
    let pool = pool.display().to_string();
    let fill = |word: &String| word.replace("{pool}", &pool).replace("{next}", next).replace("{k}", under_way);
    words.iter().map(fill).collect()
}

/// The lines that a run wrote, and its end.
pub fn answers(run: &RunReport) -> Answers {
    let mut answers = lines(&run.stdout);
    answers.push(
        match &run.end {
            End::Exited(code) => format!("exit code {code}\n"),
            End::Signalled { signal, .. } => format!("signal {signal}\n"),
            End::Hung => "no end\n".into(),
            End::OverLimit(limit) => format!("a limit ({limit:?})\n"),
        }
        .as_bytes(),
    );
    answers
}

/// One answer per line.
pub fn lines(text: &[u8]) -> Answers {
    let mut answers = Answers::default();
    text.split_inclusive(|&byte| byte == b'\n').for_each(|line| answers.push(line));
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let templates = Templates { resume: words("drv {pool} {next} {k} {end}"), without: words("drv --skip={k}") };
        let pool = Path::new("/p");
        assert_eq!(templates.resume(CrashPosition::During(3), pool, 9).join(" "), "drv /p 4 3 9");
        assert_eq!(templates.resume(CrashPosition::After(3), pool, 9).join(" "), "drv /p 4 3 9");
        assert_eq!(templates.resume(CrashPosition::Before, pool, 9).join(" "), "drv /p 0 -1 9");
        assert!(templates.is_limited());
        assert_eq!(templates.without(2, pool).join(" "), "drv --skip=2");
    }

    #[test]
    fn every_line_is_an_answer() {
        let answers: Vec<Vec<u8>> = lines(b"a\n\nb").iter().map(<[u8]>::to_vec).collect();
        assert_eq!(answers, [&b"a\n"[..], b"\n", b"b"]);
    }
}
