//! Right answers where operations happen at the same time: a window may have happened in any order, and during a crash any part of
//! it (Witcher §5.2). What it did in the recording is what the pools were after it; all other orders are run, one operation after
//! the other, on the pools as they were before it.

use std::ops::Range;

use operation::answers::Answers;
use operation::expected::Expected;
use operation::scene::Scene;
use operation::window::{partial_orders, whole_orders};

use crate::rehearse::Rehearsing;
use crate::rehearse_error::RehearseError;

impl Rehearsing<'_> {
    pub(crate) fn windowed(&mut self) -> Result<Expected, RehearseError> {
        let workload = &self.plan.workload;
        let count = workload.count();
        let mut expected = Expected::new(workload, self.plan.horizon);
        for border in 0..=count {
            let asked = expected.asked_from(border);
            let committed = self.answers_at(border, &[], asked)?;
            expected.at_border.push(committed);
            if border == count {
                break;
            }
            let rest = expected.asked_from(border + 1);
            let parts = workload.parts(border);
            if parts.is_empty() {
                expected.without[border] = Some(self.answers_at(border, &[], rest)?);
                continue;
            }
            let whole = whole_orders(parts.len());
            for order in partial_orders(parts.len()) {
                let first: Vec<Range<u64>> = order.iter().map(|&part| parts[part].clone()).collect();
                let answers = self.answers_at(border, &first, rest.clone())?;
                if whole.contains(&order) {
                    expected.orders.entry(Scene::After(border).number()).or_default().push(answers.clone());
                }
                expected.orders.entry(Scene::During(border).number()).or_default().push(answers);
            }
        }
        Ok(expected)
    }

    /// On the pools as they were at this border: what these operations and the tail are answered after the first ones.
    fn answers_at(
        &mut self,
        border: usize,
        first: &[Range<u64>],
        rest: Range<usize>,
    ) -> Result<Answers, RehearseError> {
        let workload = &self.plan.workload;
        let given = first.len() + rest.len() + workload.asked_queries();
        let stretches = first.iter().cloned().chain(workload.stretches(rest)).collect();
        self.show(border)?;
        let run = self.run(stretches)?;
        let all = Answers::of(&run, given);
        self.went_well(&run, all.count(), given)?;
        let mut answers = Answers::default();
        all.iter().skip(first.len()).for_each(|answer| answers.push(answer));
        Ok(answers)
    }
}
