//! Where the kernel writes into the target's memory.
//!
//! Calls that people aim at PM have a rule. For all others, PM behind their pointer arguments is compared before
//! and after: that shows every changed byte, though not bytes that were overwritten with what they were.

use super::error::StepError;
use super::kernel::SystemCall;
use super::ptrace;
use super::session::{Session, Task};

/// How much behind a pointer is compared for calls without a rule: larger than every structure of the kernel's.
const COMPARED: u64 = 4096;

/// Where a call writes.
enum Rule {
    /// As many bytes as it returns, at this argument.
    Returned(usize),
    /// So many bytes at this argument.
    Fixed(usize, u64),
    /// As many bytes as it returns, over the vector at this argument with this many elements.
    Vector { at: usize, count: usize },
    /// As many bytes as it returns, over the vector inside a `msghdr`.
    Message(usize),
    /// As `Message`, for a list of `mmsghdr`; the call returns how many it filled.
    Messages(usize),
    /// Nothing: pointers are only read.
    Nothing,
}

fn rule(number: i64) -> Option<Rule> {
    Some(match number {
        libc::SYS_read | libc::SYS_pread64 | libc::SYS_recvfrom | libc::SYS_readlink | libc::SYS_getdents64 => {
            Rule::Returned(1)
        }
        libc::SYS_readlinkat => Rule::Returned(2),
        libc::SYS_getcwd | libc::SYS_getrandom => Rule::Returned(0),
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 => Rule::Vector { at: 1, count: 2 },
        libc::SYS_recvmsg => Rule::Message(1),
        libc::SYS_recvmmsg => Rule::Messages(1),
        libc::SYS_stat | libc::SYS_lstat | libc::SYS_fstat => Rule::Fixed(1, 144),
        libc::SYS_newfstatat => Rule::Fixed(2, 144),
        libc::SYS_clock_gettime => Rule::Fixed(1, 16),
        libc::SYS_gettimeofday => Rule::Fixed(0, 16),
        libc::SYS_uname => Rule::Fixed(0, 390),
        libc::SYS_pipe | libc::SYS_pipe2 => Rule::Fixed(0, 8),
        libc::SYS_write
        | libc::SYS_pwrite64
        | libc::SYS_writev
        | libc::SYS_pwritev
        | libc::SYS_pwritev2
        | libc::SYS_sendto
        | libc::SYS_sendmsg
        | libc::SYS_open
        | libc::SYS_openat
        | libc::SYS_creat
        | libc::SYS_mmap
        | libc::SYS_munmap
        | libc::SYS_mprotect
        | libc::SYS_pkey_mprotect
        | libc::SYS_mremap
        | libc::SYS_msync
        | libc::SYS_madvise
        | libc::SYS_execve
        | libc::SYS_execveat
        | libc::SYS_exit
        | libc::SYS_exit_group
        | libc::SYS_rt_sigreturn
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_fsync
        | libc::SYS_fdatasync
        | libc::SYS_close
        | libc::SYS_brk => Rule::Nothing,
        // A wait writes nothing; a wake writes nothing; the operations that do are rare.
        libc::SYS_futex => Rule::Nothing,
        _ => return None,
    })
}

pub fn has_rule(number: i64) -> bool {
    rule(number).is_some()
}

/// How many arguments a call has that can wait. Registers beyond them hold anything, perhaps an address in PM that
/// another thread changes meanwhile. Calls that do not wait need no such care.
fn argument_count(number: i64) -> usize {
    match number {
        libc::SYS_fork | libc::SYS_vfork | libc::SYS_clone | libc::SYS_clone3 | libc::SYS_pause => 0,
        libc::SYS_sched_yield => 0,
        libc::SYS_nanosleep | libc::SYS_rt_sigsuspend | libc::SYS_flock => 2,
        libc::SYS_poll | libc::SYS_accept | libc::SYS_connect | libc::SYS_fcntl | libc::SYS_ioctl | libc::SYS_semop => {
            3
        }
        libc::SYS_wait4 | libc::SYS_epoll_wait | libc::SYS_accept4 | libc::SYS_rt_sigtimedwait => 4,
        libc::SYS_clock_nanosleep | libc::SYS_semtimedop => 4,
        libc::SYS_waitid | libc::SYS_select | libc::SYS_ppoll | libc::SYS_msgrcv => 5,
        _ => 6,
    }
}

/// PM behind the pointers of a call, before it.
pub fn pm_behind_arguments(
    session: &Session,
    task: &Task,
    call: &SystemCall,
) -> Result<Vec<(u64, Vec<u8>)>, StepError> {
    let mut found = Vec::new();
    for &address in &call.args[..argument_count(call.number)] {
        for piece in session.pieces(task, address, COMPARED) {
            found.push((piece.address, session.content(task, piece)?));
        }
    }
    Ok(found)
}

pub fn after(session: &mut Session, task: &mut Task, call: &SystemCall, result: u64) -> Result<(), StepError> {
    match rule(call.number) {
        None => compare(session, task, call),
        Some(Rule::Nothing) => Ok(()),
        Some(Rule::Returned(at)) => session.emit_kernel_write(task, call.pc, call.args[at], result),
        Some(Rule::Fixed(at, len)) => session.emit_kernel_write(task, call.pc, call.args[at], len),
        Some(Rule::Vector { at, count }) => vector(session, task, call.pc, call.args[at], call.args[count], result),
        Some(Rule::Message(at)) => message(session, task, call.pc, call.args[at], MSGHDR, result),
        Some(Rule::Messages(at)) => (0..result).try_for_each(|i| {
            let header = call.args[at] + i * MMSGHDR;
            // msg_len stands behind the msghdr; the upper half is padding.
            let len = ptrace::read_u64(task.tid, header + MSGHDR)? & 0xffff_ffff;
            message(session, task, call.pc, header, MMSGHDR, len)
        }),
    }
}

/// Bytes of a `struct msghdr` and a `struct mmsghdr`.
const MSGHDR: u64 = 56;
const MMSGHDR: u64 = 64;

/// One message has been received: its header is filled in, then its buffers.
fn message(session: &mut Session, task: &mut Task, pc: u64, header: u64, size: u64, len: u64) -> Result<(), StepError> {
    session.emit_kernel_write(task, pc, header, size)?;
    // struct msghdr: msg_iov at 16, msg_iovlen at 24.
    let list = ptrace::read_u64(task.tid, header + 16)?;
    let count = ptrace::read_u64(task.tid, header + 24)?;
    vector(session, task, pc, list, count, len)
}

fn vector(
    session: &mut Session,
    task: &mut Task,
    pc: u64,
    list: u64,
    count: u64,
    mut left: u64,
) -> Result<(), StepError> {
    for i in 0..count {
        if left == 0 {
            break;
        }
        let address = ptrace::read_u64(task.tid, list + i * 16)?;
        let len = ptrace::read_u64(task.tid, list + i * 16 + 8)?.min(left);
        session.emit_kernel_write(task, pc, address, len)?;
        left -= len;
    }
    Ok(())
}

fn compare(session: &mut Session, task: &mut Task, call: &SystemCall) -> Result<(), StepError> {
    for (address, before) in &call.before {
        let mut now = vec![0; before.len()];
        ptrace::read(task.tid, *address, &mut now)?;
        let differs = |i: &usize| before[*i] != now[*i];
        let first = (0..now.len()).find(differs);
        let last = (0..now.len()).rfind(differs);
        if let (Some(first), Some(last)) = (first, last) {
            session.emit_kernel_write(task, call.pc, address + first as u64, (last - first + 1) as u64)?;
        }
    }
    Ok(())
}
