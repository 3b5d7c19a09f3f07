//! The interface of a persistency model: what each event settles.
//!
//! The duties of an implementation, numbered so that tests can cite them:
//!
//! 1. [`Model::stored`] is called after a store was appended to its line, once per line that it touches.
//!    The model guarantees what is now certain and lets the store ask for itself if a fence will complete it.
//! 2. [`Model::flush`] and [`Model::fence`] never append stores.
//! 3. A guarantee is a prefix of the line's stores. What can be in PM of those that are not guaranteed is the same for all models: see
//!    [`content`](crate::content). Lines are independent, so the crash states of a point are a product over lines.
//! 4. What is guaranteed once stays so.
//! 5. A model holds settings only; all state lives in the [`Domain`].
//!
//! A new model is one file with one `impl Model`, one entry in [`ModelKind`], one rule set for the reference
//! machine in `tests/brute_force/` and its rows in the litmus table.

use std::fmt;
use std::str::FromStr;

use trace::event::{FenceKind, FlushKind, LineNo, PoolId, ThreadId};

use crate::adr::X86Adr;
use crate::domain::{DirtyIndex, Domain, Route};
use crate::eadr::X86Eadr;
use crate::effect::{FenceEffect, FlushVerdict};

/// An instruction that may order what came before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Barrier {
    Sfence,
    Mfence,
    /// A locked instruction, on PM or on ordinary memory.
    Locked,
}

impl From<FenceKind> for Barrier {
    fn from(kind: FenceKind) -> Self {
        match kind {
            FenceKind::Sfence => Barrier::Sfence,
            FenceKind::Mfence => Barrier::Mfence,
            FenceKind::Locked => Barrier::Locked,
        }
    }
}

/// Which barriers a model relies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Fences {
    /// All that the architecture promises.
    #[default]
    All,
    /// `--strict-fences`: only `sfence` and `mfence`. A locked instruction that happens to stand between a flush and a
    /// crash hides a missing fence; who does not want to rely on that takes this.
    Strict,
}

impl Fences {
    pub fn count(self, barrier: Barrier) -> bool {
        match self {
            Fences::All => true,
            Fences::Strict => barrier != Barrier::Locked,
        }
    }
}

/// What the answer of [`Model::flush`] consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flushed {
    pub verdict: FlushVerdict,
    /// Stores asked for that this thread had not asked for before.
    pub stores: u64,
    /// All of them had been asked for by another thread's flush.
    pub elsewhere: bool,
}

impl Flushed {
    /// A flush that did nothing.
    pub fn wasted(verdict: FlushVerdict) -> Self {
        Flushed { verdict, stores: 0, elsewhere: false }
    }
}

/// What a model is told of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    pub route: Route,
    /// It is wider than a granule, or has parts on two lines: it can be half done.
    pub can_tear: bool,
}

/// A persistency model. See the module's header for its duties.
pub trait Model: fmt::Debug + Send + Sync {
    fn kind(&self) -> ModelKind;

    /// A program needs flushes for durability: if not, rules about flushes have nothing to say.
    fn needs_flushes(&self) -> bool;

    /// The newest store of the line in `slot` has just been executed by `thread`.
    fn stored(&self, domain: &mut Domain, thread: ThreadId, slot: DirtyIndex, store: Stored);

    /// Another event is about to happen: the one before it is over. Called if there is [something unfinished](Domain::leave_unfinished).
    fn proceed(&self, domain: &mut Domain) {
        let _ = domain;
    }

    /// `thread` flushed a line of a pool; `slot` is none when nothing on it is pending.
    fn flush(&self, domain: &mut Domain, thread: ThreadId, slot: Option<DirtyIndex>, kind: FlushKind) -> Flushed;

    /// `thread` executed a barrier.
    fn fence(&self, domain: &mut Domain, thread: ThreadId, barrier: Barrier) -> FenceEffect;

    /// `msync` or `fsync` returned for these lines; says how many lines and stores became guaranteed.
    fn sync(&self, domain: &mut Domain, pool: PoolId, lines: std::ops::Range<LineNo>) -> (u64, u64) {
        domain.guarantee_lines(pool, lines)
    }
}

/// The models there are, by the names that the command line uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ModelKind {
    X86Adr,
    X86Eadr,
}

impl ModelKind {
    pub const ALL: [ModelKind; 2] = [ModelKind::X86Adr, ModelKind::X86Eadr];

    pub fn name(self) -> &'static str {
        match self {
            ModelKind::X86Adr => "adr",
            ModelKind::X86Eadr => "eadr",
        }
    }

    pub fn build(self, fences: Fences) -> Box<dyn Model> {
        match self {
            ModelKind::X86Adr => Box::new(X86Adr { fences }),
            ModelKind::X86Eadr => Box::new(X86Eadr { fences }),
        }
    }
}

impl fmt::Display for ModelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no persistency model `{name}`; the models are {}", ModelKind::ALL.map(ModelKind::name).join(", "))]
pub struct UnknownModel {
    pub name: String,
}

impl FromStr for ModelKind {
    type Err = UnknownModel;

    fn from_str(name: &str) -> Result<Self, UnknownModel> {
        let known = ModelKind::ALL.into_iter().find(|kind| kind.name() == name);
        known.ok_or_else(|| UnknownModel { name: name.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_the_right_ones() {
        for kind in ModelKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
            assert_eq!(kind.build(Fences::All).kind(), kind);
        }
        let wrong = "arm".parse::<ModelKind>().unwrap_err();
        assert_eq!(wrong.to_string(), "there is no persistency model `arm`; the models are adr, eadr");
    }
}
