//! Children that a signal ended. The kernel does not notify the engine in the child, so the parent writes the record when
//! it waits for the child.

use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::clone::as_thread;
use crate::load::user;
use crate::lock::{LockName, Locked};
use crate::pm;
use crate::ring;
use crate::signal;
use crate::sys::nr;
use crate::thread::Thread;

#[derive(Clone, Copy, Debug)]
struct Child {
    pid: u32,
    /// Number of its first thread.
    thread: u32,
}

static CHILDREN: Locked<Vec<Child>> = Locked::new(LockName::Children, Vec::new());

/// A process that this one may wait for.
pub fn started(pid: u32, thread: u32) {
    CHILDREN.lock().push(Child { pid, thread });
}

/// In a forked child: the children are its parent's.
pub fn after_fork() {
    CHILDREN.reset(Vec::new());
}

/// `wait4` and `waitid`; `None`: leave it to the rest of the engine (results that go into PM are events).
pub fn syscall(thread: &mut Thread, number: u64) -> Option<i64> {
    let r = &thread.regs;
    let args = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9];
    let answers = if number == nr::WAIT4 { [args[1], args[3]] } else { [args[2], args[4]] };
    if answers.iter().any(|&a| pm::is_pm(a)) {
        return None;
    }
    Some(if number == nr::WAIT4 { wait4(thread, args) } else { waitid(thread, args) })
}

fn wait4(thread: &mut Thread, mut args: [u64; 6]) -> i64 {
    const EFAULT: i64 = crate::sys::EFAULT;
    let wanted = args[1];
    let mut status = 0i32;
    args[1] = &raw mut status as u64;
    let result = signal::blocking_syscall(thread, nr::WAIT4, args);
    if result > 0 {
        // The low seven bits are the signal; 0x7f is a stop, 0xffff a continuation (wait(2)).
        let by = status & 0x7f;
        ended(thread, result as u32, (by != 0x7f).then_some(by));
    }
    if result > 0 && wanted != 0 && !user::give(thread, wanted, &status) {
        return -EFAULT;
    }
    result
}

fn waitid(thread: &mut Thread, mut args: [u64; 6]) -> i64 {
    const CLD_EXITED: i32 = 1;
    const CLD_KILLED: i32 = 2;
    const CLD_DUMPED: i32 = 3;
    /// `siginfo_t` of a child: signal, error, code, padding, pid, user, status.
    type Info = [i32; 7];
    let mut own = [0i32; 32];
    if args[2] == 0 {
        args[2] = own.as_mut_ptr() as u64;
    }
    let result = signal::blocking_syscall(thread, nr::WAITID, args);
    if result == 0
        && let Some([_, _, code, _, pid, _, status]) = user::read::<Info>(args[2])
        && pid != 0
    {
        match code {
            CLD_KILLED | CLD_DUMPED => ended(thread, pid as u32, Some(status)),
            CLD_EXITED => ended(thread, pid as u32, Some(0)),
            _ => {}
        }
    }
    result
}

/// A child is over: by a signal, by itself (0), or it only stopped.
fn ended(thread: &mut Thread, pid: u32, by: Option<i32>) {
    let Some(by) = by else { return };
    let found = {
        let mut list = CHILDREN.lock();
        list.iter().position(|child| child.pid == pid).map(|at| list.swap_remove(at))
    };
    // What the engine catches itself it has told itself.
    if let Some(child) = found
        && by != 0
        && !signal::is_fault(by)
    {
        let header = Header { kind: kind::PROCESS_EXIT, aux: 1, address: by as u64, ..Header::default() };
        as_thread(&mut ring::order(thread), child.thread, |order| order.put(header, &[]));
    }
}
