//! Where in the code an event happened: its instruction and its call path, by number.

use rustc_hash::FxHashMap;
use trace::event::{CodeAddr, ContextId};

/// An instruction reached by a call path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Site {
    pub pc: CodeAddr,
    pub context: ContextId,
}

/// Number of a [`Site`]. An analysis keeps these, four bytes each, and names the code only at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SiteId(pub u32);

/// All sites of a trace, numbered by first appearance.
#[derive(Debug, Default)]
pub struct Sites {
    sites: Vec<Site>,
    numbers: FxHashMap<Site, SiteId>,
    /// The newest lookups by a few bits of the address: most events come from a handful of sites.
    recent: Vec<Option<(Site, SiteId)>>,
}

const RECENT: usize = 1024;

impl Sites {
    #[inline]
    pub fn number(&mut self, site: Site) -> SiteId {
        if self.recent.is_empty() {
            self.recent = vec![None; RECENT];
        }
        let at = (site.pc.addr as usize ^ (site.context.0 as usize).wrapping_mul(37)) % RECENT;
        if let Some((known, number)) = self.recent[at]
            && known == site
        {
            return number;
        }
        let sites = &mut self.sites;
        let number = *self.numbers.entry(site).or_insert_with(|| {
            sites.push(site);
            SiteId(sites.len() as u32 - 1)
        });
        self.recent[at] = Some((site, number));
        number
    }

    pub fn get(&self, id: SiteId) -> Site {
        self.sites[id.0 as usize]
    }

    pub fn len(&self) -> usize {
        self.sites.len()
    }

    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }
}
