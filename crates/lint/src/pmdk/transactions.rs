//! Which transactions are open, and what they have logged or allocated.
//!
//! Sources: `libpmemobj/tx_base.h`, `libpmemobj(7)`, and `memblock_header_compact_write` in PMDK's `memblock.c`.
//!
//! Where an allocation lies is known from the header that libpmemobj writes while it allocates: a word with the block's
//! size in its low 48 bits, and a word with the type number; the object begins behind them.
//!
//! # What it can miss
//! An allocation whose header was not recognised (custom allocation classes without headers, `realloc` in place, published
//! reservations) makes the transaction *unsure*: what it covers is not known, and nothing is said of it.

use finding::site::SiteId;
use rustc_hash::FxHashMap;
use trace::Tables;
use trace::event::{Event, EventKind, Place, PoolId, ThreadId, WatchId};

use super::functions::{self, Function};
use super::ranges::Ranges;
use crate::world::World;

const HEADER: u64 = 16;
const SIZE_MASK: u64 = (1 << 48) - 1;
/// `POBJ_XADD_NO_SNAPSHOT`: the range is flushed at commit, but not logged.
const NO_SNAPSHOT: u64 = 1 << 2;

/// What an event meant for the transactions of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happening {
    Nothing,
    /// A range was logged; `earlier` had added or allocated a part of it in the same transaction.
    Logged {
        earlier: Option<SiteId>,
    },
    /// An object was allocated: all of it, its header included.
    Allocated {
        start: Place,
        len: u64,
        type_num: u64,
    },
    Freed {
        object: Place,
    },
}

/// A transaction, with those that are nested in it.
#[derive(Debug, Default)]
struct Transaction {
    /// Address of the pool, as the program passed it.
    pool: u64,
    began: Option<SiteId>,
    /// For each nested level, whether its work goes on.
    working: Vec<bool>,
    covered: FxHashMap<PoolId, Ranges>,
    allocating: Option<Allocating>,
    unsure: bool,
}

#[derive(Clone, Copy, Debug)]
struct Allocating {
    site: SiteId,
    size: u64,
    type_num: u64,
    found: bool,
}

/// The transactions of all threads.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    functions: Option<Vec<Option<Function>>>,
    /// By thread number.
    threads: Vec<Transaction>,
}

impl Transactions {
    pub fn watches() -> Vec<String> {
        functions::symbols()
    }

    /// Whether the trace holds what is needed.
    pub fn recorded(tables: &Tables) -> bool {
        tables.watches.iter().any(|symbol| functions::by_symbol(symbol) == Some(Function::Begin))
    }

    /// Whether the thread works in a transaction.
    pub fn working(&self, thread: ThreadId) -> bool {
        self.thread(thread).is_some_and(|tx| tx.working.last() == Some(&true))
    }

    /// Whether the thread is in a transaction, at whatever stage.
    pub fn inside(&self, thread: ThreadId) -> bool {
        self.thread(thread).is_some_and(|tx| !tx.working.is_empty())
    }

    /// Where the transaction began that the thread is in.
    pub fn open(&self, thread: ThreadId) -> Option<SiteId> {
        self.thread(thread).filter(|tx| !tx.working.is_empty())?.began
    }

    /// Where the thread's transaction began, if it is certain that it does not cover these bytes of its pool.
    pub fn uncovered(&self, thread: ThreadId, place: Place, len: u64) -> Option<SiteId> {
        let tx = self.thread(thread)?;
        let covered = tx.covered.get(&place.pool)?.covers(place.offset.0, place.offset.0 + len);
        if covered || tx.unsure { None } else { tx.began }
    }

    fn thread(&self, thread: ThreadId) -> Option<&Transaction> {
        self.threads.get(thread.0 as usize)
    }

    #[inline]
    pub fn observe(&mut self, event: &Event<'_>, site: SiteId, world: &World<'_>) -> Happening {
        let thread = event.thread.0 as usize;
        match event.kind {
            EventKind::Store { place, bytes, .. } => match self.threads.get_mut(thread) {
                Some(tx) => tx.stored(place, bytes),
                None => Happening::Nothing,
            },
            EventKind::Call { watch, ref args } => match self.function(world, watch) {
                Some(function) => {
                    if self.threads.len() <= thread {
                        self.threads.resize_with(thread + 1, Transaction::default);
                    }
                    self.threads[thread].called(&Call { function, watch, args, site, world })
                }
                None => Happening::Nothing,
            },
            EventKind::Return { watch, value } => {
                let allocates = matches!(self.function(world, watch), Some(Function::Alloc | Function::AllocUnknown));
                if allocates && let Some(tx) = self.threads.get_mut(thread) {
                    let known = tx.allocating.take().is_some_and(|allocating| allocating.found);
                    // A null object: nothing was allocated.
                    tx.unsure |= !known && value != 0;
                }
                Happening::Nothing
            }
            _ => Happening::Nothing,
        }
    }

    fn function(&mut self, world: &World<'_>, watch: WatchId) -> Option<Function> {
        let functions = self
            .functions
            .get_or_insert_with(|| world.tables.watches.iter().map(|symbol| functions::by_symbol(symbol)).collect());
        functions.get(watch.0 as usize).copied().flatten()
    }
}

/// A call of one of the functions.
struct Call<'a> {
    function: Function,
    watch: WatchId,
    args: &'a [u64; 6],
    site: SiteId,
    world: &'a World<'a>,
}

impl Transaction {
    fn called(&mut self, call: &Call<'_>) -> Happening {
        let &Call { function, args, site, world, .. } = call;
        match function {
            Function::Begin => {
                if self.working.is_empty() {
                    self.covered.clear();
                    self.unsure = false;
                    self.pool = args[0];
                    self.began = Some(site);
                    if let Some(place) = world.place_at(args[0]) {
                        self.covered.entry(place.pool).or_default();
                    }
                }
                self.working.push(true);
            }
            Function::Leave => {
                if let Some(working) = self.working.last_mut() {
                    *working = false;
                }
            }
            Function::End => {
                self.working.pop();
                if self.working.is_empty() {
                    self.covered.values_mut().for_each(Ranges::clear);
                    self.allocating = None;
                }
            }
            Function::AddRange => {
                let at = world.place_at(self.pool.wrapping_add(args[1]).wrapping_add(args[2]));
                return self.add(call, at, args[3], args[4]);
            }
            Function::AddDirect => {
                return self.add(call, world.place_at(args[0]), args[1], args[2]);
            }
            Function::Alloc => {
                let (size, type_num) = (args[0], args[1]);
                self.allocating = Some(Allocating { site, size, type_num, found: false });
            }
            Function::AllocUnknown => self.unsure = true,
            Function::Free => {
                if let Some(object) = world.place_at(self.pool.wrapping_add(args[1])) {
                    return Happening::Freed { object };
                }
            }
        }
        Happening::Nothing
    }

    fn add(&mut self, call: &Call<'_>, at: Option<Place>, size: u64, flags: u64) -> Happening {
        let has_flags = call.world.tables.watch(call.watch).contains("_xadd_");
        let Some(place) = at else {
            self.unsure = true;
            return Happening::Nothing;
        };
        let (start, end) = (place.offset.0, place.offset.0.saturating_add(size));
        let covered = self.covered.entry(place.pool).or_default();
        let earlier = covered.overlap(start, end);
        covered.add(start, end, call.site);
        if has_flags && flags & NO_SNAPSHOT != 0 { Happening::Nothing } else { Happening::Logged { earlier } }
    }

    /// Looks for the header of the object that is being allocated.
    fn stored(&mut self, place: Place, bytes: &[u8]) -> Happening {
        let Some(allocating) = self.allocating.as_mut().filter(|allocating| !allocating.found) else {
            return Happening::Nothing;
        };
        let word = |at: usize| bytes.get(at..at + 8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let (Some(size), Some(type_num)) = (word(0), word(8)) else { return Happening::Nothing };
        let len = size & SIZE_MASK;
        if type_num != allocating.type_num || len < allocating.size.saturating_add(HEADER) {
            return Happening::Nothing;
        }
        allocating.found = true;
        let site = allocating.site;
        let start = place.offset.0;
        self.covered.entry(place.pool).or_default().add(start, start + len, site);
        Happening::Allocated { start: place, len, type_num }
    }
}

/// The object of an allocated block.
pub(crate) fn object(start: Place, len: u64) -> (Place, u64) {
    let mut place = start;
    place.offset.0 += HEADER;
    (place, len - HEADER)
}
