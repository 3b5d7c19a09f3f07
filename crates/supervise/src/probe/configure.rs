//! Fills in the control area before the target starts.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use wire::control::{Control, MAX_GLOBS, MAX_WATCHES, TEXT_BYTES, TextRef, WIRE_VERSION, option};
use wire::recover::{MAX_PRIVATE, MAX_ROOTS, MAX_SUBSTITUTES, NOWHERE, Substitute};
use wire::virtual_time::{RANDOM_SEED, VIRTUAL_TSC_START};

use super::error::{LaunchError, os};
use super::options::{ProbeOptions, Substituted};

/// No process has this pid: the slot is free.
const FREE_SLOT: u32 = u32::MAX;
/// The first process does not know its pid yet.
const FIRST_PROCESS: u32 = 0;

/// Writes the options and the first exec request.
pub(super) fn configure(control: &mut Control, program: &Path, options: &ProbeOptions) -> Result<(), LaunchError> {
    if options.flow && options.loads {
        return Err(LaunchError::FlowAndLoads);
    }
    control.version = WIRE_VERSION;
    control.options = bits(options);
    control.cache_bytes = options.cache_bytes;
    (control.input_device, control.input_inode) = options.input.unwrap_or_default();
    // The first process and its first thread have number 0; the probe gives out the rest.
    control.next_process.store(1, Ordering::Relaxed);
    control.next_thread.store(1, Ordering::Relaxed);
    control.live_processes.store(1, Ordering::Relaxed);
    control.virtual_tsc.store(VIRTUAL_TSC_START, Ordering::Relaxed);
    control.random_state.store(RANDOM_SEED, Ordering::Relaxed);

    let mut text = Text { control, used: 0 };
    let globs = text.add_all("pm", &options.pools, MAX_GLOBS)?;
    let watches = text.add_all("watch", &options.watch, MAX_WATCHES)?;
    substitute(&mut text, &options.substitutes)?;
    let used = text.used;
    control.text_used = used as u32;
    control.glob_count = globs.len() as u32;
    control.watch_count = watches.len() as u32;
    control.globs[..globs.len()].copy_from_slice(&globs);
    control.watches[..watches.len()].copy_from_slice(&watches);

    control.streams = options.streams.unwrap_or([0, 1, 2]).map(file_behind);

    for slot in &mut control.exec_slots {
        *slot.pid.get_mut() = FREE_SLOT;
    }
    let first = &mut control.exec_slots[0];
    let path = program.as_os_str().as_bytes();
    if path.len() > first.path.len() {
        return Err(LaunchError::PathTooLong(path.len()));
    }
    *first.pid.get_mut() = FIRST_PROCESS;
    first.process = 0;
    first.thread = 0;
    first.path_len = path.len() as u32;
    first.path[..path.len()].copy_from_slice(path);
    Ok(())
}

/// Device and inode of the file behind a descriptor of ours.
fn file_behind(fd: i32) -> [u64; 2] {
    let found = std::fs::metadata(format!("/proc/self/fd/{fd}"));
    found.map_or([0, 0], |found| [found.dev(), found.ino()])
}

fn bits(options: &ProbeOptions) -> u32 {
    let mut bits = 0;
    for (on, bit) in [
        (options.loads, option::LOADS),
        (options.real_time, option::REAL_TIME),
        (options.real_random, option::REAL_RANDOM),
        (options.real_tsc, option::REAL_TSC),
        (options.operations_stdin, option::OPERATIONS_STDIN),
        (options.pools.is_empty(), option::PM_DEFAULT),
        (options.flow, option::FLOW),
        (options.flow && options.input.is_some(), option::VALUES),
        (options.files, option::FILES),
    ] {
        if on {
            bits |= bit;
        }
    }
    bits
}

/// Writes what a recovery run needs beyond [`configure`]: the pools and their stand-ins. No globs are there.
pub(crate) fn configure_recovery(
    control: &mut Control,
    pools: &[Substituted],
    private: &[PathBuf],
) -> Result<(), LaunchError> {
    control.options |= option::RECOVER | option::LOADS;
    control.options &= !option::PM_DEFAULT;
    *control.recovery.stop_at.get_mut() = NOWHERE;
    *control.recovery.in_place.get_mut() = 1;
    for (at, pool) in pools.iter().enumerate() {
        let stand_in = match pool.private.metadata() {
            // With coverage a run may make it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            found => found.map_err(os("look at the stand-in of a pool"))?,
        };
        *control.pools[at].device.get_mut() = stand_in.dev();
        *control.pools[at].inode.get_mut() = stand_in.ino();
        *control.pools[at].len.get_mut() = stand_in.len();
    }
    *control.pool_count.get_mut() = pools.len() as u32;
    let mut text = Text { used: control.text_used as usize, control: &mut *control };
    // One that does not fit is taken for public, which is on the safe side.
    for (at, dir) in private.iter().take(MAX_PRIVATE).enumerate() {
        let Some(dir) = text.add(dir.as_os_str().as_bytes()) else { break };
        text.control.recovery.private[at] = dir;
        text.control.recovery.private_count = at as u32 + 1;
    }
    let used = text.used;
    control.text_used = used as u32;
    Ok(())
}

/// A recovery run that counts what it does. What it reads is not told.
pub(crate) fn cover(control: &mut Control) {
    control.options |= option::COVER;
    control.options &= !option::LOADS;
}

/// Tells the probe which paths stand for which private files.
fn substitute(text: &mut Text<'_>, pools: &[Substituted]) -> Result<(), LaunchError> {
    let too_many = || LaunchError::TooMany { option: "pm", most: MAX_SUBSTITUTES };
    if pools.len() > MAX_SUBSTITUTES {
        return Err(too_many());
    }
    for (at, pool) in pools.iter().enumerate() {
        let path = text.add(pool.path.as_os_str().as_bytes()).ok_or_else(too_many)?;
        let private = text.add(pool.private.as_os_str().as_bytes()).ok_or_else(too_many)?;
        let (device, inode) = pool.path.metadata().map_or((0, 0), |m| (m.dev(), m.ino()));
        text.control.recovery.substitutes[at] = Substitute {
            path,
            private,
            device,
            inode,
            inside_device: AtomicU64::new(0),
            inside_inode: AtomicU64::new(0),
        };
    }
    text.control.recovery.substitute_count = pools.len() as u32;
    Ok(())
}

/// Tells the probe which folders stand for which: see [`wire::recover::Recovery::roots`].
pub(crate) fn configure_roots(control: &mut Control, roots: &[Substituted]) -> Result<(), LaunchError> {
    let too_many = || LaunchError::TooMany { option: "files", most: MAX_ROOTS };
    if roots.len() > MAX_ROOTS {
        return Err(too_many());
    }
    let mut text = Text { used: control.text_used as usize, control: &mut *control };
    for (at, root) in roots.iter().enumerate() {
        let path = text.add(root.path.as_os_str().as_bytes()).ok_or_else(too_many)?;
        let private = text.add(root.private.as_os_str().as_bytes()).ok_or_else(too_many)?;
        text.control.recovery.roots[at] = Substitute {
            path,
            private,
            device: 0,
            inode: 0,
            inside_device: AtomicU64::new(0),
            inside_inode: AtomicU64::new(0),
        };
    }
    text.control.recovery.root_count = roots.len() as u32;
    let used = text.used;
    control.text_used = used as u32;
    Ok(())
}

/// The area for strings.
struct Text<'a> {
    control: &'a mut Control,
    used: usize,
}

impl Text<'_> {
    fn add_all(&mut self, option: &'static str, strings: &[String], most: usize) -> Result<Vec<TextRef>, LaunchError> {
        if strings.len() > most {
            return Err(LaunchError::TooMany { option, most });
        }
        strings.iter().map(|s| self.add(s.as_bytes()).ok_or(LaunchError::TooMany { option, most })).collect()
    }

    fn add(&mut self, string: &[u8]) -> Option<TextRef> {
        let end = self.used + string.len();
        if end > TEXT_BYTES {
            return None;
        }
        self.control.text[self.used..end].copy_from_slice(string);
        let reference = TextRef { start: self.used as u32, len: string.len() as u32 };
        self.used = end;
        Some(reference)
    }
}
