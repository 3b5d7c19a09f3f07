//! What an instruction does to persistent memory: stores, read-modify-writes, flushes and fences.
//!
//! One table ([`table`](self)) names every instruction of x86-64 that writes memory, by family; what differs inside a
//! family (operand size, `lock`, an opmask) is read off the decoded instruction. An instruction that is not in
//! the table but writes memory according to the decoder is not lost: its effect is derived, or refused.
//!
//! Sources: Intel SDM vol. 2 (each instruction's page), AMD APM vol. 3 (`clzero`, `movntss`, `movntsd`).
//!
//! What a reader may not expect:
//! - A compare-and-exchange that fails still stores: it writes back what it read (SDM, CMPXCHG).
//! - A shift or rotate of memory by a count of 0 is taken for a store of the unchanged value.
//! - What cannot succeed in user mode (VMX, shadow stacks, …) or has no defined extent here (AMX tiles, PadLock)
//!   is [`Effect::Unsupported`], never silently nothing.

mod load;
mod resolve;
mod table;

use iced_x86::Register;

pub use load::{Load, LoadForm, Loads, StringAt, loads};
pub use resolve::{effect, is_listed};

/// The effect of one instruction, as far as it is the same at every execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Does not write memory, flush or fence.
    None,
    Store(StoreShape),
    /// A locked read-modify-write: a fence and a store.
    Rmw(Form),
    /// Of the line that the memory operand lies in.
    Flush(FlushKind),
    Fence(FenceKind),
    /// No effect on PM, but a result that differs from run to run.
    Varies(Source),
    /// Writes memory in a way that cannot be recorded; the text says what it is.
    Unsupported(&'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreShape {
    pub how: How,
    pub form: Form,
    /// Reads the same bytes first.
    pub also_reads: bool,
}

/// How a store reaches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum How {
    /// Through the cache.
    Plain,
    /// Past the cache, weakly ordered.
    NonTemporal,
    /// As `NonTemporal`, and 64 bytes that are never torn.
    Direct64,
}

/// Which bytes are written. "The operand" is the instruction's explicit memory operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// The operand, all of it.
    Explicit { size: u32 },
    /// The word of `size` bytes that holds bit number `bit` (signed, any distance) counted from the operand.
    BitOffset { size: u8, bit: Register },
    /// The enabled elements of the operand.
    Masked { element: u8, size: u32, mask: MaskSource },
    /// As many elements as are enabled, in a row from the operand's address.
    Compress { element: u8, size: u32, mask: Opmask },
    /// Element `i` of `count`, if enabled, at base + displacement + scale × index `i` (`index` bytes each).
    Scatter { element: u8, index: u8, count: u8, mask: Opmask },
    /// At `es:rdi` (`edi` with a 67 prefix), in the direction of DF; `rcx` times if it `repeats`.
    String { element: u8, repeats: bool },
    /// Of `size` bytes at `ds:rdi`, those whose byte in `mask` has its top bit set.
    ByteMask { size: u8, mask: Register },
    /// Below the stack pointer, which moves down by `size` (not always by that alone: `enter`).
    Push { size: u8 },
    /// The operand; if it is based on `rsp`, its address counts from after the pop (SDM, POP).
    Pop { size: u8 },
    /// The operand, laid out by XSAVE or FXSAVE; parts of it may be left alone.
    State(StateArea),
    /// 64 bytes at the address in register `to` (segment `es`).
    Movdir64b { to: Register },
    /// 64 zero bytes: the line that `rax` (`eax` with a 67 prefix) points into.
    ClearLine,
}

impl Form {
    /// No execution writes more bytes than this; `None` where only the run knows.
    pub fn max_size(&self) -> Option<u32> {
        match *self {
            Form::Explicit { size } | Form::Masked { size, .. } | Form::Compress { size, .. } => Some(size),
            Form::BitOffset { size, .. }
            | Form::Push { size }
            | Form::Pop { size }
            | Form::ByteMask { size, .. }
            | Form::String { element: size, repeats: false } => Some(size.into()),
            Form::Scatter { element, count, .. } => Some(element as u32 * count as u32),
            Form::String { repeats: true, .. } => None,
            Form::State(area) => area.size(),
            Form::Movdir64b { .. } | Form::ClearLine => Some(64),
        }
    }
}

/// Where the mask of a masked store is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MaskSource {
    /// One bit per element.
    Opmask(Opmask),
    /// The top bit of each element of a vector register.
    TopBits(Register),
}

/// An AVX-512 mask register, `k1` to `k7`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Opmask(pub u8);

/// Processor state written to memory (SDM vol. 1, chapter 13).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StateArea {
    Fxsave,
    Xsave,
    Xsaveopt,
    Xsavec,
    Xsaves,
}

impl StateArea {
    /// The XSAVE family's depends on the components asked for (CPUID leaf 0DH).
    pub fn size(self) -> Option<u32> {
        (self == StateArea::Fxsave).then_some(512)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FlushKind {
    Clflush,
    Clflushopt,
    Clwb,
    Cldemote,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceKind {
    Sfence,
    Mfence,
    /// Orders loads; no store or flush waits for it.
    Lfence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    Rdrand,
    Rdseed,
    Rdtsc,
    Rdtscp,
}
