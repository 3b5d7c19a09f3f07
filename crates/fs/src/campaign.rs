//! Fuzzed workloads driven by coverage: workloads that made the file system do something new to PM have children (Chipmunk §3.4;
//! what counts as new is that of PMFuzz §4.3, transitions between PM operations).

use std::collections::HashSet;

use crate::generate::Generator;
use crate::workload::Workload;

/// A transition between two PM operations of a file system, by their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transition(pub u64);

/// Makes workloads, and keeps those that are worth a crash.
#[derive(Clone, Debug)]
pub struct Campaign {
    generator: Generator,
    made: u64,
    parents: Vec<Workload>,
    known: HashSet<Transition>,
}

impl Campaign {
    pub fn new(generator: Generator) -> Campaign {
        Campaign { generator, made: 0, parents: Vec::new(), known: HashSet::new() }
    }

    /// The next workloads: two of three are children, if there are parents.
    pub fn next(&mut self, count: usize) -> Vec<Workload> {
        let make = |_| {
            let number = self.made;
            self.made += 1;
            match &self.parents[..] {
                parents if !parents.is_empty() && !number.is_multiple_of(3) => self.generator.child(parents, number),
                _ => self.generator.workload(number),
            }
        };
        (0..count).map(make).collect()
    }

    /// Those that did something new, given what each did; they become parents.
    pub fn keep(&mut self, workloads: Vec<(Workload, Vec<Transition>)>) -> Vec<Workload> {
        let mut kept = Vec::new();
        for (workload, transitions) in workloads {
            let before = self.known.len();
            self.known.extend(transitions);
            if self.known.len() > before {
                self.parents.push(workload.clone());
                kept.push(workload);
            }
        }
        kept
    }

    pub fn made(&self) -> u64 {
        self.made
    }

    pub fn transitions(&self) -> usize {
        self.known.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_new_is_kept_and_has_children() {
        let mut campaign = Campaign::new(Generator { seed: 3, operations: 6, fsync: false });
        let first = campaign.next(3);
        assert!(first.iter().all(|workload| !workload.steps.is_empty()));
        let did = [vec![Transition(1)], vec![Transition(1)], vec![Transition(1), Transition(2)]];
        let kept = campaign.keep(first.iter().cloned().zip(did).collect());
        assert_eq!(kept, [first[0].clone(), first[2].clone()]);
        assert_eq!((campaign.transitions(), campaign.made()), (2, 3));
        let children = campaign.next(30);
        let grew = |workload: &Workload| workload.name.contains('+');
        assert!(children.iter().filter(|workload| grew(workload)).count() >= 20);
        let mut again = Campaign::new(Generator { seed: 3, operations: 6, fsync: false });
        assert_eq!(again.next(3), first, "the same seed makes the same workloads");
    }
}
