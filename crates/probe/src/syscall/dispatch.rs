//! Which family handles which system call.

use super::{
    buffers, descriptors, exit, files, memory, names, operations, proc, random, refused, standard, time, waits,
};
use crate::flow;
use crate::load::user;
use crate::recover;
use crate::signal;
use crate::sys::{self, nr};
use crate::task;
use crate::thread::Thread;

/// A system call under way.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub nr: u64,
    pub args: [u64; 6],
}

impl Call {
    /// Lets the kernel do it. May be interrupted by a signal and then not return here: nothing may be held.
    pub fn pass(&self, thread: &mut Thread) -> i64 {
        let result = signal::blocking_syscall(thread, self.nr, self.args);
        if result == -sys::EFAULT && user::open_code_pages(&self.args) {
            return signal::blocking_syscall(thread, self.nr, self.args);
        }
        result
    }

    /// Descriptors are 32-bit numbers.
    pub fn fd(&self, argument: usize) -> i32 {
        self.args[argument] as i32
    }
}

/// Carries out the system call in `thread.regs`; `thread.pc` is behind the instruction.
pub fn handle(thread: &mut Thread) {
    let r = &thread.regs;
    let call = Call { nr: r.rax, args: [r.rdi, r.rsi, r.rdx, r.r10, r.r8, r.r9] };
    // SDM, SYSCALL: rcx gets the return address, r11 the flags.
    thread.regs.rcx = thread.pc;
    thread.regs.r11 = thread.flags;
    if !flow::on() {
        return carry_out(thread, call);
    }
    flow::kernel::before(thread, call);
    carry_out(thread, call);
    flow::kernel::after(thread, call, thread.regs.rax as i64);
}

fn carry_out(thread: &mut Thread, call: Call) {
    standard::before(call);
    if recover::on() {
        recover::undo::allowed::observe(call);
        recover::calls::memory_read(call);
    }
    if signal::syscall(thread, call.nr) {
        return;
    }
    let held = memory::hold_for_fork(call);
    if task::syscall(thread, call.nr) {
        return;
    }
    drop(held);
    thread.regs.rax = if recover::on() || recover::substitutes() {
        // The strings must outlive the call.
        let (call, _strings) = recover::calls::prepared(thread, call);
        answer(thread, call) as u64
    } else {
        answer(thread, call) as u64
    };
}

fn answer(thread: &mut Thread, call: Call) -> i64 {
    if let Some(result) = names::answer(thread, call) {
        return result;
    }
    match call.nr {
        nr::MMAP => memory::mmap(thread, call),
        nr::MUNMAP => memory::munmap(thread, call),
        nr::MREMAP => memory::mremap(thread, call),
        nr::MPROTECT | nr::PKEY_MPROTECT => memory::mprotect(thread, call),
        nr::BRK => memory::brk(call),
        nr::MADVISE => memory::madvise(thread, call),
        nr::MSYNC => memory::msync(thread, call),
        nr::SHMAT => memory::shmat(thread, call),
        nr::REMAP_FILE_PAGES => memory::remap_file_pages(thread, call),

        nr::CLOCK_GETTIME
        | nr::GETTIMEOFDAY
        | nr::TIME
        | nr::NANOSLEEP
        | nr::CLOCK_NANOSLEEP
        | nr::FUTEX
        | nr::FUTEX_WAITV
        | nr::TIMERFD_SETTIME
        | nr::TIMER_SETTIME
        | nr::TIMER_DELETE
        | nr::POLL
        | nr::PPOLL
        | nr::SELECT
        | nr::PSELECT6
        | nr::EPOLL_WAIT
        | nr::EPOLL_PWAIT
        | nr::EPOLL_PWAIT2
        | nr::RT_SIGTIMEDWAIT
        | nr::SEMTIMEDOP
        | nr::IO_GETEVENTS
        | nr::IO_PGETEVENTS
        | nr::RECVMMSG
        | nr::MQ_TIMEDSEND
        | nr::MQ_TIMEDRECEIVE
        | nr::PAUSE
        | nr::ALARM
        | nr::SETITIMER => time::answer(thread, call),

        nr::GETRANDOM => random::getrandom(thread, call),

        nr::OPEN | nr::OPENAT | nr::OPENAT2 | nr::CREAT => files::open(thread, call),
        nr::READ if operations::on_input(call.fd(0)) => operations::read(thread, call),
        nr::READV if operations::on_input(call.fd(0)) => operations::read_vector(thread, call),
        // preadv2(2): from the file position, as readv.
        nr::PREADV2 if call.args[3] == u64::MAX && operations::on_input(call.fd(0)) => {
            operations::read_vector(thread, call)
        }
        nr::IOCTL | nr::FSTAT | nr::NEWFSTATAT if operations::wanted() && operations::asks_about_output(call) => {
            operations::output_is_terminal(thread, call)
        }
        nr::READ => files::read(thread, call),
        nr::RECVFROM | nr::RECVMSG | nr::ACCEPT | nr::ACCEPT4 | nr::CONNECT | nr::SENDTO | nr::SENDMSG => {
            waits::on_socket(thread, call)
        }
        nr::WRITE
        | nr::WRITEV
        | nr::PWRITE64
        | nr::PWRITEV
        | nr::PWRITEV2
        | nr::SENDFILE
        | nr::COPY_FILE_RANGE
        | nr::SPLICE => files::write(thread, call),
        nr::FTRUNCATE | nr::TRUNCATE | nr::FALLOCATE => files::resize(thread, call),
        nr::FSYNC | nr::FDATASYNC => files::sync(thread, call),
        nr::SYNC | nr::SYNCFS => files::sync_all(thread, call),

        nr::READLINK
        | nr::READLINKAT
        | nr::STAT
        | nr::LSTAT
        | nr::NEWFSTATAT
        | nr::STATX
        | nr::ACCESS
        | nr::FACCESSAT
        | nr::FACCESSAT2 => proc::by_path(thread, call),
        nr::GETDENTS64 | nr::GETDENTS => proc::list(thread, call),

        nr::CLOSE | nr::CLOSE_RANGE | nr::DUP | nr::DUP2 | nr::DUP3 | nr::FCNTL => descriptors::answer(thread, call),

        nr::EXIT_GROUP => exit::group(thread, call),

        nr::RSEQ
        | nr::ARCH_PRCTL
        | nr::PRCTL
        | nr::SECCOMP
        | nr::PTRACE
        | nr::MODIFY_LDT
        | nr::IO_URING_SETUP
        | nr::IO_SUBMIT
        | nr::PERSONALITY => refused::answer(thread, call),
        _ => buffers::pass(thread, call),
    }
}
