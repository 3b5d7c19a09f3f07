//! Calls on files: when they become pools, and what is written to pools without a mapping. Writes to other files are reported too (`names`).

use alloc::format;
use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::dispatch::Call;
use super::{buffers, event, names, proc, random, standard, timers, waits};
use crate::load::user;
use crate::pm::pools::{self, Stat};
use crate::ring;
use crate::sys::{nr, raw, sys};
use crate::thread::Thread;

const O_CLOEXEC: u64 = 0o2000000;

pub fn open(thread: &mut Thread, call: Call) -> i64 {
    if let Some(result) = proc::open(thread, call) {
        return result;
    }
    let result = match names::opening(call) {
        Some(step) => names::carry_out(thread, call, &step),
        None => buffers::pass(thread, call),
    };
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
    let result = waits::on_socket(thread, call);
    // Of a timer, perhaps.
    timers::catch_up();
    result
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
    let Some((pool, _)) = pools::of_fd(fd) else {
        if let Some(result) = standard::hold(call) {
            standard::written(fd, result as u64);
            return result;
        }
        let is_recorded = names::written_file(thread, fd).is_some();
        let result = buffers::pass(thread, call);
        if matches!(call.nr, nr::WRITE | nr::WRITEV) && result > 0 {
            standard::written(fd, result as u64);
        }
        if is_recorded
            && result > 0
            && let Some(stat) = Stat::of(fd)
        {
            let start = start_of(fd, &stat, offset, result as u64);
            names::content_changed(thread, fd, &stat, start, result as u64);
            if is_synchronous(fd, call) {
                names::synced(thread, Some(&stat), true);
            }
        }
        return result;
    };
    let result = buffers::pass(thread, call);
    if result > 0
        && let Some(stat) = Stat::of(fd)
    {
        resized(thread, pool, &stat);
        let start = start_of(fd, &stat, offset, result as u64);
        content_changed(thread, fd, pool, start, result as u64);
        if is_synchronous(fd, call) {
            let header = event::header(thread, kind::MSYNC);
            let range = [start.to_le_bytes(), (result as u64).to_le_bytes()];
            ring::order(thread).put(header, &[&pool.to_le_bytes(), &[0; 4], &range[0], &range[1]]);
        }
    }
    result
}

/// Where the `len` bytes went that were just written: at `offset`, or else up to the file position where it is now.
fn start_of(fd: i32, stat: &Stat, offset: Option<u64>, len: u64) -> u64 {
    const O_APPEND: i64 = 0o2000;
    const SEEK_CUR: u64 = 1;
    match offset {
        // pwrite(2), BUGS: with O_APPEND Linux appends whatever the offset.
        Some(_) if open_flags(fd) & O_APPEND != 0 => (stat.size as u64).saturating_sub(len),
        Some(offset) => offset,
        None => (sys!(nr::LSEEK, fd, 0, SEEK_CUR).max(0) as u64).saturating_sub(len),
    }
}

fn open_flags(fd: i32) -> i64 {
    const F_GETFL: u64 = 3;
    sys!(nr::FCNTL, fd, F_GETFL)
}

/// Is what the call wrote durable when it returns? open(2): `O_SYNC` has the bit of `O_DSYNC`. What `fsync` of the range would have
/// written back, whole pages, is durable then.
fn is_synchronous(fd: i32, call: Call) -> bool {
    const O_DSYNC: i64 = 0o10000;
    const RWF_DSYNC: u64 = 2;
    const RWF_SYNC: u64 = 4;
    let asked = call.nr == nr::PWRITEV2 && call.args[5] & (RWF_DSYNC | RWF_SYNC) != 0;
    asked || open_flags(fd) & O_DSYNC != 0
}

/// Records what the file holds now in `start..start+len`: right whatever the buffers were.
fn content_changed(thread: &mut Thread, fd: i32, pool: u32, start: u64, len: u64) {
    let header = event::header(thread, kind::FILE_WRITE);
    let own = readable(fd);
    let mut order = ring::order(thread);
    let mut bytes: Vec<u8> = Vec::new();
    for (offset, len) in event::cut(start, len) {
        bytes.resize(len as usize, 0);
        // SAFETY: the kernel writes at most `len` bytes into `bytes`, which has as many.
        let got = unsafe { raw!(nr::PREAD64, own, bytes.as_mut_ptr(), len, offset) };
        bytes.truncate(got.max(0) as usize);
        order.put(Header { address: offset, ..header }, &[&pool.to_le_bytes(), &[0; 4], &bytes]);
    }
    if own != fd {
        sys!(nr::CLOSE, own);
    }
}

/// A descriptor of the same file that can be read.
pub fn readable(fd: i32) -> i32 {
    let mut byte = 0u8;
    // SAFETY: no bytes are read.
    if unsafe { raw!(nr::PREAD64, fd, &raw mut byte, 0, 0) } >= 0 {
        return fd;
    }
    let link = format!("/proc/self/fd/{fd}\0");
    sys!(nr::OPEN, link.as_ptr(), O_CLOEXEC, 0) as i32
}

pub fn resize(thread: &mut Thread, call: Call) -> i64 {
    if call.nr == nr::TRUNCATE
        && let Some(step) = names::truncating(call)
    {
        return names::carry_out(thread, call, &step);
    }
    if call.nr != nr::TRUNCATE
        && pools::of_fd(call.fd(0)).is_none()
        && let Some(before) = names::written_file(thread, call.fd(0))
    {
        return resize_other(thread, call, &before);
    }
    let result = buffers::pass(thread, call);
    if result < 0 || !pools::any() {
        return result;
    }
    if call.nr == nr::TRUNCATE {
        let mut stat = Stat::default();
        // SAFETY: the kernel fills `stat`, which has its layout; it checks the program's pointer itself.
        if unsafe { raw!(nr::STAT, call.args[0], &raw mut stat) } == 0
            && let Some(pool) = pools::find(stat.identity())
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

const PUNCH_HOLE: u64 = 2;
const COLLAPSE_RANGE: u64 = 8;
const ZERO_RANGE: u64 = 16;
const INSERT_RANGE: u64 = 32;

/// `ftruncate` and `fallocate` of a file that is no pool.
fn resize_other(thread: &mut Thread, call: Call, before: &Stat) -> i64 {
    let result = call.pass(thread);
    let fd = call.fd(0);
    let Some(stat) = Stat::of(fd).filter(|_| result >= 0) else { return result };
    if stat.size != before.size {
        names::resized(thread, &stat);
    }
    if call.nr == nr::FALLOCATE {
        let [_, mode, offset, len, ..] = call.args;
        let rest = (stat.size as u64).saturating_sub(offset);
        if mode & (PUNCH_HOLE | ZERO_RANGE) != 0 && len.min(rest) > 0 {
            names::zeroed(thread, &stat, offset, len.min(rest));
        }
        if mode & (COLLAPSE_RANGE | INSERT_RANGE) != 0 {
            names::content_changed(thread, fd, &stat, offset, rest);
        }
    }
    result
}

fn allocated(thread: &mut Thread, call: Call, pool: u32, end: u64) {
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
    if result != 0 {
        return result;
    }
    let data_only = call.nr == nr::FDATASYNC;
    match pools::of_fd(call.fd(0)) {
        Some((pool, _)) => pool_synced(thread, pool, data_only),
        None if names::on() => {
            if let Some(stat) = Stat::of(call.fd(0)) {
                names::synced(thread, Some(&stat), data_only);
            }
        }
        None => {}
    }
    result
}

/// `sync` and `syncfs`. (`sync_file_range` promises nothing: sync_file_range(2), Warning.)
pub fn sync_all(thread: &mut Thread, call: Call) -> i64 {
    let result = call.pass(thread);
    if result != 0 {
        return result;
    }
    let device = if call.nr == nr::SYNCFS { Stat::of(call.fd(0)).map(|stat| stat.device) } else { None };
    for pool in pools::on_device(device) {
        pool_synced(thread, pool, false);
    }
    names::synced(thread, None, false);
    result
}

fn pool_synced(thread: &mut Thread, pool: u32, data_only: bool) {
    let header = Header { aux: data_only as u8, ..event::header(thread, kind::FSYNC) };
    ring::order(thread).put(header, &[&pool.to_le_bytes()]);
}
