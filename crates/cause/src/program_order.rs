//! Failures in program order: the stores of the program itself, one after the other, lead through a state that recovery
//! fails on. Whichever crash point shows it, the store to blame is the one with which it began.

use crash::image::{CrashImage, LineBytes};
use crash::recovery::Recovery;
use crash::view::PointView;
use crash::walk::{Rules, Walk};
use finding::blame;
use finding::finding::Class;
use persistency::line::{LINE_BYTES, LineId};
use trace::event::{EventId, EventKind};
use trace::{ReadError, TraceReader};
use verdict::verdict::Verdict;

use crate::classify::{Classified, ClassifyError, Completes, is_breakdown};
use crate::point_evaluator::{EvaluateError, PointEvaluator};
use crate::store_history::{self, StoreInfo};
use crash::assignment::Assignment;

/// Places after the crash point that are tried as "the operation is complete here".
const STEPS_AHEAD: u32 = 48;
/// Places before it that are tried as "all was well here", one by one; further back, fewer and fewer of them.
const STEPS_BACK: usize = 24;
/// How many events these may lie back, or ahead.
const EVENTS_BACK: u64 = 20_000;
/// Stores between two such places that are tried one by one.
const STORES: usize = 24;
/// Stores that are named on one side.
const NAMED: usize = 4;
/// Among so many, those that are named.
const LOOKED_AT: usize = 256;

/// The program's own order of stores leads through a state that recovery fails on: before the event `at`.
pub fn in_program_order<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    evaluator: &mut PointEvaluator<'_, '_, R>,
    at: EventId,
    mut present: Vec<StoreInfo>,
    verdict: &Verdict,
) -> Result<Classified, ClassifyError> {
    let mut places = Places { reader, rules, evaluator };
    let mut at = at;
    match places.turning_store(at) {
        Ok(Some(store)) => {
            at = EventId(store.event.0 + 1);
            present = vec![store];
        }
        Ok(None) | Err(ClassifyError::Evaluate(EvaluateError::Exhausted)) if present.is_empty() => {
            present.extend(store_history::last_store_before(reader, at)?);
        }
        Ok(None) | Err(ClassifyError::Evaluate(EvaluateError::Exhausted)) => {}
        Err(error) => return Err(error),
    }
    let next = store_history::stores_in(reader, at, EventId(reader.event_count()), 1)?;
    let answer = |class, missing, present| Classified {
        class,
        missing,
        present,
        program_order_is_wrong: class == Class::Ordering,
        from_program_order: true,
        completes: Completes::Unknown,
    };
    if is_breakdown(verdict) {
        return Ok(answer(Class::Recovery, next, present));
    }
    let Some(&newest) = present.last() else { return Ok(answer(Class::Atomicity, next, present)) };
    // The steps of one loop have no order that would help.
    let loops = next.iter().any(|store| store.site == newest.site);
    // The same instruction storing to the same bytes again, as in a counter, is no other side of an update.
    let next: Vec<StoreInfo> = next.into_iter().filter(|store| !is_again(store, &newest)).collect();
    if loops {
        return Ok(answer(Class::Atomicity, next, present));
    }
    match places.completion(at, &newest) {
        Ok(Completion::Without(complete)) => Ok(answer(Class::Ordering, needed(reader, at, complete)?, present)),
        Ok(Completion::With(store)) => {
            let completes = match places.alone(at, &store) {
                Ok(true) => Completes::Alone,
                Ok(false) | Err(ClassifyError::Evaluate(EvaluateError::Exhausted)) => Completes::Last,
                Err(error) => return Err(error),
            };
            Ok(Classified { completes, ..answer(Class::Atomicity, vec![store], present) })
        }
        Ok(Completion::Unknown) | Err(ClassifyError::Evaluate(EvaluateError::Exhausted)) => {
            Ok(answer(Class::Atomicity, next, present))
        }
        Err(error) => Err(error),
    }
}

/// The stores that should have come before. What a PM library stores for itself, such as its undo log, says less than a store of the program.
fn needed(reader: &TraceReader, from: EventId, to: EventId) -> Result<Vec<StoreInfo>, ReadError> {
    let libraries = blame::pm_library_modules(reader.tables());
    let stores = store_history::stores_in(reader, from, to, LOOKED_AT)?;
    let is_own = |store: &&StoreInfo| !libraries.get(store.site.pc.module.0 as usize).is_some_and(|library| *library);
    let own: Vec<StoreInfo> = stores.iter().filter(is_own).take(NAMED).copied().collect();
    Ok(if own.is_empty() { stores.into_iter().take(NAMED).collect() } else { own })
}

fn is_again(later: &StoreInfo, store: &StoreInfo) -> bool {
    (later.site.pc, later.place, later.len) == (store.site.pc, store.place, store.len)
}

/// How the stores that follow a turning store make recovery pass again.
enum Completion {
    /// At this place also if only the turning store has not happened: it should have been the last.
    Without(EventId),
    /// With this store: both belong together.
    With(StoreInfo),
    Unknown,
}

/// The places of a trace, and who says whether recovery passes there with everything in PM.
struct Places<'p, 'a, 'w, R> {
    reader: &'p TraceReader,
    rules: Rules,
    evaluator: &'p mut PointEvaluator<'a, 'w, R>,
}

impl<'p, R: Recovery> Places<'p, '_, '_, R> {
    fn walk_to(&mut self, at: EventId) -> Result<Walk<'p>, ClassifyError> {
        Ok(self.evaluator.walk_to(self.reader, self.rules, at)?)
    }

    fn passes(&mut self, at: EventId) -> Result<bool, ClassifyError> {
        let walk = self.walk_to(at)?;
        Ok(self.evaluator.passes_at(&walk.view())?)
    }

    /// Does recovery pass here if the bytes of this store are those of this content of its line?
    fn passes_with(
        &mut self,
        view: &PointView<'_>,
        store: &StoreInfo,
        content: &LineBytes,
    ) -> Result<bool, ClassifyError> {
        let image = view.image(&Assignment::everything(view).state(view)).map_err(EvaluateError::from)?;
        Ok(self.evaluator.run(&with_bytes_of(&image, store, content))?.is_pass())
    }

    /// The store with which recovery began to fail, if a place before it is found at which recovery passes.
    fn turning_store(&mut self, at: EventId) -> Result<Option<StoreInfo>, ClassifyError> {
        let stops = stops_before(self.reader, at)?;
        let near = stops.len().saturating_sub(STEPS_BACK);
        let mut good = None;
        let first = stops.get(near).copied().unwrap_or(at);
        let mut walk = self.walk_to(first)?;
        for &stop in &stops[near..] {
            walk.advance_to(stop)?;
            if self.evaluator.passes_at(&walk.view())? {
                good = Some(stop);
            }
        }
        if good.is_none() {
            good = far_back(&stops[..near + usize::from(near < stops.len())], |stop| self.passes(stop))?;
        }
        let Some(good) = good else { return Ok(None) };
        let mut walk = self.walk_to(good)?;
        for store in store_history::stores_in(self.reader, good, at, STORES)? {
            walk.advance_to(EventId(store.event.0 + 1))?;
            if !self.evaluator.passes_at(&walk.view())? {
                return Ok(Some(store));
            }
        }
        Ok(None)
    }

    /// Looks for the place after `at` where recovery passes again, and for what it needs there.
    fn completion(&mut self, at: EventId, store: &StoreInfo) -> Result<Completion, ClassifyError> {
        let mut walk = self.walk_to(store.event)?;
        let before = line_with_everything(&walk, LineId::of(store.place));
        walk.advance_to(at)?;
        let mut failing = at;
        let mut ahead = 0;
        loop {
            let next = next_stop(self.reader, walk.at())?;
            let stop = next.unwrap_or(walk.at());
            if stop == failing {
                return Ok(Completion::Unknown);
            }
            // Near ones one by one; of a long operation then the end of twice as many, and so on.
            ahead += 1;
            let far = ahead > STEPS_AHEAD;
            walk.advance_to(stop)?;
            // At the end of the trace nothing is passed over.
            if far && next.is_some() && !ahead.is_power_of_two() {
                continue;
            }
            if stop.0 > at.0.saturating_add(EVENTS_BACK) {
                return Ok(Completion::Unknown);
            }
            let view = walk.view();
            if !self.evaluator.passes_at(&view)? {
                failing = stop;
                continue;
            }
            if far {
                let (last, first) = self.narrowed(failing, stop)?;
                return self.completing_store(last, first);
            }
            // Without the store, its place must be as it was: a later one to the same bytes would be undone with it.
            let later = store_history::stores_in(self.reader, EventId(store.event.0 + 1), stop, usize::MAX)?;
            if !later.iter().any(|other| other.overlaps(store)) && self.passes_with(&view, store, &before)? {
                return Ok(Completion::Without(stop));
            }
            return self.completing_store(failing, stop);
        }
    }

    /// Between a place that fails and a later one that passes: two places next to each other of which the same is true.
    fn narrowed(&mut self, failing: EventId, passing: EventId) -> Result<(EventId, EventId), ClassifyError> {
        let mut stops = vec![failing];
        while let Some(stop) = next_stop(self.reader, stops[stops.len() - 1])?.filter(|stop| *stop < passing) {
            stops.push(stop);
        }
        stops.push(passing);
        let (bad, good) = neighbours(&stops, 0, stops.len() - 1, |stop| self.passes(stop))?;
        Ok((stops[bad], stops[good]))
    }

    /// Does recovery pass before `at` with this later store alone in PM?
    fn alone(&mut self, at: EventId, store: &StoreInfo) -> Result<bool, ClassifyError> {
        let after = self.walk_to(EventId(store.event.0 + 1))?;
        let stored = line_with_everything(&after, LineId::of(store.place));
        let walk = self.walk_to(at)?;
        let view = walk.view();
        self.passes_with(&view, store, &stored)
    }

    /// The store with which recovery passes again, between a place where it fails and one where it does not.
    fn completing_store(&mut self, failing: EventId, stop: EventId) -> Result<Completion, ClassifyError> {
        let stores = store_history::stores_in(self.reader, failing, stop, usize::MAX)?;
        let Some((last, others)) = stores.split_last() else { return Ok(Completion::Unknown) };
        // Of very many, such as a long copy, the last will do.
        if stores.len() > STORES {
            return Ok(Completion::With(*last));
        }
        let mut walk = self.walk_to(failing)?;
        for store in others {
            walk.advance_to(EventId(store.event.0 + 1))?;
            if self.evaluator.passes_at(&walk.view())? {
                return Ok(Completion::With(*store));
            }
        }
        Ok(Completion::With(*last))
    }
}

/// A place that passes and is followed by one that does not. The last of these is known not to pass; a long operation, such as the growing of
/// a table, has very many that do not, so the steps back double, and the place is then found by halving.
fn far_back<E>(stops: &[EventId], mut passes: impl FnMut(EventId) -> Result<bool, E>) -> Result<Option<EventId>, E> {
    let Some(last) = stops.len().checked_sub(1) else { return Ok(None) };
    let (mut bad, mut step) = (last, STEPS_BACK);
    let good = loop {
        let Some(earlier) = bad.checked_sub(step).or((bad > 0).then_some(0)) else { return Ok(None) };
        if passes(stops[earlier])? {
            break earlier;
        }
        (bad, step) = (earlier, step * 2);
    };
    let (_, good) = neighbours(stops, bad, good, passes)?;
    Ok(Some(stops[good]))
}

/// Halves the way between a stop that fails and one that passes, on whichever side it is, until they are next to each other.
fn neighbours<E>(
    stops: &[EventId],
    mut bad: usize,
    mut good: usize,
    mut passes: impl FnMut(EventId) -> Result<bool, E>,
) -> Result<(usize, usize), E> {
    while bad.abs_diff(good) > 1 {
        let middle = bad.midpoint(good);
        if passes(stops[middle])? {
            good = middle;
        } else {
            bad = middle;
        }
    }
    Ok((bad, good))
}

/// Flushes and fences before `at` that have a store since the last such place.
fn stops_before(reader: &TraceReader, at: EventId) -> Result<Vec<EventId>, ReadError> {
    let mut events = reader.events_near(EventId(at.0.saturating_sub(EVENTS_BACK))..at);
    let (mut stops, mut stored) = (Vec::new(), true);
    while let Some((id, event)) = events.next_with_id()? {
        if is_boundary(&event.kind) && stored {
            stops.push(id);
            stored = false;
        }
        stored |= StoreInfo::of(id, &event).is_some();
    }
    Ok(stops)
}

fn is_boundary(kind: &EventKind<'_>) -> bool {
    matches!(kind, EventKind::Flush { .. } | EventKind::Fence { .. } | EventKind::Rmw { .. })
}

/// The end of the next run of stores: the flush or fence after it.
fn next_stop(reader: &TraceReader, from: EventId) -> Result<Option<EventId>, ReadError> {
    let mut events = reader.events_near(from..EventId(reader.event_count()));
    let mut stored = false;
    while let Some((id, event)) = events.next_with_id()? {
        if is_boundary(&event.kind) && stored {
            return Ok(Some(id));
        }
        stored |= StoreInfo::of(id, &event).is_some();
    }
    Ok(stored.then_some(EventId(reader.event_count())))
}

fn line_with_everything(walk: &Walk<'_>, line: LineId) -> LineBytes {
    let view = walk.view();
    view.line_of(&Assignment::everything(&view).state(&view), line)
}

/// The image with the bytes of a store as they are in this content of its line: before it, or after it.
fn with_bytes_of<'g>(image: &CrashImage<'g>, store: &StoreInfo, content: &LineBytes) -> CrashImage<'g> {
    let id = LineId::of(store.place);
    let mut bytes = image.line(id);
    let start = (store.place.offset.0 % LINE_BYTES as u64) as usize;
    let end = (start + store.len as usize).min(LINE_BYTES);
    bytes[start..end].copy_from_slice(&content[start..end]);
    let mut lines: Vec<(LineId, LineBytes)> = image.lines().iter().filter(|(line, _)| *line != id).copied().collect();
    lines.push((id, bytes));
    lines.sort_by_key(|(line, _)| *line);
    CrashImage::imagined(image.guaranteed(), lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_where_it_began_is_found_however_far_back() {
        for (all, began) in [(500_u64, 7), (500, 476), (30, 1), (1000, 999)] {
            let stops: Vec<EventId> = (0..all).map(EventId).collect();
            let mut tried = 0;
            let found = far_back(&stops, |stop| {
                tried += 1;
                Ok::<bool, ()>(stop.0 < began)
            });
            assert_eq!((found, tried < 24), (Ok(Some(EventId(began - 1))), true), "{tried}");
        }
        let stops: Vec<EventId> = (0..100).map(EventId).collect();
        assert_eq!(far_back(&stops, |_| Ok::<bool, ()>(false)), Ok(None));
        assert_eq!(far_back(&stops[..0], |_| Ok::<bool, ()>(true)), Ok(None));
    }
}
