//! A machine with caches and write-combining buffers, explored exhaustively. No sequence numbers, no prefixes: the
//! prefixes of the models must come out of what this machine does with whole contents.
//!
//! Each line is a pile of layers above PM: its content in the cache, or a write-combining buffer of some thread. At
//! any time the lowest layer of a line may be written to PM, and of a buffer with nothing but buffers of its thread below it any granule
//! that none of those has; a cached store changes the cache if that is on top of the pile, else (a buffer drained into it) opens a new layer. A `clwb` is under way from the moment it is
//! executed until it is done, at any time later; then the cache content has been written back. A fence is a *filter*: it
//! waits, so only those runs go on in which nothing of its thread is under way. Power failure loses the layers;
//! with eADR it first writes every cache back. It may come in the middle of a store.

use std::collections::HashSet;

use persistency::model::{Fences, ModelKind};
use rustc_hash::FxHashSet;
use trace::event::{FenceKind, FlushKind, StoreKind};

use super::program::{Act, CELL_GRANULES, CELLS, Image, LINES, Op, Writer, parts};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Holder {
    Cache,
    Buffer { thread: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Layer {
    holder: Holder,
    /// Never lands in parts.
    whole: bool,
    /// What it changes.
    cells: [Option<u8>; CELLS],
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
struct State {
    pm: Image,
    piles: [Vec<Layer>; LINES],
    /// Flushes executed but not done: thread and line, sorted.
    under_way: Vec<(u32, usize)>,
}

impl State {
    fn land_lowest(&mut self, line: usize) {
        let layer = self.piles[line].remove(0);
        for (cell, value) in layer.cells.iter().enumerate() {
            if let Some(value) = value {
                self.pm[line][cell] = *value;
            }
        }
    }

    /// Writes the cache back; what lies below it goes first.
    fn write_back(&mut self, line: usize) {
        while self.piles[line].iter().any(|layer| layer.holder == Holder::Cache) {
            self.land_lowest(line);
        }
    }

    /// Everything that can become of a line in one step.
    fn landings(&self, line: usize) -> Vec<State> {
        let mut found = Vec::new();
        let mut taken = [false; CELLS];
        for (at, layer) in self.piles[line].iter().enumerate() {
            // Where the model is stricter than the machine: another thread's buffer drains those below.
            let others_below = self.piles[line][..at].iter().any(|below| below.holder != layer.holder);
            if layer.holder == Holder::Cache || layer.whole || others_below {
                if at == 0 {
                    let mut next = self.clone();
                    next.land_lowest(line);
                    found.push(next);
                }
                break;
            }
            for granule in 0..=CELL_GRANULES[CELLS - 1] {
                let here: Vec<usize> = (0..CELLS).filter(|&cell| CELL_GRANULES[cell] == granule).collect();
                let has = here.iter().any(|&cell| layer.cells[cell].is_some());
                if has && !here.iter().any(|&cell| taken[cell]) {
                    let mut next = self.clone();
                    for &cell in &here {
                        if let Some(value) = next.piles[line][at].cells[cell].take() {
                            next.pm[line][cell] = value;
                        }
                    }
                    next.piles[line].retain(|layer| layer.cells != [None; CELLS]);
                    found.push(next);
                }
            }
            (0..CELLS).for_each(|cell| taken[cell] |= layer.cells[cell].is_some());
        }
        found
    }

    fn write(&mut self, line: usize, holder: Holder, whole: bool, cells: impl Iterator<Item = usize>, value: u8) {
        let pile = &mut self.piles[line];
        // Buffers do not merge: a run in which they land together is one in which they land in turn.
        if holder != Holder::Cache || pile.last().is_none_or(|top| top.holder != Holder::Cache) {
            pile.push(Layer { holder, whole, cells: [None; CELLS] });
        }
        if let Some(top) = pile.last_mut() {
            cells.for_each(|cell| top.cells[cell] = Some(value));
        }
    }

    fn wipe(&mut self, line: usize) {
        self.piles[line].clear();
        self.pm[line] = [0; CELLS];
    }

    fn waits_for(&self, thread: u32) -> bool {
        let buffered = |layer: &Layer| layer.holder == Holder::Buffer { thread };
        self.under_way.iter().any(|&(t, _)| t == thread) || self.piles.iter().flatten().any(buffered)
    }
}

#[derive(Debug)]
pub struct Machine {
    eadr: bool,
    fences: Fences,
    states: FxHashSet<State>,
    /// What a power failure in the middle of the last instruction leaves.
    halfway: HashSet<Image>,
}

impl Machine {
    pub fn new(kind: ModelKind, fences: Fences) -> Self {
        let eadr = kind == ModelKind::X86Eadr;
        Machine { eadr, fences, states: FxHashSet::from_iter([State::default()]), halfway: HashSet::new() }
    }

    pub fn crash_images(&self) -> HashSet<Image> {
        self.images_now().chain(self.halfway.iter().copied()).collect()
    }

    fn images_now(&self) -> impl Iterator<Item = Image> {
        let crash = move |state: &State| {
            let mut state = state.clone();
            if self.eadr {
                (0..LINES).for_each(|line| state.write_back(line));
            }
            state.pm
        };
        self.states.iter().map(crash)
    }

    pub fn step(&mut self, op: &Op) {
        self.halfway.clear();
        let thread = op.thread;
        match op.act {
            Act::Store { by, line, first, cells, value } => {
                if by == Writer::Rmw {
                    self.fence(thread, FenceKind::Locked);
                }
                let holder = match by {
                    Writer::Instruction(StoreKind::NonTemporal | StoreKind::Direct64) => Holder::Buffer { thread },
                    _ => Holder::Cache,
                };
                let whole = by == Writer::Instruction(StoreKind::Direct64);
                let pieces: Vec<(usize, Vec<usize>)> =
                    parts(line, first, cells).into_iter().flat_map(|(line, cells)| by_granule(line, cells)).collect();
                match holder {
                    Holder::Cache => self.store(&pieces, value),
                    Holder::Buffer { .. } => {
                        for (line, cells) in parts(line, first, cells) {
                            self.each(|state| state.write(line, holder, whole, cells.clone(), value));
                        }
                    }
                }
            }
            Act::Flush { kind: FlushKind::Clwb | FlushKind::Clflushopt, line } => self.each(|state| {
                state.under_way.push((thread, line));
                state.under_way.sort_unstable();
                state.under_way.dedup();
            }),
            Act::Flush { kind: FlushKind::Clflush, line } => {
                self.wait(|state| !state.piles[line].iter().any(|layer| layer.holder == Holder::Cache));
            }
            Act::Flush { kind: FlushKind::Cldemote, .. } | Act::ThreadEnd => {}
            Act::Fence(kind) => self.fence(thread, kind),
            // Lines 0 and 1 share a page.
            Act::Msync { line: 2 } => self.wait(|state| state.piles[2].is_empty()),
            Act::Msync { .. } => self.wait(|state| state.piles[..2].iter().all(Vec::is_empty)),
            Act::Fsync => self.wait(|state| state.piles.iter().all(Vec::is_empty)),
            Act::Zero { line } => self.each(|state| state.wipe(line)),
            Act::Cut { line } => self.each(|state| (line..LINES).for_each(|line| state.wipe(line))),
        }
        self.let_time_pass();
    }

    fn fence(&mut self, thread: u32, kind: FenceKind) {
        if kind != FenceKind::Locked || self.fences == Fences::All {
            self.wait(|state| !state.waits_for(thread));
        }
    }

    /// A store writes its granules one by one, in any order, and time passes in between; power may fail there.
    fn store(&mut self, pieces: &[(usize, Vec<usize>)], value: u8) {
        let before = std::mem::take(&mut self.states);
        let mut done: FxHashSet<State> = FxHashSet::default();
        let mut halfway = HashSet::new();
        for order in permutations(&(0..pieces.len()).collect::<Vec<_>>()) {
            self.states = before.clone();
            let last = order.len() - 1;
            for (at, piece) in order.into_iter().enumerate() {
                let (line, cells) = &pieces[piece];
                self.each(|state| state.write(*line, Holder::Cache, false, cells.iter().copied(), value));
                self.let_time_pass();
                if at < last {
                    halfway.extend(self.images_now());
                }
            }
            // If nothing has been done power failed before this instruction: with eADR that leaves what was there.
            if self.eadr && last > 0 {
                let after = std::mem::replace(&mut self.states, before.clone());
                halfway.extend(self.images_now());
                self.states = after;
            }
            done.extend(self.states.drain());
        }
        self.halfway = halfway;
        self.states = done;
    }

    fn each(&mut self, change: impl Fn(&mut State)) {
        let states = std::mem::take(&mut self.states);
        self.states = states
            .into_iter()
            .map(|mut state| {
                change(&mut state);
                state
            })
            .collect();
    }

    fn wait(&mut self, until: impl Fn(&State) -> bool) {
        self.states.retain(until);
    }

    /// Adds everything that can happen without an instruction.
    fn let_time_pass(&mut self) {
        let mut open: Vec<State> = self.states.iter().cloned().collect();
        while let Some(state) = open.pop() {
            let mut reach = |next: State| {
                if !self.states.contains(&next) {
                    self.states.insert(next.clone());
                    open.push(next);
                }
            };
            (0..LINES).flat_map(|line| state.landings(line)).for_each(&mut reach);
            for at in 0..state.under_way.len() {
                let mut next = state.clone();
                let (_, line) = next.under_way.remove(at);
                next.write_back(line);
                reach(next);
            }
        }
    }
}

/// The granules of a part of a store.
fn by_granule(line: usize, cells: std::ops::Range<usize>) -> Vec<(usize, Vec<usize>)> {
    let cells: Vec<usize> = cells.collect();
    cells.chunk_by(|a, b| CELL_GRANULES[*a] == CELL_GRANULES[*b]).map(|granule| (line, granule.to_vec())).collect()
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let rest: Vec<usize> = items[..at].iter().chain(&items[at + 1..]).copied().collect();
        all.extend(permutations(&rest).into_iter().map(|tail| [vec![first], tail].concat()));
    }
    all
}
