//! What to mutate next, and on which pool.
//!
//! PMFuzz §4.3: cases of higher priority are more likely to be mutated. A case that was mutated often without anything new gives way
//! to others. Half of the mutants begin with the pool that their case began with; the rest with what some case left, or with a crash
//! image of it (§4.5, step 5).

use crate::case::{Case, CaseId};
use crate::coverage::Priority;
use crate::image::ImageId;
use crate::random::Random;
use crate::tree::Node;

/// Images that were found last.
const LATEST: usize = 24;

/// How likely a case is, before it was ever mutated.
const fn base(priority: Priority) -> u64 {
    match priority {
        Priority::High => 64,
        Priority::Medium => 16,
        Priority::Low => 4,
    }
}

/// A case, by priority and by how often it was picked before.
pub fn case(cases: &[Case], picks: &[u32], random: &mut Random) -> Option<CaseId> {
    let recent = cases.len() - cases.len() / 8;
    let weight = |number: usize| {
        let fresh = if number >= recent { 2 } else { 1 };
        (base(cases[number].priority) * fresh * 16 / (2 + u64::from(picks[number]))).max(1)
    };
    let total: u64 = (0..cases.len()).map(weight).sum();
    let mut left = random.below(total);
    let found = (0..cases.len()).find(|number| {
        let weight = weight(*number);
        let here = left < weight;
        left = left.saturating_sub(weight);
        here
    });
    found.map(|number| CaseId(number as u32))
}

/// The pool to begin with, and whether it is the case's own.
pub fn start(case: &Case, images: &[Node], random: &mut Random) -> (ImageId, bool) {
    if images.is_empty() || random.once_in(2) {
        return (case.start, true);
    }
    let latest = &images[images.len().saturating_sub(LATEST)..];
    let wants_crash = random.once_in(2);
    for _ in 0..8 {
        let from = if random.once_in(2) { latest } else { images };
        match random.pick(from) {
            Some(node) if node.crash.is_some() == wants_crash => return (node.id, false),
            _ => {}
        }
    }
    (case.start, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(priority: Priority) -> Case {
        Case {
            id: CaseId(0),
            parent: None,
            start: ImageId::NONE,
            left: ImageId::NONE,
            priority,
            execution: 0,
            second: 0,
            pm_transitions: 0,
            edges: 0,
            file: String::new(),
            stable: true,
            found_by: Default::default(),
        }
    }

    #[test]
    fn high_priority_comes_first_and_gives_way() {
        let mut cases = vec![made(Priority::Low), made(Priority::High)];
        cases.extend((0..14).map(|_| made(Priority::Low)));
        let mut random = Random::new(5);
        let mut count =
            |picks: &[u32]| (0..1000).filter(|_| case(&cases, picks, &mut random) == Some(CaseId(1))).count();
        let fresh = count(&[0; 16]);
        let mut picks = [0; 16];
        picks[1] = 500;
        assert!(fresh > 350 && count(&picks) < 50, "{fresh}");
    }
}
