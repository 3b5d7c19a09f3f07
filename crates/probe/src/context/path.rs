//! The call path of a thread, from the program's own unwind information.

use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::cache::PathCache;
use super::numbers::Numbers;
use super::rule::{self, UnwindRule};
use super::unwind::{self, OnPath, Outermost, Position, UnwoundFrame};
use crate::lock::{LockName, Locked};
use crate::ring;
use crate::thread::Thread;

static NUMBERS: Locked<Numbers> = Locked::new(LockName::CallPaths, Numbers::new());

/// Held around fork, so that the child does not get tables that another thread was changing.
pub fn hold() -> impl Sized {
    (NUMBERS.lock(), rule::hold())
}

/// Code went away: its addresses may come to mean other code. Numbers given out stay; new paths get new ones.
pub fn forget() {
    NUMBERS.lock().forget();
    rule::forget();
    crate::thread::each(|thread| thread.paths.clear());
}

/// The path of a system call's event.
pub fn current(thread: &mut Thread) -> u32 {
    let (pc, rsp, rbp) = (thread.pc, thread.regs.rsp, thread.regs.rbp);
    find(thread, pc, rsp, rbp)
}

/// The number of the path that (pc, rsp, rbp) is on.
pub fn find(thread: &mut Thread, pc: u64, rsp: u64, rbp: u64) -> u32 {
    unwind::find(&mut Unwinding { thread, rules: Rules::default() }, Position { pc, rsp, rbp })
}

/// The return addresses of the frames further out, innermost first.
pub fn frames(pc: u64, rsp: u64, rbp: u64, most: usize) -> Vec<u64> {
    let mut rules = Rules::default();
    let mut at = Position { pc, rsp, rbp };
    let mut found = Vec::new();
    while found.len() < most
        && let Ok(frame) = rules.unwind(at, found.is_empty())
    {
        found.push(frame.return_to);
        at = frame.caller();
    }
    found
}

struct Unwinding<'a> {
    thread: &'a mut Thread,
    rules: Rules,
}

impl OnPath for Unwinding<'_> {
    fn paths(&mut self) -> &mut PathCache {
        &mut self.thread.paths
    }

    fn unwind(&mut self, at: Position, innermost: bool) -> Result<UnwoundFrame, Outermost> {
        self.rules.unwind(at, innermost)
    }

    fn word(&self, address: u64) -> Option<u64> {
        read(address)
    }

    fn number(&mut self, outer: u32, return_to: u64, partial: bool) -> u32 {
        let (id, is_new) = NUMBERS.lock().number(outer, return_to, partial);
        if is_new {
            let header = Header {
                kind: kind::CONTEXT,
                aux: partial as u8,
                site: outer,
                context: id,
                address: return_to,
                ..Header::default()
            };
            ring::order(self.thread).put(header, &[]);
        }
        id
    }
}

/// Rules along one path: the rule at a return address is asked for twice in a row, as that of a caller and as that of the next frame.
#[derive(Default)]
struct Rules {
    last: Option<(u64, Option<UnwindRule>)>,
}

impl Rules {
    fn behind_call(&mut self, return_to: u64) -> Option<UnwindRule> {
        match self.last {
            Some((at, rule)) if at == return_to => rule,
            _ => {
                let rule = rule::at(return_to, false);
                self.last = Some((return_to, rule));
                rule
            }
        }
    }

    fn unwind(&mut self, at: Position, innermost: bool) -> Result<UnwoundFrame, Outermost> {
        let Position { pc, rsp, rbp } = at;
        let rule = if innermost { rule::at(pc, true) } else { self.behind_call(pc) };
        let Some(rule) = rule else {
            return guess::unwind(rsp, rbp).ok_or(Outermost { unknown: true, ..Outermost::default() });
        };
        let UnwindRule { cfa_rbp, cfa_offset, deref, rbp_offset, outermost, signal } = rule;
        if outermost || signal {
            return Err(Outermost::default());
        }
        let base = if cfa_rbp { rbp } else { rsp };
        let mut cfa = base.wrapping_add_signed(cfa_offset as i64);
        let mut cfa_word = None;
        let unreadable = Outermost { unknown: true, by_rbp: cfa_rbp, ..Outermost::default() };
        if deref {
            let value = read(cfa).ok_or(unreadable)?;
            cfa_word = Some((cfa, value));
            cfa = value;
        }
        // A stack grows down: a frame address below the stack pointer means that the rule was wrong.
        if cfa <= rsp {
            return Err(Outermost { word: cfa_word, ..unreadable });
        }
        let return_to = read(cfa - 8).ok_or(Outermost { word: cfa_word, ..unreadable })?;
        // A signal handler returns into the restorer: the path ends at the handler (contract rule 9).
        if return_to == 0 || self.behind_call(return_to).is_some_and(|rule| rule.signal) {
            let word = Some((cfa - 8, return_to));
            return Err(Outermost { unknown: false, word, by_rbp: cfa_rbp, unsure: cfa_word.is_some() });
        }
        let (mut rbp_word, mut caller_rbp) = (None, rbp);
        if rbp_offset != 0 {
            let slot = cfa.wrapping_add_signed(rbp_offset as i64);
            caller_rbp = read(slot).ok_or(Outermost { unsure: true, ..unreadable })?;
            rbp_word = Some((slot, caller_rbp));
        }
        Ok(UnwoundFrame { cfa, return_to, cfa_by_rbp: cfa_rbp, cfa_word, rbp_word, caller_rbp, guessed: false })
    }
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
