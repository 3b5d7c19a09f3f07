//! Operations of a grammar, one line each. Mutations know what an operation is, and which keys those before it have used: most mutants
//! are workloads that somebody could have written.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

use operation::grammar::{Grammar, Hole, OperationKind, Piece};
use operation::text;

use super::Inputs;
use crate::random::Random;

/// Most operations of one input. More grow from the pool that they leave.
const MOST: usize = 600;
/// Of a first input.
const FIRST: usize = 12;

/// Operations of a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operations {
    grammar: Grammar,
}

/// Keys, each with the kind of the operation that named it last.
type Keys = BTreeMap<u64, usize>;

/// One operation; lines that the grammar does not know are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum OperationLine {
    Known { kind: usize, numbers: Vec<u64> },
    Other(Vec<u8>),
}

impl Operations {
    pub fn new(grammar: Grammar) -> Operations {
        Operations { grammar }
    }

    /// For operations without a grammar: lines that differ only in their numbers are of one kind.
    pub fn like(lines: &[u8]) -> Option<Operations> {
        let mut templates: BTreeMap<String, Vec<Piece>> = BTreeMap::new();
        for line in String::from_utf8_lossy(lines).lines() {
            let pieces = taken_apart(line);
            templates.insert(format!("{pieces:?}"), pieces);
        }
        let kinds = templates.into_values().map(|template| OperationKind { name: String::new(), template, weight: 1 });
        let kinds: Vec<OperationKind> = kinds.collect();
        let grammar =
            Grammar { kinds, queries: Vec::new(), order: None, separator: None, keys: 1 << 20, values: 1 << 30 };
        (!grammar.kinds.is_empty()).then_some(Operations { grammar })
    }

    /// What the grammar calls each operation; empty for those that it does not know.
    pub fn kinds(&self, input: &[u8]) -> Vec<String> {
        let name = |line: &OperationLine| match line {
            OperationLine::Known { kind, .. } => self.grammar.kinds[*kind].name.clone(),
            OperationLine::Other(_) => String::new(),
        };
        self.read(input).iter().map(name).collect()
    }

    fn read(&self, input: &[u8]) -> Vec<OperationLine> {
        let input = input.strip_suffix(b"\n").unwrap_or(input);
        if input.is_empty() {
            return Vec::new();
        }
        input.split(|byte| *byte == b'\n').map(|line| self.read_line(line)).collect()
    }

    fn read_line(&self, line: &[u8]) -> OperationLine {
        let known = std::str::from_utf8(line).ok().and_then(|text| {
            let fits = |(kind, of): (usize, &OperationKind)| Some((kind, numbers(&of.template, text)?));
            self.grammar.kinds.iter().enumerate().find_map(fits)
        });
        match known {
            Some((kind, numbers)) => OperationLine::Known { kind, numbers },
            None => OperationLine::Other(line.to_vec()),
        }
    }

    fn write(&self, lines: &[OperationLine]) -> Vec<u8> {
        let mut text = Vec::new();
        for line in lines {
            match line {
                OperationLine::Known { kind, numbers } => {
                    text.extend_from_slice(filled(&self.grammar.kinds[*kind].template, numbers).as_bytes());
                }
                OperationLine::Other(line) => text.extend_from_slice(line),
            }
            text.push(b'\n');
        }
        text
    }

    fn holes(&self, kind: usize) -> impl Iterator<Item = Hole> + '_ {
        self.grammar.kinds[kind].template.iter().filter_map(|piece| match piece {
            Piece::Hole(hole) => Some(*hole),
            Piece::Text(_) => None,
        })
    }

    /// Keys that these operations name, each with the kind that named it last.
    fn keys(&self, lines: &[OperationLine]) -> Keys {
        self.keys_after(&Keys::new(), lines)
    }

    fn keys_after(&self, before: &Keys, lines: &[OperationLine]) -> Keys {
        let mut keys = before.clone();
        for line in lines {
            let OperationLine::Known { kind, numbers } = line else { continue };
            for (hole, number) in self.holes(*kind).zip(numbers) {
                if !matches!(hole, Hole::Value | Hole::Text(_)) {
                    keys.insert(*number, *kind);
                }
            }
        }
        keys
    }

    /// An operation that may come after those that name these keys.
    fn made(&self, keys: &Keys, random: &mut Random) -> OperationLine {
        let weights: u64 = self.grammar.kinds.iter().map(|kind| u64::from(kind.weight)).sum();
        let mut left = random.below(weights);
        let chosen = self.grammar.kinds.iter().position(|kind| {
            let here = left < u64::from(kind.weight);
            left = left.saturating_sub(u64::from(kind.weight));
            here
        });
        let kind = chosen.unwrap_or(0);
        let numbers = self.holes(kind).map(|hole| self.number(hole, keys, random)).collect();
        OperationLine::Known { kind, numbers }
    }

    fn number(&self, hole: Hole, keys: &Keys, random: &mut Random) -> u64 {
        let fresh = |random: &mut Random| match random.below(4) {
            // Small keys meet each other.
            0 => random.below(self.grammar.keys.min(64)),
            1 => self.beside(keys, random),
            _ => random.below(self.grammar.keys),
        };
        match hole {
            Hole::Text(letters) => random.below(text::texts(letters)),
            Hole::Value => match random.below(4) {
                0 => random.below(self.grammar.values.min(4)),
                1 => self.grammar.values.saturating_sub(1 + random.below(2)),
                _ => random.below(self.grammar.values),
            },
            // Now and then one that is there: the program must refuse it.
            Hole::NewKey => match random.below(8) {
                0 => self.used(keys, random),
                _ => fresh(random),
            },
            Hole::Key => match random.below(8) {
                0 => fresh(random),
                _ => self.used(keys, random),
            },
            Hole::AnyKey => match random.below(2) {
                0 => fresh(random),
                _ => self.used(keys, random),
            },
        }
    }

    /// A key whose last operation was of some kind: one that was inserted, or removed, or read.
    fn used(&self, keys: &Keys, random: &mut Random) -> u64 {
        let kind = random.index(self.grammar.kinds.len());
        let of_kind: Vec<u64> = keys.iter().filter(|(_, last)| **last == kind).map(|(key, _)| *key).collect();
        let all: Vec<u64> = keys.keys().copied().collect();
        match random.pick(&of_kind).or_else(|| random.pick(&all)) {
            Some(key) => *key,
            None => random.below(self.grammar.keys),
        }
    }

    /// Next to a key that was used, or one that shares its low bits: they meet in nodes and in buckets.
    fn beside(&self, keys: &Keys, random: &mut Random) -> u64 {
        let key = self.used(keys, random);
        let key = match random.below(4) {
            0 => key.wrapping_add(1),
            1 => key.wrapping_sub(1),
            _ => key.wrapping_add(1 << random.below(12)),
        };
        key % self.grammar.keys
    }

    /// Mutates `lines`, which come after operations that name the keys `before`.
    fn once(&self, before: &Keys, lines: &mut Vec<OperationLine>, other: &[u8], random: &mut Random) {
        let len = lines.len();
        let at = random.index(len + 1);
        match random.below(10) {
            // Insert.
            0 | 1 => {
                for number in 0..random.small(4) {
                    let at = (at + number).min(lines.len());
                    let made = self.made(&self.keys_after(before, &lines[..at]), random);
                    lines.insert(at, made);
                }
            }
            // Drop.
            2 if len > 1 => drop(lines.drain(range(len, random))),
            // Repeat.
            3 if len > 0 => {
                let copy = lines[range(len, random)].to_vec();
                lines.splice(at..at, copy);
            }
            // Move.
            4 if len > 1 => {
                let moved: Vec<OperationLine> = lines.drain(range(len, random)).collect();
                let at = random.index(lines.len() + 1);
                lines.splice(at..at, moved);
            }
            // Splice.
            5 => {
                let other = self.read(other);
                if !other.is_empty() {
                    let part = other[range(other.len(), random)].to_vec();
                    lines.truncate(at);
                    lines.extend(part);
                }
            }
            // Another key or value.
            6 | 7 if len > 0 => {
                let at = random.index(len);
                let keys = self.keys_after(before, &lines[..at]);
                let OperationLine::Known { kind, numbers } = &lines[at] else { return };
                let (kind, mut numbers) = (*kind, numbers.clone());
                let hole = random.index(numbers.len());
                if let Some(what) = self.holes(kind).nth(hole) {
                    numbers[hole] = self.number(what, &keys, random);
                }
                lines[at] = OperationLine::Known { kind, numbers };
            }
            // Grow until something gives: as much again, of new operations.
            8 => {
                let mut keys = self.keys_after(before, lines);
                for _ in 0..random.small(len.max(FIRST)) {
                    let made = self.made(&keys, random);
                    keys = self.keys_after(&keys, std::slice::from_ref(&made));
                    lines.push(made);
                }
            }
            // Many of one kind, on the keys that are there: empty it, or fill it.
            _ => {
                let kind = random.index(self.grammar.kinds.len());
                let keys: Vec<u64> = self.keys_after(before, lines).into_keys().collect();
                let from = random.index(keys.len());
                for key in keys.into_iter().skip(from).take(random.small(64)) {
                    let known = BTreeMap::from([(key, kind)]);
                    let numbers = self.holes(kind).map(|hole| match hole {
                        Hole::Value | Hole::Text(_) => self.number(hole, &known, random),
                        _ => key,
                    });
                    let numbers = numbers.collect();
                    lines.push(OperationLine::Known { kind, numbers });
                }
            }
        }
    }
}

impl Inputs for Operations {
    fn first(&self, random: &mut Random) -> Vec<u8> {
        let mut lines = Vec::new();
        for _ in 0..FIRST {
            let made = self.made(&self.keys(&lines), random);
            lines.push(made);
        }
        self.write(&lines)
    }

    fn mutate(&self, input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
        self.mutate_after(input, 0, other, random)
    }

    fn mutate_after(&self, input: &[u8], kept: usize, other: &[u8], random: &mut Random) -> Vec<u8> {
        let (head, tail) = input.split_at(kept);
        let (before, mut lines) = (self.read(head), self.read(tail));
        let keys = self.keys(&before);
        for _ in 0..random.small(4) {
            self.once(&keys, &mut lines, other, random);
        }
        lines.truncate(MOST.saturating_sub(before.len()).max(1));
        if lines.is_empty() {
            let made = self.made(&keys, random);
            lines.push(made);
        }
        [head, &self.write(&lines)].concat()
    }

    fn parts(&self, input: &[u8]) -> Vec<Range<usize>> {
        let mut start = 0;
        let ends = input.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let mut parts: Vec<Range<usize>> = ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
        if start < input.len() {
            parts.push(start..input.len());
        }
        parts
    }

    fn readback(&self, inputs: &[&[u8]]) -> Vec<u8> {
        let lines: Vec<OperationLine> = inputs.iter().flat_map(|input| self.read(input)).collect();
        let keys: Vec<u64> = self.keys(&lines).into_keys().collect();
        let mut text = String::new();
        for query in &self.grammar.queries {
            let per_key = query.iter().any(|piece| matches!(piece, Piece::Hole(_)));
            for key in if per_key { &keys[..] } else { &[0][..] } {
                text.push_str(&filled(query, &vec![*key; query.len()]));
                text.push('\n');
            }
        }
        text.into_bytes()
    }
}

/// Some of `len` in a row, not all unless there is one.
fn range(len: usize, random: &mut Random) -> Range<usize> {
    let at = random.index(len);
    at..(at + random.small((len / 2).max(1))).min(len)
}

fn filled(template: &[Piece], numbers: &[u64]) -> String {
    let (mut line, mut numbers) = (String::new(), numbers.iter());
    for piece in template {
        match piece {
            Piece::Text(part) => line.push_str(part),
            Piece::Hole(Hole::Text(letters)) => line.push_str(&text::text(*letters, *numbers.next().unwrap_or(&0))),
            Piece::Hole(_) => write!(line, "{}", numbers.next().unwrap_or(&0)).expect("a string takes everything"),
        }
    }
    line
}

/// The numbers in the holes, if the line is of this kind.
fn numbers(template: &[Piece], line: &str) -> Option<Vec<u64>> {
    let (mut rest, mut numbers) = (line, Vec::new());
    for piece in template {
        match piece {
            Piece::Text(text) => rest = rest.strip_prefix(text.as_str())?,
            Piece::Hole(Hole::Text(letters)) => {
                let (number, after) = text::number(*letters, rest)?;
                numbers.push(number);
                rest = after;
            }
            Piece::Hole(_) => {
                let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                numbers.push(rest[..digits].parse().ok()?);
                rest = &rest[digits..];
            }
        }
    }
    rest.is_empty().then_some(numbers)
}

/// The first number of a line is a key, further ones are values.
fn taken_apart(line: &str) -> Vec<Piece> {
    let (mut pieces, mut rest, mut keyed) = (Vec::new(), line, false);
    while let Some(at) = rest.find(|c: char| c.is_ascii_digit()) {
        if at > 0 {
            pieces.push(Piece::Text(rest[..at].into()));
        }
        pieces.push(Piece::Hole(if keyed { Hole::Value } else { Hole::AnyKey }));
        keyed = true;
        let rest_at = rest[at..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |len| at + len);
        rest = &rest[rest_at..];
    }
    if !rest.is_empty() {
        pieces.push(Piece::Text(rest.into()));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    const KV: &str = "[operations]\ninsert = \"i {newkey} {value}\"\ndelete = \"d {key}\"\ncount = \"n\"\n\
                      [readback]\nqueries = [\"g {key}\", \"n\"]\n[keys]\nrange = 1000";

    fn operations() -> Operations {
        Operations::new(Grammar::parse(KV).unwrap())
    }

    #[test]
    fn every_mutant_is_made_of_operations() {
        let operations = operations();
        let mut random = Random::new(3);
        let mut input = operations.first(&mut random);
        let other = operations.first(&mut random);
        let mut longest = 0;
        for round in 0..3000 {
            input = operations.mutate(&input, &other, &mut random);
            let lines = operations.read(&input);
            longest = longest.max(lines.len());
            assert!(!lines.is_empty() && lines.len() <= MOST, "round {round}");
            assert!(
                lines.iter().all(|line| matches!(line, OperationLine::Known { .. })),
                "{}",
                String::from_utf8_lossy(&input)
            );
            assert_eq!(operations.write(&lines), input);
        }
        assert!(longest > 100, "it never grew beyond {longest}");
    }

    #[test]
    fn lines_of_others_are_kept() {
        let operations = operations();
        assert_eq!(operations.write(&operations.read(b"i 1 2\nwhat?\nd 1\n")), b"i 1 2\nwhat?\nd 1\n");
        assert_eq!(operations.parts(b"i 1 2\nd 1"), [0..6, 6..9]);
        assert_eq!(operations.readback(&[b"i 7 2\n", b"d 3\n"]), b"g 3\ng 7\nn\n");
    }

    #[test]
    fn a_grammar_is_made_of_lines() {
        let operations = Operations::like(b"set 5 x7\nset 9 x1\nget 5\nflush\n").unwrap();
        assert_eq!(operations.grammar.kinds.len(), 3);
        assert!(matches!(operations.read_line(b"set 123 x4"), OperationLine::Known { .. }));
    }
}
