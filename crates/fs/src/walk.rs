//! Walks a whole tree and reports its names, types, modes, links, owners, sizes, contents and extended
//! attributes, which are compared; not times, block counts and sizes of directories.

use std::collections::HashMap;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::content::Content;
use crate::errno::Errno;
use crate::sys::{self, Result};
use crate::tree::{Body, Found, Tree, TreeEntry};

/// A file that says it is larger is not read: no workload makes one.
const LARGEST: u64 = 64 << 20;
/// Deeper trees have a loop in them.
const DEEPEST: usize = 64;

/// Everything below `root`.
pub fn walk(root: &Path) -> Tree {
    let mut walk = Walk { tree: Tree::default(), inodes: HashMap::new() };
    walk.visit(root, ".", 0);
    walk.name_first_paths();
    walk.tree
}

struct Walk {
    tree: Tree,
    /// Paths of files that have several names, by inode.
    inodes: HashMap<u64, Vec<String>>,
}

impl Walk {
    fn visit(&mut self, path: &Path, name: &str, depth: usize) {
        let entry = self.look(path, name);
        let is_dir = matches!(&entry, Ok(entry) if entry.body == Body::Dir);
        let listed = if is_dir && depth < DEEPEST { sys::names(path) } else { Ok(Vec::new()) };
        let found = match (entry, &listed) {
            (Ok(_), Err(errno)) => Found::Unreadable(*errno),
            (Ok(_), Ok(_)) if is_dir && depth == DEEPEST => Found::Unreadable(Errno(libc::ELOOP)),
            (Ok(entry), Ok(_)) => Found::Entry(entry),
            (Err(errno), _) => Found::Unreadable(errno),
        };
        // Twice the same name in a directory: the walk cannot tell them apart, and a healthy one has none.
        let found = if self.tree.entries.contains_key(name) { Found::Unreadable(Errno(libc::EEXIST)) } else { found };
        self.tree.entries.insert(name.to_owned(), found);
        let mut names = listed.unwrap_or_default();
        names.sort();
        for child in names {
            let child = String::from_utf8_lossy(&child).into_owned();
            let below = if name == "." { child.clone() } else { format!("{name}/{child}") };
            self.visit(&path.join(&child), &below, depth + 1);
        }
    }

    fn look(&mut self, path: &Path, name: &str) -> Result<TreeEntry> {
        let c_path = sys::c_path(path)?;
        let stat = sys::lstat(&c_path)?;
        let body = match stat.st_mode & libc::S_IFMT {
            libc::S_IFDIR => Body::Dir,
            libc::S_IFLNK => Body::Symlink(String::from_utf8_lossy(&sys::readlink(&c_path)?).into_owned()),
            libc::S_IFREG => Body::File(read(path, stat.st_size as u64)?),
            _ => Body::Other,
        };
        if body != Body::Dir && stat.st_nlink > 1 {
            self.inodes.entry(stat.st_ino).or_default().push(name.to_owned());
        }
        Ok(TreeEntry {
            mode: stat.st_mode & 0o7777,
            links: stat.st_nlink,
            owner: (stat.st_uid, stat.st_gid),
            size: if body == Body::Dir { 0 } else { stat.st_size as u64 },
            same: None,
            xattrs: attributes(&c_path)?,
            body,
        })
    }

    fn name_first_paths(&mut self) {
        for paths in self.inodes.values_mut() {
            paths.sort();
            let (first, others) = paths.split_first().expect("it was made with one");
            for path in others {
                if let Some(Found::Entry(entry)) = self.tree.entries.get_mut(path) {
                    entry.same = Some(first.clone());
                }
            }
        }
    }
}

fn read(path: &Path, size: u64) -> Result<Content> {
    if size > LARGEST {
        return Err(Errno(libc::EFBIG));
    }
    let fd = sys::open(&sys::c_path(path)?, libc::O_RDONLY | libc::O_NOFOLLOW, 0)?;
    let mut bytes = vec![0; size as usize];
    let mut at = 0;
    while at < bytes.len() {
        match sys::pread(&fd, &mut bytes[at..], at as u64)? {
            // It is shorter than it says.
            0 => return Err(Errno(libc::EIO)),
            count => at += count,
        }
    }
    Ok(Content(bytes))
}

/// Those of users; file systems without any have none.
fn attributes(path: &CString) -> Result<Vec<(String, String)>> {
    let names = match sys::listxattr(path) {
        Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => return Ok(Vec::new()),
        names => names?,
    };
    let mut attributes = Vec::new();
    for name in names {
        let shown = String::from_utf8_lossy(&name).into_owned();
        if !shown.starts_with("user.") {
            continue;
        }
        let name = CString::new(name).map_err(|_| Errno(libc::EINVAL))?;
        let value = sys::getxattr(path, &name)?;
        let value = value
            .iter()
            .map(|&byte| if byte.is_ascii_graphic() { char::from(byte).to_string() } else { format!("\\x{byte:02x}") });
        attributes.push((shown, value.collect()));
    }
    attributes.sort();
    Ok(attributes)
}

/// Directories of a tree on disk, the deepest last.
pub(crate) fn directories(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = vec![root.to_owned()];
    let mut next = 0;
    while next < found.len() {
        let dir = found[next].clone();
        for name in sys::names(&dir)? {
            let path = dir.join(std::ffi::OsStr::from_bytes(&name));
            let stat = sys::lstat(&sys::c_path(&path)?)?;
            if stat.st_mode & libc::S_IFMT == libc::S_IFDIR && found.len() < 1 << 16 {
                found.push(path);
            }
        }
        next += 1;
    }
    Ok(found)
}
