//! From the registers to the number of a path: frames are unwound from the innermost outwards, up to one whose path is known and still holds.

use alloc::vec::Vec;

use super::cache::{NEEDS_RBP, PARTIAL, PathCache, PathFrame};

/// Frames beyond this are cut off and the path is marked partial.
pub const MAX_FRAMES: usize = 2048;

/// A stack word: its address and what it held.
pub type Word = (u64, u64);

/// Where a frame is unwound from.
#[derive(Clone, Copy, Debug)]
pub struct Position {
    pub pc: u64,
    pub rsp: u64,
    pub rbp: u64,
}

/// One frame that was unwound, and what was read for it.
#[derive(Clone, Copy, Debug)]
pub struct UnwoundFrame {
    pub cfa: u64,
    pub return_to: u64,
    pub cfa_by_rbp: bool,
    /// The word that held the CFA, in a realigned frame.
    pub cfa_word: Option<Word>,
    /// Where the caller's rbp was saved, with its value.
    pub rbp_word: Option<Word>,
    pub caller_rbp: u64,
    /// Found without unwind information: not to be remembered, since more was looked at than is noted here.
    pub guessed: bool,
}

impl UnwoundFrame {
    pub fn return_at(&self) -> u64 {
        self.cfa - 8
    }

    pub fn caller(&self) -> Position {
        Position { pc: self.return_to, rsp: self.cfa, rbp: self.caller_rbp }
    }
}

/// Why there is no further frame.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outermost {
    /// There may be some, but they are not known.
    pub unknown: bool,
    /// What was read to find that out, one word at most; `unsure`: there was more.
    pub word: Option<Word>,
    pub by_rbp: bool,
    pub unsure: bool,
}

/// A thread that is on a path.
pub trait OnPath {
    fn paths(&mut self) -> &mut PathCache;
    fn unwind(&mut self, at: Position, innermost: bool) -> Result<UnwoundFrame, Outermost>;
    /// A word of the stack, if it is there.
    fn word(&self, address: u64) -> Option<u64>;
    /// Number of the path that continues `outer` with a call that returns to `return_to`.
    fn number(&mut self, outer: u32, return_to: u64, partial: bool) -> u32;
}

/// What the next frame was found through.
#[derive(Clone, Copy, Debug, Default)]
struct Link {
    word: Option<Word>,
    needs_rbp: bool,
    /// Through more than an entry can hold.
    unsure: bool,
}

impl Link {
    fn to(further: &UnwoundFrame, further_needs_rbp: bool) -> Link {
        let needs = if further_needs_rbp { further.rbp_word } else { None };
        Link {
            word: further.cfa_word.or(needs),
            needs_rbp: further.cfa_by_rbp || (further_needs_rbp && needs.is_none()),
            unsure: further.cfa_word.is_some() && needs.is_some(),
        }
    }
}

/// The number of the path that the thread is on.
pub fn find(thread: &mut impl OnPath, start: Position) -> u32 {
    thread.paths().make_room(MAX_FRAMES);
    let mut frames: Vec<UnwoundFrame> = core::mem::take(&mut thread.paths().unwound);
    frames.clear();
    let mut last = thread.paths().last;
    let mut at = start;
    let mut end = Outermost::default();
    let mut known = None;
    while known.is_none() {
        match thread.unwind(at, frames.is_empty()) {
            Ok(frame) => {
                frames.push(frame);
                at = frame.caller();
                known = if frame.guessed {
                    None
                } else if frames.len() == 1 {
                    let recent = thread.paths().recent(&frame);
                    recent.into_iter().take_while(|&entry| entry != 0).find(|&entry| holds(thread, entry, &frame))
                } else {
                    None
                };
                if known.is_none() && !frame.guessed {
                    known = on_last(thread, &mut last, &frame);
                }
                if known.is_none() && frames.len() == MAX_FRAMES {
                    end = Outermost { unknown: true, ..Outermost::default() };
                    break;
                }
            }
            Err(outermost) => {
                end = outermost;
                break;
            }
        }
    }
    let further = if known.is_some() { frames.pop() } else { None };
    let (number, entry) = enter(thread, &mut frames, further, known, end);
    thread.paths().unwound = frames;
    if let Some(entry) = entry {
        thread.paths().used(entry);
    }
    number
}

/// The entry of this frame on the last path, if everything from there outwards is as it was. `last` is where to go on.
fn on_last(thread: &mut impl OnPath, last: &mut u64, frame: &UnwoundFrame) -> Option<u64> {
    while *last != 0 {
        let entry = thread.paths().entry(*last);
        if entry.return_at >= frame.return_at() {
            break;
        }
        *last = entry.outer;
    }
    (*last != 0 && holds(thread, *last, frame)).then_some(*last)
}

/// Is this the entry of this frame, and is everything further out as it was?
fn holds(thread: &mut impl OnPath, entry: u64, frame: &UnwoundFrame) -> bool {
    let mut at = thread.paths().entry(entry);
    if at.return_at != frame.return_at() || at.flags & NEEDS_RBP != 0 && at.rbp != frame.caller_rbp {
        return false;
    }
    loop {
        if thread.word(at.return_at) != Some(at.return_to) || thread.word(at.link_at) != Some(at.link) {
            return false;
        }
        if at.outer == 0 {
            return true;
        }
        at = thread.paths().entry(at.outer);
    }
}

/// Entries and numbers for `frames`, the outermost last; `further` is the next one, whose entry is `known`. Returns the innermost's number, and its
/// entry if there is one.
fn enter(
    thread: &mut impl OnPath,
    frames: &mut Vec<UnwoundFrame>,
    mut further: Option<UnwoundFrame>,
    known: Option<u64>,
    end: Outermost,
) -> (u32, Option<u64>) {
    let mut outer = known;
    let (mut number, mut needs_rbp) = known.map_or((0, false), |entry| {
        let PathFrame { id, flags, .. } = thread.paths().entry(entry);
        (id, flags & NEEDS_RBP != 0)
    });
    let mut sure = true;
    while let Some(frame) = frames.pop() {
        let link = match &further {
            Some(further) => Link::to(further, needs_rbp),
            None => Link { word: end.word, needs_rbp: end.by_rbp, unsure: end.unsure },
        };
        let partial = further.is_none() && end.unknown;
        // Whoever is further in needs what is not remembered here.
        sure &= !link.unsure && !frame.guessed;
        needs_rbp = link.needs_rbp;
        further = Some(frame);
        if !sure {
            number = thread.number(number, frame.return_to, partial);
            outer = None;
            continue;
        }
        let (link_at, link) = link.word.unwrap_or((frame.return_at(), frame.return_to));
        let mut entry = PathFrame {
            return_at: frame.return_at(),
            return_to: frame.return_to,
            link_at,
            link,
            rbp: if needs_rbp { frame.caller_rbp } else { 0 },
            outer: outer.unwrap_or(0),
            flags: if needs_rbp { NEEDS_RBP } else { 0 } | if partial { PARTIAL } else { 0 },
            ..PathFrame::default()
        };
        let at = match thread.paths().find(&entry) {
            Some(at) => {
                number = thread.paths().entry(at).id;
                at
            }
            None => {
                number = thread.number(number, frame.return_to, partial);
                entry.id = number;
                thread.paths().add(entry)
            }
        };
        outer = Some(at);
    }
    (number, outer)
}
