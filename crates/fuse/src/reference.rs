//! The workload without a crash, on the uninstrumented daemon: the answer of each operation, and the trees before and after
//! the operations in which power will fail.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use drive::fuse::UNMOUNTED;
use fs::errno::Errno;
use fs::execute::Answer;
use fs::tree::Tree;
use fs::usable::Growth;
use fs::workload::Step;
use recover::command::{Command, Input};
use recover::limits::Limits;
use recover::native::{Native, NativeError, PoolFile, Session};
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
    #[error("the daemon {how} {when}, without any crash{said}; run it by hand on the same operations")]
    Failed { how: String, when: When, said: String },
    #[error("after `{step}` the driver says `{line}`, which is not understood")]
    Garbled { step: String, line: String },
    #[error(
        "without any crash, after `{step}`: {what}; look into this first (`zero-behind`: --no-growth leaves it out)"
    )]
    Broken { step: String, what: String },
    #[error("the file system is not deterministic: `{step}` answers {one}, and in another run {other}")]
    Varies { step: String, one: Answer, other: Answer },
    #[error(
        "without any crash, after `{step}`, `{path}` is not the same in two runs; does it show bytes that were never written?"
    )]
    Unsteady { step: String, path: String },
    #[error("without any crash, `{path}` is not the same after the file system was unmounted and mounted again")]
    Forgotten { path: String },
    #[error("cannot keep a copy of the pool: {0}; is there space left for temporary files?")]
    Copy(std::io::Error),
}

/// When a daemon failed, as far as the answers of its driver tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    Mounting,
    /// Nothing was answered yet, and this was the first to be.
    MountingOr(String),
    During(String),
    /// After the last operation every file grows and is removed.
    Ending,
    Unmounted,
    MountedAgain,
}

impl fmt::Display for When {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            When::Mounting => f.write_str("at mount"),
            When::MountingOr(step) => write!(f, "at mount or in `{step}`"),
            When::During(step) => write!(f, "in `{step}`"),
            When::Ending => f.write_str("after the last operation, when all files grow and are removed"),
            When::Unmounted => f.write_str("after it was unmounted"),
            When::MountedAgain => f.write_str("when it is mounted again"),
        }
    }
}

impl When {
    fn of(steps: &[Step], output: &str, parsed: &Result<Reference, Fault>) -> When {
        let text = |number: usize| steps[number].op.to_string();
        match parsed {
            Ok(_) => When::Unmounted,
            Err(Fault { step: Some(0), .. }) if output.is_empty() => When::MountingOr(text(0)),
            Err(Fault { step: Some(number), .. }) => When::During(text(*number)),
            Err(_) if output.is_empty() => When::Mounting,
            Err(_) => When::Ending,
        }
    }
}

/// What goes wrong without a crash, and in which step, if one can be named.
#[derive(Debug)]
pub struct Fault {
    pub step: Option<usize>,
    pub why: ReferenceError,
}

/// Runs the steps on a pool with this content, in a private file that the run changes.
pub fn reference(
    steps: &[Step],
    driver: &Command,
    pool: &Path,
    content: &Path,
    limits: &Limits,
    trees: Walks,
    growth: Growth,
) -> Result<Reference, ReferenceError> {
    let pools = [PoolFile { path: pool.to_owned(), content }];
    let mut session = Native::new().session(&pools)?;
    run(&mut session, steps, driver, limits, trees, Some(growth)).map_err(|fault| fault.why)
}

/// Runs the steps on the pool of a session; then, with a growth, tries whether the tree is usable.
pub(crate) fn run(
    session: &mut Session,
    steps: &[Step],
    driver: &Command,
    limits: &Limits,
    trees: Walks,
    growth: Option<Growth>,
) -> Result<Reference, Fault> {
    let command = Command { stdin: Input::Bytes(script_with(steps, trees, growth).into_bytes()), ..driver.clone() };
    let limits = Limits { wall: limits.wall + Duration::from_millis(20) * steps.len() as u32, ..*limits };
    let run = session.run(&command, &limits).map_err(|error| Fault { step: None, why: error.into() })?;
    let output = String::from_utf8_lossy(&run.stdout);
    let parsed = parse(steps, &output, trees, growth);
    if run.end == End::Exited(0) {
        return parsed;
    }
    // The step that it was in has no answer.
    let why = failed(&run, When::of(steps, &output, &parsed));
    Err(Fault { step: parsed.err().and_then(|fault| fault.step), why })
}

/// The lines that a driver is given: the steps, with a walk before and after those that are crashed.
pub fn script(steps: &[Step]) -> String {
    script_with(steps, Walks::Crashed, Some(Growth::Zero))
}

fn script_with(steps: &[Step], trees: Walks, growth: Option<Growth>) -> String {
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
    growth.into_iter().for_each(|growth| lines.push_str(&format!("{}\n", growth.line())));
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

fn failed(run: &RunReport, when: When) -> ReferenceError {
    let how = match &run.end {
        End::Exited(code) => format!("ends with exit code {code}"),
        End::Signalled { signal, .. } => format!("is killed by signal {signal}"),
        End::Hung => "hangs".into(),
        End::OverLimit(_) => "uses more than it may".into(),
    };
    let stderr = String::from_utf8_lossy(&run.stderr);
    let said = stderr.lines().rev().find(|line| !line.trim().is_empty());
    ReferenceError::Failed { how, when, said: said.map_or_else(String::new, |line| format!(" ({})", line.trim())) }
}

/// The tree that a driver printed after a step.
fn tree(step: &str, lines: &mut std::str::Lines<'_>) -> Result<Tree, ReferenceError> {
    let garbled = |line: &str| ReferenceError::Garbled { step: step.to_owned(), line: line.to_owned() };
    let mut text = String::new();
    loop {
        match lines.next() {
            Some("ok") => break,
            Some(line) => text.push_str(&format!("{line}\n")),
            None => return Err(garbled("nothing")),
        }
    }
    let tree = Tree::parse(&text).map_err(|error| garbled(&error.to_string()))?;
    let unreadable = tree.entries.iter().find_map(|(path, found)| match found {
        fs::tree::Found::Unreadable(errno) => Some(format!("`{path}` cannot be read ({errno})")),
        fs::tree::Found::Entry(_) => None,
    });
    match unreadable {
        Some(what) => Err(ReferenceError::Broken { step: step.to_owned(), what }),
        None => Ok(tree),
    }
}

fn parse(steps: &[Step], output: &str, trees: Walks, growth: Option<Growth>) -> Result<Reference, Fault> {
    let mut lines = output.lines();
    let at = |step: Option<usize>| move |why| Fault { step, why };
    let mut reference = Reference { answers: Vec::new(), trees: BTreeMap::new() };
    if steps.first().is_some_and(|step| step.crash) {
        reference.trees.insert(START, tree("mount", &mut lines).map_err(at(None))?);
    }
    for (number, step) in steps.iter().enumerate() {
        let name = step.op.to_string();
        let line = lines.next();
        let garbled = || ReferenceError::Garbled { step: name.clone(), line: line.unwrap_or("nothing").to_owned() };
        let answer = line.and_then(|line| line.parse().ok()).ok_or_else(garbled).map_err(at(Some(number)))?;
        reference.answers.push(answer);
        if trees.wants(steps, number) {
            reference.trees.insert(number, tree(&name, &mut lines).map_err(at(Some(number)))?);
        }
    }
    ended(&mut lines, growth).map_err(at(None))?;
    Ok(reference)
}

/// What is said at the end: the tree was usable, if that was asked, and could be unmounted.
fn ended(lines: &mut std::str::Lines<'_>, growth: Option<Growth>) -> Result<(), ReferenceError> {
    let wanted = growth.map(|_| "ok").into_iter().chain([UNMOUNTED]);
    for wanted in wanted {
        let line = lines.next();
        if line != Some(wanted) {
            let what = line.unwrap_or("the daemon says nothing more").to_owned();
            return Err(ReferenceError::Broken { step: "the last operation".into(), what });
        }
    }
    Ok(())
}

/// Mounts what an earlier run of the session left: the tree must be this one still, and usable.
pub(crate) fn remounted(
    session: &mut Session,
    last: Option<&Tree>,
    driver: &Command,
    limits: &Limits,
    growth: Growth,
) -> Result<(), Fault> {
    let at_the_end = |why| Fault { step: None, why };
    let script = format!("walk\n{}\n", growth.line());
    let command = Command { stdin: Input::Bytes(script.into_bytes()), ..driver.clone() };
    let run = session.run(&command, limits).map_err(|error| at_the_end(error.into()))?;
    if run.end != End::Exited(0) {
        return Err(at_the_end(failed(&run, When::MountedAgain)));
    }
    let text = String::from_utf8_lossy(&run.stdout);
    let mut lines = text.lines();
    let found = tree("mount", &mut lines).map_err(at_the_end)?;
    ended(&mut lines, Some(growth)).map_err(at_the_end)?;
    match last.and_then(|last| difference(last, &found)) {
        Some(path) => Err(at_the_end(ReferenceError::Forgotten { path })),
        None => Ok(()),
    }
}

/// The first path that is not the same in both.
fn difference(one: &Tree, other: &Tree) -> Option<String> {
    let paths = one.entries.keys().chain(other.entries.keys());
    paths.filter(|path| one.entries.get(*path) != other.entries.get(*path)).min().cloned()
}

impl Reference {
    /// From what a driver answers to [`script`], up to the line about unmounting.
    pub fn parse(steps: &[Step], output: &str) -> Result<Reference, ReferenceError> {
        parse(steps, output, Walks::Crashed, Some(Growth::Zero)).map_err(|fault| fault.why)
    }

    /// The tree after the last step that was walked.
    pub(crate) fn last(&self) -> Option<&Tree> {
        self.trees.iter().rfind(|(number, _)| **number != START).map(|(_, tree)| tree)
    }

    /// The first step that is not the same in another run on another pool. What that has no room for says nothing.
    pub(crate) fn differs(&self, other: &Reference, steps: &[Step]) -> Option<Fault> {
        for (number, step) in steps.iter().enumerate() {
            let (one, two) = (*self.answers.get(number)?, *other.answers.get(number)?);
            let step = step.op.to_string();
            if two != one {
                let full = Answer::Failed(Errno(libc::ENOSPC));
                let why = ReferenceError::Varies { step, one, other: two };
                return (two != full).then_some(Fault { step: Some(number), why });
            }
            let trees = self.trees.get(&number).zip(other.trees.get(&number));
            if let Some(path) = trees.and_then(|(one, two)| difference(one, two)) {
                return Some(Fault { step: Some(number), why: ReferenceError::Unsteady { step, path } });
            }
        }
        None
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
    use fs::workload::FsWorkload;

    use super::*;

    const ROOT: &str = "dir . mode=755 links=2 owner=0:0\n";
    const FOO: &str = "file foo mode=644 links=1 owner=0:0 size=0 content=none\n";

    fn steps() -> Vec<Step> {
        FsWorkload::chain(&FsWorkload::parse_all("creat bar\nunlink bar\ncrash creat foo\n").unwrap())
    }

    #[test]
    fn trees_are_those_around_crashed_steps() {
        let output = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}{FOO}ok\nok\nunmounted\n");
        let reference = Reference::parse(&steps(), &output).unwrap();
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
        let said = |output: &str| Reference::parse(&steps(), output).unwrap_err().to_string();
        assert!(said(&unusable).contains("unusable remove EIO foo"));
        let unreadable = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}error foo EIO\nok\nok\nunmounted\n");
        assert!(said(&unreadable).contains("`foo` cannot be read (EIO)"));
        assert!(Reference::parse(&steps(), "ok\n").is_err());
    }

    #[test]
    fn the_step_that_differs_between_two_runs_is_named() {
        let parsed = |foo: &str, answer: &str| {
            let output = format!("ok\n{ROOT}ok\nok\n{ROOT}ok\n{answer}\n{ROOT}{foo}ok\nunmounted\n");
            parse(&steps(), &output, Walks::All, None).unwrap()
        };
        let reference = parsed(FOO, "ok");
        assert!(reference.differs(&parsed(FOO, "ok"), &steps()).is_none());
        let other = FOO.replace("mode=644", "mode=600");
        let fault = reference.differs(&parsed(&other, "ok"), &steps()).unwrap();
        assert_eq!(fault.step, Some(2));
        assert!(matches!(&fault.why, ReferenceError::Unsteady { path, .. } if path == "foo"), "{}", fault.why);
        let fault = reference.differs(&parsed(FOO, "EIO"), &steps()).unwrap();
        assert!(matches!(fault.why, ReferenceError::Varies { .. }), "{}", fault.why);
        // A pool in use may be full: that is no fault.
        assert!(reference.differs(&parsed(FOO, "ENOSPC"), &steps()).is_none());
    }

    #[test]
    fn a_daemon_that_fails_is_said_to_when() {
        let when = |first_is_crashed: bool, output: &str| {
            let mut steps = steps();
            steps[0].crash = first_is_crashed;
            When::of(&steps, output, &parse(&steps, output, Walks::Crashed, Some(Growth::Zero))).to_string()
        };
        assert_eq!(when(true, ""), "at mount");
        assert_eq!(when(false, ""), "at mount or in `creat bar`");
        assert_eq!(when(false, "ok\n"), "in `unlink bar`");
        let all = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}{FOO}ok\n");
        assert_eq!(when(false, &all), "after the last operation, when all files grow and are removed");
        assert_eq!(when(false, &format!("{all}ok\nunmounted\n")), "after it was unmounted");
    }

    #[test]
    fn a_step_without_an_answer_is_the_one_that_failed() {
        let cut = format!("ok\nok\n{ROOT}ok\n");
        assert_eq!(parse(&steps(), &cut, Walks::Crashed, None).unwrap_err().step, Some(2));
        let kept = format!("ok\nok\n{ROOT}ok\nok\n{ROOT}{FOO}ok\nunmount EBUSY\n");
        assert_eq!(parse(&steps(), &kept, Walks::Crashed, None).unwrap_err().step, None);
    }
}
