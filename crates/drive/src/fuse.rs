//! A file system in user space: its daemon is started and mounts; operations are run on the mount, one after the other; then it is
//! unmounted, and the daemon must end.
//!
//! Beside operations there are three lines of our own: `walk` prints the whole tree, `usable` tries whether it can be used and
//! removes everything, and at the end of the input one line says how unmounting went.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fs::agent::UNUSABLE;
use fs::errno::Errno;
use fs::execute::Executor;
use fs::op::Op;
use fs::sys;
use fs::tree::{Body, Found, Tree};
use fs::usable::{Growth, usable_with};
use fs::walk::walk;

use crate::command::{answer, how};
use crate::error::{DriveError, system};
use crate::input::Input;

/// Between two looks at a daemon that mounts or ends. Time is virtual in a recording, so looks are counted.
const PAUSE: Duration = Duration::from_micros(300);
const LOOKS: u32 = 60_000;
/// A mount may be busy for a moment: closing a file reaches the daemon after `close` has returned.
const BUSY_LOOKS: u32 = 1_000;

/// What the last line of a run says if the file system was unmounted.
pub const UNMOUNTED: &str = "unmounted";
/// Else, with the error.
pub const STILL_MOUNTED: &str = "unmount ";

/// Takes operations until there are no more, then unmounts.
pub fn run(mount: &Path, daemon: &[OsString]) -> Result<(), DriveError> {
    let mut input = Input::begin()?;
    let mut mounted = Mounted::start(mount, daemon)?;
    serve(&mut input, mount, walk)?;
    if mounted.ended()?.is_some_and(|status| status.success()) {
        detach(mount);
        return Err(DriveError::InBackground);
    }
    let unmounted = unmount(mount);
    print(format_args!("{}\n", how_unmounted(unmounted)))?;
    mounted.end(mount, unmounted.is_ok())
}

/// Operations on a folder, whose system calls a preloaded library may intercept. What is said is as of a mount.
pub fn run_in_folder(root: &Path) -> Result<(), DriveError> {
    serve(&mut Input::begin()?, root, walk_kernels)?;
    print(format_args!("{UNMOUNTED}\n"))
}

/// The tree of a folder: link counts of directories are the kernel's own business, and differ between its file systems.
fn walk_kernels(root: &Path) -> Tree {
    let mut tree = walk(root);
    for found in tree.entries.values_mut() {
        if let Found::Entry(entry) = found
            && entry.body == Body::Dir
        {
            entry.links = 1;
        }
    }
    tree
}

/// Answers lines until there are no more.
fn serve(input: &mut Input, mount: &Path, walk: fn(&Path) -> Tree) -> Result<(), DriveError> {
    let mut executor = Executor::new(mount);
    while let Some(line) = input.next_line()? {
        let line = String::from_utf8_lossy(&line).into_owned();
        match line.trim() {
            "walk" => print(format_args!("{}ok\n", walk(mount)))?,
            text => match (Growth::of_line(text), text.parse::<Op>()) {
                (Some(growth), _) => {
                    executor.close_all();
                    print(format_args!("{}\n", usability(mount, growth)))?;
                }
                (None, Ok(op)) => print(format_args!("{}\n", executor.run(&op)))?,
                (None, Err(error)) => {
                    return Err(DriveError::Unsendable { operation: line, what: error.to_string() });
                }
            },
        }
    }
    executor.close_all();
    Ok(())
}

/// `ok`, or what cannot be done.
pub(crate) fn usability(mount: &Path, growth: Growth) -> String {
    match usable_with(mount, growth) {
        Ok(()) => "ok".into(),
        Err(unusable) => format!("{UNUSABLE}{unusable}"),
    }
}

pub(crate) fn how_unmounted(unmounted: Result<(), Errno>) -> String {
    match unmounted {
        Ok(()) => UNMOUNTED.into(),
        Err(errno) => format!("{STILL_MOUNTED}{errno}"),
    }
}

fn print(text: std::fmt::Arguments<'_>) -> Result<(), DriveError> {
    answer(text)?;
    io::stdout().flush().map_err(system("print an answer"))
}

/// Is something mounted there? One whose daemon is gone is mounted as well.
pub(crate) fn is_mounted(mount: &Path) -> bool {
    let device = |path: &Path| sys::c_path(path).and_then(|path| sys::lstat(&path)).map(|stat| stat.st_dev);
    match (device(mount), mount.parent().map(device)) {
        (Ok(own), Some(Ok(above))) => own != above,
        (Err(errno), _) => errno == Errno(libc::ENOTCONN),
        _ => false,
    }
}

pub(crate) fn unmount_now(mount: &Path, flags: i32) -> Result<(), Errno> {
    let path = sys::c_path(mount)?;
    // SAFETY: a C string and a number.
    if unsafe { libc::umount2(path.as_ptr(), flags) } == 0 { Ok(()) } else { Err(Errno::last()) }
}

/// Unmounts; who may not do so himself asks fusermount3.
pub(crate) fn unmount(mount: &Path) -> Result<(), Errno> {
    for _ in 0..BUSY_LOOKS {
        match unmount_now(mount, 0) {
            Err(Errno(libc::EBUSY)) => sleep(PAUSE),
            Err(errno @ Errno(libc::EPERM)) => {
                let helper = Command::new("fusermount3").arg("-u").arg(mount).stderr(Stdio::null()).status();
                return if helper.is_ok_and(|status| status.success()) { Ok(()) } else { Err(errno) };
            }
            unmounted => return unmounted,
        }
    }
    Err(Errno(libc::EBUSY))
}

/// Whatever is there must not be in the way of the next run.
pub(crate) fn detach(mount: &Path) {
    /// More mounts above one another are nobody's.
    const MOST: usize = 8;
    for _ in 0..MOST {
        if !is_mounted(mount) || unmount_now(mount, libc::MNT_DETACH).is_err() {
            return;
        }
    }
}

/// A daemon that has mounted.
struct Mounted<'a> {
    child: Child,
    mount: &'a Path,
}

impl<'a> Mounted<'a> {
    fn start(mount: &'a Path, words: &[OsString]) -> Result<Mounted<'a>, DriveError> {
        detach(mount);
        let (program, args) = words.split_first().ok_or(DriveError::NoDaemon)?;
        let started = Command::new(program).args(args).stdin(Stdio::null()).stdout(io::stderr()).spawn();
        let failed = |source| DriveError::Start { program: program.to_string_lossy().into_owned(), source };
        let mut mounted = Mounted { child: started.map_err(failed)?, mount };
        for _ in 0..LOOKS {
            if is_mounted(mount) {
                return Ok(mounted);
            }
            if let Some(status) = mounted.ended()? {
                // It may have mounted and gone into the background in between.
                return Err(match is_mounted(mount) || status.success() {
                    true => DriveError::InBackground,
                    false => DriveError::NeverMounted { how: how(status), status },
                });
            }
            sleep(PAUSE);
        }
        Err(DriveError::MountHangs)
    }

    fn ended(&mut self) -> Result<Option<std::process::ExitStatus>, DriveError> {
        self.child.try_wait().map_err(system("wait for the daemon"))
    }

    /// The daemon must end by itself now.
    fn end(&mut self, mount: &Path, unmounted: bool) -> Result<(), DriveError> {
        if !unmounted {
            detach(mount);
        }
        for _ in 0..LOOKS {
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(DriveError::BadUnmount { how: how(status), status }),
                None => sleep(PAUSE),
            }
        }
        Err(DriveError::OutlivesUnmount)
    }
}

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        // Nothing can be done about a daemon that cannot be killed; one that has ended is none.
        let _ = self.child.kill();
        let _ = self.child.wait();
        detach(self.mount);
    }
}
