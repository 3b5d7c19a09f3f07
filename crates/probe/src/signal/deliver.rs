//! Entering the program's handler: the kernel's `setup_rt_frame`, on the program's state.

use super::abi::{
    Context, DIRECTION_FLAG, Info, Machine, RESUME_FLAG, SA_NODEFER, SA_RESETHAND, SI_KERNEL, SIG_DFL, SIG_IGN,
    SIGSEGV, TRAP_FLAG,
};
use super::set::SignalSet;
use super::state::Kept;
use super::{blocking, end, frame, mask};
use crate::thread::{Regs, Thread};
use crate::trampoline::pass;

/// The program's registers as they are between two of its instructions.
#[derive(Clone, Copy, Debug)]
pub struct ProgramState {
    pub regs: Regs,
    pub flags: u64,
    pub pc: u64,
    /// xmm0–15 are in the thread's structure; otherwise in the frame that the kernel made.
    pub xmm_in_structure: bool,
}

impl ProgramState {
    pub fn from_machine(machine: &Machine, pc: u64) -> ProgramState {
        ProgramState { regs: machine.regs(), flags: machine.eflags & !TRAP_FLAG, pc, xmm_in_structure: false }
    }
    pub fn from_structure(thread: &Thread) -> ProgramState {
        ProgramState { regs: thread.regs, flags: thread.flags & !TRAP_FLAG, pc: thread.pc, xmm_in_structure: true }
    }
}

/// Delivers a signal: when the real handler returns, the program is in its own one (or goes on, or ends).
pub fn deliver(thread: &mut Thread, context: &mut Context, mut state: ProgramState, kept: &Kept) {
    if let Some(other) = thread.signals.kept.take() {
        // A fault came first; the kernel has the other one again, to deliver when it may.
        mask::queue(thread, &other.info);
    }
    thread.signals.stepping = false;
    thread.signal_waits = 0;
    // The handler comes first.
    thread.flow.told = false;
    if state.xmm_in_structure {
        blocking::apply_restart(thread);
        state = ProgramState::from_structure(thread);
        frame::put_xmm(context.machine.fpstate, &thread.xmm);
    }
    let signal = kept.info.signo;
    let action = thread.signals.actions().get(signal);
    let before = thread.signals.temporary.take().unwrap_or(thread.signals.mask);
    let plain = action.handler == SIG_DFL || action.handler == SIG_IGN;
    if crate::recover::on() && SignalSet::FAULTS.has(signal) {
        let asked = signal == SIGSEGV && !kept.fault && crate::recover::crash::is_asked();
        // A driver ends by the signal that ended what it drives: that one's place counts.
        let passed_on = !kept.fault && !asked && crate::recover::crash::is_described();
        if (plain || asked) && !passed_on {
            crate::recover::crash::describe(state.pc, state.regs.rsp, state.regs.rbp);
        }
        if asked {
            end::end_by(thread, signal);
        }
    }
    if kept.fault && (plain || thread.signals.mask.has(signal)) {
        end::end_by(thread, signal);
    }
    if plain {
        if action.handler == SIG_DFL {
            if SignalSet::FAULTS.has(signal) {
                end::end_by(thread, signal);
            }
            // Another thread took the handler away since the signal came: the kernel does what is to be done.
            mask::queue(thread, &kept.info);
        }
        return go_on(thread, context, &state);
    }
    let Some(at) = frame::build(thread, context, &state, kept, &action) else {
        // The kernel's `force_sigsegv`.
        if signal == SIGSEGV {
            end::end_by(thread, SIGSEGV);
        }
        let info = Info::new(SIGSEGV, SI_KERNEL, 0);
        return deliver(thread, context, state, &Kept { info, err: 0, trapno: 0, cr2: 0, fault: true });
    };
    if action.flags & SA_RESETHAND != 0 {
        thread.signals.actions().reset(signal);
    }
    let mut blocked = before.and(SignalSet(action.mask));
    if action.flags & SA_NODEFER == 0 {
        blocked = blocked.with(signal);
    }
    thread.signals.mask = blocked.blockable();
    state.regs.rdi = signal as u64;
    state.regs.rsi = at.info;
    state.regs.rdx = at.context;
    state.regs.rax = 0;
    state.regs.rsp = at.frame;
    state.flags &= !(DIRECTION_FLAG | TRAP_FLAG | RESUME_FLAG);
    state.pc = action.handler;
    // The handler starts with the initial floating-point state, as natively.
    context.machine.fpstate = 0;
    go_on(thread, context, &state);
}

/// Lets the program go on in this state, with its mask.
pub fn go_on(thread: &mut Thread, context: &mut Context, state: &ProgramState) {
    let machine = &mut context.machine;
    machine.set_regs(&state.regs);
    machine.eflags = state.flags & !TRAP_FLAG;
    machine.rip = pass::trampoline_reenter as *const () as u64;
    thread.target = state.pc;
    // A signal that is still kept comes first.
    let waits = thread.signals.kept.is_some();
    let mask = if waits { SignalSet::ALL } else { thread.signals.mask };
    context.mask = mask.real().0;
    thread.signals.stepping = false;
}
