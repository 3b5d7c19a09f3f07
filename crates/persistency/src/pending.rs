//! One dirty line: the stores that are not yet guaranteed, and which threads have asked for them.

use trace::event::{EventId, ThreadId};

use crate::domain::Detail;
use crate::line::{ByteMask, LineId};

/// Place of a store among the stores of its line. Never reused within a slot, not even by the next line that
/// lives there, so that a mark which outlived its line settles nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub(crate) u64);

/// How a store came to its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Route {
    /// Through the cache.
    Cached,
    /// The store of a locked instruction: through the cache.
    Rmw,
    /// Past the cache.
    NonTemporal,
    /// `movdir64b`: past the cache, never torn.
    Direct64,
    /// The kernel wrote into the mapping (`read` into PM).
    Kernel,
    /// A write to the pool's file.
    File,
    /// The boundary of a range that the file system zeroed.
    Zeroed,
}

impl Route {
    /// Waits in the thread's write-combining buffers, not in the cache: no flush reaches it.
    pub fn bypasses_cache(self) -> bool {
        matches!(self, Route::NonTemporal | Route::Direct64)
    }
}

/// A store, or one line's part of a longer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingStore {
    pub event: EventId,
    pub thread: ThreadId,
    pub route: Route,
    /// The first byte inside the line.
    pub start: u8,
    pub len: u8,
    /// Where the bytes lie in the line's (or the step's) byte buffer, counted modulo 2³².
    pub(crate) at: u32,
    pub(crate) seq: Seq,
}

impl PendingStore {
    /// The bytes of the line that it wrote.
    pub fn mask(&self) -> ByteMask {
        ByteMask::range(self.start, self.len)
    }

    /// Can a part of it be in PM without the rest?
    pub fn can_tear(&self) -> bool {
        self.route != Route::Direct64 && self.mask().granules().count() > 1
    }
}

/// Who stores, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub event: EventId,
    pub thread: ThreadId,
    pub route: Route,
}

/// What a thread has asked of a line since its last fence: every store before these places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub thread: ThreadId,
    /// By `clwb` or `clflushopt`.
    pub flushed: Seq,
    /// By its own non-temporal stores.
    pub streamed: Seq,
}

/// Whether two stores are of one kind, for a tracker that forgets some ([`Detail::LastWriters`]).
pub type Alike = fn(EventId, EventId) -> bool;

fn remember(forgotten: &mut Vec<PendingStore>, store: PendingStore, alike: Alike) {
    match forgotten.iter_mut().find(|known| alike(known.event, store.event)) {
        Some(known) if known.seq < store.seq => *known = store,
        Some(_) => {}
        None => forgotten.push(store),
    }
}

/// In [`Detail::LastWriters`] a line's list is thinned out when it has grown to this many stores.
const THIN_AT: usize = 32;
/// A freed slot keeps at most this much room for its next line.
const KEEP_STORES: usize = 64;
const KEEP_BYTES: usize = 1024;

#[derive(Clone, Debug)]
pub(crate) struct DirtyLine {
    pub id: LineId,
    /// The first store that is not guaranteed.
    pub guaranteed: Seq,
    /// The place of the next store.
    pub next: Seq,
    /// Just after the newest store that went through the cache: what a flush reaches.
    pub cached: Seq,
    /// The bytes that a store not yet guaranteed has written.
    pub dirty: ByteMask,
    pub marks: Vec<Mark>,
    stores: Vec<PendingStore>,
    /// Stores before this one are settled; they are removed in batches.
    head: usize,
    bytes: Vec<u8>,
    bytes_base: u32,
    thin_at: usize,
    /// Of the stores that were thinned out, one of each kind, as `alike` tells them apart.
    forgotten: Vec<PendingStore>,
}

impl DirtyLine {
    pub fn new(id: LineId) -> Self {
        DirtyLine {
            id,
            guaranteed: Seq(0),
            next: Seq(0),
            cached: Seq(0),
            dirty: ByteMask::EMPTY,
            marks: Vec::new(),
            stores: Vec::new(),
            head: 0,
            bytes: Vec::new(),
            bytes_base: 0,
            thin_at: THIN_AT,
            forgotten: Vec::new(),
        }
    }

    /// Takes the slot over for another line; places go on counting.
    pub fn reuse(&mut self, id: LineId) {
        self.id = id;
        self.cached = self.guaranteed;
    }

    /// Nothing is pending any more.
    pub fn clear(&mut self) {
        self.guaranteed = self.next;
        self.dirty = ByteMask::EMPTY;
        self.marks.clear();
        self.stores.clear();
        self.stores.shrink_to(KEEP_STORES);
        self.head = 0;
        self.bytes.clear();
        self.bytes.shrink_to(KEEP_BYTES);
        self.bytes_base = 0;
        self.thin_at = THIN_AT;
        self.forgotten.clear();
    }

    /// How many stores are not guaranteed; exact even where [`Detail::LastWriters`] has forgotten some.
    pub fn pending(&self) -> u64 {
        self.next.0 - self.guaranteed.0
    }

    /// Of the stores that [`Detail::LastWriters`] has forgotten, the newest of each kind.
    pub fn forgotten(&self) -> impl Iterator<Item = &PendingStore> {
        self.forgotten.iter().filter(|store| store.seq >= self.guaranteed)
    }

    /// About how much memory a copy takes.
    pub fn bytes_held(&self) -> usize {
        size_of::<DirtyLine>()
            + (self.stores.len() + self.forgotten.len()) * size_of::<PendingStore>()
            + self.bytes.len()
    }

    /// The stores not guaranteed, oldest first.
    pub fn stores(&self) -> &[PendingStore] {
        &self.stores[self.head..]
    }

    pub fn bytes_of(&self, store: &PendingStore) -> &[u8] {
        let at = store.at.wrapping_sub(self.bytes_base) as usize;
        &self.bytes[at..at + store.len as usize]
    }

    pub fn mark_of(&self, thread: ThreadId) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.thread == thread)
    }

    /// Everything before this place has been flushed (not just streamed) by some thread.
    pub fn flushed_by_any(&self) -> Seq {
        self.marks.iter().map(|mark| mark.flushed).max().unwrap_or(self.guaranteed).max(self.guaranteed)
    }

    #[inline]
    pub fn append(&mut self, detail: Detail, alike: Alike, origin: &Origin, start: u8, bytes: &[u8]) {
        let at = self.bytes_base.wrapping_add(self.bytes.len() as u32);
        if detail == Detail::Bytes {
            self.bytes.extend_from_slice(bytes);
        } else if detail == Detail::LastWriters && self.stores.len() >= self.thin_at {
            self.thin(alike);
        }
        let Origin { event, thread, route } = *origin;
        let len = bytes.len() as u8;
        self.stores.push(PendingStore { event, thread, route, start, len, at, seq: self.next });
        self.next.0 += 1;
        if !route.bypasses_cache() {
            self.cached = self.next;
        }
        self.dirty = self.dirty.or(ByteMask::range(start, len));
    }

    /// Settles the stores before `upto`, handing each to `sink`.
    pub fn settle(&mut self, upto: Seq, mut sink: impl FnMut(&PendingStore, &DirtyLine)) {
        debug_assert!(upto > self.guaranteed && upto <= self.next);
        let mut head = self.head;
        while head < self.stores.len() && self.stores[head].seq < upto {
            sink(&self.stores[head], self);
            head += 1;
        }
        self.head = head;
        self.guaranteed = upto;
        if upto == self.next {
            return; // The caller clears the line.
        }
        self.dirty = self.stores().iter().fold(ByteMask::EMPTY, |mask, store| mask.or(store.mask()));
        if self.head * 2 > self.stores.len() {
            self.stores.drain(..self.head);
            self.head = 0;
            if let (Some(first), false) = (self.stores.first(), self.bytes.is_empty()) {
                let at = first.at;
                self.bytes.drain(..at.wrapping_sub(self.bytes_base) as usize);
                self.bytes_base = at;
            }
        }
    }

    /// Forgets stores whose every byte was stored again before anybody flushed or fenced in between: at most 64
    /// stores between two marks remain.
    #[cold]
    fn thin(&mut self, alike: Alike) {
        self.stores.drain(..self.head);
        self.head = 0;
        let mut boundaries: Vec<Seq> = self.marks.iter().flat_map(|mark| [mark.flushed, mark.streamed]).collect();
        boundaries.sort_unstable();
        let mut later = ByteMask::EMPTY;
        let mut kept = Vec::with_capacity(self.stores.len());
        for store in self.stores.iter().rev() {
            while boundaries.last().is_some_and(|&boundary| boundary > store.seq) {
                boundaries.pop();
                later = ByteMask::EMPTY;
            }
            if !store.mask().without(later).is_empty() {
                kept.push(*store);
            } else {
                remember(&mut self.forgotten, *store, alike);
            }
            later = later.or(store.mask());
        }
        kept.reverse();
        self.stores = kept;
        self.thin_at = THIN_AT.max(self.stores.len() * 2);
    }
}
