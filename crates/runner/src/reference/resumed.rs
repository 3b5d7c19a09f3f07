//! Right answers of a program that reads a file of operations itself: its own commands are run on the pools as they were before
//! the first operation.

use operation::answers::Answers;
use operation::expected::Expected;
use operation::resumed::{Templates, answers, lines};
use verdict::end::End;
use verdict::position::CrashPosition;

use crate::reference::error::ReferenceError;
use crate::reference::run::ReferenceRuns;

impl ReferenceRuns<'_> {
    /// The whole run, twice, and every run without one operation.
    pub(crate) fn resumed(&mut self, templates: &Templates) -> Result<Expected, ReferenceError> {
        let count = self.boundaries.count();
        // Without {end} all that is left is run. The only readback is the end of the run.
        let after = if templates.is_limited() { self.plan.operations_after } else { count };
        let mut expected = Expected::new(&self.plan.workload, after);
        let pool = self.runner.pool().to_owned();
        let words = templates.resume(CrashPosition::Before, &pool, count);
        let (whole, _) = self.answers_of(&words, 0)?;
        self.has_lines(&words, &whole, count)?;
        let (again, _) = self.answers_of(&words, 0)?;
        self.same(&whole, &again)?;
        if let Some(recorded) = &self.plan.recorded {
            let own = lines(recorded);
            let first = part(&whole, 0..count);
            self.same(&first, &own)?;
        }
        expected.whole = part(&whole, 0..count);
        expected.readbacks.fill(Some(part(&whole, count..count + 1)));
        for number in 0..count {
            let words = templates.without(number, &pool);
            let (all, end) = self.answers_of(&words, number)?;
            if end != End::Exited(0) {
                // Without it the program cannot do its work: nobody knows what it would answer.
                expected.unknown.insert(number);
                expected.fails_without.insert(number, end);
                continue;
            }
            self.has_lines(&words, &all, count - 1)?;
            let last = (number + expected.operations_after).min(count - 1);
            let mut answers = part(&all, number..last);
            answers.extend(&part(&all, count - 1..count));
            expected.without[number] = Some(answers);
        }
        Ok(expected)
    }

    /// What the command answers, with its end as the last answer.
    fn answers_of(&mut self, words: &[String], progress: usize) -> Result<(Answers, End), ReferenceError> {
        self.watch(progress)?;
        self.put(0)?;
        let command = self.runner.of_words(words);
        let run = self.runner.native_command(&command)?;
        let run = self.is_whole(run)?;
        Ok((answers(&run), run.end))
    }

    /// As many lines as operations, or else something is wrong with the command.
    fn has_lines(&self, words: &[String], answers: &Answers, wanted: usize) -> Result<(), ReferenceError> {
        let lines = answers.count() - 1;
        if lines == wanted {
            return Ok(());
        }
        let how = operation::answers::shown(answers.get(lines)).trim_matches('`').to_owned();
        Err(ReferenceError::Lines { command: words.join(" "), how, lines, wanted })
    }
}

fn part(answers: &Answers, range: std::ops::Range<usize>) -> Answers {
    let mut part = Answers::default();
    range.filter_map(|number| answers.get(number)).for_each(|answer| part.push(answer));
    part
}
