//! What a program answers without one of its operations: one live process is forked at every boundary; or a new one is started there,
//! where forking is refused.

use operation::answers::Answers;
use operation::expected::Expected;
use operation::workload::Workload;
use recover::report::RunReport;
use recover::server::{ReferenceStep, ServerError};
use verdict::end::End;

use crate::reference::error::ReferenceError;
use crate::reference::run::{ReferenceRuns, died, how, whole};
use crate::runner::RunnerError;

impl ReferenceRuns<'_> {
    /// Does it depend on the operations how the program ends? Of those that tell so, one that is asked for what is not there does.
    fn ends_matter(&mut self) -> Result<bool, ReferenceError> {
        let workload = &self.plan.workload;
        let most = workload.count();
        let nothing_done = [
            workload.readback_ranges(0),
            workload.byte_ranges(1.min(most)..most),
            workload.byte_ranges(most / 2..most),
        ];
        for byte_ranges in nothing_done.into_iter().filter(|byte_ranges| !byte_ranges.is_empty()) {
            self.show(0)?;
            if failure(self.run(byte_ranges)?).is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One live process, forked at every boundary.
    pub(crate) fn live(&mut self) -> Result<Expected, ReferenceError> {
        let ends_matter = self.ends_matter()?;
        self.show(0)?;
        let workload = &self.plan.workload;
        let count = workload.count();
        let (goes_on, kept) = (self.goes_on, self.runner.kept_output());
        let mut expected = Expected::new(workload, self.plan.operations_after);
        let Some((server, slot, plan)) = self.runner.stage() else {
            return Err(RunnerError::Server(ServerError::Refused("native mode was asked for".into())).into());
        };
        let begun = server.reference_run(slot, vec![workload.byte_range(0..count)], &plan.limits, ends_matter);
        let (mut live, mut step) = begun.map_err(RunnerError::from)?;
        for number in 0..=count {
            if !goes_on(number) {
                return Err(ReferenceError::Stopped);
            }
            let ReferenceStep::Boundary(_) = &step else {
                let ReferenceStep::Ended(end, _) = step else { unreachable!("the other kind of step") };
                let last = workload.shown(number.saturating_sub(1));
                return Err(match end {
                    End::Signalled { signal: libc::SIGKILL, .. } => ReferenceError::Killed,
                    end => died(&end, number, count, last),
                });
            };
            let mut branch = |byte_ranges: &[std::ops::Range<u64>]| {
                whole(live.branch(byte_ranges).map_err(RunnerError::from)?, kept)
            };
            for next in expected.asked_here(number) {
                let queries = workload.readback_ranges(next);
                let run = branch(&queries)?;
                ends(Some(&run.end), workload, number)?;
                expected.readbacks[next] = Some(Answers::of(&run, workload.asked_queries()));
                expected.fails_after.extend(failure(run).map(|end| (next, end)));
            }
            if number == count {
                break;
            }
            let rest = number + 1..(number + 1 + expected.operations_after).min(count);
            let given = rest.len() + workload.asked_queries();
            // Without it the program may fail or hang, as it always would.
            let run = branch(&workload.byte_ranges(rest))?;
            expected.without[number] = Some(Answers::of(&run, given));
            expected.fails_without.extend(failure(run).map(|end| (number, end)));
            step = live.go_on().map_err(RunnerError::from)?;
            if let ReferenceStep::Boundary(answer) = &step {
                expected.whole.push(answer);
            }
        }
        Ok(expected)
    }

    /// A new process for every boundary, on the pools as they were there.
    pub(crate) fn reopened(&mut self, straight: &Answers) -> Result<Expected, ReferenceError> {
        let workload = &self.plan.workload;
        let count = workload.count();
        let mut expected = Expected::new(workload, self.plan.operations_after);
        straight.iter().take(count).for_each(|answer| expected.whole.push(answer));
        for number in 0..=count {
            for next in expected.asked_here(number) {
                self.show(number)?;
                let run = self.run(workload.readback_ranges(next))?;
                ends(Some(&run.end), workload, number)?;
                expected.readbacks[next] = Some(Answers::of(&run, workload.asked_queries()));
                expected.fails_after.extend(failure(run).map(|end| (next, end)));
            }
            if number < count {
                self.show(number)?;
                let rest = number + 1..(number + 1 + expected.operations_after).min(count);
                let given = rest.len() + workload.asked_queries();
                let run = self.run(workload.byte_ranges(rest))?;
                expected.without[number] = Some(Answers::of(&run, given));
                expected.fails_without.extend(failure(run).map(|end| (number, end)));
            }
        }
        Ok(expected)
    }
}

/// How a run ended, if not well.
pub(crate) fn failure(run: RunReport) -> Option<End> {
    Some(run.end).filter(|end| *end != End::Exited(0))
}

/// With all operations the program may fail at its end; but how far it comes before it is stopped is not its own doing.
pub(crate) fn ends(end: Option<&End>, workload: &Workload, number: usize) -> Result<(), ReferenceError> {
    match end {
        Some(end @ (End::Hung | End::OverLimit(_))) => {
            Err(ReferenceError::Endless { number, operation: workload.shown(number), how: how(end) })
        }
        _ => Ok(()),
    }
}
