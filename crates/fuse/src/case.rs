//! One crash inside an operation, and what must hold for the tree after it. Kept with a finding, so that a replay judges as the check did.

use std::path::PathBuf;

use drive::fuse::{STILL_MOUNTED, UNMOUNTED};
use fs::agent::UNUSABLE;
use fs::errno::Errno;
use fs::op::Op;
use fs::oracle::{Crash, Past, Promises, judge_synced};
use fs::promise::{Broken, Promise};
use fs::tree::Tree;
use serde::{Deserialize, Serialize};
use verdict::symptom::{Symptom, Trees};
use verdict::verdict::Verdict;

/// As text, for a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// Where the daemon mounts; none: the operations are run in a folder, by a preloaded library.
    pub mount: Option<PathBuf>,
    /// The folder of the pool and the mount: it is made for a replay.
    pub folders: Vec<PathBuf>,
    pub operation: String,
    pub returned: bool,
    pub atomic_writes: bool,
    pub page: Option<u64>,
    pub before: String,
    pub after: String,
    /// Operations since the last reset and their trees, where only what was synced must be there.
    pub past: Option<Vec<(String, String)>>,
}

#[derive(Debug, thiserror::Error)]
pub enum BadCase {
    #[error("the finding's crash is not understood ({0}); run the check again")]
    Json(#[from] serde_json::Error),
    #[error("the finding's crash is not understood (`{0}`); run the check again")]
    Text(String),
}

impl Case {
    pub fn to_text(&self) -> String {
        serde_json::to_string(self).expect("plain data is always JSON")
    }

    pub fn of_text(text: &str) -> Result<Case, BadCase> {
        Ok(serde_json::from_str(text)?)
    }

    /// Judges the output of a run on the crash image that succeeded by itself.
    pub fn judge(&self, stdout: &[u8]) -> Result<Verdict, BadCase> {
        let operation = |text: &str| text.parse::<Op>().map_err(|_| BadCase::Text(text.to_owned()));
        let tree = |text: &str| Tree::parse(text).map_err(|error| BadCase::Text(error.to_string()));
        let (op, before, after) = (operation(&self.operation)?, tree(&self.before)?, tree(&self.after)?);
        let past = self.past.as_ref().map(|past| {
            past.iter().map(|(op, after)| Ok((operation(op)?, tree(after)?))).collect::<Result<Vec<_>, BadCase>>()
        });
        let past = past.transpose()?;
        let past: Option<Vec<Past<'_>>> = past.as_ref().map(|past| {
            past.iter().map(|(op, after)| Past { op, after, told: self.mount.is_none() || *op != Op::Sync }).collect()
        });
        let crash = Crash { op: &op, before: &before, after: &after, returned: self.returned };
        Ok(verdict(&crash, past.as_deref(), Promises { atomic_writes: self.atomic_writes, page: self.page }, stdout))
    }
}

/// What an attendant or a driver reports of a recovered file system.
struct Report {
    tree: Tree,
    usable: String,
    unmounted: String,
}

impl Report {
    fn parse(stdout: &[u8]) -> Option<Report> {
        let text = String::from_utf8_lossy(stdout);
        let (tree, rest) = text.split_once("\nok\n")?;
        let mut rest = rest.lines();
        let (usable, unmounted) = (rest.next()?.to_owned(), rest.next()?.to_owned());
        Some(Report { tree: Tree::parse(tree).ok()?, usable, unmounted })
    }
}

/// Judges what a run on a crash image reports.
pub(crate) fn verdict(crash: &Crash<'_>, past: Option<&[Past<'_>]>, promises: Promises, stdout: &[u8]) -> Verdict {
    let Some(report) = Report::parse(stdout) else {
        return Verdict::fail(Symptom::NoTree { operation: crash.op.to_string(), returned: crash.returned });
    };
    match holds(crash, past, promises, &report) {
        Ok(()) => Verdict::Pass,
        Err(broken) => {
            let (mut lines, same) = Tree::differences(&[crash.before, crash.after, &report.tree]);
            let found = lines.pop().unwrap_or_default();
            let after = lines.pop().unwrap_or_default();
            let trees = Trees { before: lines.pop().unwrap_or_default(), after, found, same };
            Verdict::fail(Symptom::WrongTree { promise: broken.key(), text: broken.to_string(), trees })
        }
    }
}

fn holds(crash: &Crash<'_>, past: Option<&[Past<'_>]>, promises: Promises, report: &Report) -> Result<(), Box<Broken>> {
    match past {
        Some(past) => judge_synced(past, crash.returned, &report.tree)?,
        None => crash.judge(&report.tree, promises)?,
    }
    if let Some(unusable) = report.usable.strip_prefix(UNUSABLE).and_then(|text| text.parse().ok()) {
        return Err(crash.broken(Promise::Usable(unusable)));
    }
    if report.unmounted != UNMOUNTED {
        let errno = report.unmounted.strip_prefix(STILL_MOUNTED).and_then(Errno::of_name);
        return Err(crash.broken(Promise::Unmounts(errno.unwrap_or(Errno(libc::EIO)))));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "dir . mode=755 links=2 owner=0:0\n";
    const FOO: &str = "file foo mode=644 links=1 owner=0:0 size=0 content=none\n";

    fn case() -> Case {
        Case {
            mount: Some("/m".into()),
            folders: Vec::new(),
            operation: "rename foo bar".into(),
            returned: false,
            atomic_writes: false,
            page: None,
            before: format!("{ROOT}{FOO}"),
            after: format!("{ROOT}{}", FOO.replace("foo", "bar")),
            past: None,
        }
    }

    fn judged(case: &Case, found: &str) -> Verdict {
        let stdout = format!("{found}ok\nok\n{UNMOUNTED}\n").into_bytes();
        case.judge(&stdout).unwrap()
    }

    #[test]
    fn a_case_judges_as_text_as_it_did_before() {
        let case = Case::of_text(&case().to_text()).unwrap();
        assert!(judged(&case, &case.before).is_pass() && judged(&case, &case.after).is_pass());
        let Verdict::Fail(symptom) = judged(&case, ROOT) else { panic!("both names are gone") };
        let Symptom::WrongTree { text, trees, .. } = *symptom else { panic!("the tree is wrong") };
        assert_eq!(text, "after `rename foo bar` neither name is there");
        assert_eq!((trees.before.len(), trees.after.len(), trees.found.len(), trees.same), (1, 1, 0, 1));
        assert!(Case::of_text("{}").is_err());
    }

    #[test]
    fn what_was_synced_is_judged_by_the_past() {
        let past = vec![("creat foo".into(), case().before), ("fsync foo".into(), case().before)];
        let case = Case { operation: "fsync foo".into(), returned: true, past: Some(past), ..case() };
        assert!(judged(&case, &case.before).is_pass());
        assert!(!judged(&case, ROOT).is_pass());
    }
}
