//! x86 with ADR: the memory controller's queue survives a power failure, the caches do not.
//!
//! # Sources
//! - Intel 64 and IA-32 Architectures Software Developer's Manual (SDM): vol. 1 §10.4.6 (non-temporal stores,
//!   `sfence`); vol. 2, the entries CLFLUSH, CLFLUSHOPT, CLWB, CLDEMOTE, SFENCE, MFENCE, MOVNTI, MOVDIRI, MOVDIR64B;
//!   vol. 3 §9.1.1 (an aligned quadword is accessed atomically), §9.2.2 (ordering, locked instructions), §12.3.1 *Buffering of Write
//!   Combining Memory Locations* (chapters are numbered as in the editions since 2023; §11.3.1 before).
//! - Raad, Wickerson, Neiger, Vafeiadis: *Persistency Semantics of the Intel-x86 Architecture*, POPL 2020 (Px86).
//! - Raad, Maranget, Vafeiadis: *Extending Intel-x86 Consistency and Persistency*, POPL 2022 (non-temporal stores).
//! - Khyzha, Lahav: *Taming x86-TSO Persistency*, POPL 2021 (synchronous flushes describe the same behaviours).
//! - Rudoff: *Persistent Memory Programming*, ;login: 42(2), 2017 (power-fail atomicity is 8 bytes, whatever the instruction).
//!
//! # The model
//! 1. *Line order.* The stores to a line reach PM in the order of the trace: of those not guaranteed, some prefix
//!    is in PM. Lines are independent of one another.
//! 2. *Tears.* Of the first store that is not whole in PM, any of its granules (8 aligned bytes) may be there. `movdir64b` is whole.
//! 3. `clwb`, `clflushopt` ask for the stores, of any thread, that lie in the cache on that line; a later fence *of the
//!    same thread* guarantees them. `clflush` guarantees them when it executes. `cldemote` does nothing.
//! 4. `sfence`, `mfence` and locked instructions guarantee all that their thread asked for, and nothing else.
//! 5. A non-temporal store lies in its thread's write-combining buffers: no flush reaches it, neither another thread's
//!    nor its own, only the next fence of its own thread. By (1) that fence also guarantees the earlier stores to
//!    the line, and a flush of a *later* cached store to the line covers it.
//! 6. Non-temporal stores of one thread to one line, with no other store to the line between them, are *not* in order: each granule
//!    gets its stores in order, and the granules are independent. A partly filled buffer leaves as partial writes, one
//!    chunk of 8 aligned bytes at a time; SDM vol. 3 §12.3.1 promises no order among them, and that all data of one chunk goes
//!    at once. A buffer may be evicted at any time, so nothing may rely on its being full.
//! 7. Between a cached and a non-temporal store to one line (1) holds. The line is evicted from the caches before a
//!    non-temporal store to it lands (SDM vol. 1 §10.4.6.2), and a cached store of the same thread finds the buffer's data in its line.
//! 8. A locked instruction on PM is a fence, then a cached store.
//! 9. `msync` (whole pages), `fsync` and `fdatasync` guarantee the stores, of all threads, in their range.
//! 10. What the kernel writes into a mapping or a pool's file is a cached store by the thread that called it. A DAX file
//!     system copies with non-temporal stores and fences behind them, but promises nothing before `fsync`; so
//!     it takes `fsync`, `msync`, or a flush and a fence through a mapping.
//! 11. The file's length, and whole lines that the file system zeroed, are guaranteed when the call returns.
//! 12. Unmapping, the end of a thread and the end of a process guarantee nothing. A dead thread's flushes stay
//!     incomplete.
//!
//! # Deviations
//! - Px86 buffers stores per thread and lets `clflushopt` move up to the next fence. A trace has one total order that
//!   agrees with memory (event rule 1), so here a store takes place when it is recorded. Other interleavings
//!   are other traces.
//! - In Px86 a flush, even a fenced one, is asynchronous: it orders PM, it does not wait for it. Here it waits, as
//!   the SDM has it for CLWB followed by SFENCE on ADR. Khyzha and Lahav show that no program can tell, as long
//!   as nobody outside looks; a person who saw the acknowledgement does look.
//! - The SDM promises the order of (1) for cached stores only. (7) is how processors keep a line coherent. Checkers that ignore it report
//!   states that no machine shows.
//! - Px86 has no stores wider than a location. Processors with AVX make aligned accesses of 16 bytes atomic (SDM vol. 3 §9.1.1), as
//!   `cmpxchg16b` always is; both are about what other processors see. Nobody promises more than 8 bytes when power fails, so (2) cuts them.
//! - A write-combining buffer that is full leaves as one transaction of 64 bytes (SDM vol. 3 §12.3.1). Software cannot know that it was
//!   not evicted earlier, so (6) cuts it, too.
//! - "No write may be reordered with an execution of CLFLUSH" (SDM vol. 3 §9.2.2) stands in a list from which streaming stores are
//!   excepted; (5) takes it not to drain buffers.
//! - Serialising instructions (`cpuid`, `iret`) drain the buffers too; they are not in the trace and do not count.
//!
//! # What it can miss
//! Each has a row in `tests/litmus/table.rs` that begins with "can be missed", unless no trace can show it.
//! - States of interleavings that were not recorded.
//! - Buffers are not snooped (SDM vol. 3 §12.3.1), so another thread's store to the line does not drain them. Here it does: two non-temporal
//!   stores of different threads to one line, and a non-temporal one followed by another thread's cached one, stay in the order of
//!   the trace; a guarantee for the later one covers the earlier one.
//! - That `msync` and `fsync` drain no other thread's write-combining buffers.
//! - A file system that has not made a truncation or a punched hole durable yet (11).
//! - Tears below 8 bytes.
//!
//! # What it can report wrongly
//! - A program whose data is safe only because of what its kernel happens to do: the locked instruction on the way out of
//!   `write`, the `iret` of an interrupt.
//! - On hardware that writes lines in an order stricter than promised, or keeps wide stores together, states that this machine never shows.

use trace::event::{FlushKind, ThreadId};

use crate::domain::{DirtyIndex, Domain};
use crate::effect::{FenceEffect, FlushVerdict};
use crate::model::{Barrier, Fences, Flushed, Model, ModelKind, Stored};

#[derive(Clone, Copy, Debug, Default)]
pub struct X86Adr {
    pub fences: Fences,
}

impl Model for X86Adr {
    fn kind(&self) -> ModelKind {
        ModelKind::X86Adr
    }

    fn needs_flushes(&self) -> bool {
        true
    }

    fn stored(&self, domain: &mut Domain, thread: ThreadId, slot: DirtyIndex, store: Stored) {
        if store.route.bypasses_cache() {
            let upto = domain.newest(slot);
            domain.ask_by_streaming(thread, slot, upto);
        }
    }

    fn flush(&self, domain: &mut Domain, thread: ThreadId, slot: Option<DirtyIndex>, kind: FlushKind) -> Flushed {
        if kind == FlushKind::Cldemote {
            return Flushed::wasted(FlushVerdict::Hint);
        }
        let Some(slot) = slot else { return Flushed::wasted(FlushVerdict::Clean) };
        let upto = domain.newest_cached(slot);
        if upto <= domain.oldest_pending(slot) {
            return Flushed::wasted(FlushVerdict::OnlyNonTemporal);
        }
        let asked = domain.flushed_by(slot, thread);
        let stores = upto.0.saturating_sub(asked.0);
        let elsewhere = stores > 0 && domain.flushed_by_any(slot) >= upto;
        if kind == FlushKind::Clflush {
            domain.guarantee(slot, upto);
        } else if stores == 0 {
            return Flushed::wasted(FlushVerdict::AlreadyFlushed);
        } else {
            domain.ask_by_flush(thread, slot, upto);
        }
        Flushed { verdict: FlushVerdict::Useful, stores, elsewhere }
    }

    fn fence(&self, domain: &mut Domain, thread: ThreadId, barrier: Barrier) -> FenceEffect {
        if self.fences.count(barrier) { domain.complete(thread) } else { FenceEffect::default() }
    }
}
