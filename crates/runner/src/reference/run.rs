//! Finds out what is right to answer: runs the operations without a crash, and lets the live process be forked at every boundary
//! to see what it would have answered without the next operation.
//!
//! The reference runs begin with the pools as they were before the first operation, all stores in PM. A program that cannot be
//! forked (threads, several processes) is asked in another way: it is started anew on the pools as they were at each boundary.

use std::collections::BTreeMap;

use crash::walk::{Rules, Walk};
use finding::note::RunNote;
use operation::answers::{Answers, shown};
use operation::boundaries::OperationBoundaries;
use operation::equivalence::{Asking, Equivalence};
use operation::expected::Expected;
use operation::workload::Workload;
use recover::command::Operations;
use recover::report::RunReport;
use recover::server::ServerError;
use trace::event::{EventKind, ExitStatus};
use trace::{ReadError, TraceReader};
use verdict::end::End;

use crate::plan::OperationPlan;
use crate::reference::error::ReferenceError;
use crate::runner::{Runner, RunnerError};
use persistency::states::{Base, CrashState};

/// What the reference runs brought.
#[derive(Debug)]
pub struct ReferenceAnswers {
    pub equivalence: Equivalence,
    /// For the user.
    pub notes: Vec<RunNote>,
    /// Why only the uninstrumented program can be compared with these answers, if that is so.
    pub native: Option<String>,
}

/// Told, before every run, which operation is next; false: the user does not want to wait for more.
pub type Watch<'a> = &'a dyn Fn(usize) -> bool;

/// Runs the operations without a crash.
pub fn reference_answers(
    reader: &TraceReader,
    rules: Rules,
    plan: &OperationPlan,
    runner: &mut Runner,
    goes_on: Watch<'_>,
) -> Result<ReferenceAnswers, ReferenceError> {
    let reference = all_runs(reader, rules, plan, runner, goes_on);
    if reference.as_ref().is_err_and(ReferenceError::is_about_a_run) {
        runner.had_room()?;
    }
    reference
}

fn all_runs(
    reader: &TraceReader,
    rules: Rules,
    plan: &OperationPlan,
    runner: &mut Runner,
    goes_on: Watch<'_>,
) -> Result<ReferenceAnswers, ReferenceError> {
    let boundaries = OperationBoundaries::of(reader, &plan.boundaries)?;
    if let Asking::Resumed(templates) = &plan.asking {
        let mut runs = ReferenceRuns::new(reader, rules, plan, &boundaries, runner, goes_on)?;
        let expected = runs.resumed(templates)?;
        let notes = failed_without(&expected);
        return Ok(ReferenceAnswers { notes, ..plan.reference(boundaries, expected) });
    }
    let given = plan.workload.count();
    all_read(reader, &boundaries, &plan.workload)?;
    let is_served = runner.stage().is_some();
    let mut runs = ReferenceRuns::new(reader, rules, plan, &boundaries, runner, goes_on)?;
    if !is_served {
        let expected = runs.whole_outputs()?;
        return Ok(plan.reference(boundaries, expected));
    }
    let straight = match runs.straight() {
        Err(ReferenceError::Runner(RunnerError::Server(ServerError::Refused(why)))) => {
            let expected = runs.whole_outputs()?;
            return Ok(ReferenceAnswers { native: Some(why), ..plan.reference(boundaries, expected) });
        }
        straight => straight?,
    };
    let window = plan.workload.next_window(0);
    runs.varies(&straight, window)?;
    if window < given {
        let expected = runs.windowed()?;
        return Ok(plan.reference(boundaries, expected));
    }
    let mut notes = Vec::new();
    let expected = match runs.live() {
        Ok(expected) => expected,
        Err(ReferenceError::Runner(RunnerError::Server(ServerError::Refused(why)))) => {
            notes.push(RunNote::Reopened { why });
            runs.reopened(&straight)?
        }
        Err(error) => return Err(error),
    };
    runs.same(&expected.whole, &straight.first(given))?;
    if let Some(readback) = &expected.readbacks[given] {
        let mut asked = Answers::default();
        let queries = plan.workload.queries(given);
        queries.iter().filter_map(|query| straight.get(given + query)).for_each(|answer| asked.push(answer));
        runs.same(readback, &asked)?;
    }
    if plan.workload.asked_queries() < plan.workload.readback_count() {
        let (asked, all) = (plan.workload.asked_queries() as u64, plan.workload.readback_count() as u64);
        notes.push(RunNote::FewQueries { asked, all });
    }
    notes.extend(failed_without(&expected));
    Ok(ReferenceAnswers { notes, ..plan.reference(boundaries, expected) })
}

/// Runs that fail by themselves are no reason not to look at the others.
fn failed_without(expected: &Expected) -> Vec<RunNote> {
    let operations = expected.fails_without.len() as u64;
    if operations == 0 { Vec::new() } else { vec![RunNote::FailsWithout { operations }] }
}

impl OperationPlan {
    fn reference(&self, boundaries: OperationBoundaries, expected: Expected) -> ReferenceAnswers {
        let equivalence = Equivalence {
            workload: self.workload.clone(),
            boundaries,
            expected,
            asking: self.asking.clone(),
            forgiven: BTreeMap::new(),
        };
        ReferenceAnswers { equivalence, notes: Vec::new(), native: None }
    }
}

/// Has the recorded program read its operations, each of them once?
pub fn all_read(
    reader: &TraceReader,
    boundaries: &OperationBoundaries,
    workload: &Workload,
) -> Result<(), ReferenceError> {
    let (read, given) = (boundaries.count(), workload.count());
    if read == given {
        return Ok(());
    }
    let how = ended(reader)?;
    Err(match read {
        0 => ReferenceError::NotRead { how },
        _ if read > given => ReferenceError::ReadMore { read, given },
        _ => {
            let how = how.unwrap_or_else(|| "stopped reading".into());
            ReferenceError::ReadLess { read, given, how, last: workload.shown(read - 1) }
        }
    })
}

/// How the recorded program failed, if it did: its first process is the last to end.
fn ended(reader: &TraceReader) -> Result<Option<String>, ReadError> {
    let mut how = None;
    let mut events = reader.events();
    while let Some((_, event)) = events.next_with_id()? {
        match event.kind {
            EventKind::ProcessExit { status: ExitStatus::Code(0) } => how = None,
            EventKind::ProcessExit { status: ExitStatus::Code(code) } => {
                how = Some(format!("ended with exit code {code}"));
            }
            EventKind::ProcessExit { status: ExitStatus::Signal(signal) } => {
                how = Some(format!("was killed by signal {signal}"));
            }
            _ => {}
        }
    }
    Ok(how)
}

/// A run that should have gone well ended like this.
pub(crate) fn died(end: &End, answered: usize, given: usize, last: String) -> ReferenceError {
    ReferenceError::Died { how: how(end), answered, given, last }
}

pub(crate) fn how(end: &End) -> String {
    match end {
        End::Exited(0) => "stopped reading".into(),
        End::Exited(code) => format!("ended with exit code {code}"),
        End::Signalled { signal, .. } => format!("was killed by signal {signal}"),
        End::Hung => "did not end in time (--timeout)".into(),
        End::OverLimit(limit) => format!("met its limit ({limit:?})"),
    }
}

/// The same, with what it said last: a driver tells there why it gave up.
pub(crate) fn how_and_said(run: &RunReport) -> String {
    /// Longer ones are cut.
    const LONGEST: usize = 300;
    let text = String::from_utf8_lossy(&run.stderr);
    match text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("{} and said `{}`", how(&run.end), line.chars().take(LONGEST).collect::<String>()),
        None => how(&run.end),
    }
}

/// The end of the run is the program's own, and nothing of its output is missing.
pub(crate) fn whole(run: RunReport, kept: u64) -> Result<RunReport, ReferenceError> {
    match run.end {
        End::Signalled { signal: libc::SIGKILL, .. } => Err(ReferenceError::Killed),
        _ if run.output_cut => Err(ReferenceError::TooMuch(kept >> 20)),
        _ => Ok(run),
    }
}

/// What is written after the last operation.
fn farewell(run: &RunReport, operations: usize) -> Vec<u8> {
    let from = run.boundaries.get(operations).map_or(run.stdout.len(), |&at| at as usize);
    run.stdout[from.min(run.stdout.len())..].to_vec()
}

pub(crate) struct ReferenceRuns<'a> {
    /// From boundary to boundary: the way back to an earlier one is the longer.
    walk: Walk<'a>,
    pub(crate) plan: &'a OperationPlan,
    pub(crate) boundaries: &'a OperationBoundaries,
    pub(crate) runner: &'a mut Runner,
    pub(crate) goes_on: Watch<'a>,
    /// The boundary whose pools are in the slot.
    shown: usize,
}

impl<'a> ReferenceRuns<'a> {
    fn new(
        reader: &'a TraceReader,
        rules: Rules,
        plan: &'a OperationPlan,
        boundaries: &'a OperationBoundaries,
        runner: &'a mut Runner,
        goes_on: Watch<'a>,
    ) -> Result<ReferenceRuns<'a>, ReferenceError> {
        Ok(ReferenceRuns { walk: Walk::new(reader, rules)?, plan, boundaries, runner, goes_on, shown: 0 })
    }

    /// Before a run.
    pub(crate) fn watch(&self, number: usize) -> Result<(), ReferenceError> {
        if (self.goes_on)(number) { Ok(()) } else { Err(ReferenceError::Stopped) }
    }

    pub(crate) fn all(&self) -> Vec<std::ops::Range<u64>> {
        let workload = &self.plan.workload;
        let all = [workload.byte_range(0..workload.count()), workload.readback_range()];
        all.into_iter().filter(|byte_range| !byte_range.is_empty()).collect()
    }

    /// Puts the pools into the slot as they were when operation `number` began, or after the last one.
    pub(crate) fn show(&mut self, number: usize) -> Result<(), ReferenceError> {
        self.watch(number)?;
        self.put(number)
    }

    /// The same, without a word about how far the runs are.
    pub(crate) fn put(&mut self, number: usize) -> Result<(), ReferenceError> {
        self.shown = number;
        let at = self.boundaries.begin(number).or_else(|| self.boundaries.end(number - 1)).unwrap_or_default();
        if self.walk.at() > at {
            self.walk.rewind()?;
        }
        self.walk.advance_to(at)?;
        let view = self.walk.view();
        let everything = CrashState { base: Base::Everything, lines: Vec::new() };
        let image = view.image(&everything)?;
        Ok(self.runner.show(&image)?)
    }

    pub(crate) fn run(&mut self, byte_ranges: Vec<std::ops::Range<u64>>) -> Result<RunReport, ReferenceError> {
        let limits = self.runner.plan.limits.clone();
        if let Some(run) = self.runner.row(&byte_ranges, &limits)? {
            self.runner.changed_by(&run);
            return self.is_whole(run);
        }
        if self.runner.is_stale() {
            self.put(self.shown)?;
        }
        let text = std::sync::Arc::clone(self.plan.workload.text());
        let run = match self.runner.stage() {
            Some((server, slot, plan)) => {
                server.give(byte_ranges);
                server.run(slot, &plan.limits).map_err(RunnerError::from)?
            }
            None => self.runner.native_run(Operations { text, byte_ranges })?,
        };
        self.is_whole(run)
    }

    /// See [`whole`].
    pub(crate) fn is_whole(&self, run: RunReport) -> Result<RunReport, ReferenceError> {
        whole(run, self.runner.kept_output())
    }

    /// All operations and the readback, in one run: it must go well, and answer.
    fn straight(&mut self) -> Result<Answers, ReferenceError> {
        self.show(0)?;
        let run = self.run(self.all())?;
        let (count, readback) = (self.plan.workload.count(), self.plan.workload.readback_count());
        let answers = Answers::of(&run, count + readback);
        self.went_well(&run, answers.count(), count + readback)?;
        self.in_step(&run, &answers)?;
        if answers.bytes().is_empty() {
            return Err(ReferenceError::NoAnswers(count + readback));
        }
        Ok(answers)
    }

    /// Is each answer there before the next operation is read?
    fn in_step(&mut self, run: &RunReport, answers: &Answers) -> Result<(), ReferenceError> {
        let workload = &self.plan.workload;
        let all = workload.count() + workload.readback_count();
        let silent = |number: &usize| answers.get(*number).is_none_or(<[u8]>::is_empty);
        let Some(number) = (0..all).find(silent) else { return Ok(()) };
        let late = ReferenceError::OutOfStep { number, operation: workload.shown(number) };
        // The last one that seems to be answered, asked alone: if it is not, what it seemed to say was of one before it.
        let alone = (0..all).rev().find(|number| !silent(number));
        let byte_range = alone.map(|number| match number.checked_sub(workload.count()) {
            Some(query) => workload.query_range(query),
            None => workload.byte_range(number..number + 1),
        });
        self.show(0)?;
        let idle = farewell(&self.run(Vec::new())?, 0);
        // Something is said at the end that is not said without operations.
        if let Some(byte_range) = byte_range {
            self.show(0)?;
            let single = self.run(vec![byte_range])?;
            let unanswered = Answers::of(&single, 1).bytes().is_empty();
            return if unanswered && farewell(&single, 1) != idle { Err(late) } else { Ok(()) };
        }
        if farewell(run, all) != idle { Err(late) } else { Ok(()) }
    }

    pub(crate) fn went_well(&self, run: &RunReport, answered: usize, given: usize) -> Result<(), ReferenceError> {
        if run.end == End::Exited(0) && answered >= given {
            return Ok(());
        }
        let last = self.plan.workload.shown(answered.saturating_sub(1));
        Err(ReferenceError::Died { how: how_and_said(run), answered, given, last })
    }

    /// The uninstrumented program, twice, and the recorded one must have answered the same.
    /// After the first window that need not be: its operations have no order.
    fn varies(&mut self, straight: &Answers, window: usize) -> Result<(), ReferenceError> {
        let whole = window == self.plan.workload.count();
        let known = if whole { straight.count() } else { window };
        let mut outputs = Vec::new();
        for _ in 0..2 {
            outputs.push((self.natively(0, self.all())?.stdout, known));
        }
        if let Some(recorded) = &self.plan.recorded {
            outputs.push((recorded.clone(), window));
        }
        for (output, count) in &outputs {
            self.fits(straight, *count, output)?;
        }
        Ok(())
    }

    /// Are the first `count` answers in this output, whatever is around them?
    fn fits(&self, straight: &Answers, count: usize, output: &[u8]) -> Result<(), ReferenceError> {
        let len: usize = straight.iter().take(count).map(<[u8]>::len).sum();
        let wanted = &straight.bytes()[..len];
        let agrees = |at: usize| output[at..].iter().zip(wanted).take_while(|(a, b)| a == b).count();
        // The place where most of it fits; a banner may be before it.
        const BANNER: usize = 4096;
        let best = (0..output.len().min(BANNER) + 1)
            .map(|at| (agrees(at), at))
            .max_by_key(|(len, at)| (*len, usize::MAX - at));
        let Some((same, at)) = best.filter(|(same, _)| *same < wanted.len()) else { return Ok(()) };
        let mut end = 0;
        let number = straight.iter().position(|answer| {
            end += answer.len();
            end > same
        });
        let number = number.unwrap_or(0);
        let before: usize = straight.iter().take(number).map(<[u8]>::len).sum();
        let other = output.get(at + before..).unwrap_or_default();
        let line = other.iter().position(|&byte| byte == b'\n').map_or(other.len(), |end| end + 1);
        Err(ReferenceError::Varies {
            number,
            operation: self.plan.workload.shown(number),
            one: shown(straight.get(number)),
            other: shown(Some(&other[..line])),
        })
    }

    pub(crate) fn same(&self, one: &Answers, other: &Answers) -> Result<(), ReferenceError> {
        let Some(number) = one.first_difference(other) else { return Ok(()) };
        Err(ReferenceError::Varies {
            number,
            operation: self.plan.workload.shown(number),
            one: shown(one.get(number)),
            other: shown(other.get(number)),
        })
    }
}
