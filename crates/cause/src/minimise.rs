//! The smallest difference between a failing state and a passing one.

use crash::recovery::Recovery;
use persistency::point::{Content, LineView};

use crate::point_evaluator::{EvaluateError, PointEvaluator};
use crash::assignment::Assignment;

/// A store of a crash point: the line's place in the view, and the store's among the line's pending ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoreAt {
    pub line: usize,
    pub store: usize,
}

/// What is left of a failing state.
#[derive(Clone, Debug)]
pub struct Minimal {
    pub failing: Assignment,
    /// Stores that are not in PM and whose presence would make recovery pass; one per line. Empty if recovery fails
    /// with everything in PM.
    pub missing: Vec<StoreAt>,
    /// Pending stores that must be in PM for recovery to fail; one per line, the newest. Others that are in PM keep another failure away.
    pub present: Vec<StoreAt>,
    /// Recovery fails with everything in PM.
    pub in_program_order: bool,
}

/// Makes a failing state as small as the allowance permits.
pub fn minimise<R: Recovery>(
    evaluator: &mut PointEvaluator<'_, '_, R>,
    failing: Assignment,
) -> Result<Minimal, EvaluateError> {
    let everything = Assignment::everything(evaluator.view);
    let in_program_order = !evaluator.passes(&everything)?;
    let mut minimal = Minimal { failing, missing: Vec::new(), present: Vec::new(), in_program_order };
    if in_program_order {
        minimal.failing = everything;
    } else {
        restore(evaluator, &mut minimal, &everything)?;
    }
    // From here on a result is there; running out of runs only leaves it larger.
    match take_away(evaluator, &mut minimal) {
        Err(EvaluateError::Exhausted) | Ok(()) => Ok(minimal),
        Err(error) => Err(error),
    }
}

/// Puts back into PM whatever need not be missing.
fn restore<R: Recovery>(
    evaluator: &mut PointEvaluator<'_, '_, R>,
    minimal: &mut Minimal,
    everything: &Assignment,
) -> Result<(), EvaluateError> {
    let differs = |at: &usize| minimal.failing.0[*at] != everything.0[*at];
    let lines: Vec<usize> = (0..everything.0.len()).filter(differs).collect();
    let current = minimal.failing.clone();
    let missing = fewest(lines, |kept| {
        let mut candidate = everything.clone();
        kept.iter().for_each(|&at| candidate.0[at] = current.0[at]);
        Ok(!evaluator.passes(&candidate)?)
    })?;
    let mut failing = everything.clone();
    missing.iter().for_each(|&at| failing.0[at] = current.0[at]);
    // Of each line as many stores as possible: the first one that helps is the one that is missing.
    for &at in &missing {
        let most = everything.0[at].kept;
        let mut kept = failing.0[at].kept;
        while kept < most {
            let mut candidate = failing.clone();
            candidate.0[at] = Content::whole(kept + 1);
            if evaluator.passes(&candidate)? {
                break;
            }
            failing = candidate;
            kept += 1;
        }
        // Beside what was found of the lines before, this one may fail even with all of it in PM: then it is none of the missing ones.
        if kept < most {
            minimal.missing.push(StoreAt { line: at, store: kept as usize });
        }
    }
    // What is torn, or went ahead of what is missing on its own line, is there as well.
    for &at in &missing {
        minimal
            .present
            .extend(newest_ahead(&evaluator.view.lines()[at], failing.0[at]).map(|store| StoreAt { line: at, store }));
    }
    minimal.failing = failing;
    Ok(())
}

/// The newest store of a line that is in PM, at least in part, though an older one is not, or not all of it.
fn newest_ahead(line: &LineView<'_>, content: Content) -> Option<usize> {
    if content.is_whole() {
        return None;
    }
    let mut newest = None;
    line.for_each_store(content, |store, _| newest = Some(store.event));
    line.stores().iter().position(|store| Some(store.event) == newest)
}

/// Takes out of PM whatever need not be there. What is left must fail in the same way, and pass with the missing stores alone put back: else
/// it would be the failure of another bug.
fn take_away<R: Recovery>(
    evaluator: &mut PointEvaluator<'_, '_, R>,
    minimal: &mut Minimal,
) -> Result<(), EvaluateError> {
    let missing: Vec<usize> = minimal.missing.iter().map(|at| at.line).collect();
    let is_there = |at: &usize| minimal.failing.0[*at].kept > 0 && !missing.contains(at);
    let lines: Vec<usize> = (0..minimal.failing.0.len()).filter(is_there).collect();
    let full = minimal.failing.clone();
    let symptom = evaluator.verdict(&full)?;
    let named = minimal.missing.clone();
    let mut shows = |candidate: &Assignment| -> Result<bool, EvaluateError> {
        if !evaluator.verdict(candidate)?.agrees(&symptom) {
            return Ok(false);
        }
        let mut restored = candidate.clone();
        named.iter().for_each(|at| restored.0[at.line] = Content::whole(at.store as u32 + 1));
        Ok(named.is_empty() || evaluator.passes(&restored)?)
    };
    let without = |kept: &[usize]| {
        let mut candidate = full.clone();
        lines.iter().filter(|at| !kept.contains(at)).for_each(|&at| candidate.0[at] = Content::default());
        candidate
    };
    let needed = fewest(lines.clone(), |kept| shows(&without(kept)))?;
    minimal.failing = without(&needed);
    for &at in &needed {
        while minimal.failing.0[at].kept > 1 {
            let mut candidate = minimal.failing.clone();
            candidate.0[at] = Content::whole(candidate.0[at].kept - 1);
            if !shows(&candidate)? {
                break;
            }
            minimal.failing = candidate;
        }
    }
    let without = |at: usize| {
        let mut candidate = minimal.failing.clone();
        let kept = std::mem::take(&mut candidate.0[at]).kept as usize;
        (candidate, StoreAt { line: at, store: kept.saturating_sub(1) })
    };
    let mut present = Vec::new();
    for &at in &needed {
        let (candidate, store) = without(at);
        if minimal.in_program_order || evaluator.passes(&candidate)? {
            present.push(store);
        }
    }
    // Where another bug fails without any of them, the store is there that came too early: without it, the missing ones make no difference.
    if present.is_empty() && minimal.present.is_empty() && !minimal.missing.is_empty() {
        let event = |at: &StoreAt| evaluator.view.lines()[at.line].stores()[at.store].event;
        let newest = minimal.missing.iter().map(event).max();
        for &at in &needed {
            let (candidate, store) = without(at);
            if Some(event(&store)) > newest && is_beside_the_point(evaluator, &candidate, &minimal.missing)? {
                present.push(store);
            }
        }
    }
    minimal.present.extend(present);
    Ok(())
}

/// Does another bug make this state fail, in the same way with and without the missing stores?
fn is_beside_the_point<R: Recovery>(
    evaluator: &mut PointEvaluator<'_, '_, R>,
    state: &Assignment,
    missing: &[StoreAt],
) -> Result<bool, EvaluateError> {
    let mut restored = state.clone();
    missing.iter().for_each(|at| restored.0[at.line] = Content::whole(at.store as u32 + 1));
    let verdict = evaluator.verdict(state)?;
    Ok(evaluator.verdict(&restored)?.agrees(&verdict))
}

/// A smallest subset (no single element can be left out) for which `still` holds, found by leaving out halves, then
/// quarters and so on (Zeller's delta debugging, without its complements).
fn fewest(
    mut items: Vec<usize>,
    mut still: impl FnMut(&[usize]) -> Result<bool, EvaluateError>,
) -> Result<Vec<usize>, EvaluateError> {
    if items.is_empty() || still(&[])? {
        return Ok(Vec::new());
    }
    let mut size = items.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < items.len() && items.len() > 1 {
            let end = (at + size).min(items.len());
            let rest: Vec<usize> = items[..at].iter().chain(&items[end..]).copied().collect();
            if !rest.is_empty() && still(&rest)? {
                items = rest;
            } else {
                at = end;
            }
        }
        if size == 1 {
            return Ok(items);
        }
        size = size.div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fewest_are_found() {
        let needs = |wanted: &'static [usize]| move |kept: &[usize]| Ok(wanted.iter().all(|w| kept.contains(w)));
        assert_eq!(fewest((0..100).collect(), needs(&[17])).unwrap(), [17]);
        assert_eq!(fewest((0..100).collect(), needs(&[3, 99])).unwrap(), [3, 99]);
        assert_eq!(fewest((0..5).collect(), needs(&[])).unwrap(), Vec::<usize>::new());
        assert_eq!(fewest(vec![4], needs(&[4])).unwrap(), [4]);
    }
}
