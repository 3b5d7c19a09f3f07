//! The pool's file is moved aside and the image takes its place, for everybody: where no private mount is allowed.
//!
//! Beside `pool` there are, while a session lasts, `.pool.fencepost-swap` (the journal, locked by the session) and
//! `.pool.fencepost-aside` (the original). If the host dies a [`Watchdog`] puts the original back; if that dies too, the
//! next session or [`repair`] does. What then lies at the pool's path is moved to `.pool.fencepost-image`, not deleted: it may by now be
//! something that the user made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::placement::{Placement, Pool, link_or_copy};
use super::watchdog::{Duty, Watchdog};
use supervise::mounts::Mounts;

#[derive(Debug)]
pub(super) struct Swap {
    swapped: Vec<Swapped>,
}

impl Swap {
    /// Waits for other sessions with the same pool.
    pub fn prepare(pools: &[Pool]) -> Result<Swap, (PathBuf, io::Error)> {
        let mut order: Vec<usize> = (0..pools.len()).collect();
        // All sessions take their locks in one order.
        order.sort_by(|&a, &b| pools[a].path.cmp(&pools[b].path));
        let mut swapped: Vec<(usize, Swapped)> = Vec::new();
        for at in order {
            let pool = &pools[at];
            swapped.push((at, Swapped::swap(&pool.path, &pool.content).map_err(|error| (pool.path.clone(), error))?));
        }
        swapped.sort_by_key(|(at, _)| *at);
        Ok(Swap { swapped: swapped.into_iter().map(|(_, swapped)| swapped).collect() })
    }
}

impl Placement for Swap {
    fn mounts(&mut self, _: &[PathBuf]) -> io::Result<Mounts> {
        Ok(Mounts::default())
    }

    fn content(&self, pool: usize) -> PathBuf {
        self.swapped[pool].names.pool.clone()
    }
}

/// Puts back a pool that an interrupted session had moved aside. True if there was one. Waits while a session lasts.
pub fn repair(pool: &Path) -> io::Result<bool> {
    let names = Names::of(pool)?;
    if !names.journal.exists() {
        return Ok(false);
    }
    let (journal, found) = lock(&names)?;
    let done = finish_interrupted(&names, found)?;
    fs::remove_file(&names.journal)?;
    drop(journal);
    Ok(done)
}

/// The files that take part.
#[derive(Debug)]
struct Names {
    pool: PathBuf,
    journal: PathBuf,
    aside: PathBuf,
    image: PathBuf,
}

impl Names {
    fn of(pool: &Path) -> io::Result<Names> {
        let name = pool.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_os_string();
        let beside = |end: &str| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(&name);
            hidden.push(end);
            pool.with_file_name(hidden)
        };
        Ok(Names {
            pool: pool.to_owned(),
            journal: beside(".fencepost-swap"),
            aside: beside(".fencepost-aside"),
            image: beside(".fencepost-image"),
        })
    }
}

/// What the journal says: how things were before the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// Nothing was begun.
    Untouched,
    /// A pool was there.
    Pool,
    /// No file was at the pool's path.
    Nothing,
}

#[derive(Debug)]
struct Swapped {
    names: Names,
    before: Before,
    watchdog: Option<Watchdog>,
    /// Locked as long as it is open.
    _journal: File,
}

impl Swapped {
    fn swap(pool: &Path, image: &Path) -> io::Result<Swapped> {
        let names = Names::of(pool)?;
        let (mut journal, found) = lock(&names)?;
        finish_interrupted(&names, found)?;
        let before = if pool.exists() { Before::Pool } else { Before::Nothing };
        journal.set_len(0)?;
        journal.rewind()?;
        journal.write_all(if before == Before::Pool { b"pool\n" } else { b"nothing\n" })?;
        journal.sync_data()?;
        let aside = (before == Before::Pool).then_some(names.aside.as_path());
        let watchdog = Watchdog::post(&Duty::new(pool, aside, &names.image, &names.journal)?, &journal)?;
        // From here on dropping it puts things back.
        let swapped = Swapped { names, before, watchdog: Some(watchdog), _journal: journal };
        if before == Before::Pool {
            fs::rename(pool, &swapped.names.aside)?;
        }
        link_or_copy(image, pool)?;
        Ok(swapped)
    }
}

impl Drop for Swapped {
    fn drop(&mut self) {
        // If this fails the journal stays, and the next session or `repair` tries again.
        let put_back = match self.before {
            Before::Pool if !self.names.aside.exists() => Ok(()),
            Before::Pool => fs::rename(&self.names.aside, &self.names.pool),
            Before::Nothing | Before::Untouched => remove_if_there(&self.names.pool),
        };
        if put_back.is_ok() {
            let _ = fs::remove_file(&self.names.journal);
        }
        // Only now, so that there is never a moment without one.
        drop(self.watchdog.take());
    }
}

/// The journal, locked, and what it says.
fn lock(names: &Names) -> io::Result<(File, Before)> {
    loop {
        let mut journal =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&names.journal)?;
        // SAFETY: plain system call on an open file.
        while unsafe { libc::flock(journal.as_raw_fd(), libc::LOCK_EX) } != 0 {
            let error = io::Error::last_os_error();
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        // Its owner may have removed it while we waited.
        if !fs::metadata(&names.journal).is_ok_and(|now| journal.metadata().is_ok_and(|m| m.ino() == now.ino())) {
            continue;
        }
        let mut text = String::new();
        journal.read_to_string(&mut text)?;
        let before = match text.trim() {
            "pool" => Before::Pool,
            "nothing" => Before::Nothing,
            _ => Before::Untouched,
        };
        return Ok((journal, before));
    }
}

fn finish_interrupted(names: &Names, before: Before) -> io::Result<bool> {
    let interrupted = match before {
        Before::Untouched => false,
        // Without the original aside nothing was moved yet, or all was put back.
        Before::Pool => names.aside.exists(),
        Before::Nothing => names.pool.exists(),
    };
    if interrupted {
        if names.pool.exists() {
            fs::rename(&names.pool, &names.image)?;
        }
        if before == Before::Pool {
            fs::rename(&names.aside, &names.pool)?;
        }
    }
    Ok(interrupted)
}

fn remove_if_there(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(dir: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_original_comes_back_whatever_recovery_did() {
        let dir = tempfile::tempdir().unwrap();
        let (pool, image) = (dir.path().join("pool"), dir.path().join("image"));
        fs::write(&pool, b"original").unwrap();
        fs::write(&image, b"image").unwrap();
        for deleted in [false, true] {
            let swapped = Swapped::swap(&pool, &image).unwrap();
            assert_eq!(fs::read(&pool).unwrap(), b"image");
            if deleted {
                fs::remove_file(&pool).unwrap();
            } else {
                fs::write(&pool, b"recovered").unwrap();
                fs::write(&image, b"image").unwrap();
            }
            drop(swapped);
            assert_eq!(fs::read(&pool).unwrap(), b"original");
            assert_eq!(files(dir.path()), ["image", "pool"]);
        }
    }

    #[test]
    fn a_pool_that_was_not_there_is_not_there_afterwards() {
        let dir = tempfile::tempdir().unwrap();
        let (pool, image) = (dir.path().join("pool"), dir.path().join("image"));
        fs::write(&image, b"image").unwrap();
        drop(Swapped::swap(&pool, &image).unwrap());
        assert_eq!(files(dir.path()), ["image"]);
    }

    #[test]
    fn an_interrupted_session_is_repaired_and_nothing_is_lost() {
        let dir = tempfile::tempdir().unwrap();
        let pool = dir.path().join("pool");
        let names = Names::of(&pool).unwrap();
        fs::write(&names.journal, b"pool\n").unwrap();
        fs::write(&names.aside, b"original").unwrap();
        fs::write(&pool, b"image").unwrap();
        assert!(repair(&pool).unwrap());
        assert_eq!(fs::read(&pool).unwrap(), b"original");
        assert_eq!(fs::read(&names.image).unwrap(), b"image");
        assert!(!repair(&pool).unwrap());
        assert_eq!(files(dir.path()), [".pool.fencepost-image", "pool"]);
    }

    #[test]
    fn a_session_that_never_moved_the_pool_needs_no_repair() {
        let dir = tempfile::tempdir().unwrap();
        let pool = dir.path().join("pool");
        fs::write(&pool, b"original").unwrap();
        fs::write(Names::of(&pool).unwrap().journal, b"pool\n").unwrap();
        assert!(!repair(&pool).unwrap());
        assert_eq!(fs::read(&pool).unwrap(), b"original");
        assert_eq!(files(dir.path()), ["pool"]);
    }
}
