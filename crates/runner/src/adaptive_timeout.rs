//! How long a run is waited for.
//!
//! Most runs of one recovery take about as long as each other, so one that takes far longer than all of them hangs, and need
//! not be given the whole time that the user allows (10 s, where others take 10 ms). Native mode, which confirms findings, gives
//! all of it: a run that was only slow makes no finding.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use recover::limits::Limits;
use recover::report::RunReport;
use verdict::end::End;

/// What the runs have shown: of all workers that have a clone.
#[derive(Clone, Debug, Default)]
pub struct AdaptiveTimeout(Arc<Mutex<Runs>>);

#[derive(Clone, Copy, Debug, Default)]
struct Runs {
    slowest: Duration,
    ended: u32,
    hangs: u32,
}

/// How long a run may take, by those that were seen.
struct Trust {
    times_slowest: u32,
    least: Duration,
}

/// From so many runs that ended on: slow ones are known too.
const ENDED: u32 = 32;
const ENDED_OFTEN: Trust = Trust { times_slowest: 100, least: Duration::from_secs(2) };
/// From so many runs that hung on: more will come.
const HANGS: u32 = 3;
const HUNG_OFTEN: Trust = Trust { times_slowest: 20, least: Duration::from_millis(300) };

impl AdaptiveTimeout {
    pub fn limits(&self, wanted: &Limits) -> Limits {
        let mut limits = wanted.clone();
        let runs = *self.runs();
        let trust = match runs {
            Runs { slowest: Duration::ZERO, .. } => None,
            Runs { hangs: HANGS.., .. } => Some(HUNG_OFTEN),
            Runs { ended: ENDED.., .. } => Some(ENDED_OFTEN),
            _ => None,
        };
        if let Some(trust) = trust {
            limits.wall = limits.wall.min((runs.slowest * trust.times_slowest).max(trust.least));
        }
        limits
    }

    pub fn note(&self, run: &RunReport) {
        self.see(&run.end, run.wall);
    }

    fn see(&self, end: &End, wall: Duration) {
        let mut runs = self.runs();
        match end {
            End::Hung => runs.hangs += 1,
            _ => {
                runs.ended += 1;
                runs.slowest = runs.slowest.max(wall);
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MS: Duration = Duration::from_millis(10);

    fn timeout(ended: u32, wall: Duration, hangs: u32) -> Duration {
        let timeout = AdaptiveTimeout::default();
        (0..ended).for_each(|_| timeout.see(&End::Exited(0), wall));
        (0..hangs).for_each(|_| timeout.see(&End::Hung, Duration::from_secs(10)));
        timeout.limits(&Limits::default()).wall
    }

    #[test]
    fn what_is_not_known_well_gets_all_the_time() {
        let all = Limits::default().wall;
        assert_eq!(timeout(0, TEN_MS, 0), all);
        assert_eq!(timeout(ENDED - 1, TEN_MS, HANGS - 1), all);
        assert_eq!(timeout(0, TEN_MS, 100), all, "nobody knows how long one takes that ends");
    }

    #[test]
    fn far_longer_than_all_others_is_a_hang() {
        assert_eq!(timeout(ENDED, TEN_MS, 0), Duration::from_secs(2));
        assert_eq!(timeout(ENDED, TEN_MS * 5, 0), Duration::from_secs(5));
        assert_eq!(
            timeout(ENDED, Duration::from_secs(1), 0),
            Limits::default().wall,
            "never more than the user allows"
        );
        assert_eq!(timeout(1, TEN_MS, HANGS), Duration::from_millis(300));
        assert_eq!(timeout(1, TEN_MS * 5, HANGS), Duration::from_secs(1));
    }
}
