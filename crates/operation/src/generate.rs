//! Workloads from a grammar: the same for the same seed. As in Witcher §7.1, inserts take new keys, and everything else keys
//! that were used before, so that most operations do something.

use std::fmt::Write;

use crate::grammar::{Grammar, Hole, Piece};
use crate::text;

/// A workload as text, one line per operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Generated {
    pub operations: String,
    pub readback: String,
    /// The name of each operation in the grammar.
    pub kinds: Vec<String>,
}

/// `count` operations.
pub fn generate(grammar: &Grammar, count: usize, seed: u64) -> Generated {
    let mut source = Source { random: Random(seed), used: Vec::new(), grammar };
    let mut operations = String::new();
    let mut kinds = Vec::new();
    for _ in 0..count {
        let kind = source.kind();
        kinds.push(grammar.kinds[kind].name.clone());
        for piece in &grammar.kinds[kind].template {
            match piece {
                Piece::Text(text) => operations.push_str(text),
                Piece::Hole(hole) => source.fill(*hole, &mut operations),
            }
        }
        operations.push('\n');
    }
    Generated { operations, readback: readback(grammar, source.used), kinds }
}

/// Every query, once per used key if it has a key in it.
fn readback(grammar: &Grammar, mut keys: Vec<u64>) -> String {
    keys.sort_unstable();
    keys.dedup();
    let mut readback = String::new();
    for query in &grammar.queries {
        let per_key = query.iter().any(|piece| matches!(piece, Piece::Hole(_)));
        let keys: &[u64] = if per_key { &keys } else { &[0] };
        for key in keys {
            for piece in query {
                match piece {
                    Piece::Text(text) => readback.push_str(text),
                    Piece::Hole(_) => write!(readback, "{key}").expect("a string takes everything"),
                }
            }
            readback.push('\n');
        }
    }
    readback
}

struct Source<'g> {
    random: Random,
    used: Vec<u64>,
    grammar: &'g Grammar,
}

impl Source<'_> {
    /// By weight, of those that are possible now.
    fn kind(&mut self) -> usize {
        let none_used = self.used.is_empty();
        let all_used = self.used.len() as u64 >= self.grammar.keys;
        let weight = |number: usize| {
            let kind = &self.grammar.kinds[number];
            let impossible = none_used && kind.needs(Hole::Key) || all_used && kind.needs(Hole::NewKey);
            if impossible { 0 } else { u64::from(kind.weight) }
        };
        let count = self.grammar.kinds.len();
        let total: u64 = (0..count).map(weight).sum();
        if total == 0 {
            // Every key is used, and only new ones are wanted: they come again.
            return self.random.below(count as u64) as usize;
        }
        let mut left = self.random.below(total);
        (0..count)
            .find(|&number| {
                let weight = weight(number);
                let found = left < weight;
                left = left.saturating_sub(weight);
                found
            })
            .unwrap_or(0)
    }

    fn fill(&mut self, hole: Hole, into: &mut String) {
        let number = match hole {
            Hole::Text(letters) => {
                into.push_str(&text::text(letters, self.random.below(text::texts(letters))));
                return;
            }
            Hole::NewKey => self.new_key(),
            Hole::Key => self.used_key(),
            Hole::AnyKey => {
                if self.used.is_empty() || self.random.below(2) == 0 {
                    self.new_key()
                } else {
                    self.used_key()
                }
            }
            Hole::Value => self.random.below(self.grammar.values),
        };
        write!(into, "{number}").expect("a string takes everything");
    }

    fn used_key(&mut self) -> u64 {
        match self.used.len() as u64 {
            0 => self.random.below(self.grammar.keys),
            count => self.used[self.random.below(count) as usize],
        }
    }

    fn new_key(&mut self) -> u64 {
        const TRIES: usize = 64;
        let mut key = self.random.below(self.grammar.keys);
        for _ in 0..TRIES {
            if !self.used.contains(&key) {
                break;
            }
            key = self.random.below(self.grammar.keys);
        }
        while (self.used.len() as u64) < self.grammar.keys && self.used.contains(&key) {
            key = (key + 1) % self.grammar.keys;
        }
        if !self.used.contains(&key) {
            self.used.push(key);
        }
        key
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const KV: &str = "[operations]\ninsert = \"i {newkey} {value}\"\ndelete = \"d {key}\"\n[weights]\ninsert = 3\n\
                      [readback]\nqueries = [\"g {key}\", \"n\"]\n[keys]\nrange = 100";

    #[test]
    fn inserts_take_new_keys_and_the_rest_used_ones() {
        let made = generate(&Grammar::parse(KV).unwrap(), 60, 7);
        let mut used = BTreeSet::new();
        for line in made.operations.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "i" => assert!(used.insert(words[1].to_owned()), "{line}"),
                _ => assert!(used.contains(words[1]), "{line}"),
            }
        }
        assert_eq!(made.readback.lines().count(), used.len() + 1);
        assert!(made.readback.ends_with("\nn\n"));
    }

    #[test]
    fn a_seed_gives_one_workload() {
        let grammar = Grammar::parse(KV).unwrap();
        assert_eq!(generate(&grammar, 50, 3), generate(&grammar, 50, 3));
        assert_ne!(generate(&grammar, 50, 3), generate(&grammar, 50, 4));
    }

    #[test]
    fn keys_run_out_without_harm() {
        let grammar = Grammar::parse("[operations]\ninsert = \"i {newkey}\"\n[keys]\nrange = 5").unwrap();
        let made = generate(&grammar, 20, 1);
        assert_eq!(made.operations.lines().count(), 20);
        assert_eq!(made.operations.lines().collect::<BTreeSet<_>>().len(), 5);
    }

    #[test]
    fn long_values_are_texts() {
        let grammar = Grammar::parse("[operations]\nput = \"p {newkey} {value:100}\"").unwrap();
        let made = generate(&grammar, 20, 7);
        let texts: BTreeSet<&str> = made.operations.lines().filter_map(|line| line.split(' ').nth(2)).collect();
        assert_eq!(texts.len(), 20);
        assert!(texts.iter().all(|text| text.len() == 100 && text.bytes().all(|byte| byte.is_ascii_lowercase())));
    }
}
