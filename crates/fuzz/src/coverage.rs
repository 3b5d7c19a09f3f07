//! What runs have covered, and what a run adds to it.
//!
//! PMFuzz §4.3, Algorithm 2: a transition between PM operations that no run has made is of high priority; one that was made, but never
//! about so often, of medium priority; a run with nothing of this is kept only if its edges are new. Counters are compared by
//! class, as AFL does: 1, 2, 3, 4–7, 8–15, 16–31, 32–127, 128 and more.

use serde::{Deserialize, Serialize};
use wire::cover::{COVER_BYTES, EDGES};

/// How much a case is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// New edges only.
    Low,
    /// A PM transition was made about so often for the first time.
    Medium,
    /// A PM transition was made for the first time.
    High,
}

/// The class of a counter, as one bit; 0: never.
pub const fn class(counter: u8) -> u8 {
    match counter {
        0 => 0,
        1 => 1,
        2 => 2,
        3 => 4,
        4..=7 => 8,
        8..=15 => 16,
        16..=31 => 32,
        32..=127 => 64,
        128..=255 => 128,
    }
}

const CLASSES: [u8; 256] = {
    let mut classes = [0; 256];
    let mut counter = 0;
    while counter < 256 {
        classes[counter] = class(counter as u8);
        counter += 1;
    }
    classes
};

/// Counters that a run has left: place in both maps (edges first), and class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Trail {
    pub counters: Vec<(u32, u8)>,
}

impl Trail {
    /// Of the maps of a run.
    pub fn of(maps: &[u8]) -> Trail {
        let mut counters = Vec::new();
        let (words, _) = maps.as_chunks::<8>();
        for (number, word) in words.iter().enumerate() {
            // Nearly all are empty.
            if u64::from_le_bytes(*word) == 0 {
                continue;
            }
            let at = number * 8;
            counters.extend(
                word.iter()
                    .enumerate()
                    .filter(|(_, counter)| **counter != 0)
                    .map(|(within, counter)| ((at + within) as u32, CLASSES[usize::from(*counter)])),
            );
        }
        Trail { counters }
    }

    pub fn pm(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.counters.iter().copied().filter(|(at, _)| *at as usize >= EDGES)
    }

    pub fn edges(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.counters.iter().copied().filter(|(at, _)| (*at as usize) < EDGES)
    }

    /// A number that is the same for the same trail.
    pub fn fingerprint(&self) -> u64 {
        let bytes: Vec<u8> =
            self.counters.iter().flat_map(|(at, class)| at.to_le_bytes().into_iter().chain([*class])).collect();
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }
}

/// What a run adds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct News {
    pub pm_transitions: u32,
    pub pm_classes: u32,
    pub edges: u32,
    pub edge_classes: u32,
}

impl News {
    /// None: nothing.
    pub fn priority(&self) -> Option<Priority> {
        match self {
            News { pm_transitions: 1.., .. } => Some(Priority::High),
            News { pm_classes: 1.., .. } => Some(Priority::Medium),
            News { edges: 1.., .. } | News { edge_classes: 1.., .. } => Some(Priority::Low),
            _ => None,
        }
    }
}

/// The classes of every counter that runs have had.
#[derive(Clone)]
pub struct Covered {
    classes: Vec<u8>,
    pub pm_transitions: usize,
    pub edges: usize,
}

impl std::fmt::Debug for Covered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Covered({} PM transitions, {} edges)", self.pm_transitions, self.edges)
    }
}

impl Default for Covered {
    fn default() -> Self {
        Covered { classes: vec![0; COVER_BYTES], pm_transitions: 0, edges: 0 }
    }
}

impl Covered {
    /// For other machines.
    pub fn bytes(&self) -> &[u8] {
        &self.classes
    }

    /// What [`bytes`](Self::bytes) gave; none: it is of something else.
    pub fn of(classes: Vec<u8>) -> Option<Covered> {
        let count = |classes: &[u8]| classes.iter().filter(|class| **class != 0).count();
        let (edges, pm) = classes.split_at_checked(EDGES).filter(|_| classes.len() == COVER_BYTES)?;
        Some(Covered { edges: count(edges), pm_transitions: count(pm), classes })
    }

    /// Was a counter of this place in this class?
    pub fn has(&self, (at, class): (u32, u8)) -> bool {
        self.classes[at as usize] & class != 0
    }

    /// What the trail has that nothing before had.
    pub fn news(&self, trail: &Trail) -> News {
        let mut news = News::default();
        for &(at, class) in &trail.counters {
            let known = self.classes[at as usize];
            if known & class != 0 {
                continue;
            }
            *match ((at as usize) < EDGES, known == 0) {
                (true, true) => &mut news.edges,
                (true, false) => &mut news.edge_classes,
                (false, true) => &mut news.pm_transitions,
                (false, false) => &mut news.pm_classes,
            } += 1;
        }
        news
    }

    /// Takes the trail in.
    pub fn add(&mut self, trail: &Trail) {
        for &(at, class) in &trail.counters {
            let known = &mut self.classes[at as usize];
            if *known == 0 {
                *if (at as usize) < EDGES { &mut self.edges } else { &mut self.pm_transitions } += 1;
            }
            *known |= class;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(counters: &[(usize, u8)]) -> Trail {
        let mut maps = vec![0; COVER_BYTES];
        for (at, counter) in counters {
            maps[*at] = *counter;
        }
        Trail::of(&maps)
    }

    #[test]
    fn priorities_are_those_of_the_paper() {
        let mut covered = Covered::default();
        let news = covered.news(&maps(&[(7, 1), (EDGES + 3, 2)]));
        assert_eq!(news, News { pm_transitions: 1, edges: 1, ..News::default() });
        assert_eq!(news.priority(), Some(Priority::High));
        covered.add(&maps(&[(7, 1), (EDGES + 3, 2)]));
        assert_eq!(covered.news(&maps(&[(7, 1), (EDGES + 3, 2)])).priority(), None);
        assert_eq!(covered.news(&maps(&[(EDGES + 3, 3)])).priority(), Some(Priority::Medium));
        assert_eq!(covered.news(&maps(&[(8, 1)])).priority(), Some(Priority::Low));
        assert_eq!(covered.news(&maps(&[(7, 200)])).priority(), Some(Priority::Low));
        assert_eq!((covered.pm_transitions, covered.edges), (1, 1));
    }

    #[test]
    fn what_was_covered_arrives_elsewhere() {
        let mut covered = Covered::default();
        covered.add(&maps(&[(7, 1), (9, 3), (EDGES + 3, 2)]));
        let there = Covered::of(covered.bytes().to_vec()).unwrap();
        assert_eq!((there.pm_transitions, there.edges), (1, 2));
        assert_eq!(there.bytes(), covered.bytes());
        assert!(Covered::of(vec![0; 3]).is_none());
    }

    #[test]
    fn every_counter_has_one_class() {
        assert!((1..=255u8).all(|counter| class(counter).is_power_of_two()));
        assert!((1..255u8).all(|counter| class(counter) <= class(counter + 1)));
    }
}
