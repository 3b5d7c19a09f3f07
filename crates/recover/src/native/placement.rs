//! How private content comes to lie at a pool's path.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::error::NativeError;
use supervise::mounts::Mounts;

/// A pool and the crash image to find there.
#[derive(Clone, Debug)]
pub struct PoolFile<'a> {
    /// The path that the program uses.
    pub path: PathBuf,
    /// A private file with the crash image. Recovery changes it.
    pub content: &'a Path,
}

/// A pool whose path has been followed to the file that the program would open.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    pub path: PathBuf,
    pub dir: PathBuf,
    pub content: PathBuf,
    /// There is a file at `path`.
    pub exists: bool,
}

impl Pool {
    pub fn find(file: &PoolFile<'_>) -> Result<Pool, NativeError> {
        let failed = |source| NativeError::Pool { path: file.path.clone(), source };
        let path = match file.path.canonicalize() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(dir), Some(name)) = (file.path.parent(), file.path.file_name()) else {
                    return Err(failed(error));
                };
                let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
                dir.canonicalize().map_err(failed)?.join(name)
            }
            found => found.map_err(failed)?,
        };
        let original = fs::metadata(&path).ok();
        if original.as_ref().is_some_and(|m| !m.is_file()) {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
        }
        let image = |source| NativeError::Image { path: file.content.into(), source };
        let content = file.content.canonicalize().map_err(image)?;
        if let Some(original) = &original {
            take_mode(&content, original).map_err(image)?;
        }
        let dir = path.parent().expect("a file has a directory").to_owned();
        Ok(Pool { path, dir, content, exists: original.is_some() })
    }
}

/// Recovery shall find the pool's own permissions; those of another user's pool must at least let us in.
fn take_mode(content: &Path, original: &fs::Metadata) -> io::Result<()> {
    let found = fs::metadata(content)?;
    let ours = found.uid() == original.uid();
    let mode = original.mode() & 0o777 | if ours { 0 } else { 0o600 };
    if found.mode() & 0o777 == mode { Ok(()) } else { fs::set_permissions(content, fs::Permissions::from_mode(mode)) }
}

/// Pools in place, until dropped.
pub(super) trait Placement: fmt::Debug + Send {
    /// What the supervisor of the next run must mount. These directories become private as well, where that is possible.
    fn mounts(&mut self, directories: &[PathBuf]) -> io::Result<Mounts>;

    /// Where the content of a pool is now, as seen from outside of the run. Nothing is there if recovery deleted it.
    fn content(&self, pool: usize) -> PathBuf;
}

/// Makes `to` the same file as `from`, or at least an equal one.
pub(super) fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to).or_else(|_| fs::copy(from, to).map(drop))
}
