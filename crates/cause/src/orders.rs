//! Findings about the order of two stores, and about two stores that belong together, that are about one bug.

use finding::failure::NamedStore;
use finding::finding::{Class, Finding, Location};
use finding::note::Note;

use crate::analyse::RootCause;
use crate::classify::Completes;
use crate::explain::{Explained, add_path, is_unknown, same_line};
use crate::store_history::StoreInfo;

/// "A before B" and "A and B belong together" are one bug: neither order of the two is right, so only the second helps. The same is true of
/// "A before whatever", if all that an update lacks is A; and of "A came before B, which it needs", if A belongs together with a later store, too:
/// B is only a step on the way. If that later store is the next one of the same loop, or if no more is known of it than that it comes next, the
/// order says it all.
pub(crate) fn join(all: &mut Vec<Explained>, causes: &[RootCause]) {
    let too_early = |explained: &Explained| {
        explained.finding.class == Class::Ordering
            && explained.causes.iter().any(|&number| causes[number].program_order_is_wrong)
    };
    let early: Vec<Location> = all.iter().filter(|explained| too_early(explained)).filter_map(came_first).collect();
    // Of a loop, or if no more is known than the store that came next.
    let is_vague = |explained: &Explained| {
        let failure = explained.finding.failure.as_deref();
        let Some(next) = failure.and_then(|failure| failure.missing.first()) else { return false };
        let there = failure.and_then(|failure| failure.present.first());
        is_step(explained, causes)
            && (there.is_some_and(|there| same_line(&there.location, &next.location))
                || explained.causes.iter().all(|&number| is_unknown(&causes[number])))
            && early.iter().any(|store| same_line(store, explained.finding.guilty()))
    };
    for update in all.extract_if(.., |explained| is_vague(explained)).collect::<Vec<_>>() {
        let is_its_order = |order: &&mut Explained| {
            too_early(order) && came_first(order).is_some_and(|store| same_line(&store, update.finding.guilty()))
        };
        if let Some(Explained { finding, causes }) = all.iter_mut().find(is_its_order) {
            finding.count += update.finding.count;
            causes.extend(update.causes);
            update.finding.paths.into_iter().for_each(|path| add_path(finding, path));
        }
    }
    let (orders, mut others): (Vec<Explained>, Vec<Explained>) =
        std::mem::take(all).into_iter().partition(|explained| explained.finding.class == Class::Ordering);
    for order in orders {
        let together = |other: &&mut Explained| {
            other.finding.class == Class::Atomicity
                && (same_pair(&other.finding, &order.finding)
                    || lacks_only_what(other, &order, causes)
                    || too_early(&order)
                        && is_step(other, causes)
                        && came_first(&order).is_some_and(|store| same_line(&store, other.finding.guilty())))
        };
        match others.iter_mut().find(together) {
            Some(Explained { finding, causes }) => {
                finding.count += order.finding.count;
                causes.extend(order.causes);
                order.finding.paths.into_iter().for_each(|path| add_path(finding, path));
                if !finding.notes.contains(&Note::OrderAlone) {
                    finding.notes.push(Note::OrderAlone);
                }
            }
            None => others.push(order),
        }
    }
    *all = others;
}

/// The store that came too early.
fn came_first(order: &Explained) -> Option<Location> {
    let failure = order.finding.failure.as_deref()?;
    Some(failure.present.first()?.location.clone())
}

/// The program itself, in its own order, leads through a state in which this update is half done.
fn is_step(update: &Explained, causes: &[RootCause]) -> bool {
    update.finding.class == Class::Atomicity && update.causes.iter().any(|&number| causes[number].in_program_order)
}

/// Is what is lost in `order` all that `update` lacks after a crash in the middle of it? No fence helps there. What is lost after everything else is
/// there need not be all that it lacks at other times.
fn lacks_only_what(update: &Explained, order: &Explained, causes: &[RootCause]) -> bool {
    let code = |store: &StoreInfo| store.site.pc;
    let is_late = |cause: &&RootCause| cause.class == Class::Ordering && !cause.program_order_is_wrong;
    let lost = || order.causes.iter().map(|&number| &causes[number]).filter(is_late).flat_map(|cause| &cause.missing);
    let is_last = order.finding.failure.as_deref().is_some_and(|failure| failure.present.is_empty());
    let completes = |cause: &&RootCause| match cause.completes {
        Completes::Alone => true,
        Completes::Last => is_last,
        Completes::Unknown => false,
    };
    let mut ends =
        update.causes.iter().map(|&number| &causes[number]).filter(completes).flat_map(|cause| &cause.missing);
    ends.any(|end| lost().next().is_some() && lost().all(|store| code(store) == code(end)))
}

/// The same two stores, whichever was missing.
fn same_pair(one: &Finding, other: &Finding) -> bool {
    let meet = |some: &[NamedStore], others: &[NamedStore]| {
        some.iter().any(|store| others.iter().any(|other| same_line(&store.location, &other.location)))
    };
    one.failure.as_deref().zip(other.failure.as_deref()).is_some_and(|(one, other)| {
        (meet(&one.missing, &other.missing) && meet(&one.present, &other.present))
            || (meet(&one.missing, &other.present) && meet(&one.present, &other.missing))
    })
}
