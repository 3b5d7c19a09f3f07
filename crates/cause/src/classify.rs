//! Which kind of bug a minimal failing state shows.
//!
//! - **durability**: the missing store is never made durable by the program, or only by accident.
//! - **atomicity**: neither order of the two sides is right (with either one alone recovery fails), or the program's own
//!   order of stores passes through a state on which recovery fails and no other order would avoid it.
//! - **ordering**: both are made durable, but in an order that nothing guarantees; or the program stores them in the
//!   wrong order: with the later stores first, recovery would pass.
//! - **recovery**: with everything in PM, in program order, recovery itself crashes or hangs.

use crash::points::Point;
use crash::recovery::Recovery;
use crash::walk::{Rules, WalkError};
use finding::finding::Class;
use persistency::point::Content;
use rustc_hash::FxHashSet;
use trace::event::EventId;
use trace::{ReadError, TraceReader};
use verdict::symptom::Symptom;
use verdict::verdict::Verdict;

use crate::minimise::{Minimal, StoreAt};
use crate::point_evaluator::{EvaluateError, PointEvaluator};
use crate::program_order::in_program_order;
use crate::store_history::{self, StoreFate, StoreInfo};

/// A kind, and the stores on both sides.
#[derive(Clone, Debug)]
pub struct Classified {
    pub class: Class,
    /// Not in PM: lost, or not executed yet.
    pub missing: Vec<StoreInfo>,
    /// In PM too early.
    pub present: Vec<StoreInfo>,
    /// The missing stores come after the present ones in the program.
    pub program_order_is_wrong: bool,
    /// The program's own order of stores passes through the failing state.
    pub from_program_order: bool,
    pub completes: Completes,
}

/// What is known of the store that is named as missing from an update in program order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completes {
    /// It comes next, or it was lost: nobody has seen what completes the update.
    Unknown,
    /// Recovery passes again from it on.
    Last,
    /// It is all that is missing.
    Alone,
}

#[derive(Debug, thiserror::Error)]
pub enum ClassifyError {
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Walk(#[from] WalkError),
}

/// Does this verdict say that recovery itself broke down?
pub fn is_breakdown(verdict: &Verdict) -> bool {
    verdict.symptom().is_some_and(Symptom::is_breakdown)
}

pub fn classify<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    evaluator: &mut PointEvaluator<'_, '_, R>,
    point: &Point,
    minimal: &Minimal,
    verdict: &Verdict,
) -> Result<Classified, ClassifyError> {
    let present = facts(reader, evaluator, &minimal.present)?;
    if minimal.in_program_order {
        return in_program_order(reader, rules, evaluator, point.at, present, verdict);
    }
    let missing = facts(reader, evaluator, &minimal.missing)?;
    if let Some(oldest) = missing.first()
        && present.is_empty()
        && nothing_came_later(reader, evaluator, oldest, point.at)?
        && !passes_before(reader, rules, evaluator, oldest.event)?
    {
        // Several stores before one flush: the program was there, between two crash points.
        return in_program_order(reader, rules, evaluator, oldest.event, present, verdict);
    }
    if missing.iter().all(|lost| present.iter().any(|there| there.event == lost.event)) && !missing.is_empty() {
        // One store over two lines: no flush can come between its parts.
        let answer = Classified {
            class: Class::Atomicity,
            missing,
            present,
            program_order_is_wrong: false,
            from_program_order: false,
            completes: Completes::Unknown,
        };
        return Ok(answer);
    }
    let mut lost = Vec::new();
    for store in &missing {
        if store_history::fate(reader, store)? != StoreFate::Durable {
            lost.push(*store);
        }
    }
    if !lost.is_empty() {
        // Other stores may have to be missing, too, for the failure to show; they are not to blame for it.
        let answer = Classified {
            class: Class::Durability,
            missing: lost,
            present,
            program_order_is_wrong: false,
            from_program_order: false,
            completes: Completes::Unknown,
        };
        return Ok(answer);
    }
    let class = if !minimal.present.is_empty() && fails_the_other_way_round(evaluator, minimal)? {
        Class::Atomicity
    } else {
        Class::Ordering
    };
    Ok(Classified {
        class,
        missing,
        present,
        program_order_is_wrong: false,
        from_program_order: false,
        completes: Completes::Unknown,
    })
}

fn facts<R: Recovery>(
    reader: &TraceReader,
    evaluator: &PointEvaluator<'_, '_, R>,
    stores: &[StoreAt],
) -> Result<Vec<StoreInfo>, ReadError> {
    let mut facts = Vec::new();
    for at in stores {
        let Some(store) = evaluator.view.lines()[at.line].stores().get(at.store) else { continue };
        let line = evaluator.view.lines()[at.line].id();
        facts.extend(store_history::store(reader, store.event)?.map(|fact| StoreInfo { line, ..fact }));
    }
    facts.sort_by_key(|fact: &StoreInfo| fact.event);
    facts.dedup_by_key(|fact| fact.event);
    Ok(facts)
}

/// Only the stores that were missing, without those that were there. What fails without either of them is another bug.
fn fails_the_other_way_round<R: Recovery>(
    evaluator: &mut PointEvaluator<'_, '_, R>,
    minimal: &Minimal,
) -> Result<bool, EvaluateError> {
    let mut neither = minimal.failing.clone();
    minimal.present.iter().for_each(|at| neither.0[at.line] = Content::default());
    let mut other = neither.clone();
    for at in &minimal.missing {
        other.0[at.line] = Content::whole(at.store as u32 + 1);
    }
    let fails = |evaluator: &mut PointEvaluator<'_, '_, R>| -> Result<bool, EvaluateError> {
        let verdict = evaluator.verdict(&other)?;
        Ok(!verdict.is_pass() && !evaluator.verdict(&neither)?.agrees(&verdict))
    };
    match fails(evaluator) {
        Err(EvaluateError::Exhausted) => Ok(false),
        known => known,
    }
}

/// Does recovery pass in program order up to an event, judged as there: an operation that has returned since was still under way?
fn passes_before<R: Recovery>(
    reader: &TraceReader,
    rules: Rules,
    evaluator: &mut PointEvaluator<'_, '_, R>,
    event: EventId,
) -> Result<bool, ClassifyError> {
    let walk = evaluator.walk_to(reader, rules, event)?;
    Ok(evaluator.passes_at(&walk.view())?)
}

/// Are all stores after `store` lost as well? Then the state is one that the program passed through.
fn nothing_came_later<R: Recovery>(
    reader: &TraceReader,
    evaluator: &PointEvaluator<'_, '_, R>,
    store: &StoreInfo,
    at: EventId,
) -> Result<bool, ReadError> {
    let pending = evaluator.view.lines().iter().flat_map(|line| line.stores());
    let pending: FxHashSet<EventId> = pending.map(|store| store.event).collect();
    let later = store_history::stores_in(reader, EventId(store.event.0 + 1), at, usize::MAX)?;
    Ok(later.iter().all(|store| pending.contains(&store.event)))
}
