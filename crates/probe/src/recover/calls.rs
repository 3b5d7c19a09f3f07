//! System calls of a recovery run: paths of pools, and what the kernel reads from pools.

use alloc::vec::Vec;

use wire::record::kind;
use wire::recover::note;

use super::{crash, notes, outside, paths, reference, roots, serve, undo};
use crate::load::user;
use crate::pm::{self, pools};
use crate::signal;
use crate::sys::{nr, raw, sys};
use crate::syscall::buffers;
use crate::syscall::dispatch::Call;
use crate::syscall::files;
use crate::syscall::operations;
use crate::thread::Thread;

const SIGABRT: u64 = 6;

/// The call as it shall be carried out, with the strings that it refers to.
pub fn prepared(thread: &mut Thread, call: Call) -> (Call, Vec<Vec<u8>>) {
    let (call, strings) = match paths::replaced(thread, call) {
        Some(replaced) => {
            reference::must_not_touch(thread);
            if super::on() {
                serve::first_use(thread);
            }
            replaced
        }
        None => {
            if super::on() {
                outside::note(call);
            }
            (call, Vec::new())
        }
    };
    if !super::on() {
        return (call, strings);
    }
    if crate::cover::on() && looks_at_input(call) {
        // The input is another one in each run.
        serve::first_use(thread);
        serve::at_input(thread, 0);
    }
    if is_lock(call) {
        serve::first_lock(thread);
    }
    // If the run has begun with this call.
    undo::allowed::observe(call);
    let call = without_reserve(call);
    paths::note_changes(call, &strings);
    roots::listing(thread, call);
    file_read(call);
    memory_file(call);
    file_change(thread, call);
    let passed_on = call.nr == nr::KILL && crash::is_described();
    if matches!((call.nr, call.args), (nr::TGKILL, [_, _, SIGABRT, ..]) | (nr::KILL | nr::TKILL, [_, SIGABRT, ..]))
        && !passed_on
    {
        // `abort` sends itself this signal, which the kernel answers without a word to the engine.
        crash::describe(thread.pc, thread.regs.rsp, thread.regs.rbp);
    }
    let own = |number: u64| number == thread.tid;
    if matches!((call.nr, call.args), (nr::TGKILL, [_, tid, SIGABRT, ..]) | (nr::TKILL, [tid, SIGABRT, ..]) if own(tid))
        && signal::would_end(thread, SIGABRT as i32)
    {
        undo::end(SIGABRT as i32);
        // It ends as ever.
        signal::unblock(thread);
    }
    (call, strings)
}

/// Room that is reserved for a file in memory is memory that is cleared, page by page, for a run that uses little of it: such a file only
/// gets its new length. What it holds is the same.
fn without_reserve(call: Call) -> Call {
    let [fd, mode, offset, len, ..] = call.args;
    let end = offset.wrapping_add(len);
    let is_plain = call.nr == nr::FALLOCATE && mode == 0 && len as i64 > 0 && offset as i64 >= 0 && end as i64 > 0;
    if !is_plain {
        return call;
    }
    let stat = pools::Stat::of(call.fd(0));
    let grows = stat.is_some_and(|stat| stat.is_regular() && (stat.size as u64) < end);
    match grows && is_writable(call.fd(0)) && is_in_memory(call.fd(0)) {
        true => Call { nr: nr::FTRUNCATE, args: [fd, end, 0, 0, 0, 0] },
        false => call,
    }
}

/// On a descriptor that only reads, both calls fail, with different errors.
fn is_writable(fd: i32) -> bool {
    const F_GETFL: u64 = 3;
    const O_ACCMODE: i64 = 3;
    let flags = sys!(nr::FCNTL, fd, F_GETFL);
    flags >= 0 && flags & O_ACCMODE != 0
}

fn is_in_memory(fd: i32) -> bool {
    const TMPFS_MAGIC: u64 = 0x0102_1994;
    // `struct statfs` has 120 bytes; the type comes first.
    let mut statfs = [0u64; 16];
    // SAFETY: the kernel fills `statfs`, which is larger than what it writes.
    let failed = unsafe { raw!(nr::FSTATFS, fd, statfs.as_mut_ptr()) } != 0;
    !failed && statfs[0] == TMPFS_MAGIC
}

/// Does the call depend on what is behind standard input? Operations are served line by line, and see to it themselves.
fn looks_at_input(call: Call) -> bool {
    let fd = match call.nr {
        nr::READ | nr::READV | nr::PREAD64 | nr::PREADV | nr::PREADV2 | nr::LSEEK | nr::FSTAT => call.fd(0),
        nr::NEWFSTATAT | nr::STATX | nr::SENDFILE if call.fd(0) == 0 => 0,
        nr::MMAP => call.fd(4),
        _ => return false,
    };
    !operations::wanted() && operations::is_input(fd)
}

/// Does the call take or look at a lock on a file? A record lock belongs to the process that took it.
fn is_lock(call: Call) -> bool {
    const GETLK_TO_SETLKW: core::ops::RangeInclusive<u64> = 5..=7;
    const OFD_GETLK_TO_SETLKW: core::ops::RangeInclusive<u64> = 36..=38;
    let command = call.args[1];
    call.nr == nr::FLOCK
        || call.nr == nr::FCNTL && (GETLK_TO_SETLKW.contains(&command) || OFD_GETLK_TO_SETLKW.contains(&command))
}

/// Calls that read a pool through a descriptor.
fn file_read(call: Call) {
    const SEEK_CUR: u64 = 1;
    let (fd, range) = match call.nr {
        nr::READ => (call.fd(0), Some((None, call.args[2]))),
        nr::PREAD64 => (call.fd(0), Some((Some(call.args[3]), call.args[2]))),
        nr::READV | nr::PREADV | nr::PREADV2 => (call.fd(0), None),
        nr::SENDFILE => (call.fd(1), None),
        nr::COPY_FILE_RANGE | nr::SPLICE | nr::TEE => (call.fd(0), None),
        _ => return,
    };
    let Some((pool, stat)) = pools::of_fd(fd) else { return };
    let Some((offset, len)) = range else { return notes::incomplete() };
    let offset = offset.unwrap_or_else(|| sys!(nr::LSEEK, fd, 0, SEEK_CUR).max(0) as u64);
    let end = offset.saturating_add(len).min(stat.size as u64);
    notes::file_access(note::READ, pool, offset, end.saturating_sub(offset));
}

/// `/proc/PID/mem` shows the pools of a process through a descriptor that is no pool's.
fn memory_file(call: Call) {
    if !matches!(call.nr, nr::OPEN | nr::OPENAT | nr::OPENAT2) {
        return;
    }
    let path = user::c_string(files::path_argument(call)).unwrap_or_default();
    if path.rsplit(|byte| *byte == b'/').next() == Some(&b"mem"[..]) {
        notes::incomplete();
    }
}

/// Calls that change a pool through a descriptor: a reference run's fork must not.
fn file_change(thread: &mut Thread, call: Call) {
    let fd = match call.nr {
        nr::WRITE | nr::WRITEV | nr::PWRITE64 | nr::PWRITEV | nr::PWRITEV2 | nr::FTRUNCATE | nr::FALLOCATE => {
            call.fd(0)
        }
        nr::SENDFILE => call.fd(0),
        nr::COPY_FILE_RANGE | nr::SPLICE => call.fd(2),
        // A mapping that comes late would be shared.
        nr::MMAP => call.fd(4),
        _ => return,
    };
    if reference::on() && pools::of_fd(fd).is_some() {
        reference::must_not_touch(thread);
    }
}

/// What a call reads of the memory of a pool is noted before it is made.
pub fn memory_read(call: Call) {
    if !pm::any() {
        return;
    }
    // A debugger looks where it likes, and in other processes.
    if matches!(call.nr, nr::PTRACE | nr::PROCESS_VM_READV | nr::PROCESS_VM_WRITEV) {
        return notes::incomplete();
    }
    match buffers::reads(&call) {
        Some(ranges) => ranges.into_iter().for_each(|(address, len)| notes::access(kind::LOAD, address, len)),
        None => notes::incomplete(),
    }
}
