//! Repairs that a search takes for granted.
//!
//! A recovery that fails at the first bug never looks at the rest, so a failing state says nothing about other bugs in it. Once a cause
//! is known, its stores are taken to be in PM as soon as they are executed: with the flush and fence that are missing there, they would be
//! at the latest when the program goes on. Where a fence is all that is missing, they are only taken to be there once they are flushed: what the
//! same code does not flush is another bug. This only leaves states out. Whatever fails among the rest can therefore happen to the program
//! as it is, and is confirmed on it without any assumption.
//!
//! *Can be missed*: what only fails together with a store that was assumed to be there.

use std::sync::Arc;

use persistency::line::{LINE_BYTES, LineId};
use persistency::point::{Content, LineView};
use persistency::states::{Base, CrashState};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, ContextId, Event, EventKind, FlushKind, FlushTarget, LineNo, StoreKind};

use crate::view::{PointView, everything_of};

/// From when on the stores of some code are taken to be in PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Durable {
    /// As soon as they are flushed: a fence was missing.
    Flushed,
    /// At once.
    Stored,
}

/// Code whose stores are taken to be made durable: instructions, each reached by a call path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(CodeAddr, ContextId, Durable)>", into = "Vec<(CodeAddr, ContextId, Durable)>")]
pub struct AssumedRepairs(FxHashMap<(CodeAddr, ContextId), Durable>);

impl From<Vec<(CodeAddr, ContextId, Durable)>> for AssumedRepairs {
    fn from(code: Vec<(CodeAddr, ContextId, Durable)>) -> Self {
        AssumedRepairs(code.into_iter().map(|(pc, context, durable)| ((pc, context), durable)).collect())
    }
}

impl From<AssumedRepairs> for Vec<(CodeAddr, ContextId, Durable)> {
    /// Equal repairs are written alike.
    fn from(assumed: AssumedRepairs) -> Self {
        let mut code: Self = assumed.0.into_iter().map(|((pc, context), durable)| (pc, context, durable)).collect();
        code.sort_unstable();
        code
    }
}

impl AssumedRepairs {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Is that more than was assumed before?
    pub fn assume(&mut self, pc: CodeAddr, context: ContextId, durable: Durable) -> bool {
        let known = self.0.insert((pc, context), durable);
        match known.filter(|known| *known >= durable) {
            Some(known) => {
                self.0.insert((pc, context), known);
                false
            }
            None => true,
        }
    }

    pub fn of(&self, pc: CodeAddr, context: ContextId) -> Option<Durable> {
        self.0.get(&(pc, context)).copied()
    }
}

/// Which lines are durable, by what is assumed, as the events of a trace pass by.
#[derive(Clone, Debug, Default)]
pub(crate) struct Assuming {
    repairs: Arc<AssumedRepairs>,
    /// Lines with stores that are durable once they are flushed.
    unflushed: FxHashSet<LineId>,
}

impl Assuming {
    pub fn new(repairs: Arc<AssumedRepairs>) -> Assuming {
        Assuming { repairs, unflushed: FxHashSet::default() }
    }

    /// Back to the beginning of the trace.
    pub fn rewind(&mut self) {
        self.unflushed.clear();
    }

    /// About how much memory a copy takes.
    pub fn bytes_held(&self) -> usize {
        self.unflushed.len() * size_of::<LineId>()
    }

    /// The lines that are taken to be durable as they are now, because of this event.
    pub fn settled(&mut self, event: &Event<'_>) -> Vec<LineId> {
        if self.repairs.is_empty() {
            return Vec::new();
        }
        let (place, len, streams) = match &event.kind {
            EventKind::Flush { kind, target: FlushTarget::Pool(place) } if *kind != FlushKind::Cldemote => {
                let line = LineId::of(*place);
                return if self.unflushed.remove(&line) { vec![line] } else { Vec::new() };
            }
            EventKind::Store { place, bytes, kind } => (*place, bytes.len(), *kind != StoreKind::Plain),
            EventKind::KernelWrite { place, bytes } => (*place, bytes.len(), false),
            EventKind::Rmw { place, new, .. } => (*place, new.len(), false),
            _ => return Vec::new(),
        };
        let Some(durable) = self.repairs.of(event.pc, event.context) else { return Vec::new() };
        let last = (place.offset.0 + (len as u64).max(1) - 1) / LINE_BYTES as u64;
        let lines = (place.offset.line().0..=last).map(|line| LineId { pool: place.pool, line: LineNo(line) });
        // What bypasses the cache needs no flush.
        if durable == Durable::Stored || streams {
            return lines.collect();
        }
        self.unflushed.extend(lines);
        Vec::new()
    }
}

/// A state of a point under assumptions, as a state of the same point without any.
pub fn without_assumptions(state: &CrashState, assuming: &PointView<'_>, plain: &PointView<'_>) -> CrashState {
    let content = |line: &LineView<'_>| {
        let Some(index) = assuming.index_of(line.id()) else { return everything_of(line) };
        let pending = &assuming.lines()[index];
        let first = pending.stores().first().map(|store| store.event);
        let settled = line.stores().iter().take_while(|store| Some(store.event) != first).count();
        let content = state.content(pending);
        Content { kept: settled as u32 + content.kept, ..content }
    };
    let lines = plain.lines().iter().map(|line| (line.id(), content(line)));
    CrashState { base: Base::Guaranteed, lines: lines.filter(|(_, content)| *content != Content::default()).collect() }
}
