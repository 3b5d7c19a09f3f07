//! Which kind of bug a minimal failing state shows.
//!
//! - **durability**: the missing store is never made durable by the program, or only by accident.
//! - **atomicity**: neither order of the two sides is right (with either one alone recovery fails), or the program's own
//!   order of stores passes through a state on which recovery fails and no other order would avoid it.
//! - **ordering**: both are made durable, but in an order that nothing guarantees; or the program stores them in the
//!   wrong order: with the later stores first, recovery would pass.
//! - **recovery**: with everything in PM, in program order, recovery itself crashes or hangs.

use crash::image::{CrashImage, LineBytes};
use crash::points::Point;
use crash::recovery::{Recovery, Verdict};
use crash::walk::{Rules, Walk, WalkError};
use finding::finding::Class;
use persistency::line::{LINE_BYTES, LineId};
use persistency::point::Content;
use rustc_hash::FxHashSet;
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};

use crate::minimise::{Minimal, StoreAt};
use crate::story::{self, StoreFact};
use crate::trial::{Assignment, Trial, TrialError};

/// A kind, and the stores on both sides.
#[derive(Clone, Debug)]
pub struct Classified {
    pub class: Class,
    /// Not in PM: lost, or not executed yet.
    pub missing: Vec<StoreFact>,
    /// In PM too early.
    pub present: Vec<StoreFact>,
    /// The missing stores come after the present ones in the program.
    pub program_order_is_wrong: bool,
    /// The program's own order of stores passes through the failing state.
    pub from_program_order: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    #[error(transparent)]
    Trial(#[from] TrialError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Walk(#[from] WalkError),
}

/// Places after the crash point that are tried as "the operation is complete here".
const STEPS_AHEAD: u32 = 48;
/// Stores that are named on one side.
const NAMED: usize = 4;

/// Does this verdict say that recovery itself broke down?
pub fn is_breakdown(verdict: &Verdict) -> bool {
    let kind = verdict.symptom.key.split_whitespace().next().unwrap_or_default();
    matches!(kind, "signal" | "hang" | "limit")
}

pub fn classify<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    trial: &mut Trial<'_, '_, R>,
    point: &Point,
    minimal: &Minimal,
    verdict: &Verdict,
) -> Result<Classified, ClassifyError> {
    let present = facts(reader, trial, &minimal.present)?;
    if minimal.in_program_order {
        return in_program_order(reader, rules, trial, point.at, present, verdict);
    }
    let missing = facts(reader, trial, &minimal.missing)?;
    if let Some(oldest) = missing.first()
        && present.is_empty()
        && nothing_came_later(reader, trial, oldest, point.at)?
    {
        // Several stores before one flush: the program was there, between two crash points.
        return in_program_order(reader, rules, trial, oldest.event, present, verdict);
    }
    let mut lost_for_good = false;
    for store in &missing {
        lost_for_good |= !story::is_made_durable(reader, store)?;
    }
    let class = if lost_for_good {
        Class::Durability
    } else if !minimal.present.is_empty() && fails_the_other_way_round(trial, minimal)? {
        Class::Atomicity
    } else {
        Class::Ordering
    };
    Ok(Classified { class, missing, present, program_order_is_wrong: false, from_program_order: false })
}

fn facts<R: Recovery>(
    reader: &TraceReader,
    trial: &Trial<'_, '_, R>,
    stores: &[StoreAt],
) -> Result<Vec<StoreFact>, ReadError> {
    let mut facts = Vec::new();
    for at in stores {
        let Some(store) = trial.view.lines()[at.line].stores().get(at.store) else { continue };
        let line = trial.view.lines()[at.line].id();
        facts.extend(story::store(reader, store.event)?.map(|fact| StoreFact { line, ..fact }));
    }
    facts.sort_by_key(|fact: &StoreFact| fact.event);
    facts.dedup_by_key(|fact| fact.event);
    Ok(facts)
}

/// Only the stores that were missing, without those that were there.
fn fails_the_other_way_round<R: Recovery>(trial: &mut Trial<'_, '_, R>, minimal: &Minimal) -> Result<bool, TrialError> {
    let mut other = Assignment::guaranteed(trial.view);
    for at in &minimal.missing {
        other.0[at.line] = Content::whole(at.store as u32 + 1);
    }
    match trial.passes(&other) {
        Ok(passes) => Ok(!passes),
        Err(TrialError::Exhausted) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Are all stores after `store` lost as well? Then the state is one that the program passed through.
fn nothing_came_later<R: Recovery>(
    reader: &TraceReader,
    trial: &Trial<'_, '_, R>,
    store: &StoreFact,
    at: EventId,
) -> Result<bool, ReadError> {
    let pending = trial.view.lines().iter().flat_map(|line| line.stores());
    let pending: FxHashSet<EventId> = pending.map(|store| store.event).collect();
    let later = story::stores_in(reader, EventId(store.event.0 + 1), at, usize::MAX)?;
    Ok(later.iter().all(|store| pending.contains(&store.event)))
}

/// The program's own order of stores leads through a state that recovery fails on: before the event `at`.
fn in_program_order<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    trial: &mut Trial<'_, '_, R>,
    at: EventId,
    mut present: Vec<StoreFact>,
    verdict: &Verdict,
) -> Result<Classified, ClassifyError> {
    if present.is_empty() {
        present.extend(story::last_store_before(reader, at)?);
    }
    let next = |most| story::stores_in(reader, at, EventId(reader.event_count()), most);
    if is_breakdown(verdict) {
        return Ok(Classified {
            class: Class::Recovery,
            missing: next(1)?,
            present,
            program_order_is_wrong: false,
            from_program_order: true,
        });
    }
    let Some(&newest) = present.last() else {
        return Ok(Classified {
            class: Class::Atomicity,
            missing: next(1)?,
            present,
            program_order_is_wrong: false,
            from_program_order: true,
        });
    };
    // The steps of one loop have no order that would help.
    if next(1)?.iter().any(|store| store.site == newest.site) {
        return Ok(Classified {
            class: Class::Atomicity,
            missing: next(1)?,
            present,
            program_order_is_wrong: false,
            from_program_order: true,
        });
    }
    match completed_without(reader, rules, trial, at, &newest) {
        Ok(Some(complete)) => {
            let missing = story::stores_in(reader, at, complete, NAMED)?;
            Ok(Classified {
                class: Class::Ordering,
                missing,
                present,
                program_order_is_wrong: true,
                from_program_order: true,
            })
        }
        Ok(None) | Err(ClassifyError::Trial(TrialError::Exhausted)) => Ok(Classified {
            class: Class::Atomicity,
            missing: next(1)?,
            present,
            program_order_is_wrong: false,
            from_program_order: true,
        }),
        Err(error) => Err(error),
    }
}

/// Where the operation is complete, if recovery also passes there when only `store` has not happened: then it should have
/// been the last.
fn completed_without<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    trial: &mut Trial<'_, '_, R>,
    at: EventId,
    store: &StoreFact,
) -> Result<Option<EventId>, ClassifyError> {
    let mut walk = Walk::new(reader, rules)?;
    walk.advance_to(store.event)?;
    let before = line_with_everything(&walk, LineId::of(store.place));
    walk.advance_to(at)?;
    for _ in 0..STEPS_AHEAD {
        let Some(stop) = next_stop(reader, walk.at())? else { return Ok(None) };
        walk.advance_to(stop)?;
        let view = walk.view();
        let image = view.image(&Assignment::everything(&view).state(&view)).map_err(TrialError::from)?;
        if !trial.run(&image)?.pass {
            continue;
        }
        // Without the store, its place must be as it was: a later one to the same bytes would be undone with it.
        let later = story::stores_in(reader, EventId(store.event.0 + 1), stop, usize::MAX)?;
        if later.iter().any(|other| other.overlaps(store)) {
            return Ok(None);
        }
        let undone = without(&image, store, &before);
        return Ok(trial.run(&undone)?.pass.then_some(stop));
    }
    Ok(None)
}

/// The end of the next stretch of stores: the flush or fence after it.
fn next_stop(reader: &TraceReader, from: EventId) -> Result<Option<EventId>, ReadError> {
    let mut events = reader.events_in(from..EventId(reader.event_count()));
    let mut stored = false;
    while let Some((id, event)) = events.next_with_id()? {
        let border = matches!(event.kind, EventKind::Flush { .. } | EventKind::Fence { .. } | EventKind::Rmw { .. });
        if border && stored {
            return Ok(Some(id));
        }
        stored |= StoreFact::of(id, &event).is_some();
    }
    Ok(stored.then_some(EventId(reader.event_count())))
}

fn line_with_everything(walk: &Walk<'_>, line: LineId) -> LineBytes {
    let view = walk.view();
    view.line_of(&Assignment::everything(&view).state(&view), line)
}

/// The image with the bytes of a store as they were before it.
fn without<'g>(image: &CrashImage<'g>, store: &StoreFact, before: &LineBytes) -> CrashImage<'g> {
    let id = LineId::of(store.place);
    let mut bytes = image.line(id);
    let start = (store.place.offset.0 % LINE_BYTES as u64) as usize;
    let end = (start + store.len as usize).min(LINE_BYTES);
    bytes[start..end].copy_from_slice(&before[start..end]);
    let mut lines: Vec<(LineId, LineBytes)> = image.lines().iter().filter(|(line, _)| *line != id).copied().collect();
    lines.push((id, bytes));
    lines.sort_by_key(|(line, _)| *line);
    CrashImage::imagined(image.guaranteed(), lines)
}
