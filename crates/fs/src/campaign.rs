//! Random workloads driven by coverage: workloads that made the file system do something new to PM are mutated (Chipmunk §3.4).
//! As in PMFuzz §4.3, a new transition between PM operations counts as new.

use std::collections::HashSet;

use crate::generate::Generator;
use crate::workload::FsWorkload;

/// A transition between two PM operations of a file system, by their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Transition(pub u64);

/// What a workload did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// Nobody knows in which step.
    Whole(Vec<Transition>),
    /// By step.
    Steps(Vec<Vec<Transition>>),
}

/// Makes workloads, and keeps those that are worth a crash.
#[derive(Clone, Debug)]
pub struct RandomWorkloads {
    generator: Generator,
    made: u64,
    parents: Vec<FsWorkload>,
    known: HashSet<Transition>,
}

impl RandomWorkloads {
    pub fn new(generator: Generator) -> RandomWorkloads {
        RandomWorkloads { generator, made: 0, parents: Vec::new(), known: HashSet::new() }
    }

    /// The next workloads: two of three are children, if there are parents.
    pub fn next(&mut self, count: usize) -> Vec<FsWorkload> {
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

    /// Those that did something new, given what each did; they become parents. Power fails only in steps that did, if it is known
    /// which: a crash elsewhere shows what another workload has shown.
    pub fn keep(&mut self, workloads: Vec<(FsWorkload, Reached)>) -> Vec<FsWorkload> {
        let mut kept = Vec::new();
        for (workload, reached) in workloads {
            let mut crashed = workload.clone();
            let is_new = match reached {
                Reached::Whole(transitions) => self.learn(transitions),
                Reached::Steps(steps) => {
                    for (step, transitions) in crashed.steps.iter_mut().zip(steps) {
                        // What was done only to make something for others is still to be crashed.
                        step.crash = step.crash && self.learn(transitions);
                    }
                    crashed.steps.iter().any(|step| step.crash)
                }
            };
            if is_new {
                self.parents.push(workload);
                kept.push(crashed);
            }
        }
        kept
    }

    /// Is one of them new?
    fn learn(&mut self, transitions: Vec<Transition>) -> bool {
        let before = self.known.len();
        self.known.extend(transitions);
        self.known.len() > before
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
        let mut campaign = RandomWorkloads::new(Generator { seed: 3, operations: 6, fsync: false });
        let first = campaign.next(3);
        assert!(first.iter().all(|workload| !workload.steps.is_empty()));
        let did = [vec![Transition(1)], vec![Transition(1)], vec![Transition(1), Transition(2)]].map(Reached::Whole);
        let kept = campaign.keep(first.iter().cloned().zip(did).collect());
        assert_eq!(kept, [first[0].clone(), first[2].clone()]);
        assert_eq!((campaign.transitions(), campaign.made()), (2, 3));
        let children = campaign.next(30);
        let grew = |workload: &FsWorkload| workload.name.contains('+');
        assert!(children.iter().filter(|workload| grew(workload)).count() >= 20);
        let mut again = RandomWorkloads::new(Generator { seed: 3, operations: 6, fsync: false });
        assert_eq!(again.next(3), first, "the same seed makes the same workloads");
    }

    #[test]
    fn power_fails_where_something_new_is_done() {
        let mut campaign = RandomWorkloads::new(Generator { seed: 3, operations: 6, fsync: false });
        let workloads = FsWorkload::parse_all("workload a\ncreat foo\ncrash unlink foo\ncrash mkdir A\n").unwrap();
        let did = |numbers: [u64; 3]| Reached::Steps(numbers.map(|number| vec![Transition(number)]).to_vec());
        let mut marked = |numbers: [u64; 3]| {
            let kept = campaign.keep(vec![(workloads[0].clone(), did(numbers))]);
            kept.first().map(|workload| workload.steps.iter().map(|step| step.crash).collect::<Vec<_>>())
        };
        assert_eq!(marked([1, 2, 2]), Some(vec![false, true, false]), "once is enough");
        assert_eq!(marked([3, 2, 2]), None, "what only makes something for others does not count");
        assert_eq!(marked([3, 2, 1]), Some(vec![false, false, true]), "nor is it known then");
    }
}
