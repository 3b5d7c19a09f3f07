//! Output equivalence: the verdict on a recovered process by its answers.

use std::collections::{BTreeMap, BTreeSet};

use recover::report::RunReport;
use serde::{Deserialize, Serialize};
use trace::event::EventId;
use verdict::symptom::{Answer, AtCrash, HalfDone, OperationName, Party, Symptom};
use verdict::verdict::Verdict;

use crate::answers::Answers;
use crate::boundaries::OperationBoundaries;
use crate::expected::Expected;
use crate::grammar::LineOrder;
use crate::listing::Listing;
use crate::resumed::{self, Templates};
use crate::workload::Workload;
use verdict::position::CrashPosition;

/// How a recovered process is asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Asking {
    /// On its standard input.
    Fed,
    /// By a command of its own.
    Resumed(Templates),
}

/// All that is needed to judge a recovered process by its answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Equivalence {
    pub workload: Workload,
    pub boundaries: OperationBoundaries,
    pub expected: Expected,
    pub asking: Asking,
    /// By the number of a position: answers that are not looked at. What a known bug does to them shall not hide what others do.
    pub forgiven: BTreeMap<u64, BTreeSet<usize>>,
}

impl Equivalence {
    /// False if its parts do not belong together: another machine sent it.
    pub fn is_sound(&self) -> bool {
        self.workload.is_sound() && self.expected.is_sound(self.workload.count())
    }

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
            Asking::Fed if judge_whole(&self.allowed(position), &run.stdout).is_pass() => Verdict::Pass,
            Asking::Fed if self.workload.order == Some(LineOrder::Any) && self.has_lines(position, &run.stdout) => {
                Verdict::Pass
            }
            Asking::Fed => Verdict::fail(Symptom::WrongOutput { crash: Some(self.at_crash(position)) }),
            Asking::Resumed(_) => self.judge(position, run, Verdict::Pass),
        }
    }

    fn listing(&self) -> Listing<'_> {
        Listing { separator: self.workload.separator.as_deref() }
    }

    /// Are the lines of one of the right sequences of answers there, in whatever order, and nothing between them?
    fn has_lines(&self, position: CrashPosition, stdout: &[u8]) -> bool {
        self.allowed(position).iter().any(|right| self.listing().has_lines(stdout, right))
    }

    /// A run of which the boundaries are known; `end` is the verdict on how it ended.
    pub fn judge(&self, position: CrashPosition, run: &RunReport, end: Verdict) -> Verdict {
        if self.expected.may_be_right(position, &run.end) {
            return Verdict::Pass;
        }
        let asked: Vec<usize> = self.workload.numbers(self.expected.asked(position)).collect();
        let end = match end {
            Verdict::Fail(_) if self.fails_rightly(position, run) => return Verdict::Pass,
            Verdict::Fail(symptom) => Some(*symptom),
            Verdict::Pass => None,
        };
        let is_over = self.asking == Asking::Fed && run.boundaries.len() > asked.len();
        if let Some(symptom) = end.clone().filter(|_| !is_over) {
            return Verdict::fail(self.ended(position, run, symptom, &asked));
        }
        let answers = match self.asking {
            Asking::Fed => Answers::of(run, asked.len()),
            Asking::Resumed(_) => resumed::answers(run),
        };
        let right = self.expected.right(position);
        let is_forgiven = |at: &usize| self.forgiven.get(&position.number()).is_some_and(|set| set.contains(at));
        let is_query = |at: usize| asked.get(at).is_some_and(|&number| number >= self.workload.count());
        let any_order = self.workload.order == Some(LineOrder::Any);
        let listing = self.listing();
        let equal = |at: usize, right: &Answers| {
            answers.get(at) == right.get(at)
                || any_order && is_query(at) && listing.same_items(answers.get(at), right.get(at))
        };
        let first = |right: &Answers| answers.differences(right).find(|&at| !is_forgiven(&at) && !equal(at, right));
        let differs: Option<Vec<usize>> = right.iter().map(first).collect();
        let crash = self.at_crash(position);
        if differs.as_ref().is_some_and(|differs| !differs.is_empty()) && self.workload.order.is_none() && end.is_none()
        {
            let listed = |at: usize, right: &Answers| {
                is_query(at) && listing.is_listing(right.get(at)) && listing.same_items(answers.get(at), right.get(at))
            };
            let in_order =
                |right: &&Answers| answers.differences(right).all(|at| is_forgiven(&at) || listed(at, right));
            if let Some(right) = right.iter().find(in_order) {
                let at = first(right).unwrap_or(0);
                let operation = asked.get(at).map(|&number| self.name(number));
                return Verdict::fail(Symptom::OtherOrder { operation, crash });
            }
        }
        let Some(differs) = differs.filter(|differs| !differs.is_empty()) else {
            // It answered everything as it should, and then failed.
            return match end {
                Some(Symptom::Failed { how, .. }) => Verdict::fail(Symptom::FailedAtEnd { how, crash }),
                Some(symptom) => Verdict::fail(symptom),
                None => Verdict::Pass,
            };
        };
        let number = differs.iter().copied().max().unwrap_or(0);
        // The first answer that fits none; if each fits one of them, it is the mixture that is wrong.
        let fits_none = |at: usize| right.iter().all(|right| !equal(at, right));
        let wrong = (0..number + 1).find(|&at| !is_forgiven(&at) && fits_none(at));
        let name = |at: usize| asked.get(at).map(|&number| self.name(number));
        Verdict::fail(match wrong {
            Some(at) => Symptom::WrongAnswer {
                operation: name(at),
                got: text(answers.get(at)),
                expected: expected(&right, at),
                crash,
            },
            None => {
                let sides: Vec<Option<OperationName>> = differs.iter().map(|&at| name(at)).collect();
                let half_done = self.half_done(position, &sides);
                Symptom::MixedAnswers { operation: name(number), half_done, crash }
            }
        })
    }

    /// The answers of this run that are wrong, where the right ones are those that it comes nearest to. None if it did not answer at
    /// all, or if so much is wrong that nothing can be said of the rest.
    pub fn wrong_answers(&self, position: CrashPosition, run: &RunReport) -> Option<Vec<usize>> {
        let asked = self.workload.numbers(self.expected.asked(position)).count();
        if self.asking != Asking::Fed || run.boundaries.len() <= asked {
            return None;
        }
        let answers = Answers::of(run, asked);
        let right = self.expected.right(position);
        let wrong = right.iter().map(|right| answers.differences(right).collect::<Vec<_>>());
        wrong.min_by_key(Vec::len).filter(|wrong| !wrong.is_empty() && wrong.len() * 2 <= asked)
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
    fn ended(&self, position: CrashPosition, run: &RunReport, symptom: Symptom, asked: &[usize]) -> Symptom {
        let number = run.boundaries.len().checked_sub(1).and_then(|at| asked.get(at));
        match (symptom, number) {
            (Symptom::Failed { how, .. }, Some(&number)) => {
                Symptom::OperationFailed { operation: self.name(number), how, crash: self.at_crash(position) }
            }
            (symptom, _) => symptom,
        }
    }

    /// `differs`: the operations at which the answers leave each of the right ones.
    fn half_done(&self, position: CrashPosition, differs: &[Option<OperationName>]) -> Option<HalfDone> {
        match (position, differs) {
            (CrashPosition::During(number), [undone, done]) if self.workload.parts(number).is_empty() => {
                Some(HalfDone { operation: self.name(number), undone: undone.clone(), done: done.clone() })
            }
            _ => None,
        }
    }

    /// An operation, or a query of the readback.
    pub fn name(&self, number: usize) -> OperationName {
        OperationName {
            number: (number < self.workload.count()).then_some(number as u64),
            text: self.workload.shown(number),
            word: self.workload.kind(number),
        }
    }

    fn at_crash(&self, position: CrashPosition) -> AtCrash {
        let (operation, window) = match position {
            CrashPosition::Before => (None, false),
            CrashPosition::During(number) => (Some(self.name(number)), !self.workload.parts(number).is_empty()),
            CrashPosition::After(number) => (Some(self.name(number)), false),
        };
        AtCrash { position, operation, window }
    }
}

/// Different answers that would have been right there.
fn expected(right: &[Answers], at: usize) -> Vec<Answer> {
    /// More are not read by anybody.
    const MOST: usize = 5;
    let mut all: Vec<Answer> = Vec::new();
    for answers in right {
        let answer = text(answers.get(at));
        if all.len() < MOST && !all.contains(&answer) {
            all.push(answer);
        }
    }
    all
}

/// An answer as text, without its end.
fn text(answer: Option<&[u8]>) -> Answer {
    /// Longer ones are cut.
    const LONGEST: usize = 4096;
    let answer = answer?.trim_ascii_end();
    Some(String::from_utf8_lossy(&answer[..answer.len().min(LONGEST)]).into_owned())
}

/// A run of which only the whole output is known, as of the uninstrumented program: does it contain one of these answers?
pub fn judge_whole(allowed: &[Vec<u8>], stdout: &[u8]) -> Verdict {
    let right = allowed.iter().any(|answers| answers.is_empty() || contains(stdout, answers));
    if right || allowed.is_empty() {
        return Verdict::Pass;
    }
    Verdict::fail(Symptom::WrongOutput { crash: None })
}

/// How an uninstrumented run failed, which does not show how far it came.
pub fn somewhere(symptom: Symptom) -> Symptom {
    match symptom {
        Symptom::Failed { by: Party::Recovery, how } => Symptom::Failed { by: Party::RecoveryOrOperation, how },
        known => known,
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // Banner and farewell are short: one of the first places fits, or none.
    text.len() >= part.len() && (0..=text.len() - part.len()).any(|at| &text[at..at + part.len()] == part)
}

#[cfg(test)]
mod tests {
    use verdict::symptom::Failure;

    use super::*;

    #[test]
    fn the_whole_output_may_have_more_around_the_answers() {
        let allowed = [b"1\n2\n".to_vec(), b"1\n3\n".to_vec()];
        assert!(judge_whole(&allowed, b"hi\n1\n3\nbye\n").is_pass());
        assert!(!judge_whole(&allowed, b"hi\n1\n4\nbye\n").is_pass());
        assert!(!judge_whole(&allowed, b"").is_pass());
    }

    #[test]
    fn who_failed_is_not_known_in_native_mode() {
        let failed = |by| Symptom::Failed { by, how: Failure::Exit { code: 1, complaint: None } };
        assert_eq!(somewhere(failed(Party::Recovery)), failed(Party::RecoveryOrOperation));
        assert_eq!(somewhere(failed(Party::Checker)), failed(Party::Checker));
    }
}
