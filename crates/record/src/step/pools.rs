//! The pools of a recording: which files are PM, and a descriptor of ours for each, to read their content.

use std::collections::HashMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::rc::Rc;

use trace::event::{PoolId, PoolOffset};
use trace::{PoolContent, PoolInfo, TraceWriter};

use super::error::StepError;
use super::ptrace::Tid;

/// A file by device and inode, with a descriptor of ours.
#[derive(Clone, Debug)]
pub struct SharedFile {
    pub key: FileKey,
    pub path: String,
    pub file: Rc<File>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileKey {
    pub device: u64,
    pub inode: u64,
}

/// The file behind a descriptor of the target, if it is of the kind that can be a pool.
pub fn file_of(tid: Tid, fd: u64) -> Option<FileKey> {
    let info = fs::metadata(descriptor(tid, fd)?).ok()?;
    let dax = info.file_type().is_char_device() && path_of(tid, fd).is_some_and(|path| path.starts_with("/dev/dax"));
    (info.is_file() || dax).then(|| FileKey { device: info.dev(), inode: info.ino() })
}

impl SharedFile {
    /// Does the file have a name? A memfd or a deleted file has none.
    pub fn is_named(&self) -> bool {
        self.file.metadata().is_ok_and(|info| info.nlink() != 0)
    }
}

/// Absolute path behind a descriptor of the target.
pub fn path_of(tid: Tid, fd: u64) -> Option<String> {
    let path = fs::read_link(descriptor(tid, fd)?).ok()?.to_string_lossy().into_owned();
    Some(path.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(path))
}

fn descriptor(tid: Tid, fd: u64) -> Option<String> {
    // Only the low half of the register counts.
    let fd = (fd as u32).cast_signed();
    (fd >= 0).then(|| format!("/proc/{}/fd/{fd}", tid.0))
}

/// File position and open flags of a descriptor.
pub fn position_and_flags(tid: Tid, fd: u64) -> Option<(u64, i32)> {
    let info = fs::read_to_string(format!("/proc/{}/fdinfo/{}", tid.0, (fd as u32).cast_signed())).ok()?;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = i32::from_str_radix(field("flags:")?, 8).ok()?;
    Some((field("pos:")?.parse().ok()?, flags))
}

/// A descriptor of our own for the same file, even if its name is gone.
pub fn open_own(tid: Tid, fd: u64, key: FileKey) -> Result<SharedFile, StepError> {
    let path = path_of(tid, fd).unwrap_or_default();
    let link = descriptor(tid, fd).unwrap_or_default();
    let file = File::open(link).map_err(|source| StepError::Pool { path: path.clone(), source })?;
    Ok(SharedFile { key, path, file: Rc::new(file) })
}

#[derive(Debug)]
struct Pool {
    file: SharedFile,
    /// Length at the last look.
    len: u64,
}

/// All pools, by number.
#[derive(Debug)]
pub struct Pools {
    globs: Vec<String>,
    pools: Vec<Pool>,
    by_key: HashMap<FileKey, PoolId>,
}

impl Pools {
    pub fn new(globs: Vec<String>) -> Pools {
        Pools { globs, pools: Vec::new(), by_key: HashMap::new() }
    }

    pub fn find(&self, key: FileKey) -> Option<PoolId> {
        self.by_key.get(&key).copied()
    }

    /// The pools on a device; on any if there is none.
    pub fn on_device(&self, device: Option<u64>) -> Vec<PoolId> {
        let there = |pool: &&Pool| device.is_none_or(|device| pool.file.key.device == device);
        let numbered = self.pools.iter().zip(0..);
        numbered.filter(|(pool, _)| there(pool)).map(|(_, number)| PoolId(number)).collect()
    }

    pub fn has_globs(&self) -> bool {
        !self.globs.is_empty()
    }

    /// Do the globs make this path a pool?
    pub fn wants(&self, path: &str) -> bool {
        self.globs.iter().any(|glob| matches(glob.as_bytes(), path.as_bytes()))
    }

    /// Makes a file a pool and saves its content; does nothing if it is one already.
    pub fn add(&mut self, trace: &mut TraceWriter, file: &SharedFile) -> Result<PoolId, StepError> {
        if let Some(known) = self.find(file.key) {
            return Ok(known);
        }
        let mut own = file.file.try_clone().map_err(|source| StepError::Pool { path: file.path.clone(), source })?;
        let len = content_len(&mut own, &file.path)?;
        let id = trace.pool(PoolInfo { path: file.path.clone(), len }, &mut own)?;
        self.by_key.insert(file.key, id);
        self.pools.push(Pool { file: file.clone(), len });
        Ok(id)
    }

    /// The file's length, if it has changed since the last look.
    pub fn new_len(&mut self, id: PoolId) -> Option<u64> {
        let pool = &mut self.pools[id.0 as usize];
        let len = pool.file.file.metadata().ok()?.len();
        (len != std::mem::replace(&mut pool.len, len)).then_some(len)
    }

    pub fn len(&self, id: PoolId) -> u64 {
        self.pools[id.0 as usize].len
    }

    /// What the file holds now; fewer bytes at its end.
    pub fn read(&self, id: PoolId, offset: PoolOffset, len: u64) -> Vec<u8> {
        let mut bytes = vec![0; len as usize];
        let mut have = 0;
        while have < bytes.len() {
            match self.pools[id.0 as usize].file.file.read_at(&mut bytes[have..], offset.0 + have as u64) {
                Ok(0) | Err(_) => break,
                Ok(read) => have += read,
            }
        }
        bytes.truncate(have);
        bytes
    }

    /// The pools' files, for their final content.
    pub fn into_files(self) -> Result<Vec<(PoolId, File)>, StepError> {
        let own = |(id, pool): (usize, Pool)| {
            let file = pool.file.file.try_clone();
            let file = file.map_err(|source| StepError::Pool { path: pool.file.path.clone(), source })?;
            Ok((PoolId(u32::try_from(id).expect("fewer than 2^32 pools")), file))
        };
        self.pools.into_iter().enumerate().map(own).collect()
    }
}

fn content_len(file: &mut File, path: &str) -> Result<u64, StepError> {
    PoolContent::len(file).map_err(|source| StepError::Pool { path: path.to_owned(), source })
}

/// `*` matches any characters (`/` too), `?` one; everything else itself.
fn matches(glob: &[u8], path: &[u8]) -> bool {
    match glob {
        [] => path.is_empty(),
        [b'*', rest @ ..] => (0..=path.len()).any(|skip| matches(rest, &path[skip..])),
        [b'?', rest @ ..] => !path.is_empty() && matches(rest, &path[1..]),
        [first, rest @ ..] => path.first() == Some(first) && matches(rest, &path[1..]),
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs() {
        let matches = |glob: &str, path: &str| matches(glob.as_bytes(), path.as_bytes());
        assert!(matches("*.pool", "/tmp/a/b.pool"));
        assert!(matches("/tmp/?/b.*", "/tmp/a/b.pool"));
        assert!(!matches("*.pool", "/tmp/a/b.pools"));
        assert!(!matches("/tmp/?/b.pool", "/tmp/aa/b.pool"));
    }
}
