//! Reads `/proc/self/maps` for the engine's own use.

use alloc::vec::Vec;

use crate::sys::{nr, raw, sys};

/// One line.
#[derive(Debug)]
pub struct MapsLine<'a> {
    pub start: u64,
    pub end: u64,
    /// As in `rw-p`.
    pub access: &'a [u8],
    /// Place in the file.
    pub offset: u64,
    pub name: &'a [u8],
}

/// The whole content of a file of `/proc`; empty if it cannot be read.
pub fn read_file(path: &core::ffi::CStr) -> Vec<u8> {
    const O_CLOEXEC: u64 = 0o2000000;
    let fd = sys!(nr::OPEN, path.as_ptr(), O_CLOEXEC, 0);
    if fd < 0 {
        return Vec::new();
    }
    let text = read_all(fd as i32);
    sys!(nr::CLOSE, fd);
    text
}

/// Everything from a descriptor's position on.
pub fn read_all(fd: i32) -> Vec<u8> {
    const STEP: usize = 32 << 10;
    let mut text = Vec::new();
    loop {
        let len = text.len();
        text.resize(len + STEP, 0);
        // SAFETY: the kernel writes at most `STEP` bytes behind `len`, as many as there are.
        let got = unsafe { raw!(nr::READ, fd, text[len..].as_mut_ptr(), STEP) };
        text.truncate(len + got.max(0) as usize);
        if got <= 0 {
            return text;
        }
    }
}

/// The lines of a maps file.
pub fn lines(text: &[u8]) -> impl Iterator<Item = MapsLine<'_>> {
    text.split(|b| *b == b'\n').filter_map(parse)
}

/// `start-end access offset device inode   name`
pub fn parse(line: &[u8]) -> Option<MapsLine<'_>> {
    let mut rest = line;
    let mut word = || {
        rest = rest.trim_ascii_start();
        let end = rest.iter().position(|b| *b == b' ').unwrap_or(rest.len());
        let word = &rest[..end];
        rest = &rest[end..];
        word
    };
    let range = word();
    let dash = range.iter().position(|b| *b == b'-')?;
    let access = word();
    let offset = hex(word())?;
    let (_device, _inode) = (word(), word());
    let (start, end) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    Some(MapsLine { start, end, access, offset, name: rest.trim_ascii_start() })
}

fn hex(text: &[u8]) -> Option<u64> {
    u64::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok()
}
