//! A slot: private files that stand for the pools, and hold one crash image after the other.
//!
//! They lie in memory (`/dev/shm`) where there is room for them: putting a line there costs a write of 64 bytes, however large the
//! pool is. Not through a mapping: where there is no room left, a write says so, and a mapping kills with `SIGBUS`.

use std::ffi::CString;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use supervise::fork_server::ForkServer;
use trace::FileTree;
use trace::event::PoolId;

use crate::folders::can_be_private;
use crate::pages::{self, Content};
use crate::place::Place;
use crate::space::{self, Space};

#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the private copy of the pool `{}`: {source}; is there room in /dev/shm or TMPDIR?", pool.display())]
pub struct SlotError {
    action: &'static str,
    pool: PathBuf,
    source: io::Error,
}

#[derive(Debug)]
struct Private {
    /// Where the program finds the pool.
    pool: PathBuf,
    path: PathBuf,
    file: File,
    len: u64,
    /// As runs find them: as created, or as the crash left them.
    attributes: Attributes,
}

/// Permissions and extended attributes of a file.
#[derive(Debug, PartialEq, Eq)]
struct Attributes {
    mode: u32,
    /// Each with its value.
    extended: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Names that a recording tells of, and folders whose files recovery shall find as they were.
#[derive(Clone, Copy, Debug)]
pub struct RecordedNames<'a> {
    pub names: &'a [String],
    pub folders: &'a [PathBuf],
}

/// With less than this left, a program that changes its pools may be killed for it (`SIGBUS`), or refused.
const LEAST_ROOM: u64 = 256 << 10;

/// The kernel's `XATTR_SIZE_MAX`.
const LONGEST_VALUE: usize = 64 << 10;

/// The stand-ins of all pools.
#[derive(Debug)]
pub struct Slot {
    place: Place,
    pools: Vec<Private>,
    /// The files beside the pools.
    pub space: Space,
}

impl Slot {
    /// Empty stand-ins for these pools, all bytes zero.
    pub fn create(pools: &[(PathBuf, u64)]) -> Result<Slot, SlotError> {
        Slot::with_files(pools, &[])
    }

    /// As [`create`](Self::create), with room for the files of these recorded names beside the pools: in the folders of the pools, and in
    /// those in `folders`.
    pub fn with_files(pools: &[(PathBuf, u64)], files: &[RecordedNames<'_>]) -> Result<Slot, SlotError> {
        let first = pools.first().map(|(path, _)| path.clone()).unwrap_or_default();
        let total = pools.iter().map(|(_, len)| *len).sum();
        let place =
            Place::new(total).map_err(|source| SlotError { action: "make a place for", pool: first, source })?;
        let folders = pools.iter().filter_map(|(path, _)| path.parent()).map(Path::to_owned);
        let names: Vec<String> = files.iter().flat_map(|files| files.names.iter().cloned()).collect();
        // A working directory that cannot be private would keep the pools' folders in it from being so.
        let others = files.iter().flat_map(|files| files.folders.iter()).filter(|folder| can_be_private(folder));
        let folders = folders.chain(others.cloned());
        let space = Space::create(&place.path().join("files"), &space::roots(folders, &names), &names)
            .map_err(failed("make a place beside", pools.first().map_or(Path::new(""), |(path, _)| path)))?;
        let pools = pools
            .iter()
            .enumerate()
            .map(|(number, (pool, len))| {
                // The name stays: programs look at it.
                let folder = place.path().join(number.to_string());
                let path = folder.join(pool.file_name().unwrap_or(pool.as_os_str()));
                let error = |action| failed(action, pool);
                fs::create_dir(&folder).map_err(error("make a place for"))?;
                let file = create(&path).map_err(error("create"))?;
                let attributes = Attributes::of(&file, &path).map_err(error("look at"))?;
                let mut private = Private { pool: pool.clone(), path, file, len: 0, attributes };
                private.set_len(*len)?;
                Ok(private)
            })
            .collect::<Result<_, _>>()?;
        Ok(Slot { place, pools, space })
    }

    /// Path of each pool, and of its stand-in.
    pub fn paths(&self) -> impl Iterator<Item = (&Path, &Path)> {
        self.pools.iter().map(|p| (p.pool.as_path(), p.path.as_path()))
    }

    /// Where the stand-ins lie, and what else belongs to runs on them.
    pub(crate) fn place(&self) -> &Path {
        self.place.path()
    }

    /// Tells a server which files the stand-ins are now, and how long.
    pub(crate) fn tell(&self, server: &ForkServer) {
        for (number, private) in self.pools.iter().enumerate() {
            server.set_file(number, private.file.metadata().ok().as_ref());
        }
    }

    /// A run has changed the permissions or attributes of a stand-in: it must be made anew.
    pub(crate) fn is_altered(&self) -> bool {
        self.pools.iter().any(Private::is_altered)
    }

    pub fn len(&self, pool: PoolId) -> u64 {
        self.pools.get(pool.0 as usize).map_or(0, |p| p.len)
    }

    /// Puts the files beside the pools in place, and the pools under their names.
    pub fn show_files(&mut self, tree: &FileTree) -> Result<(), SlotError> {
        let pools = &self.pools;
        let stand_in = |pool: PoolId| pools.get(pool.0 as usize).map(|private| private.path.clone());
        let first = pools.first().map(|private| private.pool.clone()).unwrap_or_default();
        self.space.show(tree, &stand_in).map_err(failed("put in place the files beside", &first))?;
        // What a pool was given with its name is not what a run has changed.
        for private in &mut self.pools {
            let attributes = Attributes::of(&private.file, &private.path);
            private.attributes = attributes.map_err(failed("look at", &private.pool))?;
        }
        Ok(())
    }

    pub fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// After a run that failed: was there room for what it did? If not, nothing is known about the program.
    pub fn had_room(&self) -> Result<(), SlotError> {
        let pool = self.pools.first().map(|private| private.pool.clone()).unwrap_or_default();
        match self.place.room() {
            Ok(LEAST_ROOM..) => Ok(()),
            Ok(_) => {
                let source = io::Error::from_raw_os_error(libc::ENOSPC);
                Err(SlotError { action: "let a program change", pool, source })
            }
            Err(source) => Err(SlotError { action: "look at the room of", pool, source }),
        }
    }

    /// As [`had_room`](Self::had_room), for runs that may have made the pools anew: is there room for as much as the real ones take, beside what
    /// the stand-ins have already? A program that reserves its whole pool is refused that where there is less, and takes nothing then.
    pub fn had_room_for_all(&self) -> Result<(), SlotError> {
        self.had_room()?;
        let blocks = |path: &Path| fs::metadata(path).map_or(0, |found| found.blocks() * 512);
        let wanted = |private: &Private| blocks(&private.pool).saturating_sub(blocks(&private.path));
        let wanted: u64 = self.pools.iter().map(wanted).sum();
        match (self.place.room(), self.pools.first()) {
            (Ok(room), Some(private)) if room < wanted => {
                let source = io::Error::from_raw_os_error(libc::ENOSPC);
                Err(SlotError { action: "let a program make", pool: private.pool.clone(), source })
            }
            _ => Ok(()),
        }
    }

    /// The file that stands for a pool now, if there is one.
    pub fn metadata(&self, pool: PoolId) -> Option<Metadata> {
        fs::metadata(&self.pools.get(pool.0 as usize)?.path).ok()
    }

    /// What the file that stands for a pool holds now, whoever made it; none: there is no file. Of a file in memory only those pages are
    /// looked at that somebody has written.
    pub fn content(&self, pool: PoolId) -> Result<Option<Content>, SlotError> {
        let Some(private) = self.pools.get(pool.0 as usize) else { return Ok(None) };
        match File::open(&private.path).and_then(|file| Content::of(&file)) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed("read", &private.pool)(error)),
        }
    }

    /// Makes the file that stands for a pool anew with this content. Zeros take no room.
    pub fn put(&mut self, pool: PoolId, content: &Content) -> Result<(), SlotError> {
        let Some(private) = self.pools.get_mut(pool.0 as usize) else { return Ok(()) };
        private.file = create(&private.path).map_err(failed("create", &private.pool))?;
        private.set_len(content.len())?;
        content.write(&private.file).map_err(failed("fill", &private.pool))
    }

    /// After a run that made pools itself: the stand-ins are what it has made.
    pub fn adopt(&mut self) -> Result<(), SlotError> {
        for private in &mut self.pools {
            let opened = OpenOptions::new().read(true).write(true).open(&private.path);
            let file = match opened {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                opened => opened.map_err(failed("open", &private.pool))?,
            };
            private.len = file.metadata().map_err(failed("look at", &private.pool))?.len();
            private.file = file;
        }
        Ok(())
    }

    /// Bytes of a stand-in; zeros beyond its end.
    pub fn read(&self, pool: PoolId, offset: u64, bytes: &mut [u8]) -> Result<(), SlotError> {
        let Some(private) = self.pools.get(pool.0 as usize) else { return Ok(()) };
        pages::read_zeros_beyond(&private.file, offset, bytes).map_err(failed("read", &private.pool))
    }

    /// Takes the files away: the program finds no pool. [`renew`](Self::renew) brings them back.
    pub fn remove(&mut self) -> Result<(), SlotError> {
        for private in &mut self.pools {
            match fs::remove_file(&private.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(failed("remove", &private.pool)(error));
                }
                _ => private.len = 0,
            }
        }
        Ok(())
    }

    /// Copies bytes into a stand-in. What lies beyond its end is left out.
    pub fn write(&mut self, pool: PoolId, offset: u64, bytes: &[u8]) -> Result<(), SlotError> {
        let Some(private) = self.pools.get(pool.0 as usize) else { return Ok(()) };
        let end = private.len.min(offset.saturating_add(bytes.len() as u64));
        let inside = end.saturating_sub(offset) as usize;
        private.file.write_all_at(&bytes[..inside], offset).map_err(failed("fill", &private.pool))
    }

    /// Changes the length of a stand-in.
    pub fn set_len(&mut self, pool: PoolId, len: u64) -> Result<(), SlotError> {
        match self.pools.get_mut(pool.0 as usize) {
            Some(private) if private.len != len => private.set_len(len),
            _ => Ok(()),
        }
    }

    /// After a run that may have changed the files themselves: every stand-in is there again, empty, with this length. Everything
    /// must be written anew.
    pub fn renew(&mut self, len: impl Fn(PoolId) -> u64) -> Result<(), SlotError> {
        // Stand-ins that are made anew have lost their names.
        self.space.forget();
        for (number, private) in self.pools.iter_mut().enumerate() {
            let pool = private.pool.clone();
            let error = |action| failed(action, &pool);
            let same = fs::metadata(&private.path).is_ok_and(|now| {
                private.file.metadata().is_ok_and(|own| own.ino() == now.ino() && own.dev() == now.dev())
            }) && !private.is_altered();
            if !same {
                let _ = fs::remove_file(&private.path);
                let _ = fs::remove_dir_all(&private.path);
                private.file = create(&private.path).map_err(error("create"))?;
                private.attributes = Attributes::of(&private.file, &private.path).map_err(error("look at"))?;
            }
            private.file.set_len(0).map_err(error("empty"))?;
            private.set_len(len(PoolId(number as u32)))?;
        }
        Ok(())
    }
}

impl Private {
    fn is_altered(&self) -> bool {
        !Attributes::of(&self.file, &self.path).is_ok_and(|now| now == self.attributes)
    }

    fn set_len(&mut self, len: u64) -> Result<(), SlotError> {
        let pool = self.pool.clone();
        let error = |action| failed(action, &pool);
        self.file.set_len(len).map_err(error("size"))?;
        self.len = len;
        Ok(())
    }
}

impl Attributes {
    fn of(file: &File, path: &Path) -> io::Result<Attributes> {
        let mode = file.metadata()?.mode();
        // SAFETY: asks for the size of the list only.
        let extended = match unsafe { libc::flistxattr(file.as_raw_fd(), std::ptr::null_mut(), 0) } {
            1.. => extended(file, &attributes(path)),
            // A file system without them has none.
            _ => Vec::new(),
        };
        Ok(Attributes { mode, extended })
    }
}

/// The values of a file's extended attributes with these names.
fn extended(file: &File, names: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let value = |name: &[u8]| {
        let c_name = CString::new(name).ok()?;
        let mut value = vec![0_u8; LONGEST_VALUE];
        // SAFETY: a C string and a live buffer of the length given.
        let filled =
            unsafe { libc::fgetxattr(file.as_raw_fd(), c_name.as_ptr(), value.as_mut_ptr().cast(), value.len()) };
        value.truncate(filled.max(0) as usize);
        Some((name.to_vec(), value))
    };
    names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).filter_map(value).collect()
}

fn failed(action: &'static str, pool: &Path) -> impl FnOnce(io::Error) -> SlotError {
    move |source| SlotError { action, pool: pool.to_owned(), source }
}

/// Names of a file's extended attributes, each with a zero byte; links are not followed.
pub(crate) fn attributes(path: &Path) -> Vec<u8> {
    let Ok(path) = CString::new(path.as_os_str().as_bytes()) else { return Vec::new() };
    let mut names = vec![0_u8; 4096];
    // SAFETY: a C string and a live buffer of the length given.
    let filled = unsafe { libc::llistxattr(path.as_ptr(), names.as_mut_ptr().cast(), names.len()) };
    names.truncate(filled.max(0) as usize);
    names
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path)
}
