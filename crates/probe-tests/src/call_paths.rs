//! The cache of call paths against a walk of the whole stack, which remembers nothing.

use std::collections::{HashMap, HashSet};

use crate::context::cache::PathCache;
use crate::context::numbers::Numbers;
use crate::context::unwind::{self, OnPath, Outermost, Position, UnwoundFrame, Word};

/// SplitMix64: the same numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        let (word, state) = wire::virtual_time::random_word(self.0);
        self.0 = state;
        word % limit
    }
}

/// How a function is compiled. Code addresses are `function << 16 | call`; those with call 0 are innermost.
#[derive(Clone, Copy)]
struct Function {
    /// Bytes between the stack pointer and the CFA.
    frame: u64,
    saves_rbp: bool,
    /// The CFA is found through rbp, which points to where the caller's is saved.
    by_rbp: bool,
    /// Its stack is realigned: a word below its frame says where the CFA is.
    realigned: bool,
    /// It has no unwind information.
    unknown: bool,
}

const FUNCTIONS: u64 = 24;

fn function(number: u64) -> Function {
    let by_rbp = number % 5 == 1;
    Function {
        frame: 32 + number % 3 * 16,
        saves_rbp: by_rbp || number.is_multiple_of(3),
        by_rbp,
        realigned: matches!(number, 7 | 9 | 13),
        unknown: number == 11,
    }
}

/// A thread on a made-up stack.
struct Thread {
    memory: HashMap<u64, u64>,
    paths: PathCache,
    numbers: Numbers,
}

const OUTERMOST: u64 = 0x7fff_0000;

impl Thread {
    fn new() -> Thread {
        Thread { memory: HashMap::new(), paths: PathCache::new(), numbers: Numbers::new() }
    }

    /// Calls these functions, each from the one before, each with its own call instruction: its low byte; above it is how much more stack a function
    /// takes that finds its frame through rbp. Returns where the thread is then.
    fn calls(&mut self, calls: &[(u64, u64)]) -> Position {
        let (mut rsp, mut rbp) = (OUTERMOST, 0xb0);
        let mut return_to = 0;
        for &(number, call) in calls {
            let kind = function(number);
            let cfa = rsp;
            self.memory.insert(cfa - 8, return_to);
            // Left over from other calls, unless it is written now.
            if kind.saves_rbp {
                self.memory.insert(cfa - 16, rbp);
            }
            if kind.by_rbp {
                rbp = cfa - 16;
            } else if kind.saves_rbp {
                rbp = number * 0x1001 + call;
            }
            rsp = cfa - kind.frame - if kind.by_rbp { (call >> 8) * 16 } else { 0 };
            if kind.realigned {
                rsp &= !63;
                rsp -= 64;
                self.memory.insert(rsp, cfa);
            }
            return_to = number << 16 | (call & 0xff);
        }
        Position { pc: return_to, rsp, rbp }
    }

    /// The path without a cache: return addresses, the outermost first, and whether more is unknown.
    fn walked(&mut self, mut at: Position) -> (Vec<u64>, bool) {
        let mut path = Vec::new();
        loop {
            match self.unwind(at, path.is_empty()) {
                Ok(frame) => {
                    path.insert(0, frame.return_to);
                    at = frame.caller();
                }
                Err(outermost) => return (path, outermost.unknown),
            }
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        // SAFETY: nothing uses it any more.
        unsafe { self.paths.free() };
    }
}

impl OnPath for Thread {
    fn paths(&mut self) -> &mut PathCache {
        &mut self.paths
    }

    fn unwind(&mut self, at: Position, _innermost: bool) -> Result<UnwoundFrame, Outermost> {
        let Position { pc, rsp, rbp } = at;
        let kind = function(pc >> 16);
        let mut cfa_word: Option<Word> = None;
        if kind.unknown {
            return Err(Outermost { unknown: true, ..Outermost::default() });
        }
        let cfa = if kind.realigned {
            let cfa = self.word(rsp).expect("it was written");
            cfa_word = Some((rsp, cfa));
            cfa
        } else if kind.by_rbp {
            rbp + 16
        } else {
            rsp + kind.frame
        };
        let return_to = self.word(cfa - 8).expect("it was written");
        if return_to == 0 {
            let word = Some((cfa - 8, 0));
            return Err(Outermost { unknown: false, word, by_rbp: kind.by_rbp, unsure: cfa_word.is_some() });
        }
        let rbp_word = kind.saves_rbp.then(|| (cfa - 16, self.memory[&(cfa - 16)]));
        let caller_rbp = rbp_word.map_or(rbp, |(_, value)| value);
        Ok(UnwoundFrame { cfa, return_to, cfa_by_rbp: kind.by_rbp, cfa_word, rbp_word, caller_rbp, guessed: false })
    }

    fn word(&self, address: u64) -> Option<u64> {
        self.memory.get(&address).copied()
    }

    fn number(&mut self, outer: u32, return_to: u64, partial: bool) -> u32 {
        self.numbers.number(outer, return_to, partial).0
    }
}

#[test]
fn the_cache_finds_the_path_that_a_walk_finds() {
    let mut random = Random(1);
    let mut thread = Thread::new();
    let mut known: HashMap<(Vec<u64>, bool), u32> = HashMap::new();
    let mut taken = HashSet::new();
    let mut calls: Vec<(u64, u64)> = vec![(0, 1)];
    for event in 0..60_000 {
        // Returns from some functions and calls others: mostly recursion between a few.
        calls.truncate(1 + random.below(calls.len() as u64) as usize);
        for _ in 0..random.below(6) {
            let number = if random.below(3) == 0 { random.below(FUNCTIONS) } else { random.below(3) };
            calls.push((number, (1 + random.below(3)) | (random.below(4) << 8)));
        }
        if calls.len() > 40 {
            calls.truncate(2);
        }
        if random.below(20_000) == 0 {
            thread.paths.clear();
            thread.numbers.forget();
            known.clear();
        }
        let at = thread.calls(&calls);
        let expected = thread.walked(at);
        let number = unwind::find(&mut thread, at);
        if expected.0.is_empty() {
            assert_eq!(number, 0, "event {event}");
            continue;
        }
        match known.get(&expected) {
            Some(&before) => assert_eq!(number, before, "event {event} on {calls:x?}"),
            None => {
                assert!(taken.insert(number), "event {event} on {calls:x?}: {number} is that of another path");
                known.insert(expected, number);
            }
        }
        if event % 7 == 0 {
            // Again, without a call in between.
            assert_eq!(unwind::find(&mut thread, at), number, "event {event}");
        }
    }
    assert!(taken.len() > 20_000, "{} paths are too few to fill the cache", taken.len());
}

#[test]
fn a_path_below_another_caller_is_another_path() {
    let mut thread = Thread::new();
    // The same innermost frames at the same places; only the outermost call differs.
    let one = thread.calls(&[(0, 1), (2, 1), (2, 2)]);
    let first = unwind::find(&mut thread, one);
    let other = thread.calls(&[(0, 2), (2, 1), (2, 2)]);
    assert_eq!((one.rsp, one.pc), (other.rsp, other.pc));
    let second = unwind::find(&mut thread, other);
    assert_ne!(first, second);
    let again = thread.calls(&[(0, 1), (2, 1), (2, 2)]);
    assert_eq!(unwind::find(&mut thread, again), first);
}

#[test]
fn numbers_are_by_content() {
    let mut random = Random(2);
    let (mut numbers, mut expected) = (Numbers::new(), HashMap::new());
    for _ in 0..50_000 {
        let path = (random.below(300) as u32, 0x7f00_0000_1000 + random.below(40) * 5, random.below(4) == 0);
        let count = expected.len() as u32;
        let (number, is_new) = numbers.number(path.0, path.1, path.2);
        let wanted = *expected.entry(path).or_insert(count + 1);
        assert_eq!((number, is_new), (wanted, wanted == count + 1));
    }
    numbers.forget();
    assert_eq!(numbers.number(1, 0x1000, false), (expected.len() as u32 + 1, true));
}
