//! Which of several bugs of one program a check has reported: each finding stands for one bug, and each bug for one finding.

use crate::crash::{CrashTarget, Variant};

/// A finding of a check, as far as it matters here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reported {
    pub class: String,
    /// Lines of the program that it names, the one to blame first.
    pub lines: Vec<u32>,
}

/// How findings and bugs go together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// By bug: the number of its finding.
    pub found: Vec<(Variant, Option<usize>)>,
    /// Findings about a bug that has one already.
    pub again: Vec<usize>,
    /// Findings that fit none of the bugs.
    pub strange: Vec<usize>,
}

impl Tally {
    /// As many bugs as possible get a finding that fits.
    pub fn of(target: &CrashTarget, bugs: &[Variant], findings: &[Reported]) -> Tally {
        let fits = |bug: usize, finding: usize| fit(target, bugs[bug], &findings[finding]);
        let mut owner: Vec<Option<usize>> = vec![None; findings.len()];
        for bug in 0..bugs.len() {
            give(bug, &fits, &mut owner, &mut vec![false; findings.len()]);
        }
        let of_bug = |bug: usize| (bugs[bug], owner.iter().position(|own| *own == Some(bug)));
        let left = (0..findings.len()).filter(|&finding| owner[finding].is_none());
        let (again, strange) = left.partition(|&finding| (0..bugs.len()).any(|bug| fits(bug, finding)));
        Tally { found: (0..bugs.len()).map(of_bug).collect(), again, strange }
    }

    pub fn found(&self) -> usize {
        self.found.iter().filter(|(_, finding)| finding.is_some()).count()
    }
}

/// A finding is about a bug if the store that it blames first is on a guilty line, or if it has the class of the bug and blames something in
/// the function of a guilty line.
fn fit(target: &CrashTarget, bug: Variant, finding: &Reported) -> bool {
    target.expected(bug).any(|guilty| {
        let names = finding.lines.first() == Some(&guilty.line);
        let inside = finding.lines.iter().any(|line| guilty.function.lines.contains(line));
        names || (inside && finding.class == guilty.class.name())
    })
}

/// Finds a finding for the bug, if need be by giving other bugs other ones (Kuhn 1955).
fn give(bug: usize, fits: &dyn Fn(usize, usize) -> bool, owner: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for finding in 0..owner.len() {
        if tried[finding] || !fits(bug, finding) {
            continue;
        }
        tried[finding] = true;
        let free = match owner[finding] {
            None => true,
            Some(other) => give(other, fits, owner, tried),
        };
        if free {
            owner[finding] = Some(bug);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_finding_stands_for_one_bug() {
        let target = crate::crash::with_operations().expect("targets").into_iter().find(|it| it.name == "c/level");
        let target = target.expect("a program with operations");
        let line = |bug| target.expected(Variant(bug)).next().expect("a guilty line").line;
        let finding = |class: &str, lines: &[u32]| Reported { class: class.into(), lines: lines.to_vec() };
        // Bugs 1 and 2 are in the same function: the finding that fits both goes to the one that has no other.
        let findings = [
            finding("ordering", &[line(1)]),
            finding("ordering", &[line(2)]),
            finding("durability", &[line(7)]),
            finding("durability", &[line(7)]),
            finding("ordering", &[1]),
        ];
        let tally = Tally::of(&target, &[Variant(1), Variant(2), Variant(6), Variant(7)], &findings);
        assert_eq!(tally.found(), 3);
        assert_eq!(tally.found[2], (Variant(6), None));
        assert_eq!((tally.again.len(), tally.strange.as_slice()), (1, &[4][..]));
    }
}
