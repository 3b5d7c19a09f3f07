//! The program's alternate signal stack (`sigaltstack`). The kernel knows only the engine's.

use super::abi::StackInfo;
use crate::load::user;
use crate::sys::{EFAULT, EINVAL, ENOMEM};
use crate::thread::Thread;

const SS_ONSTACK: u32 = 1;
const SS_DISABLE: u32 = 2;
const SS_AUTODISARM: u32 = 1 << 31;
const MINSIGSTKSZ: u64 = 2048;
const EPERM: i64 = 1;

#[derive(Clone, Copy, Debug)]
pub struct Alternate {
    sp: u64,
    size: u64,
    flags: u32,
}

impl Alternate {
    pub const NONE: Alternate = Alternate { sp: 0, size: 0, flags: SS_DISABLE };

    pub fn is_set(&self) -> bool {
        self.size != 0
    }
    pub fn top(&self) -> u64 {
        self.sp + self.size
    }
    /// `__on_sig_stack`.
    pub fn contains(&self, sp: u64) -> bool {
        sp > self.sp && sp - self.sp <= self.size
    }
    /// `on_sig_stack`: an auto-disarming stack never counts as in use.
    pub fn in_use(&self, sp: u64) -> bool {
        self.flags & SS_AUTODISARM == 0 && self.contains(sp)
    }

    /// As a handler's frame shows it; auto-disarm takes effect.
    pub fn save(&mut self) -> StackInfo {
        let info = StackInfo { sp: self.sp, flags: self.flags, _pad: 0, size: self.size };
        if self.flags & SS_AUTODISARM != 0 {
            *self = Alternate::NONE;
        }
        info
    }

    /// Sets it as the system call does, with the program's stack pointer at `sp`.
    pub fn set(&mut self, new: &StackInfo, sp: u64) -> i64 {
        if self.in_use(sp) {
            return -EPERM;
        }
        let mode = new.flags & !SS_AUTODISARM;
        if mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0 {
            return -EINVAL;
        }
        if mode == SS_DISABLE {
            *self = Alternate { flags: new.flags, ..Alternate::NONE };
            return 0;
        }
        if new.size < MINSIGSTKSZ {
            return -ENOMEM;
        }
        *self = Alternate { sp: new.sp, size: new.size, flags: new.flags };
        0
    }
}

/// `sigaltstack`.
pub fn syscall(thread: &mut Thread) -> i64 {
    let (new, old, sp) = (thread.regs.rdi, thread.regs.rsi, thread.regs.rsp);
    let alternate = &mut thread.signals.alternate;
    let before = StackInfo {
        sp: alternate.sp,
        flags: match (alternate.is_set(), alternate.in_use(sp)) {
            (false, _) => SS_DISABLE,
            (true, true) => SS_ONSTACK,
            (true, false) => 0,
        } | alternate.flags & SS_AUTODISARM,
        _pad: 0,
        size: alternate.size,
    };
    if new != 0 {
        let Some(info) = user::read::<StackInfo>(new) else { return -EFAULT };
        let result = alternate.set(&info, sp);
        if result != 0 {
            return result;
        }
    }
    if old != 0 && !user::give(thread, old, &before) {
        return -EFAULT;
    }
    0
}
