//! Watches a run until it ends, or ends it.

use std::time::{Duration, Instant};

use super::streams::Streams;
use supervise::cancel::Cancel;
use supervise::limits::Limits;
use supervise::supervised::{Ended, Supervised};
use supervise::usage::Usage;
use verdict::end::Limit;

/// Most recoveries are over before the first look at what they use.
const FIRST_LOOK: Duration = Duration::from_millis(3);
/// Between two looks a run can fork some hundred times or fill some ten megabytes.
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);
/// A long run is looked at less often; a look costs some ten microseconds per process.
const BETWEEN_LATE_LOOKS: Duration = Duration::from_millis(10);
const LATE: Duration = Duration::from_millis(200);
/// Background processes without a parent that use no CPU for so long have done their work.
const IDLE: Duration = Duration::from_millis(100);

/// Why the host ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// The first process had ended and the others only waited.
    Idle,
    Wall,
    Limit(Limit),
    /// From outside.
    Cancelled,
}

/// Returns when no process of the run is left.
pub(super) fn watch(
    run: Supervised,
    streams: &Streams,
    limits: &Limits,
    begin: Instant,
    cancel: &Cancel,
) -> (Option<Cut>, Ended) {
    let mut idle = IdleSince::default();
    let mut pause = FIRST_LOOK;
    loop {
        let left = limits.wall.saturating_sub(begin.elapsed());
        if run.wait(pause.min(left)) {
            return (None, run.finish());
        }
        let cancelled = cancel.is_cancelled().then_some(Cut::Cancelled);
        if let Some(cut) = cancelled.or_else(|| look(&run, streams, limits, begin, &mut idle)) {
            run.end_all();
            return (Some(cut), run.finish());
        }
        pause = if begin.elapsed() < LATE { BETWEEN_LOOKS } else { BETWEEN_LATE_LOOKS };
    }
}

fn look(run: &Supervised, streams: &Streams, limits: &Limits, begin: Instant, idle: &mut IdleSince) -> Option<Cut> {
    let usage = Usage::look(run.pid(), limits.processes);
    if usage.processes > limits.processes {
        return Some(Cut::Limit(Limit::Processes));
    }
    if usage.memory > limits.memory && usage.memory_shared_once() > limits.memory {
        return Some(Cut::Limit(Limit::Memory));
    }
    if usage.cpu > limits.cpu {
        return Some(Cut::Limit(Limit::Cpu));
    }
    if streams.over(limits) {
        return Some(Cut::Limit(Limit::Output));
    }
    if run.first_ended() && idle.for_long(&usage, begin.elapsed()) {
        return Some(Cut::Idle);
    }
    (begin.elapsed() >= limits.wall).then_some(Cut::Wall)
}

/// Since when processes have used no CPU. One that never gets any, on a loaded machine, is not idle.
#[derive(Debug, Default)]
struct IdleSince {
    since: Option<(Duration, Duration)>,
}

impl IdleSince {
    fn for_long(&mut self, usage: &Usage, now: Duration) -> bool {
        match self.since {
            Some((since, cpu)) if cpu == usage.cpu && !usage.busy => now >= since + IDLE,
            _ => {
                self.since = Some((now, usage.cpu));
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_starts_the_idle_time_again() {
        let at = |ms| Duration::from_millis(ms);
        let used = |ms, busy| Usage { cpu: at(ms), busy, ..Usage::default() };
        let mut idle = IdleSince::default();
        assert!(!idle.for_long(&used(10, false), at(0)));
        assert!(!idle.for_long(&used(10, false), at(90)));
        assert!(!idle.for_long(&used(20, false), at(110)));
        assert!(!idle.for_long(&used(20, true), at(220)));
        assert!(!idle.for_long(&used(20, false), at(310)));
        assert!(idle.for_long(&used(20, false), at(320)));
    }
}
