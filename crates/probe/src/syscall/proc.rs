//! `/proc/self` as it would be without the recorder: the target's own executable, and no memory or descriptors of ours.

use alloc::format;
use alloc::vec::Vec;

use super::buffers;
use super::dispatch::Call;
use super::files;
use super::random;
use crate::layout;
use crate::load::{attach, heap, maps, modules, space, user};
use crate::pm;
use crate::recover::listing;
use crate::sys::{EFAULT, EINVAL, PROT_EXEC, PROT_READ, PROT_WRITE, nr, sys};
use crate::thread::Thread;

const O_ACCMODE: u64 = 3;
const O_CLOEXEC: u64 = 0o2000000;

/// What a path names inside `/proc/self`, if it names anything there.
fn own(path: u64) -> Option<Vec<u8>> {
    // Most paths are not in /proc at all.
    if user::read::<[u8; 6]>(path)? != *b"/proc/" {
        return None;
    }
    own_entry(&user::c_string(path)?).map(<[u8]>::to_vec)
}

fn own_entry(path: &[u8]) -> Option<&[u8]> {
    let rest = path.strip_prefix(b"/proc/")?;
    let slash = rest.iter().position(|b| *b == b'/')?;
    let (who, entry) = (&rest[..slash], &rest[slash + 1..]);
    let pid = format!("{}", sys!(nr::GETPID));
    if who != b"self" && who != b"thread-self" && who != pid.as_bytes() {
        return None;
    }
    let Some(task) = entry.strip_prefix(b"task/") else { return Some(entry) };
    let slash = task.iter().position(|b| *b == b'/')?;
    Some(&task[slash + 1..])
}

/// The path to use instead of `/proc/self/exe`; `None`: it is another path.
pub fn executable_behind(path: &[u8]) -> Option<Vec<u8>> {
    (own_entry(path)? == b"exe").then(modules::executable)
}

/// An open that must not show the recorder; `None`: an ordinary one.
pub fn open(thread: &mut Thread, mut call: Call) -> Option<i64> {
    let at = (call.nr != nr::OPEN && call.nr != nr::CREAT) as usize;
    if let Some(text) = random::uuid(files::path_argument(call)) {
        return Some(in_memory(&text, call.nr != nr::CREAT && call.args[at + 1] & O_CLOEXEC != 0));
    }
    let entry = own(files::path_argument(call))?;
    let flags = match call.nr {
        nr::OPENAT2 => user::read::<u64>(call.args[2])?,
        nr::CREAT => return None,
        _ => call.args[at + 1],
    };
    if entry == b"exe" {
        let mut path = modules::executable();
        path.push(0);
        call.args[at] = path.as_ptr() as u64;
        return Some(call.pass(thread));
    }
    if flags & O_ACCMODE != 0 {
        return None;
    }
    let text = match &entry[..] {
        b"maps" => shown_maps(),
        _ => return None,
    };
    Some(in_memory(&text, flags & O_CLOEXEC != 0))
}

/// A file with this content.
fn in_memory(text: &[u8], cloexec: bool) -> i64 {
    let fd = sys!(nr::MEMFD_CREATE, c"proc".as_ptr(), cloexec as u64);
    if fd >= 0 {
        let mut done = 0;
        while done < text.len() {
            let wrote = sys!(nr::PWRITE64, fd, text[done..].as_ptr(), text.len() - done, done);
            if wrote <= 0 {
                break;
            }
            done += wrote as usize;
        }
    }
    fd
}

/// `/proc/self/maps` without the engine.
fn shown_maps() -> Vec<u8> {
    let real = maps::read_file(c"/proc/self/maps");
    let mut shown = Vec::with_capacity(real.len());
    let (heap_start, heap_end) = heap::range();
    for text in real.split(|b| *b == b'\n') {
        let Some(line) = maps::parse(text) else { continue };
        if is_ours(&line) {
            continue;
        }
        let begin = shown.len();
        shown.extend_from_slice(text);
        if let Some(range) = pm::range_at(line.start) {
            let flag = |bit, letter| if range.prot & bit != 0 { letter } else { b'-' };
            let access = [flag(PROT_READ, b'r'), flag(PROT_WRITE, b'w'), flag(PROT_EXEC, b'x'), b's'];
            if let Some(space) = text.iter().position(|b| *b == b' ') {
                shown[begin + space + 1..begin + space + 5].copy_from_slice(&access);
            }
        }
        if line.name.is_empty() && line.start >= heap_start && line.end <= heap_end {
            const NAME_COLUMN: usize = 73;
            let pad = NAME_COLUMN.saturating_sub(text.trim_ascii_end().len());
            shown.truncate(begin + text.trim_ascii_end().len());
            shown.extend(core::iter::repeat_n(b' ', pad));
            shown.extend_from_slice(b"[heap]");
        }
        shown.push(b'\n');
    }
    shown
}

fn is_ours(line: &maps::MapsLine<'_>) -> bool {
    layout::is_engine(line.start)
        || (space::BASE..space::END).contains(&line.start)
        || crate::load::boot::hidden().contains(&line.start)
        || crate::translate::arena::regions().into_iter().any(|(start, end)| start < line.end && line.start < end)
        || !pm::pieces(layout::alias(line.start), line.end - line.start).is_empty()
}

/// Calls that look at a path without opening it.
pub fn by_path(thread: &mut Thread, mut call: Call) -> i64 {
    const AT_SYMLINK_NOFOLLOW: u64 = 0x100;
    let at = matches!(call.nr, nr::READLINKAT | nr::NEWFSTATAT | nr::STATX | nr::FACCESSAT | nr::FACCESSAT2) as usize;
    let link_itself = match call.nr {
        nr::LSTAT => true,
        nr::NEWFSTATAT => call.args[3] & AT_SYMLINK_NOFOLLOW != 0,
        nr::STATX => call.args[2] & AT_SYMLINK_NOFOLLOW != 0,
        _ => false,
    };
    if link_itself || own(call.args[at]).as_deref() != Some(b"exe") {
        return buffers::pass(thread, call);
    }
    if matches!(call.nr, nr::READLINK | nr::READLINKAT) {
        let len = call.args[at + 2] as i32;
        if len <= 0 {
            return -EINVAL;
        }
        let path = modules::executable();
        let path = &path[..path.len().min(len as usize)];
        if !user::copy_out(call.args[at + 1], path) {
            return -EFAULT;
        }
        super::event::kernel_write(thread, call.args[at + 1], path.len() as u64);
        return path.len() as i64;
    }
    let mut path = modules::executable();
    path.push(0);
    call.args[at] = path.as_ptr() as u64;
    buffers::pass(thread, call)
}

/// Directories: those that a crash left otherwise, and `/proc/self/fd`, which must not list our descriptors.
pub fn list(thread: &mut Thread, call: Call) -> i64 {
    if let Some(result) = listing::answer(thread, call) {
        return result;
    }
    let result = buffers::pass(thread, call);
    if result <= 0 || call.nr == nr::GETDENTS {
        return result;
    }
    let Some(mut entries) = user::copy_in(call.args[1], result as u64) else { return result };
    if !remove_hidden(&mut entries) {
        return result;
    }
    let path = pm::path_of(call.fd(0));
    if !path.starts_with(b"/proc/") || !(path.ends_with(b"/fd") || path.ends_with(b"/fdinfo")) {
        return result;
    }
    user::copy_out(call.args[1], &entries);
    entries.len() as i64
}

/// Takes our descriptors' names out of a list of `struct linux_dirent64`; false if there were none.
fn remove_hidden(entries: &mut Vec<u8>) -> bool {
    const NAME: usize = 19;
    let mut at = 0;
    let mut found = false;
    while at + NAME < entries.len() {
        let len = u16::from_le_bytes([entries[at + 16], entries[at + 17]]) as usize;
        if len == 0 {
            break;
        }
        let name = entries[at + NAME..at + len].split(|b| *b == 0).next().unwrap_or_default();
        let number = core::str::from_utf8(name).ok().and_then(|n| n.parse::<i32>().ok());
        if number.is_some_and(attach::is_hidden) {
            entries.drain(at..at + len);
            found = true;
        } else {
            at += len;
        }
    }
    found
}
