//! Output equivalence: the verdict on a recovered process by its answers.

use recover::report::RunReport;
use trace::event::EventId;
use verdict::verdict::Verdict;

use crate::answers::{Answers, shown};
use crate::boundaries::OperationBoundaries;
use crate::expected::Expected;
use crate::resumed::{self, Templates};
use crate::workload::Workload;
use verdict::position::CrashPosition;

/// How a recovered process is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asking {
    /// On its standard input.
    Fed,
    /// By a command of its own.
    Resumed(Templates),
}

/// All that is needed to judge a recovered process by its answers.
#[derive(Clone, Debug)]
pub struct Equivalence {
    pub workload: Workload,
    pub boundaries: OperationBoundaries,
    pub expected: Expected,
    pub asking: Asking,
}

impl Equivalence {
    pub fn position(&self, at: EventId) -> CrashPosition {
        self.boundaries.position(at)
    }

    /// What a process that recovered in this position is asked: byte_ranges of the workload's text.
    pub fn byte_ranges(&self, position: CrashPosition) -> Vec<std::ops::Range<u64>> {
        if self.asking != Asking::Fed {
            return Vec::new();
        }
        self.workload.byte_ranges(self.expected.asked(position))
    }

    /// Answers that are right in this position, as text: all, one after the other. Empty if nothing is known.
    pub fn allowed(&self, position: CrashPosition) -> Vec<Vec<u8>> {
        self.expected.right(position).iter().map(|answers| self.written(answers)).collect()
    }

    /// These answers as text. The end of a run is none.
    fn written(&self, answers: &Answers) -> Vec<u8> {
        let end = if self.asking == Asking::Fed { None } else { answers.iter().last() };
        answers.bytes()[..answers.bytes().len() - end.map_or(0, <[u8]>::len)].to_vec()
    }

    /// A run of the uninstrumented program, of which the boundaries are not known.
    pub fn judge_native(&self, position: CrashPosition, run: &RunReport) -> Verdict {
        match self.asking {
            Asking::Fed => {
                let mut verdict = judge_whole(&self.allowed(position), &run.stdout);
                if !verdict.pass {
                    verdict.symptom.text = format!("{} ({})", verdict.symptom.text, self.told(position));
                }
                verdict
            }
            Asking::Resumed(_) => self.judge(position, run, Verdict::pass()),
        }
    }

    /// A run of which the boundaries are known; `end` is the verdict on how it ended.
    pub fn judge(&self, position: CrashPosition, run: &RunReport, end: Verdict) -> Verdict {
        let asked: Vec<usize> = self.workload.numbers(self.expected.asked(position)).collect();
        if !end.pass && self.fails_rightly(position, run) {
            return Verdict::pass();
        }
        let is_over = self.asking == Asking::Fed && run.boundaries.len() > asked.len();
        if !end.pass && !is_over {
            return self.ended(position, run, end, &asked);
        }
        let answers = match self.asking {
            Asking::Fed => Answers::of(run, asked.len()),
            Asking::Resumed(_) => resumed::answers(run),
        };
        let right = self.expected.right(position);
        let differs: Option<Vec<usize>> = right.iter().map(|right| answers.first_difference(right)).collect();
        let Some(differs) = differs.filter(|differs| !differs.is_empty()) else {
            return if end.pass { end } else { self.ended_last(position, end) };
        };
        let number = differs.iter().copied().max().unwrap_or(0);
        // The first answer that fits none; if each fits one of them, it is the mixture that is wrong.
        let wrong = (0..number + 1).find(|&at| right.iter().all(|right| answers.get(at) != right.get(at)));
        let operation = asked.get(wrong.unwrap_or(number)).copied();
        let kind = operation.map_or_else(|| "?".into(), |operation| self.workload.kind(operation));
        let text = match wrong {
            Some(at) => self.wrong(position, operation, &answers, &right, at),
            None => self.mixed(position, &differs.iter().map(|&at| asked.get(at).copied()).collect::<Vec<_>>()),
        };
        let what = if wrong.is_some() { "answer" } else { "mixed answers" };
        Verdict::fail(format!("{what} of {kind}"), text)
    }

    /// Does the program fail in this way without a crash, too? (Some cannot do without an operation.)
    fn fails_rightly(&self, position: CrashPosition, run: &RunReport) -> bool {
        let given = self.workload.numbers(self.expected.asked(position)).count();
        let answers = Answers::of(run, given);
        self.expected.right_failures(position, &run.end).contains(&answers)
    }

    /// The same of a run of which the boundaries are not known.
    pub fn fails_rightly_native(&self, position: CrashPosition, run: &RunReport) -> bool {
        let right = self.expected.right_failures(position, &run.end);
        right.iter().any(|answers| contains(&run.stdout, answers.bytes()))
    }

    /// A process that died while it was asked had recovered: it is what recovery left that is wrong.
    fn ended(&self, position: CrashPosition, run: &RunReport, end: Verdict, asked: &[usize]) -> Verdict {
        let Some(&number) = run.boundaries.len().checked_sub(1).and_then(|at| asked.get(at)) else { return end };
        let how = end.symptom.text.strip_prefix("recovery ").unwrap_or(&end.symptom.text).to_owned();
        Verdict::fail(
            format!("end of {}", self.workload.kind(number)),
            format!("recovery said nothing, but in {} the program {how} ({})", self.named(number), self.told(position)),
        )
    }

    /// A process that answered everything as it should, and then failed.
    fn ended_last(&self, position: CrashPosition, end: Verdict) -> Verdict {
        let how = end.symptom.text.strip_prefix("recovery ").unwrap_or(&end.symptom.text).to_owned();
        let text = format!(
            "recovery said nothing, and every operation after it is answered rightly, but then the program {how} ({})",
            self.told(position)
        );
        Verdict::fail(end.symptom.key, text)
    }

    fn wrong(
        &self,
        position: CrashPosition,
        operation: Option<usize>,
        own: &Answers,
        right: &[Answers],
        at: usize,
    ) -> String {
        /// More are not read by anybody.
        const MOST: usize = 4;
        let operation = operation.map_or_else(|| "a later operation".into(), |number| self.named(number));
        let mut instead: Vec<String> = Vec::new();
        for answers in right {
            let answer = shown(answers.get(at));
            if !instead.contains(&answer) {
                instead.push(answer);
            }
        }
        if instead.len() > MOST {
            instead.truncate(MOST);
            instead.push("others".into());
        }
        format!(
            "recovery said nothing, but {operation} is answered {} instead of {} ({})",
            shown(own.get(at)),
            instead.join(" or "),
            self.told(position)
        )
    }

    /// `differs`: where the answers leave each of the right ones.
    fn mixed(&self, position: CrashPosition, differs: &[Option<usize>]) -> String {
        let name = |number: Option<usize>| number.map_or_else(|| "a later one".into(), |number| self.named(number));
        match (position, differs) {
            (CrashPosition::During(number), [undone, done]) if self.workload.parts(number).is_empty() => format!(
                "recovery said nothing, but {} is half done: {} is answered as if it had not happened, {} as if it had",
                self.named(number),
                name(*undone),
                name(*done)
            ),
            _ => format!(
                "recovery said nothing, but no order in which operations can have happened explains all answers ({})",
                self.told(position)
            ),
        }
    }

    /// `operation 17 (i 5 9)`, or a query of the readback.
    pub fn named(&self, number: usize) -> String {
        match number < self.workload.count() {
            true => format!("operation {number} (`{}`)", self.workload.shown(number)),
            false => format!("`{}`", self.workload.shown(number)),
        }
    }

    fn told(&self, position: CrashPosition) -> String {
        match position {
            CrashPosition::Before => "the crash came before the first operation".into(),
            CrashPosition::During(number) if !self.workload.parts(number).is_empty() => {
                format!(
                    "the crash came during {}, any part of which may have happened, in any order",
                    self.named(number)
                )
            }
            CrashPosition::During(number) => {
                format!("the crash came during {}, which may have happened or not", self.named(number))
            }
            CrashPosition::After(number) => {
                format!("the crash came after {}, which had been answered", self.named(number))
            }
        }
    }
}

/// A run of which only the whole output is known, as of the uninstrumented program: does it contain one of these answers?
pub fn judge_whole(allowed: &[Vec<u8>], stdout: &[u8]) -> Verdict {
    let right = allowed.iter().any(|answers| answers.is_empty() || contains(stdout, answers));
    if right || allowed.is_empty() {
        return Verdict::pass();
    }
    Verdict::fail(
        "answer",
        "recovery said nothing, but the operations after it are not answered as in any run without a crash",
    )
}

/// How an uninstrumented run failed, which does not show how far it came.
pub fn somewhere(symptom: &str) -> String {
    match symptom.strip_prefix("recovery ").filter(|how| !how.starts_with("said nothing")) {
        Some(how) => format!("recovery, or an operation after it, {how}"),
        None => symptom.to_owned(),
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // Banner and farewell are short: one of the first places fits, or none.
    text.len() >= part.len() && (0..=text.len() - part.len()).any(|at| &text[at..at + part.len()] == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_output_may_have_more_around_the_answers() {
        let allowed = [b"1\n2\n".to_vec(), b"1\n3\n".to_vec()];
        assert!(judge_whole(&allowed, b"hi\n1\n3\nbye\n").pass);
        assert!(!judge_whole(&allowed, b"hi\n1\n4\nbye\n").pass);
        assert!(!judge_whole(&allowed, b"").pass);
    }

    #[test]
    fn who_failed_is_not_known_in_plain_mode() {
        assert_eq!(somewhere("recovery was killed"), "recovery, or an operation after it, was killed");
        assert_eq!(somewhere("recovery said nothing, but"), "recovery said nothing, but");
    }
}
