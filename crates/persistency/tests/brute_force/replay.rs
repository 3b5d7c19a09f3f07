//! Feeds a program to the tracker and makes images the way the crash strategies will: a base image that follows what
//! becomes guaranteed, and the contents of the dirty lines on top.

use std::collections::{BTreeMap, HashSet};

use num_bigint::BigUint;
use persistency::content::Content;
use persistency::domain::Detail;
use persistency::effect::Effect;
use persistency::line::LineId;
use persistency::model::{Fences, ModelKind};
use persistency::states::{Base, CrashState};
use persistency::tracker::{Applied, Tracker};
use trace::event::{
    CodeAddr, ContextId, Event, EventId, EventKind, FlushTarget, LineNo, Place, PoolId, PoolOffset, ThreadId,
};

use super::program::{Act, CELL_STARTS, CELLS, Image, LINE_NUMBERS, LINES, Op, Writer, offset};

const POOL: PoolId = PoolId(3);
const POOL_BYTES: usize = 65 * 64;

pub struct Replay {
    tracker: Tracker,
    base: Vec<u8>,
}

fn place(offset: PoolOffset) -> Place {
    Place { pool: POOL, offset }
}

fn line_id(line: usize) -> LineId {
    LineId { pool: POOL, line: LineNo(LINE_NUMBERS[line]) }
}

impl Replay {
    pub fn new(kind: ModelKind, fences: Fences) -> Self {
        Self::with_detail(kind, fences, Detail::Bytes)
    }

    pub fn with_detail(kind: ModelKind, fences: Fences, detail: Detail) -> Self {
        Replay { tracker: Tracker::new(kind.build(fences), detail), base: vec![0; POOL_BYTES] }
    }

    pub fn step(&mut self, id: u64, op: &Op) -> Effect {
        let bytes;
        let kind = match op.act {
            Act::Store { by, line, first, cells, value } => {
                let start = offset(line, first);
                let last = first + cells - 1;
                let end = if last < CELLS { offset(line, last) } else { offset(line + 1, last - CELLS) };
                bytes = vec![value; (end.0 + 4 - start.0) as usize];
                let place = place(start);
                match by {
                    Writer::Instruction(kind) => EventKind::Store { place, kind, bytes: &bytes },
                    Writer::Rmw => EventKind::Rmw { place, old: &[], new: &bytes },
                    Writer::Kernel => EventKind::KernelWrite { place, bytes: &bytes },
                    Writer::File => EventKind::FileWrite { place, bytes: &bytes },
                }
            }
            // Any byte of the line will do.
            Act::Flush { kind, line } => {
                let target = FlushTarget::Pool(place(PoolOffset(LINE_NUMBERS[line] * 64 + id % 64)));
                EventKind::Flush { kind, target }
            }
            Act::Fence(kind) => EventKind::Fence { kind },
            Act::Msync { line } => EventKind::Msync { place: line_id(line).start(), len: 1 },
            Act::Fsync => EventKind::Fsync { pool: POOL, data_only: id.is_multiple_of(2) },
            Act::Zero { line } => EventKind::FileZero { place: line_id(line).start(), len: 64 },
            Act::Cut { line } => EventKind::Resize { pool: POOL, len: LINE_NUMBERS[line] * 64 },
            Act::ThreadEnd => EventKind::ThreadEnd,
        };
        let event = Event { thread: ThreadId(op.thread), context: ContextId(0), pc: CodeAddr::default(), kind };
        let step = self.tracker.apply(EventId(id), &event);
        follow(&mut self.base, &step);
        step.effect
    }

    /// How many stores are pending on each line that has any.
    pub fn pending(&self) -> BTreeMap<usize, u64> {
        let number = |line: u64| LINE_NUMBERS.iter().position(|&n| n == line).expect("one of the lines in use");
        self.tracker.crash_point().lines().iter().map(|line| (number(line.id().line.0), line.pending())).collect()
    }

    pub fn state_count(&self) -> BigUint {
        self.tracker.crash_point().torn_state_count().expect("bytes are kept")
    }

    /// One image per crash state.
    pub fn crash_images(&self) -> Vec<Image> {
        let point = self.tracker.crash_point();
        let mut states = vec![Vec::new()];
        for line in point.lines() {
            let contents: Vec<Content> = line.contents().expect("bytes are kept").collect();
            let with = |state: &Vec<_>, content| [&state[..], &[(line.id(), content)]].concat();
            states =
                states.iter().flat_map(|state| contents.iter().map(move |&content| with(state, content))).collect();
        }
        states.into_iter().map(|lines| self.image(&CrashState { base: Base::Guaranteed, lines })).collect()
    }

    /// One image per crash state with the stores of each line whole and in order.
    pub fn whole_images(&self, base: Base) -> HashSet<Image> {
        self.tracker.crash_point().states(base).map(|state| self.image(&state)).collect()
    }

    pub fn whole_count(&self) -> BigUint {
        self.tracker.crash_point().state_count()
    }

    fn image(&self, state: &CrashState) -> Image {
        let point = self.tracker.crash_point();
        point.check(state).expect("a state of this point");
        let mut image = Image::default();
        for line in 0..LINES {
            let at = LINE_NUMBERS[line] as usize * 64;
            let mut bytes: [u8; 64] = self.base[at..at + 64].try_into().expect("a line has 64 bytes");
            if let Some(view) = point.line(line_id(line)) {
                view.overlay(state.content(view), &mut bytes).expect("bytes are kept");
            }
            for cell in 0..CELLS {
                let four = &bytes[CELL_STARTS[cell] as usize..][..4];
                assert!(four.iter().all(|byte| *byte == four[0]), "a cell is torn: {four:?}");
                image[line][cell] = four[0];
            }
        }
        image
    }
}

fn follow(base: &mut [u8], step: &Applied<'_>) {
    for settled in step.guaranteed() {
        let at = settled.line.start().offset.0 as usize + settled.store.start as usize;
        if let Some(bytes) = step.bytes(settled) {
            base[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
    match step.effect {
        Effect::Zeroed { place, len } => base[place.offset.0 as usize..][..len as usize].fill(0),
        Effect::Resized { len, .. } => base[len as usize..].fill(0),
        _ => {}
    }
}
