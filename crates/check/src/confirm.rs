//! Before a finding is shown: its crash image is built from the trace again, and the failure is reproduced twice on the
//! uninstrumented program, by two workers at the same time where there are two. A hang takes all the time that a run may take, and when it is
//! confirmed little is left.

use cause::analyse::RootCause;
use cause::clusters::Clusters;
use cause::explain::{Explained, explain};
use crash::checkpoints::PlainWalks;
use crash::walk::WalkError;
use finding::evidence::Evidence;
use finding::finding::{Class, Finding};
use finding::note::RunNote;
use persistency::point::PointError;
use runner::runner::{Runner, RunnerError};
use trace::event::EventId;
use verdict::end::Frame;

use crate::hint::hint;
use crate::session::{CheckSession, SessionError};

#[derive(Debug, thiserror::Error)]
pub enum ConfirmError {
    #[error(transparent)]
    Walk(#[from] WalkError),
    #[error(transparent)]
    State(#[from] PointError),
    #[error(transparent)]
    Runner(#[from] RunnerError),
}

/// What native mode said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmation {
    /// It failed both times, in the same way.
    Confirmed,
    /// It passed at least once, or failed differently: nothing may be claimed.
    NotReproduced,
}

/// Runs the cause's state twice in native mode. There is at least one runner.
pub fn confirm(
    walks: &PlainWalks<'_>,
    cause: &RootCause,
    runners: &mut [Runner],
) -> Result<Confirmation, ConfirmError> {
    let (first, second) = twice(runners, |runner| -> Result<_, ConfirmError> {
        let walk = walks.to(cause.point.at)?;
        let view = walk.view();
        Ok(runner.confirm(&view.image(&cause.state)?)?)
    })?;
    let same = first.symptom().zip(second.symptom()).is_some_and(|(first, second)| first.confirms(second));
    Ok(if same { Confirmation::Confirmed } else { Confirmation::NotReproduced })
}

/// Does something twice: at the same time, if there are two workers.
fn twice<W: Send, T: Send, E: Send>(
    workers: &mut [W],
    run: impl Fn(&mut W) -> Result<T, E> + Sync,
) -> Result<(T, T), E> {
    let [first, second, ..] = workers else {
        let only = &mut workers[0];
        return Ok((run(only)?, run(only)?));
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| run(second));
        let own = run(first);
        let other = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((own?, other?))
    })
}

/// Where recovery was when it broke down on the cause's state; empty if it did not, or if nobody knows.
pub fn breakdown(walks: &PlainWalks<'_>, cause: &RootCause, runner: &mut Runner) -> Result<Vec<Frame>, ConfirmError> {
    let walk = walks.to(cause.point.at)?;
    let view = walk.view();
    let image = view.image(&cause.state)?;
    // On a busy machine a run may be killed before it has said where it is.
    for _ in 0..3 {
        runner.observe(&image)?;
        if !runner.broke_down_at().is_empty() {
            break;
        }
    }
    Ok(runner.broke_down_at().to_vec())
}

impl CheckSession<'_> {
    pub(crate) fn confirmed(
        &self,
        causes: &[RootCause],
        runners: &mut [Runner],
        notes: &mut Vec<RunNote>,
    ) -> Result<(Vec<Finding>, Vec<Evidence>), SessionError> {
        self.confirmed_as(causes, runners, notes, &|_| true)
    }

    /// `wants` may give a finding another rule before it is kept, and says whether it is.
    pub(crate) fn confirmed_as(
        &self,
        causes: &[RootCause],
        runners: &mut [Runner],
        notes: &mut Vec<RunNote>,
        wants: &dyn Fn(&mut Finding) -> bool,
    ) -> Result<(Vec<Finding>, Vec<Evidence>), SessionError> {
        let walks = PlainWalks::new(self.reader, self.options.rules);
        let mut crash_paths: Vec<Vec<Frame>> = Vec::new();
        for (number, cause) in causes.iter().enumerate() {
            // All hangs are one finding, and to see where one is takes long.
            let is_seen = |other: usize| causes[other].verdict.is_endless() && !crash_paths[other].is_empty();
            let is_known = cause.verdict.is_endless() && (0..number).any(is_seen);
            let needed = cause.class == Class::Recovery && !is_known;
            let path = if needed { breakdown(&walks, cause, &mut runners[0]) } else { Ok(Vec::new()) };
            crash_paths.push(match path.map_err(SessionError::from) {
                Err(error) if error.is_cancelled() => Vec::new(),
                path => path?,
            });
        }
        for (number, cause) in causes.iter().enumerate().filter(|(_, cause)| cause.class == Class::Recovery) {
            let same = |other: &usize| causes[*other].verdict.agrees(&cause.verdict);
            let known = (0..causes.len()).filter(same).find(|&other| !crash_paths[other].is_empty());
            if let (true, Some(known)) = (crash_paths[number].is_empty(), known) {
                crash_paths[number] = crash_paths[known].clone();
            }
        }
        let (mut findings, mut evidence) = (Vec::new(), Vec::new());
        let equivalence = runners[0].equivalence.clone();
        // A recovery has no operations of its own.
        let own = equivalence.as_ref().filter(|_| self.judged_as.is_none());
        let mut clusters = own.map(|equivalence| Clusters::new(self.reader, equivalence, self.libraries));
        // First all that makes a finding one, then what is shown beside it: that can do without if time is short.
        let mut confirmed = Vec::new();
        let mut explained: Vec<(usize, Explained)> =
            explain(causes, &crash_paths, self.reader.tables(), self.libraries).into_iter().enumerate().collect();
        // A hang takes all the time that a run may take: the others do not wait for it.
        let hangs = |&number: &usize| causes[number].verdict.is_endless();
        explained.sort_by_key(|(_, explained)| explained.causes.first().is_some_and(hangs));
        for (place, Explained { mut finding, causes: numbers }) in explained {
            if !wants(&mut finding) {
                continue;
            }
            let mut shown = None;
            let mut cancelled = false;
            for &number in numbers.iter().take(3) {
                match confirm(&walks, &causes[number], runners).map_err(SessionError::from) {
                    Ok(Confirmation::Confirmed) => shown = Some(&causes[number]),
                    Ok(Confirmation::NotReproduced) => continue,
                    Err(error) if error.is_cancelled() => cancelled = true,
                    Err(error) => return Err(error),
                }
                break;
            }
            if cancelled {
                let Finding { id, title, severity, .. } = finding;
                notes.push(RunNote::NotConfirmed { finding: id, title: Box::new(title), severity });
                continue;
            }
            let Some(cause) = shown else {
                notes.push(RunNote::NotReproduced { finding: finding.id, title: Box::new(finding.title) });
                continue;
            };
            confirmed.push((place, finding, cause, numbers));
        }
        confirmed.sort_by_key(|(place, ..)| *place);
        let runner = &mut runners[0];
        for (_, mut finding, cause, numbers) in confirmed {
            let folder = self.bundles_option.as_ref().map_or_else(String::new, |name| format!("--bundles {name} "));
            self.place(&mut finding, runner);
            finding.notes.extend(hint(&walks, self.reader, self.options, cause)?);
            if let Some(clusters) = &mut clusters {
                let lost = cause.missing.first().filter(|_| !cause.in_program_order);
                finding.notes.extend(lost.and_then(|store| clusters.made_before(store.event, cause.point.at)));
                let points: Vec<EventId> = numbers.iter().flat_map(|&number| causes[number].points.clone()).collect();
                finding.notes.extend(clusters.seen_in(&points)?);
            }
            finding.replay = Some(format!("fencepost replay {folder}{}", finding.id));
            match self.write_bundle(&walks, &finding, cause, runner) {
                // What was found is told in any case.
                Err(SessionError::Bundle(error)) => {
                    finding.replay = None;
                    notes.push(RunNote::NoBundle { finding: finding.id.clone(), why: error.to_string() });
                }
                written => {
                    written?;
                    match self.evidence(&walks, &finding, cause, runner) {
                        Ok(shown) => evidence.push(shown),
                        Err(error) => {
                            notes.push(RunNote::NoTimeline { finding: finding.id.clone(), why: error.to_string() });
                        }
                    }
                }
            }
            findings.push(finding);
        }
        Ok((findings, evidence))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
    use std::time::Duration;

    use super::*;

    /// Says that it is there, and waits for the other.
    fn meet((own, other): &mut (Sender<()>, Receiver<()>)) -> Result<(), RecvTimeoutError> {
        own.send(()).map_err(|_| RecvTimeoutError::Disconnected)?;
        other.recv_timeout(Duration::from_secs(60))
    }

    #[test]
    fn two_workers_run_at_the_same_time() {
        let ((to_first, at_first), (to_second, at_second)) = (channel(), channel());
        let mut workers = [(to_second, at_first), (to_first, at_second)];
        assert_eq!(twice(&mut workers, meet), Ok(((), ())));
    }

    #[test]
    fn one_worker_runs_twice() {
        let run = |count: &mut u32| {
            *count += 1;
            Ok::<u32, ()>(*count)
        };
        assert_eq!(twice(&mut [0], run), Ok((1, 2)));
    }
}
