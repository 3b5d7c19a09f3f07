//! *torn*: program order, but one store that is wider than a granule is cut (see *Atomicity* in the model).
//!
//! The line of the torn store ends with it; all other lines have everything. Newest stores first. Cuts that leave the
//! lower or the upper part come before those that leave holes; `movups` and string copies show the former.

use persistency::domain::PendingStore;
use persistency::line::{GranuleMask, LineId};
use persistency::point::Content;
use persistency::states::{Base, CrashState};

use super::spec::{Reach, Strategy};
use crate::view::PointView;

#[derive(Debug)]
pub struct Torn {
    /// In reverse.
    cuts: Vec<(LineId, Content)>,
    capped: bool,
}

impl Torn {
    pub fn new(view: &PointView<'_>, cap: u64) -> Self {
        let mut stores: Vec<(LineId, u32, &PendingStore)> = Vec::new();
        for line in view.lines() {
            let wide = (0..).zip(line.stores()).filter(|(_, store)| !store.tears_at().is_empty());
            stores.extend(wide.map(|(kept, store)| (line.id(), kept, store)));
        }
        stores.sort_by_key(|&(id, _, store)| (std::cmp::Reverse(store.event), id));
        let cap = usize::try_from(cap).unwrap_or(usize::MAX);
        let mut cuts = Vec::new();
        for solid in [true, false] {
            for &(id, kept, store) in &stores {
                if cuts.len() > cap {
                    break;
                }
                let whole = store.tears_at();
                let wanted = whole.proper_subsets().filter(|torn| is_solid(*torn, whole) == solid);
                cuts.extend(wanted.map(|torn| (id, Content { kept, torn })));
            }
        }
        let capped = cuts.len() > cap;
        cuts.truncate(cap);
        cuts.reverse();
        Torn { cuts, capped }
    }
}

/// Is it the lower or the upper part of the store?
fn is_solid(torn: GranuleMask, whole: GranuleMask) -> bool {
    // A store's granules are neighbours: a part without a hole that has its first or last granule is all there is.
    let run = torn.0 >> torn.0.trailing_zeros();
    let no_hole = run & run.wrapping_add(1) == 0;
    let ends = torn.0.trailing_zeros() == whole.0.trailing_zeros() || torn.0.leading_zeros() == whole.0.leading_zeros();
    no_hole && ends
}

impl Strategy for Torn {
    fn next(&mut self, _: &PointView<'_>) -> Option<CrashState> {
        self.cuts.pop().map(|cut| CrashState { base: Base::Everything, lines: vec![cut] })
    }

    fn reach(&self) -> Reach {
        if self.capped { Reach::Capped } else { Reach::Done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solid_cuts_are_the_lower_and_upper_parts() {
        let whole = GranuleMask(0b0011_1100);
        let solid: Vec<u8> = whole.proper_subsets().filter(|torn| is_solid(*torn, whole)).map(|torn| torn.0).collect();
        assert_eq!(solid, [0b100, 0b1100, 0b1_1100, 0b10_0000, 0b11_0000, 0b11_1000]);
    }
}
