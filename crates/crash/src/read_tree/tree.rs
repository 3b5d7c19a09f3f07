//! Equivalence by what recovery read, as a decision tree.
//!
//! Recovery is deterministic (docs/design/recovery.md, "Equivalence"): what it looks at next is a function of what it has seen. So
//! all runs together are a tree. A node says which line is looked at next; its edges are contents of that line; a
//! leaf is a verdict. A state is followed down the tree, and if it comes to a leaf, that verdict is its own: recovery could not
//! have told it from the run that made the leaf.
//!
//! Contents are compared exactly: each different line of 64 bytes gets a number. Sequences without a branch are lists
//! of [chunks](super::chunks), which runs share. Lengths of pools count as looked at first, whether or not a run asked for them.
//!
//! A run that contradicts the tree shows that recovery is *not* deterministic. Then nothing that the tree says
//! can be relied on; the caller stops using it.

use persistency::line::LineId;
use persistency::states::CrashState;
use rustc_hash::FxHashMap;

use super::cache::{Held, Passage, ReadTreeCache};
use super::chunks::{ChunkId, Chunks, ReadStep};
use super::intern::Interner;
use super::known_runs::{KnownRuns, RunsWriter};
use crate::image::LineBytes;
use crate::view::PointView;
use verdict::contradiction::Contradiction;
use verdict::read::Read;
use verdict::verdict::Verdict;

/// How large the tree may grow. When it is full it goes on answering.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadTreeLimits {
    /// Looks that are kept; about 20 bytes each.
    pub looks: usize,
    /// Different contents of lines; about a hundred bytes each.
    pub contents: usize,
}

impl Default for ReadTreeLimits {
    fn default() -> Self {
        ReadTreeLimits { looks: 16 << 20, contents: 4 << 20 }
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

#[derive(Debug)]
struct Node {
    /// Looks with a single known content each.
    chunks: Vec<ChunkId>,
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
pub struct ReadTree {
    looks: Interner<Read>,
    contents: Interner<LineBytes>,
    /// The first is the root; empty as long as nothing was inserted.
    nodes: Vec<Node>,
    verdicts: Vec<Verdict>,
    numbers: FxHashMap<Verdict, u32>,
    chunks: Chunks,
    /// Chunks in all nodes together.
    listed: usize,
    /// By look, the one that came after it last time: likely to come again.
    followers: Vec<u32>,
    /// The looks of new runs with their verdicts, for others; none: nobody wants them.
    news: Option<Vec<(Vec<ReadStep>, u32)>>,
    limits: ReadTreeLimits,
}

impl ReadTree {
    pub fn new(limits: ReadTreeLimits) -> Self {
        ReadTree { limits, ..ReadTree::default() }
    }

    /// Has a run looked at a line, and not only at lengths?
    pub fn has_lines(&self) -> bool {
        self.looks_from(0).iter().any(|look| matches!(look, Read::Line(_)))
    }

    /// One that [collects](Self::new_runs) what is inserted.
    pub fn sharing(limits: ReadTreeLimits) -> Self {
        ReadTree { limits, news: Some(Vec::new()), ..ReadTree::default() }
    }

    /// What was inserted since the last call.
    pub fn new_runs(&mut self) -> Option<KnownRuns> {
        let news = self.news.as_mut().map(std::mem::take).filter(|news| !news.is_empty())?;
        let mut writer = RunsWriter::default();
        for (path, verdict) in &news {
            let steps = path.iter().map(|step| (self.looks.get(step.look), step.content));
            writer.add(steps, |content| self.contents.get(content), &self.verdicts[*verdict as usize]);
        }
        Some(writer.finish())
    }

    /// Inserts runs of others. What there is no room for is left out.
    pub fn learn(&mut self, runs: &KnownRuns) -> Result<(), Contradiction> {
        // Others have them already.
        let news = self.news.take();
        let exchanged = runs.each(|steps, verdict| match self.path_of(steps) {
            Some(path) => self.insert_path(&path, verdict).map(drop),
            None => Ok(()),
        });
        self.news = news;
        exchanged
    }

    fn path_of(&mut self, steps: &[(Read, LineBytes)]) -> Option<Vec<ReadStep>> {
        let mut path: Vec<ReadStep> = Vec::with_capacity(steps.len());
        for (read, bytes) in steps {
            let look = self.add_look(*read, path.last())?;
            if look as usize >= self.followers.len() {
                self.followers.push(look);
            }
            if self.contents.len() >= self.limits.contents && self.contents.find(bytes).is_none() {
                return None;
            }
            path.push(ReadStep { look, content: self.contents.add(*bytes)? });
        }
        Some(path)
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

    pub(super) fn content_at(&self, number: u32) -> LineBytes {
        self.contents.get(number)
    }

    pub(super) fn steps_of(&self, chunk: ChunkId) -> &[ReadStep] {
        self.chunks.get(chunk)
    }

    pub(super) fn chunk_count(&self) -> usize {
        self.chunks.len()
    }

    pub(super) fn content(&self, bytes: &LineBytes) -> Option<u32> {
        self.contents.find(bytes)
    }

    /// The verdict of a state that recovery cannot tell from one that was run.
    pub fn lookup(&self, cache: &mut ReadTreeCache, view: &PointView<'_>, state: &CrashState) -> Option<Decided> {
        cache.grow(self, view);
        let mut dirty_reads = Vec::new();
        let mut note = |look: Read| {
            if let Read::Line(line) = look {
                dirty_reads.push(line);
            }
        };
        let mut node = self.nodes.first()?;
        loop {
            for &chunk in &node.chunks {
                if matches!(cache.pass(self, view, state, chunk, &mut note), Passage::Stopped) {
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
                            note(self.looks.get(*look));
                            self.contents.find(&bytes)?
                        }
                        Held::New(_) => return None,
                    };
                    node = &self.nodes[*children.get(&content)?];
                }
            }
        }
    }

    /// Remembers a run: what it read, in order, and its verdict.
    pub fn insert(
        &mut self,
        cache: &mut ReadTreeCache,
        view: &PointView<'_>,
        state: &CrashState,
        reads: &[Read],
        verdict: &Verdict,
    ) -> Result<Inserted, Contradiction> {
        let Some(path) = self.path(cache, view, state, reads) else { return Ok(Inserted::Full) };
        let inserted = self.insert_path(&path, verdict);
        if let (Ok(Inserted::New), Some(news)) = (&inserted, &mut self.news) {
            news.push((path, self.numbers[verdict]));
        }
        inserted
    }

    fn insert_path(&mut self, path: &[ReadStep], verdict: &Verdict) -> Result<Inserted, Contradiction> {
        if self.nodes.is_empty() {
            return Ok(self.leaf(path, verdict).map_or(Inserted::Full, |_| Inserted::New));
        }
        let (mut node, mut at) = (0, 0);
        loop {
            for (number, &chunk) in self.nodes[node].chunks.iter().enumerate() {
                let (known, own) = (self.chunks.get(chunk), &path[at..]);
                match known.iter().zip(own).position(|(known, own)| known != own) {
                    Some(after) if known[after].look != own[after].look => {
                        return Err(self.reads_differ(at + after, Some(known[after].look), Some(&own[after])));
                    }
                    Some(after) => return Ok(self.split(node, (number, after), &own[after..], verdict)),
                    None if own.len() < known.len() => {
                        return Err(self.reads_differ(path.len(), Some(known[own.len()].look), None));
                    }
                    None => at += known.len(),
                }
            }
            match &self.nodes[node].end {
                End::Leaf(known) => {
                    let known = &self.verdicts[*known as usize];
                    return match path.get(at) {
                        Some(own) => Err(self.reads_differ(at, None, Some(own))),
                        None if known.agrees(verdict) => Ok(Inserted::Known),
                        None => Err(Contradiction::Verdicts { one: known.clone(), other: verdict.clone() }),
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
        cache: &mut ReadTreeCache,
        view: &PointView<'_>,
        state: &CrashState,
        reads: &[Read],
    ) -> Option<Vec<ReadStep>> {
        // Other workers may have added looks since.
        cache.grow(self, view);
        let lengths = view.guaranteed().pools().map(Read::Length);
        let lines = reads.iter().copied().filter(|read| matches!(read, Read::Line(_)));
        let mut path: Vec<ReadStep> = Vec::with_capacity(reads.len() + 1);
        for read in lengths.chain(lines) {
            let look = self.add_look(read, path.last())?;
            if look as usize >= self.followers.len() {
                self.followers.push(look);
                cache.grow(self, view);
            }
            if let Some(last) = path.last() {
                self.followers[last.look as usize] = look;
            }
            let content = match cache.held(self, view, state, look) {
                Held::Number(number) => number,
                Held::Varying(bytes) | Held::New(bytes) => {
                    if self.contents.len() >= self.limits.contents && self.contents.find(&bytes).is_none() {
                        return None;
                    }
                    self.contents.add(bytes)?
                }
            };
            path.push(ReadStep { look, content });
        }
        Some(path)
    }

    fn add_look(&mut self, read: Read, last: Option<&ReadStep>) -> Option<u32> {
        let guess = last.map(|last| self.followers[last.look as usize]);
        match guess {
            Some(guess) if self.looks.get(guess) == read => Some(guess),
            _ => self.looks.add(read),
        }
    }

    /// A new node that ends a path; none if there is no room.
    fn leaf(&mut self, steps: &[ReadStep], verdict: &Verdict) -> Option<usize> {
        if self.chunks.weight() + self.listed + 4 * self.nodes.len() > self.limits.looks {
            return None;
        }
        let chunks = self.chunks.add(steps);
        self.listed += chunks.len();
        let number = match self.numbers.get(verdict) {
            Some(&known) => known,
            None => {
                let number = self.verdicts.len() as u32;
                self.verdicts.push(verdict.clone());
                self.numbers.insert(verdict.clone(), number);
                number
            }
        };
        self.nodes.push(Node { chunks, end: End::Leaf(number) });
        Some(self.nodes.len() - 1)
    }

    /// Puts a branch into a node, in place of step `after` of its chunk `number`. `own` begins with the look that has
    /// another content.
    fn split(&mut self, node: usize, (number, after): (usize, usize), own: &[ReadStep], verdict: &Verdict) -> Inserted {
        let Some(new) = self.leaf(&own[1..], verdict) else { return Inserted::Full };
        let later = self.nodes[node].chunks.split_off(number);
        let cut = self.chunks.get(later[0]).to_vec();
        let head = self.chunks.add(&cut[..after]);
        let mut rest = self.chunks.add(&cut[after + 1..]);
        rest.extend(&later[1..]);
        self.listed += 2;
        let moved = self.nodes.len();
        let children = FxHashMap::from_iter([(cut[after].content, moved), (own[0].content, new)]);
        let end = std::mem::replace(&mut self.nodes[node].end, End::Branch { look: cut[after].look, children });
        self.nodes[node].chunks.extend(head);
        self.nodes[node].chunks.shrink_to_fit();
        self.nodes.push(Node { chunks: rest, end });
        Inserted::New
    }

    fn reads_differ(&self, after: usize, known: Option<u32>, own: Option<&ReadStep>) -> Contradiction {
        let name = |look: Option<u32>| look.map(|look| self.looks.get(look));
        Contradiction::Reads { after, one: name(known), other: name(own.map(|own| own.look)) }
    }
}
