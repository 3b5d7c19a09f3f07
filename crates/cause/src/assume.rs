//! From causes to the repairs that a further search assumes.

use crash::assumed::{AssumedRepairs, Durable};
use finding::blame::{self, Libraries};
use finding::finding::{Location, Role};
use finding::site::Site;
use rustc_hash::{FxHashMap, FxHashSet};
use trace::event::CodeAddr;
use trace::symbol::Symbolizer;
use trace::{ReadError, Tables, TraceReader};

use crate::analyse::RootCause;
use crate::store_history::StoreInfo;
use crate::storing_code::{StoringCode, StoringCodes};

/// Assumes that these causes are repaired; returns whether that is anything new. A cause without a store that was executed and is
/// missing has no repair that could be assumed.
///
/// The code to blame counts, not the call path alone: the same line of the program, reached by other calls, has the same bug. A line
/// that calls the C library is repaired with all that the library stores for it.
pub fn assume(
    reader: &TraceReader,
    causes: &[RootCause],
    libraries: &Libraries,
    assumed: &mut AssumedRepairs,
) -> Result<bool, ReadError> {
    let executed = causes.iter().filter(|cause| !cause.in_program_order);
    let of = |cause: &RootCause| if cause.lacks_fence() { Durable::Flushed } else { Durable::Stored };
    let lost: Vec<(StoreInfo, Durable)> =
        executed.flat_map(|cause| cause.missing.iter().map(move |store| (*store, of(cause)))).collect();
    if lost.is_empty() {
        return Ok(false);
    }
    let tables = reader.tables();
    let mut symbols = Symbolizer::new(tables);
    let codes = StoringCodes::of(reader);
    let mut guilty: FxHashMap<StoringCode, Vec<(Location, Durable)>> = FxHashMap::default();
    for (store, durable) in &lost {
        let location = blamed(store.site, tables, &mut symbols, libraries);
        guilty.entry(codes.code(store.site.pc)).or_default().push((location, *durable));
    }
    let mut is_new = false;
    for site in sites(reader, |pc| guilty.contains_key(&codes.code(pc)))? {
        let location = blamed(site, tables, &mut symbols, libraries);
        let own = guilty[&codes.code(site.pc)].iter().filter(|(guilty, _)| *guilty == location);
        if let Some(durable) = own.map(|(_, durable)| *durable).max() {
            is_new |= assumed.assume(site.pc, site.context, durable);
        }
    }
    Ok(is_new)
}

/// Assumes that the code at these places is repaired, whatever calls lead to it: known bugs of another recording of the same program.
pub fn carried(reader: &TraceReader, places: &[Location], libraries: &Libraries) -> Result<AssumedRepairs, ReadError> {
    let tables = reader.tables();
    let mut symbols = Symbolizer::new(tables);
    let mut assumed = AssumedRepairs::default();
    for site in sites(reader, |_| true)? {
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

/// The sites of stores by these instructions.
fn sites(reader: &TraceReader, wanted: impl Fn(CodeAddr) -> bool) -> Result<FxHashSet<Site>, ReadError> {
    let mut sites = FxHashSet::default();
    let mut events = reader.events();
    while let Some((id, event)) = events.next_with_id()? {
        if wanted(event.pc) && StoreInfo::of(id, &event).is_some() {
            sites.insert(Site { pc: event.pc, context: event.context });
        }
    }
    Ok(sites)
}
