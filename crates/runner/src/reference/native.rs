//! Right answers of a program that the probe cannot run, or shall not: the uninstrumented one is started on the pools as they were
//! at every boundary. Nobody sees there which answer belongs to which operation, so all that a run writes is one answer; but what it
//! writes without operations, before and after them, is none.

use std::ops::Range;

use operation::answers::{Answers, shown};
use operation::expected::Expected;
use recover::command::Operations;
use recover::report::RunReport;
use verdict::end::End;

use crate::reference::error::ReferenceError;
use crate::reference::live::{ends, failure};
use crate::reference::run::{ReferenceRuns, how_and_said};

impl ReferenceRuns<'_> {
    pub(crate) fn whole_outputs(&mut self) -> Result<Expected, ReferenceError> {
        let workload = &self.plan.workload;
        let count = workload.count();
        if workload.next_window(0) < count {
            return Err(ReferenceError::PlainWindows);
        }
        let (one, other) = (self.natively(0, self.all())?.stdout, self.natively(0, self.all())?.stdout);
        same_lines(&one, &other)?;
        if one.is_empty() {
            return Err(ReferenceError::NoAnswers(count + workload.readback_count()));
        }
        let mut expected = Expected::new(workload, self.plan.operations_after);
        for boundary in 0..=count {
            self.show(boundary)?;
            let idle = self.run_natively(Vec::new())?.stdout;
            let (committed, failure) = self.output_at(boundary, expected.asked_from(boundary), &idle)?;
            ends(failure.as_ref(), workload, boundary)?;
            expected.at_boundary.push(committed);
            expected.fails_after.extend(failure.map(|end| (boundary, end)));
            if boundary < count {
                let (rolled_back, failure) = self.output_at(boundary, expected.asked_from(boundary + 1), &idle)?;
                expected.without[boundary] = Some(rolled_back);
                expected.fails_without.extend(failure.map(|end| (boundary, end)));
            }
        }
        Ok(expected)
    }

    /// What a process answers that is started on the pools as they were at this boundary, and given these operations and the readback; how it
    /// ends, if not well.
    fn output_at(
        &mut self,
        boundary: usize,
        rest: Range<usize>,
        idle: &[u8],
    ) -> Result<(Answers, Option<End>), ReferenceError> {
        let byte_ranges = self.plan.workload.byte_ranges(rest);
        let mut answers = Answers::default();
        self.show(boundary)?;
        let run = self.run_natively(byte_ranges)?;
        answers.push(beyond(&run.stdout, idle));
        Ok((answers, failure(run)))
    }

    /// One run of the uninstrumented program, which must go well.
    pub(crate) fn natively(
        &mut self,
        boundary: usize,
        byte_ranges: Vec<Range<u64>>,
    ) -> Result<RunReport, ReferenceError> {
        self.show(boundary)?;
        let run = self.run_natively(byte_ranges)?;
        match run.end {
            End::Exited(0) => Ok(run),
            _ => Err(ReferenceError::PlainDied { how: how_and_said(&run) }),
        }
    }

    fn run_natively(&mut self, byte_ranges: Vec<Range<u64>>) -> Result<RunReport, ReferenceError> {
        let text = std::sync::Arc::clone(self.plan.workload.text());
        let run = self.runner.native_run(Operations { text, byte_ranges })?;
        self.is_whole(run)
    }
}

/// What is written between the beginning and the end that both have in common.
fn beyond<'a>(output: &'a [u8], idle: &[u8]) -> &'a [u8] {
    let same = |pair: &(&u8, &u8)| pair.0 == pair.1;
    let banner = output.iter().zip(idle).take_while(same).count();
    let (output, idle) = (&output[banner..], &idle[banner..]);
    let farewell = output.iter().rev().zip(idle.iter().rev()).take_while(same).count();
    &output[..output.len() - farewell]
}

fn same_lines(one: &[u8], other: &[u8]) -> Result<(), ReferenceError> {
    let (mut own, mut others) = (one.split(|&byte| byte == b'\n'), other.split(|&byte| byte == b'\n'));
    for line in 1.. {
        match (own.next(), others.next()) {
            (None, None) => break,
            (one, other) if one == other => {}
            (one, other) => {
                return Err(ReferenceError::OutputVaries { line, one: shown(one), other: shown(other) });
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_banner_nor_farewell_is_compared() {
        assert_eq!(beyond(b"hi\n1\n2\nbye\n", b"hi\nbye\n"), b"1\n2\n");
        assert_eq!(beyond(b"1\n2\n", b""), b"1\n2\n");
        assert_eq!(beyond(b"hi\n", b"hi\n"), b"");
        // An answer that begins as the farewell does: what is left is still a piece of the output.
        assert_eq!(beyond(b"hi\nbut\nbye\n", b"hi\nbye\n"), b"ut\nb");
    }
}
