//! Equivalence by what recovery read, as a decision tree.
//!
//! Recovery is deterministic (DESIGN.md, "Determinism"): what it looks at next is a function of what it has seen. So
//! all runs together are a tree. A node says which line is looked at next; its edges are contents of that line; a
//! leaf is a verdict. A state is followed down the tree, and if it comes to a leaf, that verdict is its own: recovery could not
//! have told it from the run that made the leaf.
//!
//! Contents are compared exactly: each different line of 64 bytes gets a number. Stretches without a branch are one
//! list with eight bytes per look. Lengths of pools count as looked at first, whether or not a run asked for them.
//!
//! A run that contradicts the tree shows that recovery is *not* deterministic. Then nothing that the tree says
//! can be relied on; the caller stops using it.

use persistency::line::LineId;
use persistency::states::CrashState;
use rustc_hash::FxHashMap;

use super::cache::{Held, SeenCache};
use super::intern::Interner;
use crate::image::LineBytes;
use crate::recovery::{Read, Verdict};
use crate::view::PointView;

/// How large the tree may grow. When it is full it goes on answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenLimits {
    /// Looks in all paths together; eight bytes each.
    pub looks: usize,
    /// Different contents of lines; about a hundred bytes each.
    pub contents: usize,
}

impl Default for SeenLimits {
    fn default() -> Self {
        SeenLimits { looks: 48 << 20, contents: 4 << 20 }
    }
}

/// A state's fate, known without a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    pub verdict: Verdict,
    /// The dirty lines of the point that recovery would look at, in order.
    pub dirty_reads: Vec<LineId>,
}

/// What became of a run that was to be remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    New,
    /// Another run had shown the same.
    Known,
    /// There is no room.
    Full,
}

/// Two runs saw the same and went on differently.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error(
        "recovery is not deterministic: after the same {after} looks at PM one run went on with {one} and another with {other}"
    )]
    Reads { after: usize, one: String, other: String },
    #[error(
        "recovery is not deterministic: two runs read the same from PM, one ended with `{one}` and another with `{other}`"
    )]
    Verdicts { one: String, other: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    look: u32,
    content: u32,
}

#[derive(Debug)]
struct Node {
    /// Looks with a single known content each.
    steps: Vec<Step>,
    end: End,
}

#[derive(Debug)]
enum End {
    /// The number of a verdict.
    Leaf(u32),
    Branch {
        look: u32,
        /// By content.
        children: FxHashMap<u32, usize>,
    },
}

/// The tree.
#[derive(Debug, Default)]
pub struct Seen {
    looks: Interner<Read>,
    contents: Interner<LineBytes>,
    /// The first is the root; empty as long as nothing was inserted.
    nodes: Vec<Node>,
    verdicts: Vec<Verdict>,
    numbers: FxHashMap<Verdict, u32>,
    steps: usize,
    limits: SeenLimits,
}

impl Seen {
    pub fn new(limits: SeenLimits) -> Self {
        Seen { limits, ..Seen::default() }
    }

    pub(super) fn look(&self, look: Read) -> Option<u32> {
        self.looks.find(&look)
    }

    pub(super) fn look_at(&self, number: u32) -> Read {
        self.looks.get(number)
    }

    pub(super) fn looks_from(&self, first: usize) -> &[Read] {
        self.looks.values_from(first)
    }

    pub(super) fn content(&self, bytes: &LineBytes) -> Option<u32> {
        self.contents.find(bytes)
    }

    /// The verdict of a state that recovery cannot tell from one that was run.
    pub fn lookup(&self, cache: &mut SeenCache, view: &PointView<'_>, state: &CrashState) -> Option<Decided> {
        cache.grow(self, view);
        let mut dirty_reads = Vec::new();
        let mut node = self.nodes.first()?;
        loop {
            for step in &node.steps {
                let same = match cache.held(self, view, state, step.look) {
                    Held::Number(number) => number == step.content,
                    Held::Varying(bytes) => {
                        self.note_dirty(step.look, &mut dirty_reads);
                        bytes == self.contents.get(step.content)
                    }
                    Held::New(_) => false,
                };
                if !same {
                    return None;
                }
            }
            match &node.end {
                End::Leaf(verdict) => {
                    return Some(Decided { verdict: self.verdicts[*verdict as usize].clone(), dirty_reads });
                }
                End::Branch { look, children } => {
                    let content = match cache.held(self, view, state, *look) {
                        Held::Number(number) => number,
                        Held::Varying(bytes) => {
                            self.note_dirty(*look, &mut dirty_reads);
                            self.contents.find(&bytes)?
                        }
                        Held::New(_) => return None,
                    };
                    node = &self.nodes[*children.get(&content)?];
                }
            }
        }
    }

    fn note_dirty(&self, look: u32, dirty_reads: &mut Vec<LineId>) {
        if let Read::Line(line) = self.looks.get(look) {
            dirty_reads.push(line);
        }
    }

    /// Remembers a run: what it read, in order, and its verdict.
    pub fn insert(
        &mut self,
        cache: &mut SeenCache,
        view: &PointView<'_>,
        state: &CrashState,
        reads: &[Read],
        verdict: &Verdict,
    ) -> Result<Inserted, Contradiction> {
        let Some(path) = self.path(cache, view, state, reads) else { return Ok(Inserted::Full) };
        if self.nodes.is_empty() {
            return Ok(self.leaf(&path, verdict).map_or(Inserted::Full, |_| Inserted::New));
        }
        let (mut node, mut at) = (0, 0);
        loop {
            let steps = &self.nodes[node].steps;
            let differs = steps.iter().zip(&path[at..]).position(|(known, own)| known != own);
            match differs {
                Some(after) if steps[after].look != path[at + after].look => {
                    return Err(self.reads_differ(at + after, Some(steps[after].look), path.get(at + after)));
                }
                Some(after) => return Ok(self.split(node, after, &path[at + after..], verdict)),
                None if path.len() - at < steps.len() => {
                    return Err(self.reads_differ(path.len(), Some(steps[path.len() - at].look), None));
                }
                None => at += steps.len(),
            }
            match &self.nodes[node].end {
                End::Leaf(known) => {
                    let known = &self.verdicts[*known as usize];
                    return match path.get(at) {
                        Some(own) => Err(self.reads_differ(at, None, Some(own))),
                        None if known.agrees(verdict) => Ok(Inserted::Known),
                        None => Err(Contradiction::Verdicts { one: describe(known), other: describe(verdict) }),
                    };
                }
                End::Branch { look, children } => {
                    let Some(own) = path.get(at).filter(|own| own.look == *look) else {
                        return Err(self.reads_differ(at, Some(*look), path.get(at)));
                    };
                    match children.get(&own.content) {
                        Some(&child) => node = child,
                        None => {
                            let content = own.content;
                            let Some(new) = self.leaf(&path[at + 1..], verdict) else { return Ok(Inserted::Full) };
                            if let End::Branch { children, .. } = &mut self.nodes[node].end {
                                children.insert(content, new);
                            }
                            return Ok(Inserted::New);
                        }
                    }
                    at += 1;
                }
            }
        }
    }

    /// The looks of a run by number; none if there are too many.
    fn path(
        &mut self,
        cache: &mut SeenCache,
        view: &PointView<'_>,
        state: &CrashState,
        reads: &[Read],
    ) -> Option<Vec<Step>> {
        let lengths = view.guaranteed().pools().map(Read::Length);
        let lines = reads.iter().copied().filter(|read| matches!(read, Read::Line(_)));
        let mut path = Vec::with_capacity(reads.len() + 1);
        for read in lengths.chain(lines) {
            let look = self.looks.add(read)?;
            cache.grow(self, view);
            let content = match cache.held(self, view, state, look) {
                Held::Number(number) => number,
                Held::Varying(bytes) | Held::New(bytes) => {
                    if self.contents.len() >= self.limits.contents && self.contents.find(&bytes).is_none() {
                        return None;
                    }
                    self.contents.add(bytes)?
                }
            };
            path.push(Step { look, content });
        }
        Some(path)
    }

    /// A new node that ends a path; none if there is no room.
    fn leaf(&mut self, steps: &[Step], verdict: &Verdict) -> Option<usize> {
        if self.steps + steps.len() > self.limits.looks {
            return None;
        }
        self.steps += steps.len();
        let number = match self.numbers.get(verdict) {
            Some(&known) => known,
            None => {
                let number = self.verdicts.len() as u32;
                self.verdicts.push(verdict.clone());
                self.numbers.insert(verdict.clone(), number);
                number
            }
        };
        self.nodes.push(Node { steps: steps.to_vec(), end: End::Leaf(number) });
        Some(self.nodes.len() - 1)
    }

    /// Puts a branch after the first `after` steps of a node. `own` begins with the look that has another content.
    fn split(&mut self, node: usize, after: usize, own: &[Step], verdict: &Verdict) -> Inserted {
        let Some(new) = self.leaf(&own[1..], verdict) else { return Inserted::Full };
        let mut rest = self.nodes[node].steps.split_off(after);
        let known = rest.remove(0);
        rest.shrink_to_fit();
        let moved = self.nodes.len();
        let children = FxHashMap::from_iter([(known.content, moved), (own[0].content, new)]);
        let end = std::mem::replace(&mut self.nodes[node].end, End::Branch { look: known.look, children });
        self.nodes[node].steps.shrink_to_fit();
        self.nodes.push(Node { steps: rest, end });
        Inserted::New
    }

    fn reads_differ(&self, after: usize, known: Option<u32>, own: Option<&Step>) -> Contradiction {
        let name = |look: Option<u32>| match look.map(|look| self.looks.get(look)) {
            Some(Read::Line(line)) => format!("line {} of pool {}", line.line.0, line.pool.0),
            Some(Read::Length(pool)) => format!("the length of pool {}", pool.0),
            None => "no more".to_owned(),
        };
        Contradiction::Reads { after, one: name(known), other: name(own.map(|own| own.look)) }
    }
}

fn describe(verdict: &Verdict) -> String {
    if verdict.pass { "pass".to_owned() } else { verdict.symptom.key.clone() }
}
