//! The program's action for each signal. The kernel gets the same actions, except that a handler is always the engine's.

use core::cell::Cell;

use super::abi::{
    KernelAction, SA_NOCLDSTOP, SA_NOCLDWAIT, SA_NODEFER, SA_ONSTACK, SA_RESETHAND, SA_RESTART, SA_RESTORER,
    SA_SIGINFO, SIG_DFL, SIG_IGN, SIGKILL, SIGNALS, SIGSTOP,
};
use super::catch;
use super::set::SignalSet;
use crate::load::user;
use crate::lock::{LockName, Locked};
use crate::recover::undo;
use crate::sys::{EFAULT, EINVAL, nr, raw};
use crate::thread::Thread;

#[derive(Clone, Copy, Debug)]
struct SignalAction {
    action: KernelAction,
    /// False: nobody has asked yet; it is what the process inherited.
    known: bool,
}

/// The table of one process.
#[derive(Debug)]
pub struct Actions(Locked<[SignalAction; SIGNALS]>);

const SIZE: u64 = 8;
/// The flags that the kernel keeps (it clears unknown ones so that programs can ask for support).
const SA_EXPOSE_TAGBITS: u64 = 0x800;
const KNOWN_FLAGS: u64 = SA_NOCLDSTOP
    | SA_NOCLDWAIT
    | SA_SIGINFO
    | SA_EXPOSE_TAGBITS
    | SA_RESTORER
    | SA_ONSTACK
    | SA_RESTART
    | SA_NODEFER
    | SA_RESETHAND;

impl Actions {
    pub fn new() -> Actions {
        let entry = SignalAction { action: KernelAction::default(), known: false };
        Actions(Locked::new(LockName::SignalActions, [entry; SIGNALS]))
    }

    /// Takes over the faults' signals: asks what was inherited, then installs the engine's handler.
    pub fn take_faults(&self) {
        for signal in 1..=SIGNALS as i32 {
            if SignalSet::FAULTS.has(signal) {
                self.get(signal);
                install(signal, &catch::real_action(0));
            }
        }
    }

    /// A copy for a child that shares the memory but not the actions (`vfork`).
    pub fn copy(&self) -> Actions {
        Actions(Locked::new(LockName::SignalActions, *self.0.lock()))
    }

    /// After fork: the thread that held the lock is not in this process.
    pub fn after_fork(&self) {
        self.0.release();
    }

    /// Works on one signal's entry with the lock held.
    fn with<T>(&self, signal: i32, work: impl FnOnce(&mut KernelAction) -> T) -> T {
        let mut entries = self.0.lock();
        let entry = &mut entries[signal as usize - 1];
        if !entry.known {
            // SAFETY: the kernel fills `entry.action`, which has its layout.
            unsafe { raw!(nr::RT_SIGACTION, signal, 0, &raw mut entry.action, SIZE) };
            entry.known = true;
        }
        work(&mut entry.action)
    }

    pub fn get(&self, signal: i32) -> KernelAction {
        self.with(signal, |action| *action)
    }

    /// `SA_RESETHAND`: back to the default before the handler runs.
    pub fn reset(&self, signal: i32) {
        self.with(signal, |action| {
            undo::action_changes(signal, *action);
            action.handler = SIG_DFL;
            tell_kernel(signal, action);
        });
    }

    fn set(&self, signal: i32, new: &KernelAction) {
        self.with(signal, |action| {
            undo::action_changes(signal, *action);
            *action = *new;
            action.flags &= KNOWN_FLAGS;
            action.mask = SignalSet(new.mask).blockable().0;
            tell_kernel(signal, action);
        });
    }

    /// What exec hands on: ignored signals stay ignored, also those whose handler is ours.
    pub fn before_exec(&self) {
        self.ignored_faults(install);
    }

    /// The exec failed.
    pub fn after_failed_exec(&self) {
        self.ignored_faults(|signal, _| install(signal, &catch::real_action(0)));
    }

    fn ignored_faults(&self, work: impl Fn(i32, &KernelAction)) {
        for signal in (1..=SIGNALS as i32).filter(|&s| SignalSet::FAULTS.has(s)) {
            let action = self.get(signal);
            if action.handler == SIG_IGN {
                work(signal, &action);
            }
        }
    }
}

/// A run is undone: the kernel is told again what it was told before, and no signal of the run is left.
pub fn put_back(before: &[Cell<undo::ActionBefore>]) {
    let (all, none) = (SignalSet::ALL, [0u64; 2]);
    // SAFETY: the kernel only reads the set and the time, and tells nothing.
    while unsafe { raw!(nr::RT_SIGTIMEDWAIT, &raw const all, 0, none.as_ptr(), SIZE) } > 0 {}
    for before in before {
        let undo::ActionBefore { signal, action } = before.get();
        tell_kernel(signal, &action);
    }
}

fn install(signal: i32, action: &KernelAction) {
    // SAFETY: the kernel only reads `action`; a handler in it is the engine's own (`catch`).
    unsafe { raw!(nr::RT_SIGACTION, signal, action as *const KernelAction, 0, SIZE) };
}

fn tell_kernel(signal: i32, action: &KernelAction) {
    if SignalSet::FAULTS.has(signal) {
        return;
    }
    match action.handler {
        SIG_DFL | SIG_IGN => install(signal, action),
        _ => install(signal, &catch::real_action(action.flags)),
    }
}

/// `rt_sigaction`.
pub fn syscall(thread: &mut Thread) -> i64 {
    let (signal, new, old, size) = (thread.regs.rdi as i32, thread.regs.rsi, thread.regs.rdx, thread.regs.r10);
    if size != SIZE {
        return -EINVAL;
    }
    let new = match new {
        0 => None,
        address => match user::read::<KernelAction>(address) {
            Some(action) => Some(action),
            None => return -EFAULT,
        },
    };
    if !(1..=SIGNALS as i32).contains(&signal) || (new.is_some() && (signal == SIGKILL || signal == SIGSTOP)) {
        return -EINVAL;
    }
    let actions = thread.signals.actions().clone();
    let before = actions.get(signal);
    if let Some(action) = new {
        actions.set(signal, &action);
    }
    if old != 0 && !user::give(thread, old, &before) {
        return -EFAULT;
    }
    0
}
