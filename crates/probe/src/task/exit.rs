//! The end of a thread.

use core::alloc::Layout;
use core::arch::asm;
use core::sync::atomic::{AtomicU32, Ordering};

use wire::record::{Header, kind};

use crate::load::space;
use crate::ring;
use crate::signal;
use crate::sys::nr;
use crate::syscall::{self, dispatch::Call};
use crate::thread::Thread;

/// Threads of the process that owns this memory.
static THREADS: AtomicU32 = AtomicU32::new(1);
/// The process that owns this memory; a `vfork` child only borrows it.
static OWNER: AtomicU32 = AtomicU32::new(UNKNOWN);
const UNKNOWN: u32 = u32::MAX;

pub fn count_thread() {
    THREADS.fetch_add(1, Ordering::SeqCst);
}

pub fn uncount_thread() {
    THREADS.fetch_sub(1, Ordering::SeqCst);
}

/// Before the first task is made: the memory is this process's.
pub fn claim_memory(thread: &Thread) {
    let _ = OWNER.compare_exchange(UNKNOWN, thread.process, Ordering::SeqCst, Ordering::SeqCst);
}

/// In a process with a copy of the memory.
pub fn after_fork(thread: &Thread) {
    OWNER.store(thread.process, Ordering::SeqCst);
    THREADS.store(1, Ordering::SeqCst);
}

fn is_borrower(thread: &Thread) -> bool {
    let owner = OWNER.load(Ordering::SeqCst);
    owner != UNKNOWN && owner != thread.process
}

/// Gives back what a thread had, its engine stack included.
///
/// # Safety
/// The thread must not run any more.
pub unsafe fn free(thread: &mut Thread) {
    space::unmap_engine(thread.stack_base, thread.stack_len);
    // SAFETY: stated above.
    unsafe { free_structure(thread) };
}

unsafe fn free_structure(thread: *mut Thread) {
    // SAFETY: made by `Thread::create` with this layout; nobody uses it any more.
    unsafe {
        crate::thread::unregister(&mut *thread);
        signal::give_back_stack(&mut *thread);
        crate::flow::buffer::give_back(&mut *thread);
        (*thread).paths.free();
        core::ptr::drop_in_place(thread);
        alloc::alloc::dealloc(thread.cast(), Layout::new::<Thread>());
    }
}

/// `exit`: this thread ends; it frees the very stack that it stands on. The last thread ends its process.
pub fn thread(thread: &mut Thread) -> i64 {
    let code = thread.regs.rdi;
    if is_borrower(thread) || THREADS.fetch_sub(1, Ordering::SeqCst) == 1 {
        return syscall::exit::group(thread, Call { nr: nr::EXIT_GROUP, args: [code, 0, 0, 0, 0, 0] });
    }
    ring::order(thread).put(Header { kind: kind::THREAD_END, ..Header::default() }, &[]);
    signal::block_all();
    let (base, len) = (thread.stack_base, thread.stack_len);
    space::forget_engine(base, len);
    // SAFETY: from here on neither the structure nor GS is used: signals are blocked and the assembly touches no memory.
    unsafe {
        free_structure(thread);
        asm!("syscall", "mov rdi, r12", "mov eax, {exit}", "syscall", "ud2", exit = const nr::EXIT,
             in("rax") nr::MUNMAP, in("rdi") base, in("rsi") len, in("r12") code, options(noreturn))
    }
}
