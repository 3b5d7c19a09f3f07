//! From causes to the repairs that a further search assumes.

use crash::assumed::{AssumedRepairs, Durable};
use finding::blame::{self, Libraries};
use finding::finding::{Class, Location, Role};
use finding::site::Site;
use rustc_hash::FxHashMap;
use trace::event::CodeAddr;
use trace::symbol::Symbolizer;
use trace::{ReadError, Tables, TraceReader};

use crate::analyse::RootCause;
use crate::store_history::{self, StoreFate, StoreInfo};
use crate::storing_code::{StoringCode, StoringCodes};

/// Assumes that these causes are repaired; returns whether that is anything new. A cause without a store that was executed and is
/// missing has no repair that could be assumed.
///
/// The code to blame counts, not the call path alone: the same line of the program, reached by other calls, has the same bug. But what is never
/// flushed on one path may be flushed on another, and lack its fence there: that is another bug. A line that calls the C library is repaired
/// with all that the library stores for it.
pub fn assume(
    reader: &TraceReader,
    causes: &[RootCause],
    libraries: &Libraries,
    assumed: &mut AssumedRepairs,
) -> Result<bool, ReadError> {
    let executed = causes.iter().filter(|cause| !cause.in_program_order);
    let lost: Vec<(StoreInfo, Repaired)> =
        executed.flat_map(|cause| cause.missing.iter().map(move |store| (*store, Repaired::of(cause)))).collect();
    if lost.is_empty() {
        return Ok(false);
    }
    let tables = reader.tables();
    let mut symbols = Symbolizer::new(tables);
    let codes = StoringCodes::of(reader);
    let mut guilty: FxHashMap<StoringCode, Vec<(Location, Site, Repaired)>> = FxHashMap::default();
    for (store, repaired) in &lost {
        let location = blamed(store.site, tables, &mut symbols, libraries);
        guilty.entry(codes.code(store.site.pc)).or_default().push((location, store.site, *repaired));
    }
    let mut is_new = false;
    for (site, stores) in sites(reader, |pc| guilty.contains_key(&codes.code(pc)))? {
        let location = blamed(site, tables, &mut symbols, libraries);
        let mut durable = None;
        for (_, known, repaired) in guilty[&codes.code(site.pc)].iter().filter(|(guilty, ..)| *guilty == location) {
            let has_bug = *repaired != Repaired::Unflushed || *known == site || !are_flushed(reader, &stores)?;
            durable = durable.max(has_bug.then_some(repaired.durable()));
        }
        if let Some(durable) = durable {
            is_new |= assumed.assume(site.pc, site.context, durable);
        }
    }
    Ok(is_new)
}

/// What was wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repaired {
    /// It was never flushed.
    Unflushed,
    /// A fence was missing.
    Unfenced,
    /// It was flushed too late.
    Late,
}

impl Repaired {
    fn of(cause: &RootCause) -> Repaired {
        match cause.class {
            _ if cause.lacks_fence() => Repaired::Unfenced,
            Class::Durability => Repaired::Unflushed,
            _ => Repaired::Late,
        }
    }

    fn durable(self) -> Durable {
        if self == Repaired::Unfenced { Durable::Flushed } else { Durable::Stored }
    }
}

/// Does the program make these stores durable itself, sooner or later?
fn are_flushed(reader: &TraceReader, stores: &[StoreInfo]) -> Result<bool, ReadError> {
    for store in stores {
        if store_history::fate(reader, store)? != StoreFate::Durable {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Assumes that the code at these places is repaired, whatever calls lead to it: known bugs of another recording of the same program.
pub fn carried(reader: &TraceReader, places: &[Location], libraries: &Libraries) -> Result<AssumedRepairs, ReadError> {
    let tables = reader.tables();
    let mut symbols = Symbolizer::new(tables);
    let mut assumed = AssumedRepairs::default();
    for site in sites(reader, |_| true)?.into_keys() {
        if places.contains(&blamed(site, tables, &mut symbols, libraries)) {
            assumed.assume(site.pc, site.context, Durable::Stored);
        }
    }
    Ok(assumed)
}

fn blamed(site: Site, tables: &Tables, symbols: &mut Symbolizer<'_>, libraries: &Libraries) -> Location {
    let frames = blame::frames(site, Role::Missing, tables, symbols);
    frames[blame::guilty(&frames, libraries)].clone()
}

/// So many stores of a site stand for all of them.
const STORES: usize = 2;

/// The sites of stores by these instructions, with the first stores of each.
fn sites(
    reader: &TraceReader,
    wanted: impl Fn(CodeAddr) -> bool,
) -> Result<FxHashMap<Site, Vec<StoreInfo>>, ReadError> {
    let mut sites: FxHashMap<Site, Vec<StoreInfo>> = FxHashMap::default();
    let mut events = reader.events();
    while let Some((id, event)) = events.next_with_id()? {
        if let Some(store) = StoreInfo::of(id, &event).filter(|_| wanted(event.pc)) {
            let stores = sites.entry(store.site).or_default();
            if stores.len() < STORES {
                stores.push(store);
            }
        }
    }
    Ok(sites)
}
