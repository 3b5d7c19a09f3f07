//! What commands did, by what they could see: a decision tree per command, as `crash::read_tree` is one for whole recoveries.
//!
//! A process that is deterministic does the same wherever it reads the same. What it leaves in a line that it changed in part depends on the rest
//! of that line, so a line that is changed counts as seen.

use crash::image::LineBytes;
use persistency::line::LineId;
use rustc_hash::FxHashMap;
use verdict::end::Frame;

/// When there is more to remember, all is forgotten: about 80 MiB.
const MOST_STEPS: usize = 4 << 20;
const MOST_CONTENTS: usize = 256 << 10;

/// How a process ended that ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// As `wait` tells it.
    pub status: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// What a command did to one state of the pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub ended: Ended,
    /// What is in the lines that it changed.
    pub changed: Vec<(LineId, LineBytes)>,
    /// Of the lines that it has seen so many were read; the others were only changed.
    pub reads: usize,
    /// Where it was when a signal ended it.
    pub died_at: Vec<Frame>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SeenLine {
    line: LineId,
    content: u32,
}

#[derive(Debug)]
struct Node {
    /// With a single known content each.
    steps: Vec<SeenLine>,
    next: Next,
}

#[derive(Debug)]
enum Next {
    Effect(usize),
    Branch { line: LineId, by_content: FxHashMap<u32, usize> },
}

/// Two processes that saw the same did not do the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotDeterministic;

/// The effects of one command.
#[derive(Debug, Default)]
struct Tree {
    /// The first is the root.
    nodes: Vec<Node>,
    effects: Vec<Effect>,
}

/// The effects of all commands; `K` tells commands and what else they depend on apart.
#[derive(Debug)]
pub(super) struct Effects<K> {
    trees: FxHashMap<K, Tree>,
    contents: FxHashMap<LineBytes, u32>,
    steps: usize,
}

impl<K> Default for Effects<K> {
    fn default() -> Self {
        Effects { trees: FxHashMap::default(), contents: FxHashMap::default(), steps: 0 }
    }
}

impl<K: Eq + std::hash::Hash> Effects<K> {
    /// What the command would do, and the lines that it would see; `line` tells what the pools hold.
    pub fn find<E>(
        &self,
        key: &K,
        mut line: impl FnMut(LineId) -> Result<LineBytes, E>,
    ) -> Result<Option<(&Effect, Vec<LineId>)>, E> {
        let Some(tree) = self.trees.get(key) else { return Ok(None) };
        let mut seen = Vec::new();
        let mut node = &tree.nodes[0];
        loop {
            for step in &node.steps {
                if self.contents.get(&line(step.line)?) != Some(&step.content) {
                    return Ok(None);
                }
                seen.push(step.line);
            }
            match &node.next {
                Next::Effect(number) => return Ok(Some((&tree.effects[*number], seen))),
                Next::Branch { line: at, by_content } => {
                    let content = self.contents.get(&line(*at)?);
                    let Some(next) = content.and_then(|content| by_content.get(content)) else { return Ok(None) };
                    seen.push(*at);
                    node = &tree.nodes[*next];
                }
            }
        }
    }

    /// Remembers what the command did where it saw these lines, in this order.
    pub fn insert(&mut self, key: K, seen: &[(LineId, LineBytes)], effect: Effect) -> Result<(), NotDeterministic> {
        if self.steps + seen.len() > MOST_STEPS || self.contents.len() + seen.len() > MOST_CONTENTS {
            *self = Effects::default();
        }
        let path: Vec<SeenLine> = seen
            .iter()
            .map(|(line, bytes)| {
                let next = self.contents.len() as u32;
                SeenLine { line: *line, content: *self.contents.entry(*bytes).or_insert(next) }
            })
            .collect();
        self.steps += path.len();
        self.trees.entry(key).or_default().insert(&path, effect)
    }
}

impl Tree {
    fn leaf(&mut self, steps: &[SeenLine], effect: Effect) -> usize {
        self.effects.push(effect);
        self.nodes.push(Node { steps: steps.to_vec(), next: Next::Effect(self.effects.len() - 1) });
        self.nodes.len() - 1
    }

    fn insert(&mut self, mut path: &[SeenLine], effect: Effect) -> Result<(), NotDeterministic> {
        if self.nodes.is_empty() {
            self.leaf(path, effect);
            return Ok(());
        }
        let mut at = 0;
        loop {
            let known = &self.nodes[at].steps;
            match known.iter().zip(path).position(|(known, own)| known != own) {
                Some(after) if known[after].line != path[after].line => return Err(NotDeterministic),
                Some(after) => {
                    self.split(at, after, path, effect);
                    return Ok(());
                }
                None if path.len() < known.len() => return Err(NotDeterministic),
                None => path = &path[known.len()..],
            }
            match &self.nodes[at].next {
                Next::Effect(number) => {
                    let same = path.is_empty() && self.effects[*number] == effect;
                    return if same { Ok(()) } else { Err(NotDeterministic) };
                }
                Next::Branch { line, by_content } => {
                    let Some((first, rest)) = path.split_first().filter(|(first, _)| first.line == *line) else {
                        return Err(NotDeterministic);
                    };
                    match by_content.get(&first.content) {
                        Some(&next) => (at, path) = (next, rest),
                        None => {
                            let leaf = self.leaf(rest, effect);
                            if let Next::Branch { by_content, .. } = &mut self.nodes[at].next {
                                by_content.insert(first.content, leaf);
                            }
                            return Ok(());
                        }
                    }
                }
            }
        }
    }

    /// From step `after` of a node on there are two ways.
    fn split(&mut self, at: usize, after: usize, path: &[SeenLine], effect: Effect) {
        let leaf = self.leaf(&path[after + 1..], effect);
        let node = &mut self.nodes[at];
        let rest = node.steps.split_off(after + 1);
        let old = node.steps.pop().expect("the step where the ways part");
        let next = std::mem::replace(&mut node.next, Next::Branch { line: old.line, by_content: FxHashMap::default() });
        self.nodes.push(Node { steps: rest, next });
        let rest = self.nodes.len() - 1;
        if let Next::Branch { by_content, .. } = &mut self.nodes[at].next {
            by_content.extend([(old.content, rest), (path[after].content, leaf)]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use persistency::line::LINE_BYTES;
    use proptest::prelude::*;
    use trace::event::{LineNo, PoolId};

    use super::*;

    const LINES: u64 = 6;

    fn line(number: u64) -> LineId {
        LineId { pool: PoolId(0), line: LineNo(number) }
    }

    /// A command that reads lines, each depending on those before, and changes one: what it saw and what it did.
    fn run(command: u8, pool: &[u8]) -> (Vec<(LineId, LineBytes)>, Effect) {
        let (mut at, mut seen, mut sum) = (u64::from(command) % LINES, Vec::new(), command);
        while seen.len() < 4 {
            let content = pool[at as usize];
            if seen.iter().any(|(known, _)| *known == line(at)) {
                break;
            }
            seen.push((line(at), [content; LINE_BYTES]));
            sum = sum.wrapping_mul(31).wrapping_add(content);
            at = (at + 1 + u64::from(content)) % LINES;
        }
        let ended = Ended { status: sum.into(), stdout: vec![sum], stderr: Vec::new() };
        let reads = seen.len();
        (seen, Effect { ended, changed: vec![(line(0), [sum; LINE_BYTES])], reads, died_at: Vec::new() })
    }

    fn find(effects: &Effects<u8>, command: u8, pool: &[u8]) -> Option<(Effect, Vec<LineId>)> {
        let line = |line: LineId| Ok::<_, Infallible>([pool[line.line.0 as usize]; LINE_BYTES]);
        effects.find(&command, line).unwrap().map(|(effect, seen)| (effect.clone(), seen))
    }

    proptest! {
        /// What is remembered is what the command does, and what it did is remembered.
        #[test]
        fn a_known_effect_is_that_of_a_run(
            pools in proptest::collection::vec(proptest::collection::vec(0_u8..3, LINES as usize), 1..40),
            commands in proptest::collection::vec(0_u8..3, 40),
        ) {
            let mut effects = Effects::default();
            for (pool, &command) in pools.iter().zip(&commands) {
                let (seen, effect) = run(command, pool);
                let lines: Vec<LineId> = seen.iter().map(|(line, _)| *line).collect();
                if let Some(known) = find(&effects, command, pool) {
                    prop_assert_eq!(known, (effect.clone(), lines.clone()));
                }
                prop_assert_eq!(effects.insert(command, &seen, effect.clone()), Ok(()));
                prop_assert_eq!(find(&effects, command, pool), Some((effect, lines)));
            }
        }
    }

    #[test]
    fn another_effect_of_the_same_state_is_noticed() {
        let pool = [0, 1, 2, 0, 1, 2];
        let (seen, effect) = run(1, &pool);
        let mut effects = Effects::default();
        assert_eq!(effects.insert(1_u8, &seen, effect.clone()), Ok(()));
        let other = Effect { ended: Ended { status: 1, ..effect.ended.clone() }, ..effect.clone() };
        assert_eq!(effects.insert(1, &seen, other), Err(NotDeterministic));
        assert_eq!(effects.insert(1, &seen[..1], effect.clone()), Err(NotDeterministic));
        let elsewhere = [(line(5), [9; LINE_BYTES])];
        assert_eq!(effects.insert(1, &elsewhere, effect), Err(NotDeterministic));
    }
}
