//! Unwinding and numbering call paths.

use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::cache::WORDS;
use super::rule::{self, UnwindRule};
use crate::lock::{LockName, Locked};
use crate::ring;
use crate::thread::Thread;

/// Frames beyond this are cut off and the path is marked partial.
const MAX_FRAMES: usize = 2048;

/// (return address, number of the path above, frames above unknown) → number. Chained by hash.
struct Numbers {
    heads: crate::map::U64Map<u32>,
    nodes: Vec<Node>,
}
#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    partial: bool,
    return_to: u64,
    next: u32,
}
static NUMBERS: Locked<Numbers> =
    Locked::new(LockName::CallPaths, Numbers { heads: crate::map::U64Map::new(), nodes: Vec::new() });

/// Held around fork, so that the child does not get tables that another thread was changing.
pub fn hold() -> impl Sized {
    (NUMBERS.lock(), rule::hold())
}

/// Code went away: its addresses may come to mean other code. Numbers given out stay; new paths get new ones.
pub fn forget() {
    NUMBERS.lock().heads.clear();
    rule::forget();
    crate::thread::each(|thread| thread.paths.clear());
}

fn number(thread: &mut Thread, parent: u32, return_to: u64, partial: bool) -> u32 {
    let mut numbers = NUMBERS.lock();
    let key = return_to.wrapping_mul(31).wrapping_add((parent as u64) << 1 | partial as u64) | 1 << 63;
    let head = numbers.heads.get(key).unwrap_or(0);
    let mut at = head;
    while at != 0 {
        let node = numbers.nodes[at as usize - 1];
        if node.parent == parent && node.return_to == return_to && node.partial == partial {
            return at;
        }
        at = node.next;
    }
    numbers.nodes.push(Node { parent, partial, return_to, next: head });
    let id = numbers.nodes.len() as u32;
    numbers.heads.insert(key, id);
    drop(numbers);
    let header = Header {
        kind: kind::CONTEXT,
        aux: partial as u8,
        site: parent,
        context: id,
        address: return_to,
        ..Header::default()
    };
    ring::order(thread).put(header, &[]);
    id
}

/// The path of a system call's event.
pub fn current(thread: &mut Thread) -> u32 {
    let (pc, rsp, rbp) = (thread.pc, thread.regs.rsp, thread.regs.rbp);
    find(thread, pc, rsp, rbp)
}

/// One frame that was unwound, and what was read for it.
#[derive(Clone, Copy)]
struct UnwoundFrame {
    cfa: u64,
    return_to: u64,
    cfa_by_rbp: bool,
    /// The word that held the CFA, in a realigned frame.
    cfa_word: Option<(u64, u64)>,
    /// Where the caller's rbp was saved, with its value.
    rbp_word: Option<(u64, u64)>,
    caller_rbp: u64,
    /// Found without unwind information: not to be remembered, since more was looked at than is noted here.
    guessed: bool,
}

/// What the path from some frame outwards depends on.
struct Outer {
    id: u32,
    words: Vec<(u64, u64)>,
    needs_rbp: bool,
}

/// Unwinds one frame. `Err(true)`: the frames further out are unknown; `Err(false)`: there are none.
fn unwind(pc: u64, rsp: u64, rbp: u64, innermost: bool) -> Result<UnwoundFrame, bool> {
    let Some(rule) = rule::at(pc, innermost) else { return guess::unwind(rsp, rbp).ok_or(true) };
    let UnwindRule { cfa_rbp, cfa_offset, deref, rbp_offset, outermost, signal } = rule;
    if outermost || signal {
        return Err(false);
    }
    let base = if cfa_rbp { rbp } else { rsp };
    let mut cfa = base.wrapping_add_signed(cfa_offset as i64);
    let mut cfa_word = None;
    if deref {
        let value = read(cfa).ok_or(true)?;
        cfa_word = Some((cfa, value));
        cfa = value;
    }
    // A stack grows down: a frame address below the stack pointer means that the rule was wrong.
    if cfa <= rsp {
        return Err(true);
    }
    let return_to = read(cfa - 8).ok_or(true)?;
    // A signal handler returns into the restorer: the path ends at the handler (contract rule 9).
    if return_to == 0 || rule::at(return_to, false).is_some_and(|rule| rule.signal) {
        return Err(false);
    }
    let (mut rbp_word, mut caller_rbp) = (None, rbp);
    if rbp_offset != 0 {
        let slot = cfa.wrapping_add_signed(rbp_offset as i64);
        caller_rbp = read(slot).ok_or(true)?;
        rbp_word = Some((slot, caller_rbp));
    }
    Ok(UnwoundFrame { cfa, return_to, cfa_by_rbp: cfa_rbp, cfa_word, rbp_word, caller_rbp, guessed: false })
}

/// The number of the path that (pc, rsp, rbp) is on. Unwinds up to the first frame whose path is in the thread's cache
/// and still holds, and puts the paths of the frames further in into the cache.
pub fn find(thread: &mut Thread, pc: u64, rsp: u64, rbp: u64) -> u32 {
    let mut frames: Vec<UnwoundFrame> = Vec::with_capacity(16);
    let (mut pc, mut rsp, mut rbp) = (pc, rsp, rbp);
    let mut partial = false;
    let mut outer = Outer { id: 0, words: Vec::new(), needs_rbp: false };
    loop {
        let frame = match unwind(pc, rsp, rbp, frames.is_empty()) {
            Ok(frame) => frame,
            Err(unknown) => {
                partial = unknown;
                break;
            }
        };
        frames.push(frame);
        if !frame.guessed
            && let Some(known) = cached(thread, &frame)
        {
            outer = known;
            break;
        }
        if frames.len() == MAX_FRAMES {
            partial = true;
            break;
        }
        (pc, rsp, rbp) = (frame.return_to, frame.cfa, frame.caller_rbp);
    }
    let mut further: Option<UnwoundFrame> = None;
    let mut guessed = false;
    if outer.id != 0 {
        further = frames.pop();
    }
    while let Some(frame) = frames.pop() {
        let mut words = Vec::with_capacity(outer.words.len() + 3);
        words.push((frame.cfa - 8, frame.return_to));
        let mut needs_rbp = false;
        if let Some(caller) = further {
            words.extend(caller.cfa_word);
            needs_rbp = caller.cfa_by_rbp;
            if outer.needs_rbp {
                match caller.rbp_word {
                    Some(word) => words.push(word),
                    None => needs_rbp = true,
                }
            }
        }
        words.extend_from_slice(&outer.words);
        let id = number(thread, outer.id, frame.return_to, partial && outer.id == 0);
        outer = Outer { id, words, needs_rbp };
        guessed |= frame.guessed;
        if !guessed {
            remember(thread, &frame, &outer);
        }
        further = Some(frame);
    }
    outer.id
}

/// The return addresses of the frames further out, innermost first.
pub fn frames(pc: u64, rsp: u64, rbp: u64, most: usize) -> Vec<u64> {
    let (mut pc, mut rsp, mut rbp) = (pc, rsp, rbp);
    let mut found = Vec::new();
    while found.len() < most
        && let Ok(frame) = unwind(pc, rsp, rbp, found.is_empty())
    {
        found.push(frame.return_to);
        (pc, rsp, rbp) = (frame.return_to, frame.cfa, frame.caller_rbp);
    }
    found
}

/// The path of this frame, if the cache has it and every word it depends on is unchanged.
fn cached(thread: &mut Thread, frame: &UnwoundFrame) -> Option<Outer> {
    thread.paths.candidates(frame.cfa, frame.return_to).find_map(|entry| {
        if entry.needs_rbp != 0 && entry.rbp != frame.caller_rbp {
            return None;
        }
        let words = &entry.words[..entry.count as usize];
        let holds = words.iter().all(|&(address, value)| read(address) == Some(value));
        holds.then(|| Outer { id: entry.id, words: words.to_vec(), needs_rbp: entry.needs_rbp != 0 })
    })
}

fn remember(thread: &mut Thread, frame: &UnwoundFrame, path: &Outer) {
    if path.words.len() > WORDS {
        return;
    }
    let entry = thread.paths.replace(frame.cfa, frame.return_to);
    entry.rbp = frame.caller_rbp;
    entry.needs_rbp = path.needs_rbp as u32;
    entry.id = path.id;
    entry.count = path.words.len() as u32;
    entry.words[..path.words.len()].copy_from_slice(&path.words);
}

mod guess {
    //! Frames of code without unwind information (generated at run time, hand-written): the nearest stack word that is the
    //! address behind a call instruction is taken for the return address. Right for code that keeps no such word in its
    //! own frame.

    use super::UnwoundFrame;
    use crate::translate::code;

    /// Stack words to look at.
    const WORDS: u64 = 256;

    pub(super) fn unwind(rsp: u64, rbp: u64) -> Option<UnwoundFrame> {
        let first = (rsp + 7) & !7;
        (0..WORDS).map(|i| first + i * 8).find_map(|slot| {
            let return_to = super::read(slot)?;
            code::follows_call(return_to).then_some(UnwoundFrame {
                cfa: slot + 8,
                return_to,
                cfa_by_rbp: false,
                cfa_word: None,
                rbp_word: None,
                caller_rbp: rbp,
                guessed: true,
            })
        })
    }
}

/// Reads a stack word; the stack may be gone or the frame address wrong, so a fault gives `None`.
fn read(address: u64) -> Option<u64> {
    if address & 7 != 0 || !(0x1000..1 << 47).contains(&address) {
        return None;
    }
    crate::trampoline::peek::word(address)
}
