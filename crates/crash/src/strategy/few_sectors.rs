//! *few-sectors*: as *few-lines*, for file systems over the block layer, which take it that a sector of 512 bytes is written whole.
//!
//! States differ from *guaranteed-only* or from *program-order* on at most *k* sectors; a sector has all of its pending stores or none of
//! them. That is a declaration of whoever chooses this strategy, not a property of PM: without BTT, a power failure can tear a sector. States
//! with the first of several writes of one sector, but not the last, are not among these.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use persistency::line::{LINE_BYTES, LineId};
use persistency::point::Content;
use persistency::states::{Base, CrashState};
use trace::event::{EventId, PoolId};

use super::few_lines::combinations;
use super::listed::Listed;
use crate::view::{PointView, everything_of};

const SECTOR_LINES: u64 = 512 / LINE_BYTES as u64;

/// The dirty lines of a sector, with all of their stores.
type Sector = Vec<(LineId, Content)>;

pub fn few_sectors(view: &PointView<'_>, most: u32, cap: u64) -> Listed {
    let sectors = sectors(view);
    let states = (0..=most as usize).flat_map(move |size| {
        let sectors = sectors.clone();
        combinations(sectors.len(), size).flat_map(move |chosen| {
            let lines = |content: fn(Content) -> Content| {
                let lines = chosen.iter().flat_map(|&index| &sectors[index]);
                let mut lines: Vec<_> = lines.map(|&(id, everything)| (id, content(everything))).collect();
                lines.sort_unstable_by_key(|&(id, _)| id);
                lines
            };
            [
                CrashState { base: Base::Guaranteed, lines: lines(|everything| everything) },
                CrashState { base: Base::Everything, lines: lines(|_| Content::default()) },
            ]
        })
    });
    Listed::new(states, cap, false)
}

/// Those that were stored to last come first.
fn sectors(view: &PointView<'_>) -> Vec<Sector> {
    let mut sectors: BTreeMap<(PoolId, u64), (Option<EventId>, Sector)> = BTreeMap::new();
    for line in view.lines() {
        let id = line.id();
        let (newest, lines) = sectors.entry((id.pool, id.line.0 / SECTOR_LINES)).or_default();
        *newest = (*newest).max(line.stores().last().map(|store| store.event));
        lines.push((id, everything_of(line)));
    }
    let mut sectors: Vec<_> = sectors.into_values().collect();
    sectors.sort_by_key(|(newest, _)| Reverse(*newest));
    sectors.into_iter().map(|(_, lines)| lines).collect()
}
