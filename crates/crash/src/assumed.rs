//! Repairs that a search takes for granted.
//!
//! A recovery that fails at the first bug never looks at the rest, so a failing state says nothing about other bugs in it. Once a cause
//! is known, its stores are taken to be in PM as soon as they are executed: with the flush and fence that are missing there, they would be
//! at the latest when the program goes on. This only leaves states out. Whatever fails among the rest can therefore happen to the program
//! as it is, and is confirmed on it without any assumption.
//!
//! *Can be missed*: what only fails together with a store that was assumed to be there.

use persistency::line::{LINE_BYTES, LineId};
use persistency::point::{Content, LineView};
use persistency::states::{Base, CrashState};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};
use trace::event::{CodeAddr, ContextId, Event, EventKind, LineNo};

use crate::view::{PointView, everything_of};

/// Code whose stores are taken to be made durable at once: instructions, each reached by a call path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(CodeAddr, ContextId)>", into = "Vec<(CodeAddr, ContextId)>")]
pub struct AssumedRepairs(FxHashSet<(CodeAddr, ContextId)>);

impl From<Vec<(CodeAddr, ContextId)>> for AssumedRepairs {
    fn from(code: Vec<(CodeAddr, ContextId)>) -> Self {
        AssumedRepairs(code.into_iter().collect())
    }
}

impl From<AssumedRepairs> for Vec<(CodeAddr, ContextId)> {
    /// Equal repairs are written alike.
    fn from(assumed: AssumedRepairs) -> Self {
        let mut code: Vec<(CodeAddr, ContextId)> = assumed.0.into_iter().collect();
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

    /// Was it not assumed before?
    pub fn assume(&mut self, pc: CodeAddr, context: ContextId) -> bool {
        self.0.insert((pc, context))
    }

    pub fn has(&self, pc: CodeAddr, context: ContextId) -> bool {
        self.0.contains(&(pc, context))
    }

    /// The lines that an event has stored to, if its code is assumed to be repaired.
    pub(crate) fn lines<'e>(&self, event: &'e Event<'_>) -> impl Iterator<Item = LineId> + use<'e> {
        let stored = match &event.kind {
            EventKind::Store { place, bytes, .. } | EventKind::KernelWrite { place, bytes } => {
                Some((*place, bytes.len()))
            }
            EventKind::Rmw { place, new, .. } => Some((*place, new.len())),
            _ => None,
        };
        let repaired = !self.0.is_empty() && self.0.contains(&(event.pc, event.context));
        let stored = stored.filter(|_| repaired).into_iter();
        stored.flat_map(|(place, len)| {
            let last = (place.offset.0 + (len as u64).max(1) - 1) / LINE_BYTES as u64;
            (place.offset.line().0..=last).map(move |line| LineId { pool: place.pool, line: LineNo(line) })
        })
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
