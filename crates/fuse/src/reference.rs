//! The workload without a crash, on the uninstrumented daemon: what each operation answers, and the trees before and after
//! those that are to be crashed.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drive::fuse::UNMOUNTED;
use fs::execute::Answer;
use fs::tree::Tree;
use fs::usable::Growth;
use fs::workload::Step;
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::native::{Native, NativeError, PoolFile};
use recover::report::RunReport;
use verdict::end::End;

/// What happens without a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub answers: Vec<Answer>,
    /// By step: the tree that it leaves. Before the first step it is that of the step `usize::MAX`.
    trees: BTreeMap<usize, Tree>,
}

const START: usize = usize::MAX;

#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    #[error(transparent)]
    Run(#[from] NativeError),
    #[error("the daemon {how} without any crash{said}; run it by hand on the same operations")]
    Failed { how: String, said: String },
    #[error("after `{step}` the driver says `{line}`, which is not understood")]
    Garbled { step: String, line: String },
    #[error(
        "without any crash, after `{step}`: {what}; look into this first (`zero-behind`: --no-growth leaves it out)"
    )]
    Broken { step: String, what: String },
    #[error("the file system is not deterministic: `{step}` answers {one}, and in another run {other}")]
    Varies { step: String, one: Answer, other: Answer },
}

/// Runs the steps on a copy of a pool.
pub fn reference(
    steps: &[Step],
    driver: &Command,
    pool: &Path,
    content: &Path,
    limits: &Limits,
    trees: Walks,
    growth: Growth,
) -> Result<Reference, ReferenceError> {
    let command = Command { stdin: Input::Bytes(script_with(steps, trees, growth).into_bytes()), ..driver.clone() };
    let pools = [PoolFile { path: pool.to_owned(), content }];
    let limits = Limits { wall: limits.wall + Duration::from_millis(20) * steps.len() as u32, ..*limits };
    let run = Native::new().session(&pools)?.run(&command, &limits)?;
    if run.end != End::Exited(0) {
        return Err(failed(&run));
    }
    parse(steps, &String::from_utf8_lossy(&run.stdout), trees)
}

/// The lines that a driver is given: the steps, with a walk before and after those that are crashed.
pub fn script(steps: &[Step]) -> String {
    script_with(steps, Walks::Crashed, Growth::Zero)
}

fn script_with(steps: &[Step], trees: Walks, growth: Growth) -> String {
    let mut lines = String::new();
    if steps.first().is_some_and(|step| step.crash) {
        lines.push_str("walk\n");
    }
    for (number, step) in steps.iter().enumerate() {
        lines.push_str(&format!("{}\n", step.op));
        if trees.wants(steps, number) {
            lines.push_str("walk\n");
        }
    }
    // The walk of everything must be usable, too, or no crash is to blame.
    lines.push_str(&format!("{}\n", growth.line()));
    lines
}

/// After which steps the tree is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Walks {
    /// Before and after those that are crashed.
    Crashed,
    /// All: what was synced long before must still be there.
    All,
}

impl Walks {
    fn wants(self, steps: &[Step], number: usize) -> bool {
        self == Walks::All || steps[number].crash || steps.get(number + 1).is_some_and(|next| next.crash)
    }
}

fn failed(run: &RunReport) -> ReferenceError {
    let how = match &run.end {
        End::Exited(code) => format!("ends with exit code {code}"),
        End::Signalled { signal, .. } => format!("is killed by signal {signal}"),
        End::Hung => "hangs".into(),
        End::OverLimit(_) => "uses more than it may".into(),
    };
    let stderr = String::from_utf8_lossy(&run.stderr);
    let said = stderr.lines().rev().find(|line| !line.trim().is_empty());
    ReferenceError::Failed { how, said: said.map_or_else(String::new, |line| format!(" ({})", line.trim())) }
}

fn parse(steps: &[Step], output: &str, trees: Walks) -> Result<Reference, ReferenceError> {
    let mut lines = output.lines();
    let garbled = |step: &str, line: Option<&str>| ReferenceError::Garbled {
        step: step.to_owned(),
        line: line.unwrap_or("nothing").to_owned(),
    };
    let tree = |step: &str, lines: &mut std::str::Lines<'_>| {
        let mut text = String::new();
        loop {
            match lines.next() {
                Some("ok") => break,
                Some(line) => text.push_str(&format!("{line}\n")),
                None => return Err(garbled(step, None)),
            }
        }
        let tree = Tree::parse(&text).map_err(|error| garbled(step, Some(&error.to_string())))?;
        let unreadable = tree.entries.iter().find_map(|(path, found)| match found {
            fs::tree::Found::Unreadable(errno) => Some(format!("`{path}` cannot be read ({errno})")),
            fs::tree::Found::Entry(_) => None,
        });
        match unreadable {
            Some(what) => Err(ReferenceError::Broken { step: step.to_owned(), what }),
            None => Ok(tree),
        }
    };
    let mut reference = Reference { answers: Vec::new(), trees: BTreeMap::new() };
    if steps.first().is_some_and(|step| step.crash) {
        reference.trees.insert(START, tree("mount", &mut lines)?);
    }
    for (number, step) in steps.iter().enumerate() {
        let name = step.op.to_string();
        let line = lines.next();
        let answer = line.and_then(|line| line.parse().ok()).ok_or_else(|| garbled(&name, line))?;
        reference.answers.push(answer);
        if trees.wants(steps, number) {
            reference.trees.insert(number, tree(&name, &mut lines)?);
        }
    }
    let broken = |what: &str| ReferenceError::Broken { step: "the last operation".into(), what: what.to_owned() };
    match (lines.next(), lines.next()) {
        (Some("ok"), Some(UNMOUNTED)) => Ok(reference),
        (Some("ok"), other) => Err(broken(other.unwrap_or("the daemon says nothing more"))),
        (other, _) => Err(broken(other.unwrap_or("the daemon says nothing more"))),
    }
}

impl Reference {
    /// From what a driver answers to [`script`], up to the line about unmounting.
    pub fn parse(steps: &[Step], output: &str) -> Result<Reference, ReferenceError> {
        parse(steps, output, Walks::Crashed)
    }

    /// The tree before a step that is crashed.
    pub fn before(&self, step: usize) -> Option<&Tree> {
        self.trees.get(&step.checked_sub(1).unwrap_or(START))
    }

    pub fn after(&self, step: usize) -> Option<&Tree> {
        self.trees.get(&step)
    }

    /// Did the recorded daemon answer the same?
    pub fn agrees(&self, steps: &[Step], recorded: &str) -> Result<(), ReferenceError> {
        let mut lines = recorded.lines();
        for (step, one) in steps.iter().zip(&self.answers) {
            let line = lines.next();
            let garbled =
                || ReferenceError::Garbled { step: step.op.to_string(), line: line.unwrap_or("nothing").to_owned() };
            let other: Answer = line.and_then(|line| line.parse().ok()).ok_or_else(garbled)?;
            if other != *one {
                return Err(ReferenceError::Varies { step: step.op.to_string(), one: *one, other });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fs::workload::Workload;

    use super::*;

    const ROOT: &str = "dir . mode=755 links=2 owner=0:0\n";
    const FOO: &str = "file foo mode=644 links=1 owner=0:0 size=0 content=none\n";

    fn steps() -> Vec<Step> {
        Workload::chain(&Workload::parse_all("creat bar\nunlink bar\ncrash creat foo\n").unwrap())
    }

    #[test]
    fn trees_are_those_around_crashed_steps() {
        let output = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}{FOO}ok\nok\nunmounted\n");
        let reference = parse(&steps(), &output, Walks::Crashed).unwrap();
        assert_eq!(reference.before(2).unwrap().entries.len(), 1);
        assert_eq!(reference.after(2).unwrap().entries.len(), 2);
        assert!(reference.before(1).is_none());
        assert!(reference.agrees(&steps(), "ok\nok\nok\nunmounted\n").is_ok());
        let varies = reference.agrees(&steps(), "ok\nENOENT\nok\n").unwrap_err().to_string();
        assert!(varies.contains("`unlink bar` answers ok, and in another run ENOENT"), "{varies}");
    }

    #[test]
    fn a_file_system_that_is_broken_without_a_crash() {
        let unusable = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}{FOO}ok\nunusable remove EIO foo\nunmounted\n");
        assert!(
            parse(&steps(), &unusable, Walks::Crashed).unwrap_err().to_string().contains("unusable remove EIO foo")
        );
        let unreadable = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}error foo EIO\nok\nok\nunmounted\n");
        assert!(
            parse(&steps(), &unreadable, Walks::Crashed)
                .unwrap_err()
                .to_string()
                .contains("`foo` cannot be read (EIO)")
        );
        assert!(parse(&steps(), "ok\n", Walks::Crashed).is_err());
    }
}
