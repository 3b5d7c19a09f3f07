//! Listings of folders in which the target changed files, as the crash left them: what the real folder has of names that the recording does
//! not tell of, and what the private one has (see [`super::roots`]).
//!
//! A listing is made when the program reads a directory from its beginning, and is served piece by piece from then on. The kernel's
//! position says where the program is: at 0 a new listing begins (`rewinddir`), at the end of the real folder the last one continues, and
//! another one is a position that the listing has told (`seekdir`).

use alloc::vec::Vec;

use super::{on, roots, serve};
use crate::load::user;
use crate::lock::{Guard, LockName, Locked};
use crate::pm::pools::{self, Stat};
use crate::sys::{self, nr, raw, sys};
use crate::syscall::dispatch::Call;
use crate::syscall::event;
use crate::thread::Thread;

const AT_FDCWD: i32 = -100;
const O_RDONLY: u64 = 0;
const O_DIRECTORY: u64 = 0o200_000;
const O_CLOEXEC: u64 = 0o2_000_000;
const SEEK_SET: u64 = 0;
const SEEK_CUR: u64 = 1;
/// Positions that a listing tells begin here. File systems count from 0, or use hashes.
const FIRST_POSITION: i64 = 1 << 40;
/// Where the name is in a `struct linux_dirent64`: inode, position, length and kind come before it. getdents(2).
const NAME: usize = 19;

/// A directory that the program reads.
pub struct Listing {
    fd: i32,
    /// Device and inode: a descriptor's number is used again.
    folder: (u64, u64),
    entries: Vec<Entry>,
    next: usize,
    /// The kernel's position behind the last entry of the real folder.
    end: i64,
}

struct Entry {
    inode: u64,
    kind: u8,
    name: Vec<u8>,
}

static LISTINGS: Locked<Vec<Listing>> = Locked::new(LockName::Listings, Vec::new());

/// For fork: the child must find it free.
pub fn hold() -> Guard<'static, Vec<Listing>> {
    LISTINGS.lock()
}

/// What a read of a directory gives, if it is one whose files the recording tells of.
pub fn answer(thread: &mut Thread, call: Call) -> Option<i64> {
    if call.nr != nr::GETDENTS64 || roots::none() {
        return None;
    }
    let fd = call.fd(0);
    let path = pools::path_of(fd);
    if !roots::is_in_root(&path) {
        return None;
    }
    if on() {
        // Which names there are depends on the crash.
        serve::first_use(thread);
    }
    let stat = Stat::of(fd)?;
    let folder = (stat.device, stat.inode);
    let position = sys!(nr::LSEEK, fd, 0, SEEK_CUR);
    let mut listings = LISTINGS.lock();
    if position == 0 {
        let entries = match entries_of(fd, &path) {
            Ok(entries) => entries,
            Err(error) => return Some(error),
        };
        listings.retain(|listing| listing.fd != fd);
        listings.push(Listing { fd, folder, entries, next: 0, end: sys!(nr::LSEEK, fd, 0, SEEK_CUR) });
    }
    let known = |listing: &&mut Listing| {
        let told = FIRST_POSITION..=FIRST_POSITION + listing.entries.len() as i64;
        listing.fd == fd
            && listing.folder == folder
            && (position == 0 || position == listing.end || told.contains(&position))
    };
    let Some(listing) = listings.iter_mut().find(known) else {
        drop(listings);
        crate::refuse!(
            thread,
            "recovery goes on with a listing of a folder in which the workload changed files through another descriptor, which needs native mode"
        );
    };
    if position != 0 && position != listing.end {
        listing.next = (position - FIRST_POSITION) as usize;
        sys!(nr::LSEEK, fd, listing.end, SEEK_SET);
    }
    let room = call.args[2] as u32 as usize;
    let (bytes, next) = records(&listing.entries, listing.next, room);
    if bytes.is_empty() && listing.next < listing.entries.len() {
        return Some(-sys::EINVAL);
    }
    listing.next = next;
    drop(listings);
    if !user::copy_out(call.args[1], &bytes) {
        return Some(-sys::EFAULT);
    }
    event::kernel_write(thread, call.args[1], bytes.len() as u64);
    Some(bytes.len() as i64)
}

/// Everything that the folder shows, in the order of the real folder, then of the private one.
fn entries_of(fd: i32, path: &[u8]) -> Result<Vec<Entry>, i64> {
    let mut entries = read(fd)?;
    entries.retain(|entry| is_here(&entry.name) || !roots::is_recorded_in(path, &entry.name));
    let Some(mut private) = roots::private_folder(path) else { return Ok(entries) };
    private.push(0);
    let own = sys!(nr::OPENAT, AT_FDCWD, private.as_ptr(), O_RDONLY | O_DIRECTORY | O_CLOEXEC) as i32;
    if own < 0 {
        return Ok(entries);
    }
    let more = read(own);
    sys!(nr::CLOSE, own);
    let real = entries.len();
    for entry in more? {
        if !is_here(&entry.name) && !entries[..real].iter().any(|other| other.name == entry.name) {
            entries.push(entry);
        }
    }
    Ok(entries)
}

fn is_here(name: &[u8]) -> bool {
    matches!(name, b"." | b"..")
}

/// What the kernel lists.
fn read(fd: i32) -> Result<Vec<Entry>, i64> {
    let mut buffer = alloc::vec![0u8; 32 << 10];
    let mut entries = Vec::new();
    loop {
        // SAFETY: the kernel writes at most `buffer.len()` bytes into `buffer`.
        let got = unsafe { raw!(nr::GETDENTS64, fd, buffer.as_mut_ptr(), buffer.len()) };
        match got {
            ..0 => return Err(got),
            0 => return Ok(entries),
            _ => entries.extend(parse(&buffer[..got as usize])),
        }
    }
}

fn parse(mut bytes: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    while bytes.len() > NAME {
        let len = u16::from_le_bytes([bytes[16], bytes[17]]) as usize;
        if len <= NAME || len > bytes.len() {
            break;
        }
        let inode = bytes[..8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let name = bytes[NAME..len].split(|byte| *byte == 0).next().unwrap_or_default().to_vec();
        entries.push(Entry { inode, kind: bytes[18], name });
        bytes = &bytes[len..];
    }
    entries
}

/// As many entries as there is room for, and which is the next one. The position of an entry is the number of those up to it.
fn records(entries: &[Entry], from: usize, room: usize) -> (Vec<u8>, usize) {
    let mut bytes = Vec::new();
    let mut next = from;
    for entry in entries.get(from..).unwrap_or_default() {
        let len = (NAME + entry.name.len() + 1).next_multiple_of(8);
        if bytes.len() + len > room {
            break;
        }
        let end = bytes.len() + len;
        next += 1;
        bytes.extend_from_slice(&entry.inode.to_le_bytes());
        bytes.extend_from_slice(&(FIRST_POSITION + next as i64).to_le_bytes());
        bytes.extend_from_slice(&(len as u16).to_le_bytes());
        bytes.push(entry.kind);
        bytes.extend_from_slice(&entry.name);
        bytes.resize(end, 0);
    }
    (bytes, next)
}
