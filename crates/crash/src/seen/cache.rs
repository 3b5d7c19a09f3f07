//! What the lines that recoveries read hold at the place where a worker is, as numbers of the tree.
//!
//! Recoveries read many lines, most of which are the same from one crash point to the next. A worker keeps the number
//! of each line's content, so that following a path of the tree costs one comparison of numbers per line.

use persistency::states::CrashState;
use trace::event::PoolId;

use super::intern::RESERVED;
use super::tree::Seen;
use crate::changes::ChangeCursor;
use crate::image::{GuaranteedImage, LineBytes};
use crate::recovery::Read;
use crate::view::PointView;

/// Not known yet, or changed since.
const STALE: u32 = RESERVED;
/// A dirty line: differs from state to state.
const VARIES: u32 = RESERVED + 1;

/// One worker's numbers.
#[derive(Debug, Default)]
pub struct SeenCache {
    /// By number of the look.
    current: Vec<u32>,
    /// The looks that are dirty lines of the point.
    varying: Vec<u32>,
    cursor: ChangeCursor,
}

/// The content of a look, as far as it is known without its bytes.
pub(super) enum Held {
    Number(u32),
    /// A dirty line, with what the state has of it.
    Varying(LineBytes),
    /// The tree has never met this content.
    New(LineBytes),
}

impl SeenCache {
    /// The worker has come to a crash point. Call before any look-up there.
    pub fn arrive(&mut self, seen: &Seen, view: &PointView<'_>) {
        for number in self.varying.drain(..) {
            self.current[number as usize] = STALE;
        }
        let changes = view.guaranteed().changes(&mut self.cursor);
        if changes.all {
            self.current.fill(STALE);
        }
        let pools = view.guaranteed().pools().map(Read::Length);
        for look in changes.lines.into_iter().map(Read::Line).chain(pools) {
            if let Some(number) = seen.look(look).filter(|&number| (number as usize) < self.current.len()) {
                self.current[number as usize] = STALE;
            }
        }
        for line in view.lines() {
            if let Some(number) = seen.look(Read::Line(line.id())).filter(|&n| (n as usize) < self.current.len()) {
                self.current[number as usize] = VARIES;
                self.varying.push(number);
            }
        }
        self.grow(seen, view);
    }

    /// Makes room for looks that have become known since.
    pub(super) fn grow(&mut self, seen: &Seen, view: &PointView<'_>) {
        for &look in seen.looks_from(self.current.len()) {
            let varies = matches!(look, Read::Line(line) if view.index_of(line).is_some());
            if varies {
                self.varying.push(self.current.len() as u32);
            }
            self.current.push(if varies { VARIES } else { STALE });
        }
    }

    #[inline]
    pub(super) fn held(&mut self, seen: &Seen, view: &PointView<'_>, state: &CrashState, look: u32) -> Held {
        match self.current[look as usize] {
            VARIES => Held::Varying(content(view, state, seen.look_at(look))),
            STALE => {
                let bytes = content(view, state, seen.look_at(look));
                match seen.content(&bytes) {
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
    bytes
}
