//! The same rules as statements about a whole trace: a store is settled if some event at or after it settles it.
//! Knows no incremental state; looks through the whole trace for each store.

use std::collections::BTreeMap;

use persistency::model::{Fences, ModelKind};
use trace::event::{FenceKind, FlushKind, StoreKind};

use super::program::{Act, CELL_GRANULES, LINES, Op, Writer, parts};

/// For each place of the trace, how many stores of each line are not settled just after it.
pub fn pending(ops: &[Op], kind: ModelKind, fences: Fences) -> Vec<BTreeMap<usize, u64>> {
    (1..=ops.len())
        .map(|end| (0..LINES).filter_map(|line| unsettled(&ops[..end], line, kind, fences)).collect())
        .collect()
}

fn unsettled(ops: &[Op], line: usize, kind: ModelKind, fences: Fences) -> Option<(usize, u64)> {
    let wiped = |op: &Op| {
        matches!(op.act, Act::Zero { line: l } if l == line) || matches!(op.act, Act::Cut { line: l } if l <= line)
    };
    let first = ops.iter().rposition(wiped).map_or(0, |at| at + 1);
    let stores: Vec<usize> = (first..ops.len()).filter(|&at| stores_to(&ops[at], line).is_some()).collect();
    // Line order: a settled store settles those before it.
    let last_settled = stores.iter().rposition(|&store| settles_itself(ops, store, line, kind, fences));
    let count = stores.len() - last_settled.map_or(0, |at| at + 1);
    (count > 0).then_some((line, count as u64))
}

fn stores_to(op: &Op, line: usize) -> Option<Writer> {
    let Act::Store { by, line: at, first, cells, .. } = op.act else { return None };
    parts(at, first, cells).iter().any(|(part, _)| *part == line).then_some(by)
}

fn settles_itself(ops: &[Op], store: usize, line: usize, kind: ModelKind, fences: Fences) -> bool {
    let streamed =
        matches!(stores_to(&ops[store], line), Some(Writer::Instruction(StoreKind::NonTemporal | StoreKind::Direct64)));
    let is_fence = |op: &Op| match op.act {
        Act::Fence(kind) => kind != FenceKind::Locked || fences == Fences::All,
        Act::Store { by: Writer::Rmw, .. } => fences == Fences::All,
        _ => false,
    };
    let fenced = |after: usize, thread: u32| ops[after + 1..].iter().any(|op| op.thread == thread && is_fence(op));
    let page = |line: usize| line / 2;
    (store + 1..ops.len()).any(|at| match ops[at].act {
        Act::Flush { kind: FlushKind::Clflush, line: l } => l == line && !streamed,
        Act::Flush { kind: FlushKind::Clwb | FlushKind::Clflushopt, line: l } => {
            l == line && !streamed && fenced(at, ops[at].thread)
        }
        Act::Msync { line: l } => page(l) == page(line),
        Act::Fsync => true,
        _ => false,
    }) || (streamed && fenced(store, ops[store].thread))
        || (!streamed && kind == ModelKind::X86Eadr && !(store + 1 == ops.len() && is_wide(&ops[store])))
}

/// Power may fail in the middle of it.
fn is_wide(op: &Op) -> bool {
    let Act::Store { line, first, cells, .. } = op.act else { return false };
    let granules = |cells: &std::ops::Range<usize>| CELL_GRANULES[cells.start] != CELL_GRANULES[cells.end - 1];
    let parts = parts(line, first, cells);
    parts.len() > 1 || parts.iter().any(|(_, cells)| granules(cells))
}
