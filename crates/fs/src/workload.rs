//! A workload: operations in order. Power fails in some of them; the others create what these need.
//!
//! ```text
//!   workload seq-1/17
//!   mkdir A
//!   creat A/foo
//!   crash rename A/foo bar
//! ```
//! Without a mark, power fails in every operation. Lines that begin with `#` are comments.

use std::fmt;

use crate::op::Op;
use crate::parse::BadOp;

/// One operation of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    pub op: Op,
    /// Power fails in it, and after it.
    pub crash: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FsWorkload {
    pub name: String,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWorkload {
    #[error("line {line}: {source}")]
    Op { line: usize, source: BadOp },
    #[error("there is not one operation in it; write one system call per line")]
    Empty,
}

impl FsWorkload {
    /// Operations that are only there for the last.
    pub fn with_last(name: impl Into<String>, setup: Vec<Op>, last: Op) -> FsWorkload {
        let setup = setup.into_iter().map(|op| Step { op, crash: false });
        FsWorkload { name: name.into(), steps: setup.chain([Step { op: last, crash: true }]).collect() }
    }

    /// All workloads of a text.
    pub fn parse_all(text: &str) -> Result<Vec<FsWorkload>, BadWorkload> {
        let mut workloads: Vec<FsWorkload> = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix("workload ") {
                workloads.push(FsWorkload { name: name.trim().to_owned(), steps: Vec::new() });
                continue;
            }
            let (crash, operation) = line.strip_prefix("crash ").map_or((false, line), |rest| (true, rest));
            let op = operation.parse().map_err(|source| BadWorkload::Op { line: number, source })?;
            if workloads.is_empty() {
                workloads.push(FsWorkload { name: "1".into(), steps: Vec::new() });
            }
            workloads.last_mut().expect("one was just made").steps.push(Step { op, crash });
        }
        workloads.retain(|workload| !workload.steps.is_empty());
        for workload in &mut workloads {
            if workload.steps.iter().all(|step| !step.crash) {
                workload.steps.iter_mut().for_each(|step| step.crash = step.op != Op::Reset);
            }
        }
        if workloads.is_empty() { Err(BadWorkload::Empty) } else { Ok(workloads) }
    }

    /// All workloads one after the other on one file system, each beginning with an empty tree: one recording serves them all.
    pub fn chain(workloads: &[FsWorkload]) -> Vec<Step> {
        let mut steps = Vec::new();
        for workload in workloads {
            if !steps.is_empty() {
                steps.push(Step { op: Op::Reset, crash: false });
            }
            steps.extend(workload.steps.iter().cloned());
        }
        steps
    }
}

impl FsWorkload {
    /// Where each lies in the chain of all.
    pub fn places(workloads: &[FsWorkload]) -> Vec<std::ops::Range<usize>> {
        let mut places = Vec::new();
        let mut at = 0;
        for workload in workloads {
            places.push(at..at + workload.steps.len());
            // The reset between two.
            at += workload.steps.len() + 1;
        }
        places
    }
}

impl fmt::Display for FsWorkload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "workload {}", self.name)?;
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.crash { "crash " } else { "" };
        write!(f, "{mark}{}", self.op)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_the_workloads_back() {
        let text = "workload a\nmkdir A\ncrash rename A B\nworkload b\ncrash creat foo\n";
        let workloads = FsWorkload::parse_all(text).unwrap();
        assert_eq!(workloads.iter().map(FsWorkload::to_string).collect::<String>(), text);
        let chained: Vec<String> = FsWorkload::chain(&workloads).iter().map(Step::to_string).collect();
        assert_eq!(chained, ["mkdir A", "crash rename A B", "reset", "crash creat foo"]);
        assert_eq!(FsWorkload::places(&workloads), [0..2, 3..4]);
    }

    #[test]
    fn unmarked_operations_are_all_crashed() {
        let workloads = FsWorkload::parse_all("# mine\n\ncreat foo\nunlink foo\n").unwrap();
        assert_eq!(workloads.len(), 1);
        assert!(workloads[0].steps.iter().all(|step| step.crash));
        assert_eq!(FsWorkload::parse_all("# nothing\n"), Err(BadWorkload::Empty));
        let error = FsWorkload::parse_all("creat foo\nfly\n").unwrap_err();
        assert!(error.to_string().starts_with("line 2: `fly`"), "{error}");
    }
}
