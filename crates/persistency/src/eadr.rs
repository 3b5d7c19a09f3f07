//! x86 with eADR: the caches, too, are written to PM when power fails.
//!
//! # Sources
//! - Intel: *eADR: New Opportunities for Persistent Memory Applications* (2021): what is globally visible is persistent;
//!   flushes are not needed, store order still is.
//! - SDM vol. 1 §10.4.6.2: non-temporal stores wait in write-combining buffers, which are not caches; `sfence`
//!   drains them.
//!
//! # The model
//! 1. A store through the cache is guaranteed when it takes place. So without non-temporal stores a crash point has
//!    exactly one crash state, and the states of a run are the prefixes of the trace: crash points lie after every store.
//! 2. Power can fail in the middle of a store that is wider than a granule or has parts on two lines: until the next event, of whatever
//!    thread, any of its granules may be in PM. `movdir64b` is whole.
//! 3. Non-temporal stores are as in [ADR](crate::adr): pending until the next fence of their thread; of those to one
//!    line each granule gets its stores in order. A cached store to the line drains those before it.
//! 4. Flushes do nothing. Fences, locked instructions and `msync`/`fsync` are as in ADR.
//!
//! # Deviations
//! - A flush of another core's line cannot drain that core's write-combining buffers, a flush of the own core's may;
//!   no flush counts here.
//! - Px86 has no eADR. Store buffers are not in the trace (event rule 1): a store takes place when it is recorded.
//!
//! # What it can miss
//! - What [ADR](crate::adr) can miss about interleavings, non-temporal stores and file-system calls.
//!
//! # What it can report wrongly
//! - What [ADR](crate::adr) can about non-temporal stores and about wide ones.

use trace::event::{FlushKind, ThreadId};

use crate::domain::{DirtyIndex, Domain};
use crate::effect::{FenceEffect, FlushVerdict};
use crate::model::{Barrier, Fences, Flushed, Model, ModelKind, Stored};

#[derive(Clone, Copy, Debug, Default)]
pub struct X86Eadr {
    pub fences: Fences,
}

impl Model for X86Eadr {
    fn kind(&self) -> ModelKind {
        ModelKind::X86Eadr
    }

    fn needs_flushes(&self) -> bool {
        false
    }

    fn stored(&self, domain: &mut Domain, thread: ThreadId, slot: DirtyIndex, store: Stored) {
        let upto = domain.newest(slot);
        if store.route.bypasses_cache() {
            domain.ask_by_streaming(thread, slot, upto);
        } else if store.can_tear {
            domain.leave_unfinished(slot);
        } else {
            domain.guarantee(slot, upto);
        }
    }

    fn proceed(&self, domain: &mut Domain) {
        domain.finish();
    }

    fn flush(&self, _: &mut Domain, _: ThreadId, _: Option<DirtyIndex>, kind: FlushKind) -> Flushed {
        Flushed::wasted(match kind {
            FlushKind::Cldemote => FlushVerdict::Hint,
            FlushKind::Clflush | FlushKind::Clflushopt | FlushKind::Clwb => FlushVerdict::NotNeeded,
        })
    }

    fn fence(&self, domain: &mut Domain, thread: ThreadId, barrier: Barrier) -> FenceEffect {
        if self.fences.count(barrier) { domain.complete(thread) } else { FenceEffect::default() }
    }
}
