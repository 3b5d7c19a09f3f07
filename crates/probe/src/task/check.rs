//! Checks whether the kernel would run a file. This happens before the exec, since afterwards there is no program left to get the error.

use alloc::vec::Vec;

use crate::load::{elf, script};
use crate::sys::{ENOENT, nr, raw, sys};

const EACCES: i64 = 13;
const ENOEXEC: i64 = 8;
const ELOOP: i64 = 40;
const ELIBBAD: i64 = 80;
const AT_FDCWD: i64 = -100;
const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
const AT_EACCESS: u64 = 0x200;
const X_OK: u64 = 1;
const S_IFMT: u32 = 0o170_000;
const S_IFREG: u32 = 0o100_000;
const S_IFLNK: u32 = 0o120_000;
const SET_IDS: u32 = 0o6000;

#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// Set-user-ID or set-group-ID.
    pub privileged: bool,
}

/// `struct stat`, as far as it is read here.
#[repr(C)]
struct Stat {
    dev: u64,
    ino: u64,
    nlink: u64,
    mode: u32,
    rest: [u32; 29],
}
const _: () = assert!(size_of::<Stat>() == 144);

fn stat(path: &[u8], flags: u64) -> Result<Stat, i64> {
    let path = terminated(path);
    let mut stat = Stat { dev: 0, ino: 0, nlink: 0, mode: 0, rest: [0; 29] };
    // SAFETY: the kernel fills `stat`, which has its layout; the path ends with a zero.
    let result = unsafe { raw!(nr::NEWFSTATAT, AT_FDCWD, path.as_ptr(), &raw mut stat, flags) };
    if result < 0 { Err(result) } else { Ok(stat) }
}

fn terminated(path: &[u8]) -> Vec<u8> {
    [path, b"\0"].concat()
}

pub fn is_link(path: &[u8]) -> bool {
    stat(path, AT_SYMLINK_NOFOLLOW).is_ok_and(|s| s.mode & S_IFMT == S_IFLNK)
}

pub fn same_file(a: &[u8], b: &[u8]) -> bool {
    matches!((stat(a, 0), stat(b, 0)), (Ok(a), Ok(b)) if (a.dev, a.ino) == (b.dev, b.ino))
}

/// The error that the kernel would give for this file, if any. What it would run and the engine cannot (32-bit
/// programs) passes: the new image says so.
pub fn program(path: &[u8]) -> Result<Checked, i64> {
    let mode = executable(path)?;
    let mut path = path.to_vec();
    for _ in 0..=script::MAX_DEPTH {
        let Some(file) = File::open(&path) else {
            // It may be run but not read; the new image will not be able to either, and says so.
            return Ok(Checked { privileged: false });
        };
        match script::read(file.0) {
            Ok(None) => {
                binary(&file)?;
                return Ok(Checked { privileged: mode & SET_IDS != 0 });
            }
            Ok(Some(script)) => path = script.interpreter,
            Err(_) => return Err(-ENOEXEC),
        }
        executable(&path)?;
    }
    Err(-ELOOP)
}

/// A regular file that this process may execute; its mode.
fn executable(path: &[u8]) -> Result<u32, i64> {
    if path.is_empty() {
        return Err(-ENOENT);
    }
    let mode = stat(path, 0)?.mode;
    if mode & S_IFMT != S_IFREG {
        return Err(-EACCES);
    }
    let text = terminated(path);
    let result = sys!(nr::FACCESSAT2, AT_FDCWD, text.as_ptr(), X_OK, AT_EACCESS);
    if result < 0 { Err(result) } else { Ok(mode) }
}

fn binary(file: &File) -> Result<(), i64> {
    const ELFCLASS32: u8 = 1;
    let mut head = [0u8; 5];
    // SAFETY: the kernel writes at most `head.len()` bytes into `head`.
    let got = unsafe { raw!(nr::PREAD64, file.0, head.as_mut_ptr(), head.len(), 0) };
    if got < 5 || &head[..4] != b"\x7fELF" {
        return Err(-ENOEXEC);
    }
    if head[4] == ELFCLASS32 {
        return Ok(());
    }
    let elf = elf::read(file.0).map_err(|_| -ENOEXEC)?;
    let Some(interpreter) = elf.interpreter(file.0) else { return Ok(()) };
    executable(&interpreter)?;
    match File::open(&interpreter) {
        Some(interpreter) => elf::read(interpreter.0).map(|_| ()).map_err(|_| -ELIBBAD),
        None => Ok(()),
    }
}

struct File(i32);

impl File {
    fn open(path: &[u8]) -> Option<File> {
        const O_CLOEXEC: u64 = 0o2000000;
        let text = terminated(path);
        let fd = sys!(nr::OPEN, text.as_ptr(), O_CLOEXEC, 0);
        (fd >= 0).then_some(File(fd as i32))
    }
}

impl Drop for File {
    fn drop(&mut self) {
        sys!(nr::CLOSE, self.0);
    }
}
