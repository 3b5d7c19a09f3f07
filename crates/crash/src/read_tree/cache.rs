//! What the lines that recoveries read hold at the place where a worker is, as numbers of the tree.
//!
//! Recoveries read many lines, most of which are the same from one crash point to the next, and all but the dirty ones
//! are the same in all states of a point. A worker keeps the number of each line's content, and for each chunk whether
//! the lines that are not dirty agree with it: then a look-up costs one test per chunk and the dirty lines on the way.

use persistency::states::CrashState;
use trace::event::PoolId;

use super::chunks::ChunkId;
use super::intern::RESERVED;
use super::tree::ReadTree;
use crate::changes::ChangeCursor;
use crate::image::{GuaranteedImage, LineBytes};
use crate::view::PointView;
use verdict::read::Read;

/// Not known yet, or changed since.
const STALE: u32 = RESERVED;
/// A dirty line: differs from state to state.
const VARIES: u32 = RESERVED + 1;

/// One worker's numbers.
#[derive(Debug, Default)]
pub struct ReadTreeCache {
    /// By number of the look.
    current: Vec<u32>,
    /// The looks that are dirty lines of the point.
    varying: Vec<u32>,
    cursor: ChangeCursor,
    /// By number of the chunk; those of earlier points are out of date.
    chunks: Vec<(u32, Agreement)>,
    point: u32,
    /// What [`Agreement::Partly`] refers to.
    partly: Vec<Partly>,
}

/// Does a chunk hold at this point?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// In all states.
    Yes,
    /// In none.
    No,
    /// In those that have the right contents of some dirty lines.
    Partly(u32),
}

/// The places in a chunk that differ from state to state.
#[derive(Debug)]
struct Partly {
    places: Vec<u32>,
    /// Whatever they hold, something after them does not agree.
    fails: bool,
}

/// How a state fares with a chunk.
pub(super) enum Passage {
    Through,
    Stopped,
}

/// The content of a look, as far as it is known without its bytes.
pub(super) enum Held {
    Number(u32),
    /// A dirty line, with what the state has of it.
    Varying(LineBytes),
    /// The tree has never met this content.
    New(LineBytes),
}

impl ReadTreeCache {
    /// The worker has come to a crash point. Call before any look-up there.
    pub fn arrive(&mut self, read_tree: &ReadTree, view: &PointView<'_>) {
        self.point = self.point.wrapping_add(1);
        if self.point == 0 {
            self.chunks.clear();
        }
        self.partly.clear();
        for number in self.varying.drain(..) {
            self.current[number as usize] = STALE;
        }
        let changes = view.guaranteed().changes(&mut self.cursor);
        if changes.all {
            self.current.fill(STALE);
        }
        let known = self.current.len();
        let find = |look: Read| read_tree.look(look).filter(|&number| (number as usize) < known);
        let pools = view.guaranteed().pools().map(Read::Length);
        for number in changes.lines.into_iter().map(Read::Line).chain(pools).filter_map(find) {
            self.current[number as usize] = STALE;
        }
        for number in view.lines().iter().map(|line| Read::Line(line.id())).filter_map(find) {
            self.current[number as usize] = VARIES;
            self.varying.push(number);
        }
        self.grow(read_tree, view);
    }

    /// Makes room for looks that have become known since.
    pub(super) fn grow(&mut self, read_tree: &ReadTree, view: &PointView<'_>) {
        for &look in read_tree.looks_from(self.current.len()) {
            let varies = matches!(look, Read::Line(line) if view.index_of(line).is_some());
            if varies {
                self.varying.push(self.current.len() as u32);
            }
            self.current.push(if varies { VARIES } else { STALE });
        }
    }

    #[inline]
    pub(super) fn held(&mut self, read_tree: &ReadTree, view: &PointView<'_>, state: &CrashState, look: u32) -> Held {
        match self.current[look as usize] {
            VARIES => Held::Varying(content(view, state, read_tree.look_at(look))),
            STALE => {
                let bytes = content(view, state, read_tree.look_at(look));
                match read_tree.content(&bytes) {
                    Some(number) => {
                        self.current[look as usize] = number;
                        Held::Number(number)
                    }
                    None => Held::New(bytes),
                }
            }
            number => Held::Number(number),
        }
    }

    /// Follows a state through a chunk; calls `dirty` with each dirty line that is looked at.
    pub(super) fn pass(
        &mut self,
        read_tree: &ReadTree,
        view: &PointView<'_>,
        state: &CrashState,
        chunk: ChunkId,
        mut dirty: impl FnMut(Read),
    ) -> Passage {
        let partly = match self.agreement(read_tree, view, state, chunk) {
            Agreement::Yes => return Passage::Through,
            Agreement::No => return Passage::Stopped,
            Agreement::Partly(number) => &self.partly[number as usize],
        };
        let steps = read_tree.steps_of(chunk);
        for &place in &partly.places {
            let step = steps[place as usize];
            let look = read_tree.look_at(step.look);
            dirty(look);
            if content(view, state, look) != read_tree.content_at(step.content) {
                return Passage::Stopped;
            }
        }
        if partly.fails { Passage::Stopped } else { Passage::Through }
    }

    fn agreement(
        &mut self,
        read_tree: &ReadTree,
        view: &PointView<'_>,
        state: &CrashState,
        chunk: ChunkId,
    ) -> Agreement {
        let at = chunk.0 as usize;
        if at >= self.chunks.len() {
            self.chunks.resize(read_tree.chunk_count(), (self.point.wrapping_sub(1), Agreement::No));
        }
        let (point, known) = self.chunks[at];
        if point == self.point {
            return known;
        }
        let mut partly = Partly { places: Vec::new(), fails: false };
        for (place, step) in (0..).zip(read_tree.steps_of(chunk)) {
            if self.current[step.look as usize] == VARIES {
                partly.places.push(place);
            } else if !matches!(self.held(read_tree, view, state, step.look), Held::Number(own) if own == step.content)
            {
                partly.fails = true;
                break;
            }
        }
        let agreement = match (partly.places.is_empty(), partly.fails) {
            (true, false) => Agreement::Yes,
            (true, true) => Agreement::No,
            (false, _) => {
                self.partly.push(partly);
                Agreement::Partly(self.partly.len() as u32 - 1)
            }
        };
        self.chunks[at] = (self.point, agreement);
        agreement
    }
}

fn content(view: &PointView<'_>, state: &CrashState, look: Read) -> LineBytes {
    match look {
        Read::Line(line) => view.line_of(state, line),
        Read::Length(pool) => length(view.guaranteed(), pool),
    }
}

/// What a pool's file shows of itself, in the form of a line.
fn length(guaranteed: &GuaranteedImage, pool: PoolId) -> LineBytes {
    let mut bytes = [0; 64];
    bytes[..8].copy_from_slice(&guaranteed.len(pool).to_le_bytes());
    bytes[8] = guaranteed.has_appeared(pool).into();
    // What a run shows depends on the position as on the lengths: whether or not it asks for them.
    bytes[16..24].copy_from_slice(&guaranteed.position().to_le_bytes());
    // So it does on the files beside the pools: recovery may look at any of them.
    bytes[24..40].copy_from_slice(&guaranteed.files().identity().to_le_bytes());
    bytes
}
