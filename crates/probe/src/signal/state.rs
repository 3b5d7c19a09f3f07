//! What a thread knows about its signals.

use alloc::sync::Arc;

use super::abi::Info;
use super::action::Actions;
use super::alternate::Alternate;
use super::set::SignalSet;

/// A signal that arrived while the program's state was not at hand.
#[derive(Clone, Copy, Debug)]
pub struct Kept {
    pub info: Info,
    /// What the frame shows of the fault (0 for asynchronous signals).
    pub err: u64,
    pub trapno: u64,
    pub cr2: u64,
    /// Raised by the program's own instruction: cannot be blocked or ignored.
    pub fault: bool,
}

/// A call that has not begun, or that the kernel wants begun again: the signal handler runs first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    No,
    /// The system call's number, which belongs back into rax.
    Call(u64),
}

#[derive(Debug)]
pub struct ThreadSignals {
    /// Shared by the threads of a process (or by whatever was cloned with `CLONE_SIGHAND`).
    pub actions: Option<Arc<Actions>>,
    /// The program's mask.
    pub mask: SignalSet,
    /// The mask of the `sigsuspend`, `ppoll`, ... under way: a handler that interrupts it starts from this one.
    pub temporary: Option<SignalSet>,
    pub alternate: Alternate,
    /// Waits for the way out of the engine; `Thread::signal_waits` is set.
    pub kept: Option<Kept>,
    /// Sent by somebody (not raised) while the program blocks it, of a kind that the kernel must not block.
    pub held: [Option<Info>; 5],
    pub restart: Restart,
    /// Single-stepping to the next boundary.
    pub stepping: bool,
    /// The engine's signal stack.
    pub stack_base: u64,
}

pub const SIGNAL_STACK: u64 = 256 << 10;

impl ThreadSignals {
    pub fn new() -> ThreadSignals {
        ThreadSignals {
            actions: None,
            mask: SignalSet::EMPTY,
            temporary: None,
            alternate: Alternate::NONE,
            kept: None,
            held: [None; 5],
            restart: Restart::No,
            stepping: false,
            stack_base: 0,
        }
    }

    /// In a forked child: what was pending stays with the parent.
    pub fn after_fork(&mut self) {
        self.held = [None; 5];
        self.actions().after_fork();
    }

    pub fn actions(&self) -> &Arc<Actions> {
        match &self.actions {
            Some(actions) => actions,
            None => panic!("signals are used before signal::init"),
        }
    }
}
