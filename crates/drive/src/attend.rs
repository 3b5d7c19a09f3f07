//! Attends a daemon that is recovered by the fork server: the daemon alone runs under the probe, and is forked for every crash
//! image; this process stays outside, waits in the daemon's mount namespace until it has mounted, walks and tries the tree, and
//! unmounts, which ends the daemon.
//!
//! ```text
//!   host ── begin ──►  waits for the mount, walks, tries, unmounts
//!        ── end ────►  the daemon has ended: whoever still waits stops
//!        ◄── length, report
//! ```

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::path::Path;

use fs::usable::Growth;
use fs::walk::walk;

use crate::error::{DriveError, system};
use crate::fuse::{detach, how_unmounted, is_mounted, unmount, usability};

/// One byte for each request.
pub const BEGIN: u8 = b'b';
pub const END: u8 = b'e';

/// Serves until the host closes its end.
pub fn run(mount: &Path, process: u32, growth: Growth) -> Result<(), DriveError> {
    let open = |what: &str| File::open(format!("/proc/{process}/{what}"));
    // Before this process is where /proc does not know it.
    let mounts = open("mountinfo").map_err(system("watch the mounts of the daemon"))?;
    let namespace = open("ns/mnt").map_err(system("find the mounts of the daemon"))?;
    // SAFETY: an open descriptor of a namespace.
    if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNS) } != 0 {
        return Err(system("see the mounts of the daemon")(io::Error::last_os_error()));
    }
    let mut output = io::stdout().lock();
    while let Some(request) = next()? {
        if request != BEGIN {
            continue;
        }
        let (report, ended) = attend(mount, &mounts, growth)?;
        if !ended && next()?.is_none() {
            return Ok(());
        }
        detach(mount);
        let head = (report.len() as u64).to_le_bytes();
        let sent = output.write_all(&head).and_then(|()| output.write_all(report.as_bytes()));
        sent.and_then(|()| output.flush()).map_err(system("report what was found"))?;
    }
    Ok(())
}

/// One byte, and no more: what lies in a buffer of ours cannot be waited for.
fn next() -> Result<Option<u8>, DriveError> {
    let mut byte = 0_u8;
    loop {
        // SAFETY: one live byte to read into.
        match unsafe { libc::read(libc::STDIN_FILENO, (&raw mut byte).cast(), 1) } {
            1 => return Ok(Some(byte)),
            0 => return Ok(None),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(system("wait for the host")(io::Error::last_os_error())),
        }
    }
}

/// What was found, and whether the host has said already that the daemon ended.
fn attend(mount: &Path, mounts: &File, growth: Growth) -> Result<(String, bool), DriveError> {
    while !is_mounted(mount) {
        let mut polled = [
            libc::pollfd { fd: mounts.as_raw_fd(), events: libc::POLLPRI, revents: 0 },
            libc::pollfd { fd: libc::STDIN_FILENO, events: libc::POLLIN, revents: 0 },
        ];
        // SAFETY: two live entries.
        let count = unsafe { libc::poll(polled.as_mut_ptr(), 2, -1) };
        if count < 0 && io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Err(system("wait for the mount")(io::Error::last_os_error()));
        }
        if polled[1].revents != 0 && !is_mounted(mount) {
            next()?;
            return Ok((String::new(), true));
        }
    }
    let tree = walk(mount);
    let usable = usability(mount, growth);
    let unmounted = unmount(mount);
    if unmounted.is_err() {
        detach(mount);
    }
    Ok((format!("{tree}ok\n{usable}\n{}\n", how_unmounted(unmounted)), false))
}
