//! Right answers where operations happen at the same time: a window may have happened in any order, and during a crash any part of
//! it (Witcher §5.2). What it did in the recording is what the pools were after it; all other orders are run, one operation after
//! the other, on the pools as they were before it.

use std::ops::Range;

use operation::answers::Answers;
use operation::expected::Expected;
use operation::window::{partial_orders, whole_orders};
use verdict::position::CrashPosition;

use crate::reference::error::ReferenceError;
use crate::reference::run::ReferenceRuns;

impl ReferenceRuns<'_> {
    pub(crate) fn windowed(&mut self) -> Result<Expected, ReferenceError> {
        let workload = &self.plan.workload;
        let count = workload.count();
        let mut expected = Expected::new(workload, self.plan.operations_after);
        for boundary in 0..=count {
            let asked = expected.asked_from(boundary);
            let committed = self.answers_at(boundary, &[], asked)?;
            expected.at_boundary.push(committed);
            if boundary == count {
                break;
            }
            let rest = expected.asked_from(boundary + 1);
            let parts = workload.parts(boundary);
            if parts.is_empty() {
                expected.without[boundary] = Some(self.answers_at(boundary, &[], rest)?);
                continue;
            }
            let whole = whole_orders(parts.len());
            for order in partial_orders(parts.len()) {
                let first: Vec<Range<u64>> = order.iter().map(|&part| parts[part].clone()).collect();
                let answers = self.answers_at(boundary, &first, rest.clone())?;
                if whole.contains(&order) {
                    expected.orders.entry(CrashPosition::After(boundary).number()).or_default().push(answers.clone());
                }
                expected.orders.entry(CrashPosition::During(boundary).number()).or_default().push(answers);
            }
        }
        Ok(expected)
    }

    /// On the pools as they were at this boundary: what these operations and the readback are answered after the first ones.
    fn answers_at(
        &mut self,
        boundary: usize,
        first: &[Range<u64>],
        rest: Range<usize>,
    ) -> Result<Answers, ReferenceError> {
        let workload = &self.plan.workload;
        let given = first.len() + rest.len() + workload.asked_queries();
        let byte_ranges = first.iter().cloned().chain(workload.byte_ranges(rest)).collect();
        self.show(boundary)?;
        let run = self.run(byte_ranges)?;
        let all = Answers::of(&run, given);
        self.went_well(&run, all.count(), given)?;
        let mut answers = Answers::default();
        all.iter().skip(first.len()).for_each(|answer| answers.push(answer));
        Ok(answers)
    }
}
