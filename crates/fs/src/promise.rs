//! Which promise of a file system a recovered tree breaks, as data and in words.

use std::fmt;

use crate::content::Content;
use crate::errno::Errno;
use crate::op::Op;
use crate::tree::{Body, Found, TreeEntry, TreePath};
use crate::usable::{Action, Unusable};

/// A promise that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The operation that was crashed.
    pub op: Op,
    /// Power failed after it had returned.
    pub returned: bool,
    pub promise: Promise,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Everything that is listed can be looked at.
    Readable {
        path: TreePath,
        errno: Errno,
    },
    /// What an operation does not touch is as it was.
    Untouched {
        path: TreePath,
        difference: Difference,
    },
    /// What has returned has happened.
    Durable {
        path: TreePath,
        difference: Difference,
    },
    /// The file that is renamed has one of its names.
    KeepsAName {
        from: TreePath,
        to: TreePath,
    },
    /// It does not have both, unless both are links to it.
    OneName {
        from: TreePath,
        to: TreePath,
    },
    /// What an operation touches is as before or as after, as a whole.
    Atomic {
        before: TreePath,
        after: TreePath,
    },
    /// Each thing that it touches is as before or as after.
    OldOrNew {
        path: TreePath,
        difference: Difference,
    },
    /// What was synced is there.
    Synced {
        path: TreePath,
        difference: Difference,
    },
    Usable(Unusable),
    /// It can be unmounted.
    Unmounts(Errno),
}

type Shown = fn(&TreeEntry) -> String;

/// How something differs from what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    Missing,
    Unexpected,
    Differs { attribute: Attribute, found: String, expected: Vec<String> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attribute {
    Type,
    Mode,
    Links,
    Owner,
    Size,
    Inode,
    Xattrs,
    Content,
    Target,
}

impl Difference {
    /// Between what was found at a path and what would be right there. None: it is one of these.
    pub fn between(found: Option<&Found>, right: &[Option<&Found>]) -> Option<Difference> {
        if right.contains(&found) {
            return None;
        }
        let entry = |found: Option<&'_ Found>| match found {
            Some(Found::Entry(entry)) => Some(entry.clone()),
            _ => None,
        };
        let expected: Vec<TreeEntry> = right.iter().filter_map(|right| entry(*right)).collect();
        let Some(found) = entry(found) else { return Some(Difference::Missing) };
        if expected.is_empty() {
            return Some(Difference::Unexpected);
        }
        let shown: [(Attribute, Shown); 9] = [
            (Attribute::Type, |e| kind(e).to_owned()),
            (Attribute::Links, |e| e.links.to_string()),
            (Attribute::Size, |e| e.size.to_string()),
            (Attribute::Mode, |e| format!("{:o}", e.mode)),
            (Attribute::Owner, |e| format!("{}:{}", e.owner.0, e.owner.1)),
            (Attribute::Inode, |e| e.same.as_ref().map_or("its own".into(), |same| format!("that of {same}"))),
            (Attribute::Xattrs, |e| e.xattrs.iter().map(|(n, v)| format!("{n}={v} ")).collect()),
            (Attribute::Content, |e| Content(e.content().unwrap_or_default().to_vec()).to_string()),
            (Attribute::Target, |e| if let Body::Symlink(target) = &e.body { target.clone() } else { String::new() }),
        ];
        let differs = |of: Shown| {
            let (found, mut expected): (String, Vec<String>) = (of(&found), expected.iter().map(of).collect());
            expected.dedup();
            (!expected.contains(&found)).then_some((found, expected))
        };
        let first = shown.iter().find_map(|(attribute, of)| Some((*attribute, differs(*of)?)));
        // Each attribute is one of the right ones, but they do not belong together: name the first that is not as in the first.
        let apart = |of: Shown| {
            let (found, first) = (of(&found), expected.first().map(of).unwrap_or_default());
            (found != first).then(|| (found, vec![first]))
        };
        let apart = || shown.iter().find_map(|(attribute, of)| Some((*attribute, apart(*of)?)));
        let (attribute, (found, expected)) = first.or_else(apart)?;
        Some(Difference::Differs { attribute, found, expected })
    }
}

fn kind(entry: &TreeEntry) -> &'static str {
    match entry.body {
        Body::Dir => "a directory",
        Body::File(_) => "a file",
        Body::Symlink(_) => "a symbolic link",
        Body::Other => "neither file nor directory",
    }
}

impl Broken {
    /// The same for the same failure.
    pub fn key(&self) -> String {
        let promise = match &self.promise {
            Promise::Readable { errno, .. } => format!("unreadable {errno}"),
            Promise::Untouched { difference, .. } => format!("untouched {}", difference.key()),
            Promise::Durable { .. } => "not durable".into(),
            Promise::KeepsAName { .. } => "no name".into(),
            Promise::OneName { .. } => "both names".into(),
            Promise::Atomic { .. } => "half done".into(),
            Promise::OldOrNew { difference, .. } => format!("neither old nor new {}", difference.key()),
            Promise::Synced { .. } => "not synced".into(),
            Promise::Usable(unusable) => format!("unusable {:?} {}", unusable.action, unusable.errno),
            Promise::Unmounts(errno) => format!("unmount {errno}"),
        };
        format!("fs {} {promise}", self.op.kind())
    }
}

impl Difference {
    fn key(&self) -> String {
        match self {
            Difference::Missing => "missing".into(),
            Difference::Unexpected => "unexpected".into(),
            Difference::Differs { attribute, .. } => format!("{attribute:?}").to_lowercase(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LONGEST: usize = 100;
        let short = |text: &str| match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        let (attribute, found, expected) = match self {
            Difference::Missing => return f.write_str("is not there"),
            Difference::Unexpected => return f.write_str("is there"),
            Difference::Differs { attribute, found, expected } => (attribute, found, expected),
        };
        let expected: Vec<String> = expected.iter().map(|text| short(text)).collect();
        let (found, expected) = (short(found), expected.join(" or "));
        match attribute {
            Attribute::Type => write!(f, "is {found}; expected {expected}"),
            Attribute::Mode => write!(f, "has mode {found}; expected {expected}"),
            Attribute::Links => write!(f, "has link count {found}; expected {expected}"),
            Attribute::Owner => write!(f, "has owner {found}; expected {expected}"),
            Attribute::Size => write!(f, "has size {found}; expected {expected}"),
            Attribute::Inode => write!(f, "has another inode: {found}; expected {expected}"),
            Attribute::Xattrs => write!(f, "has extended attributes `{found}`; expected `{expected}`"),
            Attribute::Content => write!(f, "has content {found}; expected {expected}"),
            Attribute::Target => write!(f, "points to {found}; expected {expected}"),
        }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = &self.op;
        let when = if self.returned { "after" } else { "during" };
        match &self.promise {
            Promise::Readable { path, errno } => {
                write!(f, "after a crash {when} `{op}`, `{path}` cannot be read ({errno})")
            }
            Promise::Untouched { path, difference } => {
                write!(f, "after a crash {when} `{op}`, which does not touch it, `{path}` {difference}")
            }
            Promise::Durable { path, difference } => {
                write!(f, "`{op}` had returned before the crash, but `{path}` {difference}")
            }
            Promise::KeepsAName { .. } => write!(f, "after `{op}` neither name is there"),
            Promise::OneName { .. } => write!(f, "after `{op}` both names are there"),
            Promise::Atomic { before, after } => {
                write!(f, "`{op}` is half done: `{before}` is as before, `{after}` as after")
            }
            Promise::OldOrNew { path, difference } => {
                write!(f, "after a crash {when} `{op}`, `{path}` {difference}")
            }
            Promise::Synced { path, difference } => {
                write!(f, "after `{op}`, `{path}` was synced, but {difference}")
            }
            Promise::Usable(Unusable { action, path, errno }) => {
                let cannot = match action {
                    Action::List => format!("the directories below `{path}` cannot be listed"),
                    Action::Extend => format!("`{path}` cannot be made longer"),
                    Action::ZeroBehind => format!("old bytes come back behind the end of `{path}` when it grows"),
                    Action::Create => format!("no file can be made in `{path}`"),
                    Action::Write => format!("a new file in `{path}` cannot be written"),
                    Action::ReadBack => format!("a new file in `{path}` does not hold what was written"),
                    Action::Remove => format!("`{path}` cannot be removed"),
                    Action::CreateAgain => "no file can be made after everything was removed".to_owned(),
                };
                write!(f, "after a crash {when} `{op}`, {cannot} ({errno})")
            }
            Promise::Unmounts(errno) => write!(f, "after a crash {when} `{op}`, unmount fails ({errno})"),
        }
    }
}
