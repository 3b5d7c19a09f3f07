//! What a new thread or process starts with.

use std::cell::RefCell;
use std::rc::Rc;

use super::error::StepError;
use super::kernel::SystemCall;
use super::ptrace::{self, Tid};
use super::session::{Session, State, Task};
use super::shadow::ShadowStack;

/// The child of a thread that is inside `fork`, `vfork`, `clone` or `clone3`.
pub fn child(session: &mut Session, parent: &Task, tid: Tid) -> Result<Task, StepError> {
    let (flags, stack) = match &parent.state {
        State::InCall(call) => flags_and_stack(parent.tid, call),
        _ => (0, 0),
    };
    let has = |flag: i32| flags & u64::from(flag.cast_unsigned()) != 0;
    let process = if has(libc::CLONE_THREAD) { parent.process } else { session.new_process() };
    let space = if has(libc::CLONE_VM) {
        Rc::clone(&parent.space)
    } else {
        Rc::new(RefCell::new(parent.space.borrow().clone()))
    };
    // On the same stack the child is inside the same calls; on a new one it is inside none.
    let shadow = if stack == 0 { parent.shadow.clone() } else { ShadowStack::default() };
    Ok(Task {
        tid,
        thread: session.new_thread(),
        process,
        space,
        shadow,
        must_fence: false,
        state: State::Ready,
        last_pc: parent.last_pc,
    })
}

fn flags_and_stack(tid: Tid, call: &SystemCall) -> (u64, u64) {
    let both = u64::from((libc::CLONE_VM | libc::CLONE_VFORK).cast_unsigned());
    match call.number {
        libc::SYS_clone => (call.args[0], call.args[1]),
        // struct clone_args: flags at 0, stack at 40.
        libc::SYS_clone3 => {
            let word = |offset| ptrace::read_u64(tid, call.args[0] + offset).unwrap_or(0);
            (word(0), word(40))
        }
        libc::SYS_vfork => (both, 0),
        _ => (0, 0),
    }
}
