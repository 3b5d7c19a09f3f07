//! What the kernel puts on the stack for a signal handler (Linux `arch/x86/include/uapi/asm/sigcontext.h`, `ucontext.h`).

use crate::thread::Regs;

/// `struct sigcontext`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rdi: u64,
    pub rsi: u64,
    pub rbp: u64,
    pub rbx: u64,
    pub rdx: u64,
    pub rax: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub rip: u64,
    pub eflags: u64,
    pub segments: u64,
    pub err: u64,
    pub trapno: u64,
    pub oldmask: u64,
    pub cr2: u64,
    pub fpstate: u64,
    pub reserved: [u64; 8],
}

impl Machine {
    pub fn regs(&self) -> Regs {
        Regs {
            rax: self.rax,
            rcx: self.rcx,
            rdx: self.rdx,
            rbx: self.rbx,
            rsp: self.rsp,
            rbp: self.rbp,
            rsi: self.rsi,
            rdi: self.rdi,
            r8: self.r8,
            r9: self.r9,
            r10: self.r10,
            r11: self.r11,
            r12: self.r12,
            r13: self.r13,
            r14: self.r14,
            r15: self.r15,
        }
    }

    pub fn set_regs(&mut self, regs: &Regs) {
        self.rax = regs.rax;
        self.rcx = regs.rcx;
        self.rdx = regs.rdx;
        self.rbx = regs.rbx;
        self.rsp = regs.rsp;
        self.rbp = regs.rbp;
        self.rsi = regs.rsi;
        self.rdi = regs.rdi;
        self.r8 = regs.r8;
        self.r9 = regs.r9;
        self.r10 = regs.r10;
        self.r11 = regs.r11;
        self.r12 = regs.r12;
        self.r13 = regs.r13;
        self.r14 = regs.r14;
        self.r15 = regs.r15;
    }
}

/// `stack_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StackInfo {
    pub sp: u64,
    pub flags: u32,
    pub _pad: u32,
    pub size: u64,
}

/// `struct ucontext`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Context {
    pub flags: u64,
    pub link: u64,
    pub stack: StackInfo,
    pub machine: Machine,
    pub mask: u64,
}

/// `siginfo_t`: the fields that the engine looks at; the union's first word is the fault address of a fault.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub signo: i32,
    pub errno: i32,
    pub code: i32,
    pub _pad: i32,
    pub address: u64,
    pub rest: [u64; 13],
}

impl Info {
    pub const fn new(signo: i32, code: i32, address: u64) -> Info {
        Info { signo, errno: 0, code, _pad: 0, address, rest: [0; 13] }
    }
    /// Did the processor raise it, at the instruction that it interrupted? (`SI_USER`, `SI_TKILL`, ... are not above 0;
    /// only the signals of faults are asked.)
    pub fn is_fault(&self) -> bool {
        self.code > 0
    }
}

/// `struct rt_sigframe`; the handler's stack pointer points at it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct SignalFrame {
    pub restorer: u64,
    pub context: Context,
    pub info: Info,
}

/// `struct sigaction` as system calls take it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KernelAction {
    pub handler: u64,
    pub flags: u64,
    pub restorer: u64,
    pub mask: u64,
}

const _: () = assert!(size_of::<Machine>() == 256);
const _: () = assert!(size_of::<Context>() == 304);
const _: () = assert!(size_of::<Info>() == 128);
const _: () = assert!(size_of::<SignalFrame>() == 440);

pub const SIG_DFL: u64 = 0;
pub const SIG_IGN: u64 = 1;

pub const SA_NOCLDSTOP: u64 = 1;
pub const SA_NOCLDWAIT: u64 = 2;
pub const SA_SIGINFO: u64 = 4;
pub const SA_RESTORER: u64 = 0x0400_0000;
pub const SA_ONSTACK: u64 = 0x0800_0000;
pub const SA_RESTART: u64 = 0x1000_0000;
pub const SA_NODEFER: u64 = 0x4000_0000;
pub const SA_RESETHAND: u64 = 0x8000_0000;

pub const SIGILL: i32 = 4;
pub const SIGTRAP: i32 = 5;
pub const SIGBUS: i32 = 7;
pub const SIGFPE: i32 = 8;
pub const SIGKILL: i32 = 9;
pub const SIGSEGV: i32 = 11;
pub const SIGSTOP: i32 = 19;
/// Number of signals; they start at 1.
pub const SIGNALS: usize = 64;

pub const SI_KERNEL: i32 = 0x80;
pub const TRAP_TRACE: i32 = 2;

/// Bits of the page-fault error code (Intel SDM vol. 3 §4.7).
pub const PF_WRITE: u64 = 2;
pub const TRAP_PAGE_FAULT: u64 = 14;
pub const TRAP_ALIGNMENT: u64 = 17;

/// Flags register.
pub const TRAP_FLAG: u64 = 1 << 8;
pub const DIRECTION_FLAG: u64 = 1 << 10;
pub const RESUME_FLAG: u64 = 1 << 16;
pub const ALIGNMENT_FLAG: u64 = 1 << 18;
