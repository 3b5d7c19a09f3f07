//! Right answers of a program that reads a file of operations itself: its own commands are run on the pools as they were before
//! the first operation.

use operation::answers::Answers;
use operation::expected::Expected;
use operation::resumed::{Templates, answers, lines};
use verdict::position::CrashPosition;

use crate::reference::error::ReferenceError;
use crate::reference::run::ReferenceRuns;

impl ReferenceRuns<'_> {
    /// The whole run, twice, and every run without one operation.
    pub(crate) fn resumed(&mut self, templates: &Templates) -> Result<Expected, ReferenceError> {
        let count = self.boundaries.count();
        // All that is left is always run: there is no operations_after and one readback, the end of the run.
        let mut expected = Expected::new(&self.plan.workload, count);
        let pool = self.runner.pool().to_owned();
        let words = templates.resume(CrashPosition::Before, &pool);
        let whole = self.answers_of(&words, count)?;
        let again = self.answers_of(&words, count)?;
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
            let all = self.answers_of(&words, count - 1)?;
            expected.without[number] = Some(part(&all, number..count));
        }
        Ok(expected)
    }

    /// What the command answers, and its end: as many lines as operations, or else something is wrong with it.
    fn answers_of(&mut self, words: &[String], wanted: usize) -> Result<Answers, ReferenceError> {
        self.show(0)?;
        let command = self.runner.of_words(words);
        let run = self.runner.native_command(&command)?;
        let run = self.is_whole(run)?;
        let answers = answers(&run);
        let lines = answers.count() - 1;
        if lines != wanted {
            let how = operation::answers::shown(answers.get(lines)).trim_matches('`').to_owned();
            return Err(ReferenceError::Lines { command: words.join(" "), how, lines, wanted });
        }
        Ok(answers)
    }
}

fn part(answers: &Answers, range: std::ops::Range<usize>) -> Answers {
    let mut part = Answers::default();
    range.filter_map(|number| answers.get(number)).for_each(|answer| part.push(answer));
    part
}
