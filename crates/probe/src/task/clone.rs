//! New threads and processes.
//!
//! A task that shares the memory (a thread, a `vfork` child) starts on its own engine stack, with the program's
//! registers in its own [`Thread`]. A task with a copy of the memory continues in its copy of the same function.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::Ordering;

use wire::record::{Header, kind};

use super::exit;
use super::number;
use super::request::{CLONE_NEWPID, CLONE_SIGHAND, CLONE_THREAD, CLONE_VFORK, CLONE_VM, Request};
use super::started::{self, start_on_own_stack};
use super::wait;
use crate::context;
use crate::memory;
use crate::recover;
use crate::ring::{self, Order, control};
use crate::signal;
use crate::sys::{self, nr, sys};
use crate::syscall::memory as memory_calls;
use crate::syscall::random;
use crate::thread::{self, Thread};
use crate::translate;

/// `clone`, `clone3`, `fork`, `vfork`.
pub fn syscall(thread: &mut Thread, number: u64) -> i64 {
    let request = match Request::read(thread, number) {
        Ok(request) => request,
        Err(error) => return error,
    };
    if crate::recover::on() && !request.has(CLONE_THREAD) && !crate::recover::limits::allow_process() {
        const EAGAIN: i64 = 11;
        return -EAGAIN;
    }
    if request.id_places().iter().any(|&place| crate::pm::is_pm(place)) {
        crate::refuse!(
            thread,
            "the program lets the kernel write thread ids into a pool (clone), which cannot be recorded"
        );
    }
    // From now on stores and their records are kept together by the order lock.
    control().many_tasks.store(1, Ordering::SeqCst);
    crate::lock::parallel();
    exit::claim_memory(thread);
    if request.has(CLONE_VM) { share(thread, request) } else { copy(thread, request) }
}

/// A task in the same memory.
fn share(thread: &mut Thread, mut request: Request) -> i64 {
    let is_thread = request.has(CLONE_THREAD);
    let number = number::next_thread(thread);
    let process = if is_thread { thread.process } else { number::next_process() };
    let mut child = Thread::create(number, process);
    child.regs = thread.regs;
    child.regs.rax = 0;
    if request.stack != 0 {
        child.regs.rsp = request.stack;
    }
    child.regs.rcx = thread.pc;
    child.regs.r11 = thread.flags;
    child.flags = thread.flags;
    child.pc = thread.pc;
    child.xmm = thread.xmm;
    child.signals.mask = thread.signals.mask;
    let actions = thread.signals.actions();
    child.signals.actions = Some(if request.has(CLONE_SIGHAND) { actions.clone() } else { Arc::new(actions.copy()) });
    if request.has(CLONE_VFORK) {
        child.signals.alternate = thread.signals.alternate;
    }

    started::leave_note(&child, (!is_thread).then_some(thread.process));
    if is_thread {
        exit::count_thread();
        let parent = thread.number;
        // By the parent, so that the record's place does not depend on when the thread first runs.
        let mut order = ring::order(thread);
        announce_thread(&mut order, number, process, parent);
    } else {
        control().live_processes.fetch_add(1, Ordering::SeqCst);
    }
    signal::block_all();
    let (call, args) = request.call(child.stack_base, child.engine_rsp);
    // From here on it is the child's.
    let child = Box::into_raw(child);
    // SAFETY: the child's structure and stack are complete; signals are blocked until it has installed them.
    let result = unsafe { start_on_own_stack(call, &args, child) };
    if result < 0 && is_thread {
        exit::uncount_thread();
        let mut order = ring::order(thread);
        as_thread(&mut order, number, |order| order.put(Header { kind: kind::THREAD_END, ..Header::default() }, &[]));
    } else if result < 0 {
        control().live_processes.fetch_sub(1, Ordering::SeqCst);
    }
    if result > 0 && !is_thread {
        wait::started(result as u32, number);
    }
    if result < 0 || request.has(CLONE_VFORK) {
        // SAFETY: there is no such task, or it has left this memory: the kernel held us until then.
        unsafe { exit::free(&mut *child) };
    }
    signal::unblock(thread);
    result
}

/// A task with a copy of the memory.
fn copy(thread: &mut Thread, mut request: Request) -> i64 {
    signal::block_all();
    if signal::begin_again(thread) {
        return thread.regs.rax as i64;
    }
    translate::hints::take(thread);
    let number = number::next_thread(thread);
    let process = number::next_process();
    let parent = thread.process;
    control().live_processes.fetch_add(1, Ordering::SeqCst);
    // The parent must go on to tell of the child. With a memory of its own the child cannot tell that it does.
    request.drop_flag(CLONE_VFORK);
    let (call, args) = request.call(0, 0);
    // In the order of `LockName`. The child must find them all free: nobody else is there to free them.
    let engine = translate::lock().lock();
    let mut order = ring::order(thread);
    // The child shall not find what is the parent's to tell.
    crate::flow::buffer::flush(order.thread());
    let result = {
        let _short = memory_calls::hold_tables();
        let _paths = context::path::hold();
        let _regions = translate::code::hold();
        let _random = random::hold();
        let _listings = recover::listing::hold();
        let _ahead = recover::script::hold();
        let _heap = memory::hold();
        // SAFETY: the child goes on right here with its own copy of everything that is not shared on purpose.
        unsafe { sys::call(call, args) }
    };
    drop(engine);
    if result == 0 {
        // The order lock belongs to the parent, which tells of this process first.
        core::mem::forget(order);
        become_copy(thread, number, process, &request);
        signal::unblock(thread);
        return 0;
    }
    if result > 0 {
        let pid = if request.has(CLONE_NEWPID) { 1 } else { result as u32 };
        announce_process(&mut order, number, process, parent, pid, 0);
        wait::started(result as u32, number);
    } else {
        control().live_processes.fetch_sub(1, Ordering::SeqCst);
    }
    drop(order);
    signal::unblock(thread);
    result
}

/// In a fork of the fork server (`recover::serve`): it goes on as the process that the server is.
pub fn become_run(thread: &mut Thread) {
    translate::hints::in_child();
    thread.tid = sys!(nr::GETTID) as u64;
    thread.signals.after_fork();
    thread::only(thread);
    exit::after_fork(thread);
    wait::after_fork();
}

fn become_copy(thread: &mut Thread, number: u32, process: u32, request: &Request) {
    crate::syscall::timers::after_fork();
    translate::hints::in_child();
    thread.holds_order = 0;
    thread.pending = 0;
    thread.number = number;
    thread.process = process;
    thread.header_thread = (number as u64 & 0xffff) << 16;
    thread.tid = sys!(nr::GETTID) as u64;
    thread.signals.after_fork();
    thread::only(thread);
    exit::after_fork(thread);
    wait::after_fork();
    if request.stack != 0 {
        thread.regs.rsp = request.stack;
    }
}

/// Writes records of another thread: of one that does not run yet.
pub fn as_thread(order: &mut Order<'_>, number: u32, write: impl FnOnce(&mut Order<'_>)) {
    let own = core::mem::replace(&mut order.thread().number, number);
    write(order);
    order.thread().number = own;
}

fn announce_thread(order: &mut Order<'_>, number: u32, process: u32, parent: u32) {
    as_thread(order, number, |order| {
        let parts = [&process.to_le_bytes()[..], &parent.to_le_bytes()];
        order.put(Header { kind: kind::THREAD_START, ..Header::default() }, &parts);
    });
}

/// A process has no separate record for its first thread. `aux` 1: the process shares its parent's memory (and so its tables of sites and contexts) until it execs.
pub fn announce_process(order: &mut Order<'_>, number: u32, process: u32, parent: u32, pid: u32, aux: u8) {
    as_thread(order, number, |order| {
        let parts = [&process.to_le_bytes()[..], &parent.to_le_bytes(), &pid.to_le_bytes()];
        order.put(Header { kind: kind::PROCESS_START, aux, ..Header::default() }, &parts);
    });
}
