//! A whole file tree as data, as a walk found it. As text, it has one line per entry, in the order of the paths.
//!
//! ```text
//!   dir . mode=755 links=3 owner=0:0
//!   file A/foo mode=644 links=2 owner=0:0 size=4096 content=seed3:4096
//!   file bar mode=644 links=2 owner=0:0 size=4096 same=A/foo content=seed3:4096
//!   symlink s mode=777 links=1 owner=0:0 size=3 target=foo
//!   error A/broken EIO
//! ```
//! `same` names the first path of the same inode: inode numbers differ between runs, but which names are one file does not.

use std::collections::BTreeMap;
use std::fmt;

use crate::content::Content;
use crate::errno::Errno;

/// A path below the root; `.` is the root itself.
pub type TreePath = String;

/// What kind of thing an entry is, and what only that kind has.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Body {
    Dir,
    File(Content),
    Symlink(String),
    /// A device, socket or pipe.
    Other,
}

/// One name in the tree.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TreeEntry {
    pub mode: u32,
    pub links: u64,
    pub owner: (u32, u32),
    /// Of directories it is not compared.
    pub size: u64,
    /// The first path of the same inode, if that is another.
    pub same: Option<TreePath>,
    pub xattrs: Vec<(String, String)>,
    pub body: Body,
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Found {
    Entry(TreeEntry),
    /// It is listed, but cannot be looked at.
    Unreadable(Errno),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    pub entries: BTreeMap<TreePath, Found>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no entry of a tree")]
pub struct BadTree(String);

impl TreeEntry {
    pub fn content(&self) -> Option<&[u8]> {
        match &self.body {
            Body::File(content) => Some(&content.0),
            _ => None,
        }
    }

    fn kind(&self) -> &'static str {
        match &self.body {
            Body::Dir => "dir",
            Body::File(_) => "file",
            Body::Symlink(_) => "symlink",
            Body::Other => "other",
        }
    }
}

impl Tree {
    pub fn get(&self, path: &str) -> Option<&Found> {
        self.entries.get(path)
    }

    pub fn entry(&self, path: &str) -> Option<&TreeEntry> {
        match self.get(path)? {
            Found::Entry(entry) => Some(entry),
            Found::Unreadable(_) => None,
        }
    }

    /// The lines of each tree that are not in all of them, and how many are.
    pub fn differences(trees: &[&Tree]) -> (Vec<Vec<String>>, u64) {
        let same = |path: &TreePath, found: &Found| trees.iter().all(|tree| tree.get(path) == Some(found));
        let differing = |tree: &&Tree| {
            let lines = tree.entries.iter().filter(|(path, found)| !same(path, found));
            lines.map(|(path, found)| TreeLine { path, found }.to_string()).collect()
        };
        let in_all =
            trees.first().map_or(0, |first| first.entries.iter().filter(|(path, found)| same(path, found)).count());
        (trees.iter().map(differing).collect(), in_all as u64)
    }

    /// From its text; other lines than those of entries are not allowed.
    pub fn parse(text: &str) -> Result<Tree, BadTree> {
        let lines = text.lines().filter(|line| !line.is_empty());
        let entries = lines.map(|line| parse(line).ok_or_else(|| BadTree(line.to_owned())));
        Ok(Tree { entries: entries.collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, found) in &self.entries {
            writeln!(f, "{}", TreeLine { path, found })?;
        }
        Ok(())
    }
}

/// One entry as a line.
#[derive(Debug)]
pub struct TreeLine<'a> {
    pub path: &'a str,
    pub found: &'a Found,
}

impl fmt::Display for TreeLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = match self.found {
            Found::Unreadable(errno) => return write!(f, "error {} {errno}", escaped(self.path)),
            Found::Entry(entry) => entry,
        };
        let TreeEntry { mode, links, owner: (user, group), size, .. } = entry;
        write!(f, "{} {} mode={mode:o} links={links} owner={user}:{group}", entry.kind(), escaped(self.path))?;
        if entry.body != Body::Dir {
            write!(f, " size={size}")?;
        }
        if let Some(same) = &entry.same {
            write!(f, " same={}", escaped(same))?;
        }
        for (name, value) in &entry.xattrs {
            write!(f, " xattr={}:{}", escaped(name), escaped(value))?;
        }
        match &entry.body {
            Body::File(content) => write!(f, " content={content}"),
            Body::Symlink(target) => write!(f, " target={}", escaped(target)),
            Body::Dir | Body::Other => Ok(()),
        }
    }
}

fn parse(line: &str) -> Option<(TreePath, Found)> {
    let mut words = line.split(' ');
    let kind = words.next()?;
    let path = unescaped(words.next()?)?;
    if kind == "error" {
        return Some((path, Found::Unreadable(Errno::of_name(words.next()?)?)));
    }
    let mut entry = TreeEntry {
        mode: 0,
        links: 0,
        owner: (0, 0),
        size: 0,
        same: None,
        xattrs: Vec::new(),
        body: match kind {
            "dir" => Body::Dir,
            "file" => Body::File(Content::default()),
            "symlink" => Body::Symlink(String::new()),
            "other" => Body::Other,
            _ => return None,
        },
    };
    for word in words {
        let (key, value) = word.split_once('=')?;
        match key {
            "mode" => entry.mode = u32::from_str_radix(value, 8).ok()?,
            "links" => entry.links = value.parse().ok()?,
            "owner" => {
                let (user, group) = value.split_once(':')?;
                entry.owner = (user.parse().ok()?, group.parse().ok()?);
            }
            "size" => entry.size = value.parse().ok()?,
            "same" => entry.same = Some(unescaped(value)?),
            "xattr" => {
                let (name, value) = value.split_once(':')?;
                entry.xattrs.push((unescaped(name)?, unescaped(value)?));
            }
            "content" => entry.body = Body::File(value.parse().ok()?),
            "target" => entry.body = Body::Symlink(unescaped(value)?),
            _ => return None,
        }
    }
    // Of a directory it means something else to every file system.
    let is_known = entry.body != Body::Dir || entry.size == 0;
    is_known.then_some((path, Found::Entry(entry)))
}

/// Without spaces, line ends, colons and what is not ASCII: `%20`.
fn escaped(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'%' | b':' | b'=' | 0..=b' ' | 127.. => format!("%{byte:02x}"),
        _ => char::from(byte).to_string(),
    };
    if text.is_empty() { "%".into() } else { text.bytes().map(escape).collect() }
}

fn unescaped(text: &str) -> Option<String> {
    if text == "%" {
        return Some(String::new());
    }
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            bytes.push(u8::from_str_radix(str::from_utf8(after.get(..2)?).ok()?, 16).ok()?);
            rest = &after[2..];
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_gives_the_tree_back() {
        let text = "\
dir . mode=755 links=3 owner=0:0
dir A mode=755 links=2 owner=0:0
file A/foo mode=644 links=2 owner=0:7 size=4096 xattr=user.a:%20b content=seed3:1024,zero:3072
error bad EIO
file bar mode=644 links=2 owner=0:7 size=4096 same=A/foo content=seed3:1024,zero:3072
file empty%20name mode=600 links=1 owner=1:1 size=0 content=none
symlink s mode=777 links=1 owner=0:0 size=3 target=foo
";
        let tree = Tree::parse(text).unwrap();
        assert_eq!(tree.to_string(), text);
        assert_eq!(tree.entry("A/foo").unwrap().content().map(<[u8]>::len), Some(4096));
        assert!(tree.get("empty name").is_some());
        let (lines, same) = Tree::differences(&[&tree, &Tree::parse("error bad EIO\n").unwrap()]);
        assert_eq!((lines[0].len(), lines[1].len(), same), (6, 0, 1));
        assert_eq!(Tree::parse("cat A"), Err(BadTree("cat A".into())));
        assert_eq!(Tree::parse("error A"), Err(BadTree("error A".into())));
    }
}
