//! What a run wrote, taken apart: one answer per operation.

use recover::report::RunReport;
use serde::{Deserialize, Serialize};

/// The answers of a run, in the order of its operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answers {
    #[serde(with = "fleet::text")]
    bytes: Vec<u8>,
    /// Where each answer ends.
    ends: Vec<u32>,
}

impl Answers {
    /// Of a run that was given so many operations. What it wrote before the first and after the last is not of interest. There
    /// are fewer answers if it ended early.
    pub fn of(run: &RunReport, operations: usize) -> Answers {
        let boundaries = &run.boundaries[..run.boundaries.len().min(operations + 1)];
        let Some(&start) = boundaries.first() else { return Answers::default() };
        let len = run.stdout.len() as u32;
        // A program that ended inside an operation may have answered it.
        let unfinished = (boundaries.len() <= operations).then_some(len);
        let ends: Vec<u32> =
            boundaries[1..].iter().copied().chain(unfinished).map(|end| end.min(len).saturating_sub(start)).collect();
        let stop = start + ends.last().copied().unwrap_or(0);
        Answers { bytes: run.stdout[(start.min(len)) as usize..(stop.min(len)) as usize].to_vec(), ends }
    }

    pub fn push(&mut self, answer: &[u8]) {
        self.bytes.extend_from_slice(answer);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn extend(&mut self, other: &Answers) {
        other.iter().for_each(|answer| self.push(answer));
    }

    pub fn count(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, number: usize) -> Option<&[u8]> {
        let end = *self.ends.get(number)? as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before] as usize);
        Some(&self.bytes[start..end])
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count()).filter_map(|number| self.get(number))
    }

    /// The first so many.
    pub fn first(&self, count: usize) -> Answers {
        let mut first = Answers::default();
        self.iter().take(count).for_each(|answer| first.push(answer));
        first
    }

    /// False if they cannot have come from a run: another machine sent them.
    pub(crate) fn is_sound(&self) -> bool {
        self.ends.is_sorted() && self.ends.last().is_none_or(|end| *end as usize <= self.bytes.len())
    }

    /// All of them, as the program wrote them.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The first operation that is answered differently, or not at all.
    pub fn first_difference(&self, other: &Answers) -> Option<usize> {
        self.differences(other).next()
    }

    /// The operations that are answered differently, or not at all.
    pub fn differences<'a>(&'a self, other: &'a Answers) -> impl Iterator<Item = usize> + 'a {
        (0..self.count().max(other.count())).filter(|&number| self.get(number) != other.get(number))
    }
}

/// An answer for people: on one line, without its end, and not too long.
pub fn shown(answer: Option<&[u8]>) -> String {
    const LONGEST: usize = 120;
    let Some(answer) = answer else { return "no answer".into() };
    let text = String::from_utf8_lossy(answer.trim_ascii_end()).replace('\n', " / ");
    match text.char_indices().nth(LONGEST) {
        _ if text.is_empty() => "nothing".into(),
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use verdict::end::End;

    use super::*;

    fn run(stdout: &str, boundaries: &[u32]) -> RunReport {
        RunReport {
            end: End::Exited(0),
            stdout: stdout.into(),
            stderr: Vec::new(),
            boundaries: boundaries.to_vec(),
            output_cut: false,
            cpu: Duration::ZERO,
            wall: Duration::ZERO,
            reads: None,
            dirtied: Vec::new(),
            pools_replaced: false,
            tree_changed: false,
            outside: Vec::new(),
        }
    }

    fn texts(answers: &Answers) -> Vec<String> {
        answers.iter().map(|answer| String::from_utf8_lossy(answer).into_owned()).collect()
    }

    #[test]
    fn neither_the_banner_nor_the_farewell_is_an_answer() {
        let answers = Answers::of(&run("hi\nok\n7\nbye\n", &[3, 6, 8, 8]), 2);
        assert_eq!(texts(&answers), ["ok\n", "7\n"]);
        assert_eq!(answers.bytes(), b"ok\n7\n");
    }

    #[test]
    fn a_run_that_ends_early_has_fewer_answers() {
        let answers = Answers::of(&run("hi\nok\nhalf", &[3, 6]), 3);
        assert_eq!(texts(&answers), ["ok\n", "half"]);
        assert_eq!(Answers::of(&run("hi", &[]), 3), Answers::default());
    }

    #[test]
    fn differences() {
        let one = Answers::of(&run("ok\n7\n", &[0, 3, 5]), 2);
        let two = Answers::of(&run("ok\n8\n", &[0, 3, 5]), 2);
        let less = Answers::of(&run("ok\n", &[0, 3]), 1);
        assert_eq!((one.first_difference(&one), one.first_difference(&two)), (None, Some(1)));
        assert_eq!(one.first_difference(&less), Some(1));
    }

    #[test]
    fn shown_answers() {
        assert_eq!(shown(Some(b"a\nb\n")), "`a / b`");
        assert_eq!((shown(Some(b"\n")), shown(None)), ("nothing".into(), "no answer".into()));
    }
}
