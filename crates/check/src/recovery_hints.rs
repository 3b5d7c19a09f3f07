//! Conditions that recoveries suggest: a log is read by nobody else, so the recorded run shows nothing about it.
//!
//! Some crash images are recovered under flow mode, spread over the code of the run: what was in PM in program order at the first occurrence
//! of failure points. What these recoveries show about places that the run stores to is added to what the run shows itself. A recovery that
//! fails, hangs or cannot be recorded shows nothing, which is no error: conditions are hints.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crash::image::CrashImage;
use crash::points::Point;
use crash::search::SearchOptions;
use crash::survey::Survey;
use crash::walk::Walk;
use infer::names::Names;
use infer::stored::Stored;
use infer::{Conditions, Inference};
use record::flow::FlowHandle;
use recover::command::{Command, Input};
use rustc_hash::FxHashMap;
use supervise::probe::Substituted;
use supervise::temporary::Temporary;
use trace::event::{ModuleId, PoolId};
use trace::{Tables, TraceReader};
use verdict::end::End;

use crate::session::{CheckSession, Phase, SessionError};
use crash::assignment::Assignment;
use runner::record_recovery::{RecordRecoveryError, RecoveryRecording, put_image};
use runner::runner::Runner;

/// Recoveries to record: most read the same. They cost some 80 ms each, on libpmemobj 350.
const RECOVERIES: usize = 8;

/// After that no more are begun.
const TIME: Duration = Duration::from_secs(3);

/// Operations that a recovered process is asked: drivers that start a process per operation recover only then.
const OPERATIONS: usize = 4;

/// A recovery that takes longer shows nothing.
const LIMIT: Duration = Duration::from_secs(2);

impl CheckSession<'_> {
    /// The options of the search, with the conditions of recoveries; none if there are no conditions at all.
    pub(crate) fn with_recoveries(
        &self,
        survey: &Survey,
        runner: &mut Runner,
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<Option<SearchOptions>, SessionError> {
        let known = self.options.conditions.as_ref();
        let Some((known, conditions)) = known.and_then(|known| Some((known, known.get()?))) else { return Ok(None) };
        on_phase(Phase::Infer);
        let stored = Stored::of(self.reader)?;
        let begun = Instant::now();
        let mut more = Vec::new();
        let mut walk = Walk::new(self.reader, self.options.rules)?;
        for point in spread(survey, self.options.selection.creation) {
            let is_late = self.budget.deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if begun.elapsed() > TIME || is_late || self.is_stopped() {
                break;
            }
            walk.advance_to(point.at)?;
            let view = walk.view();
            let image = view.image(&Assignment::everything(&view).state(&view))?;
            // Only to know that it ends.
            runner.observe(&image)?;
            if !runner.last().is_some_and(|run| matches!(run.end, End::Exited(_))) {
                continue;
            }
            let command = runner.command(runner.position(&image));
            more.extend(self.hints(&image, &command, &stored).ok().flatten());
        }
        let conditions = Some(known.with(conditions.clone().with(more)));
        Ok(Some(SearchOptions { conditions, ..self.options.clone() }))
    }

    /// None if recovery did not end by itself.
    fn hints(
        &self,
        image: &CrashImage<'_>,
        command: &Command,
        stored: &Stored,
    ) -> Result<Option<Conditions>, RecordRecoveryError> {
        let folder = Temporary::new("hints")?;
        let private = put_image(image, &self.plan.pools, folder.path())?;
        let trace = folder.path().join("recovery.fptrace");
        let inference = Arc::new(Mutex::new(Inference::default()));
        let recording = RecoveryRecording { command, private: &private, limit: Some(LIMIT), cancel: &self.plan.cancel };
        let recorded =
            recording.record(&few_operations(command), Some(FlowHandle::new(Arc::clone(&inference))), &trace)?;
        if recorded.interrupted {
            return Ok(None);
        }
        let reader = TraceReader::open(&trace).map_err(io::Error::other)?;
        let names = names(reader.tables(), self.reader.tables(), &private, stored);
        let inference = inference.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Some(inference.conditions_for(&names)))
    }
}

/// First occurrences of failure points, evenly over the run.
fn spread(survey: &Survey, creation: bool) -> Vec<Point> {
    let firsts = survey.points().filter(|(point, known)| point.occurrence == 1 && (creation || !known.creation));
    let firsts: Vec<Point> = firsts.map(|(point, _)| point).collect();
    let count = firsts.len().min(RECOVERIES);
    (0..count).map(|number| firsts[number * firsts.len() / count]).collect()
}

/// What it is asked first.
fn few_operations(command: &Command) -> Vec<u8> {
    let Input::Operations(operations) = &command.stdin else { return Vec::new() };
    let bytes = operations.bytes();
    bytes.split_inclusive(|&byte| byte == b'\n').take(OPERATIONS).flatten().copied().collect()
}

/// What the recorded run calls the pools and modules of a recovery.
fn names<'s>(own: &Tables, run: &Tables, private: &[Substituted], stored: &'s Stored) -> Names<'s> {
    let number = |path: &str| private.iter().position(|pool| pool.private.as_os_str() == path);
    let pools = (0..).map(PoolId).zip(&own.pools);
    let pools = pools.filter_map(|(pool, known)| Some((pool, PoolId(number(&known.info.path)? as u32))));
    let known: FxHashMap<_, ModuleId> = run.modules.iter().zip((0..).map(ModuleId)).collect();
    let modules = own.modules.iter().zip((0..).map(ModuleId));
    let modules = modules.filter_map(|(module, number)| Some((number, *known.get(module)?)));
    Names { pools: pools.collect(), modules: modules.collect(), stored }
}
