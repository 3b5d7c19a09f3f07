//! Files that are pools: what is written to them past the mapping, and when they become pools.

use alloc::format;
use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::dispatch::Call;
use super::{buffers, event, proc, random};
use crate::load::user;
use crate::pm::pools::{self, Stat};
use crate::ring;
use crate::sys::{nr, sys};
use crate::thread::Thread;

const O_CLOEXEC: u64 = 0o2000000;

pub fn open(thread: &mut Thread, call: Call) -> i64 {
    if let Some(result) = proc::open(thread, call) {
        return result;
    }
    let result = buffers::pass(thread, call);
    if result >= 0 {
        let fd = result as i32;
        random::opened(fd, path_argument(call));
        match pools::of_fd(fd) {
            // `O_TRUNC` may have emptied it.
            Some((pool, stat)) => resized(thread, pool, &stat),
            None => pools::opened(thread, fd),
        }
    }
    result
}

/// Where the path of an open is.
pub fn path_argument(call: Call) -> u64 {
    match call.nr {
        nr::OPENAT | nr::OPENAT2 => call.args[1],
        _ => call.args[0],
    }
}

pub fn read(thread: &mut Thread, call: Call) -> i64 {
    if random::serves(call.fd(0)) {
        return random::fill(thread, call.args[1], call.args[2]);
    }
    buffers::pass(thread, call)
}

/// Tells the host if the file's length has changed.
fn resized(thread: &mut Thread, pool: u32, stat: &Stat) {
    if let Some(len) = pools::new_len(pool, stat) {
        let header = Header { address: len, ..event::header(thread, kind::RESIZE) };
        ring::order(thread).put(header, &[&pool.to_le_bytes()]);
    }
}

pub fn write(thread: &mut Thread, call: Call) -> i64 {
    // Which argument is the descriptor that is written to, and where its offset is.
    let (at, offset) = match call.nr {
        nr::WRITE | nr::WRITEV | nr::SENDFILE => (0, None),
        nr::PWRITEV2 => (0, (call.args[3] != u64::MAX).then_some(call.args[3])),
        nr::PWRITE64 | nr::PWRITEV => (0, Some(call.args[3])),
        _ => (2, if call.args[3] == 0 { None } else { user::read::<u64>(call.args[3]) }),
    };
    let fd = call.fd(at);
    let Some((pool, _)) = pools::of_fd(fd) else { return buffers::pass(thread, call) };
    let result = buffers::pass(thread, call);
    if result > 0 {
        written(thread, fd, pool, offset, result as u64);
    }
    result
}

/// `len` bytes went to a pool's file, at `offset` or else up to the file position where it is now.
fn written(thread: &mut Thread, fd: i32, pool: u32, offset: Option<u64>, len: u64) {
    const F_GETFL: u64 = 3;
    const O_APPEND: i64 = 0o2000;
    const SEEK_CUR: u64 = 1;
    let Some(stat) = Stat::of(fd) else { return };
    resized(thread, pool, &stat);
    let start = match offset {
        // pwrite(2), BUGS: with O_APPEND Linux appends whatever the offset.
        Some(_) if sys!(nr::FCNTL, fd, F_GETFL) & O_APPEND != 0 => (stat.size as u64).saturating_sub(len),
        Some(offset) => offset,
        None => (sys!(nr::LSEEK, fd, 0, SEEK_CUR).max(0) as u64).saturating_sub(len),
    };
    content_changed(thread, fd, pool, start, len);
}

/// Records what the file holds now in `start..start+len`: right whatever the buffers were.
fn content_changed(thread: &mut Thread, fd: i32, pool: u32, start: u64, len: u64) {
    let header = event::header(thread, kind::FILE_WRITE);
    let own = readable(fd);
    let mut order = ring::order(thread);
    let mut bytes: Vec<u8> = Vec::new();
    for (offset, len) in event::cut(start, len) {
        bytes.resize(len as usize, 0);
        let got = sys!(nr::PREAD64, own, bytes.as_mut_ptr(), len, offset);
        bytes.truncate(got.max(0) as usize);
        order.put(Header { address: offset, ..header }, &[&pool.to_le_bytes(), &[0; 4], &bytes]);
    }
    if own != fd {
        sys!(nr::CLOSE, own);
    }
}

/// A descriptor of the same file that can be read.
fn readable(fd: i32) -> i32 {
    let mut byte = 0u8;
    if sys!(nr::PREAD64, fd, &raw mut byte, 0, 0) >= 0 {
        return fd;
    }
    let link = format!("/proc/self/fd/{fd}\0");
    sys!(nr::OPEN, link.as_ptr(), O_CLOEXEC, 0) as i32
}

pub fn resize(thread: &mut Thread, call: Call) -> i64 {
    let result = call.pass(thread);
    if result < 0 || !pools::any() {
        return result;
    }
    if call.nr == nr::TRUNCATE {
        let mut stat = Stat::default();
        if sys!(nr::STAT, call.args[0], &raw mut stat) == 0
            && let Some(pool) = pools::find(&stat)
        {
            resized(thread, pool, &stat);
        }
        return result;
    }
    if let Some((pool, stat)) = pools::of_fd(call.fd(0)) {
        resized(thread, pool, &stat);
        if call.nr == nr::FALLOCATE {
            allocated(thread, call, pool, stat.size as u64);
        }
    }
    result
}

fn allocated(thread: &mut Thread, call: Call, pool: u32, end: u64) {
    const PUNCH_HOLE: u64 = 2;
    const COLLAPSE_RANGE: u64 = 8;
    const ZERO_RANGE: u64 = 16;
    const INSERT_RANGE: u64 = 32;
    let [_, mode, offset, len, ..] = call.args;
    let len = len.min(end.saturating_sub(offset));
    if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 && len > 0 {
        let header = Header { address: offset, ..event::header(thread, kind::FILE_ZERO) };
        ring::order(thread).put(header, &[&pool.to_le_bytes(), &[0; 4], &len.to_le_bytes()]);
    }
    if mode & (COLLAPSE_RANGE | INSERT_RANGE) != 0 {
        content_changed(thread, call.fd(0), pool, offset, end.saturating_sub(offset));
    }
}

pub fn sync(thread: &mut Thread, call: Call) -> i64 {
    let result = call.pass(thread);
    if result == 0
        && let Some((pool, _)) = pools::of_fd(call.fd(0))
    {
        let aux = (call.nr == nr::FDATASYNC) as u8;
        let header = Header { aux, ..event::header(thread, kind::FSYNC) };
        ring::order(thread).put(header, &[&pool.to_le_bytes()]);
    }
    result
}
