//! The files beside the pools in a bundle.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use recover::space::{self, Bytes, Named, Space, in_tree};
use serde::{Deserialize, Serialize};
use trace::event::PoolId;
use trace::{Attributes, FileTree};

/// A name that the recording tells of, and what the crash left there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledName {
    path: String,
    left: Left,
    #[serde(default)]
    mode: u32,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    xattrs: BTreeMap<String, Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Left {
    Nothing,
    /// The bytes are in this file of the bundle.
    File(String),
    Pool(u32),
    Folder,
    Link(String),
}

/// Puts what a tree has of these names into a bundle's folder.
pub(crate) fn write(
    place: &Path,
    tree: &FileTree,
    roots: &[PathBuf],
    names: &[String],
) -> io::Result<Vec<BundledName>> {
    let mut all: Vec<&str> = names.iter().map(String::as_str).chain(tree.names().map(|(path, _)| path)).collect();
    all.sort_unstable();
    all.dedup();
    all.retain(|name| roots.iter().any(|root| Path::new(name).starts_with(root)));
    let mut written = Vec::new();
    for (number, name) in all.into_iter().enumerate() {
        let (left, attributes) = match in_tree(tree, name) {
            Named::Nothing => (Left::Nothing, None),
            Named::Directory { attributes } => (Left::Folder, Some(attributes)),
            Named::Symlink { target } => (Left::Link(target.to_owned()), None),
            Named::Regular { content: Bytes::Pool(pool), attributes } => (Left::Pool(pool.0), Some(attributes)),
            Named::Regular { content, attributes } => {
                let file = format!("file-{number}");
                match content {
                    Bytes::Image(image) => space::write(&place.join(&file), image)?,
                    Bytes::Copy(from) => fs::copy(from, place.join(&file)).map(drop)?,
                    Bytes::Pool(_) => {}
                }
                (Left::File(file), Some(attributes))
            }
        };
        let attributes = attributes.cloned().unwrap_or_default();
        written.push(BundledName { path: name.to_owned(), left, mode: attributes.mode, xattrs: attributes.xattrs });
    }
    Ok(written)
}

/// Puts a bundle's files in place. `bundle` is its folder, `stand_in` says where the bytes of a pool are.
pub fn put(
    files: &[BundledName],
    bundle: &Path,
    space: &mut Space,
    stand_in: &dyn Fn(PoolId) -> Option<PathBuf>,
) -> io::Result<()> {
    for name in files {
        let attributes = Attributes { mode: name.mode, xattrs: name.xattrs.clone() };
        let attributes = &attributes;
        let copy;
        let named = match &name.left {
            Left::Nothing => Named::Nothing,
            Left::Folder => Named::Directory { attributes },
            Left::Link(target) => Named::Symlink { target },
            Left::Pool(pool) => Named::Regular { content: Bytes::Pool(PoolId(*pool)), attributes },
            Left::File(file) => {
                copy = bundle.join(file);
                Named::Regular { content: Bytes::Copy(&copy), attributes }
            }
        };
        space.put(&name.path, &named, stand_in)?;
    }
    Ok(())
}

/// The names of a bundle.
pub fn names(files: &[BundledName]) -> Vec<String> {
    files.iter().map(|name| name.path.clone()).collect()
}
