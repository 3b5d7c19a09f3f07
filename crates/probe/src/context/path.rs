//! Unwinding and numbering call paths.

use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::cache::WORDS;
use super::rule::{self, Rule};
use crate::memory::SpinLock;
use crate::ring;
use crate::thread::Thread;

/// Guards the rule cache.
pub(super) static RULES: SpinLock = SpinLock::new();
/// Guards the path numbers.
static PATHS: SpinLock = SpinLock::new();

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
static mut NUMBERS: Numbers = Numbers { heads: crate::map::U64Map::new(), nodes: Vec::new() };

/// After fork: the child is the only thread.
pub fn reset_locks() {
    RULES.reset();
    PATHS.reset();
}

/// Code went away: its addresses may come to mean other code. Numbers given out stay; new paths get new ones.
pub fn forget() {
    let _guard = PATHS.lock();
    // SAFETY: PATHS is held.
    unsafe { (*core::ptr::addr_of_mut!(NUMBERS)).heads.clear() };
    rule::forget();
    crate::thread::each(|thread| thread.paths.clear());
}

fn number(thread: &mut Thread, parent: u32, return_to: u64, partial: bool) -> u32 {
    let guard = PATHS.lock();
    // SAFETY: PATHS is held.
    let numbers = unsafe { &mut *core::ptr::addr_of_mut!(NUMBERS) };
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
    drop(guard);
    let header =
        Header { kind: kind::CONTEXT, aux: partial as u8, site: parent, context: id, address: return_to, ..Header::default() };
    ring::order(thread).put(header, &[]);
    id
}

/// Where the value of rbp at some frame came from.
#[derive(Clone, Copy)]
enum Origin {
    /// The innermost function's caller still had it.
    Innermost,
    Slot(u64),
}

/// The path of a system call's event.
pub fn current(thread: &mut Thread) -> u32 {
    let (pc, rsp, rbp) = (thread.pc, thread.regs.rsp, thread.regs.rbp);
    find(thread, pc, rsp, rbp)
}

/// Unwinds from (pc, rsp, rbp), numbers the path and puts it into the thread's cache.
pub fn find(thread: &mut Thread, pc: u64, rsp: u64, rbp: u64) -> u32 {
    let mut frames: Vec<u64> = Vec::with_capacity(64);
    let mut words: Vec<(u64, u64)> = Vec::with_capacity(64);
    let (mut pc, mut rsp, mut rbp) = (pc, rsp, rbp);
    let mut origin = Origin::Innermost;
    let mut needs_rbp = false;
    let mut innermost: Option<(u64, u64, u64)> = None;
    let mut partial = false;
    loop {
        let rule = rule::at(pc, innermost.is_none());
        let Some(Rule { cfa_rbp, cfa_offset, deref, rbp_offset, outermost, signal }) = rule else {
            partial = true;
            break;
        };
        if outermost || signal {
            break;
        }
        if cfa_rbp && innermost.is_some() {
            match origin {
                Origin::Innermost => needs_rbp = true,
                Origin::Slot(slot) => words.push((slot, rbp)),
            }
        }
        let base = if cfa_rbp { rbp } else { rsp };
        let mut cfa = base.wrapping_add_signed(cfa_offset as i64);
        if deref {
            let Some(value) = read(cfa) else {
                partial = true;
                break;
            };
            words.push((cfa, value));
            cfa = value;
        }
        let Some(return_to) = read(cfa.wrapping_sub(8)) else {
            partial = true;
            break;
        };
        if cfa <= rsp && innermost.is_some() || frames.len() >= MAX_FRAMES {
            partial = true;
            break;
        }
        if rbp_offset != 0 {
            let slot = cfa.wrapping_add_signed(rbp_offset as i64);
            match read(slot) {
                Some(value) => rbp = value,
                None => {
                    partial = true;
                    break;
                }
            }
            if innermost.is_some() {
                origin = Origin::Slot(slot);
            }
        }
        if innermost.is_none() {
            innermost = Some((cfa, return_to, rbp));
            // A frame that is itself found through memory is not described by the gate's key.
            if deref {
                words.clear();
                words.resize(WORDS + 1, (0, 0));
            }
        }
        words.push((cfa - 8, return_to));
        frames.push(return_to);
        if return_to == 0 {
            frames.pop();
            break;
        }
        pc = return_to;
        rsp = cfa;
    }
    let mut id = 0;
    for (i, &return_to) in frames.iter().rev().enumerate() {
        id = number(thread, id, return_to, partial && i == 0);
    }
    if let Some((cfa, return_to, caller_rbp)) = innermost
        && words.len() <= WORDS
    {
        let entry = thread.paths.entry(cfa, return_to);
        entry.cfa = cfa;
        entry.rbp = caller_rbp;
        entry.needs_rbp = needs_rbp as u32;
        entry.id = id;
        entry.count = words.len() as u32;
        entry.words[..words.len()].copy_from_slice(&words);
    }
    id
}

/// Reads a stack word; the stack may be gone or the frame address wrong, so a fault gives `None`.
fn read(address: u64) -> Option<u64> {
    if address & 7 != 0 || address < 0x1000 || address >= 1 << 47 {
        return None;
    }
    crate::gate::peek::word(address)
}
