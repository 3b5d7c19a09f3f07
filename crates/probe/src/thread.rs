//! The engine's side of one thread of the target. Its address is the thread's GS base; FS belongs to the program.
//!
//! Field order is free: assembly takes offsets from [`offset_of!`]. Fields that translated code accesses come first, so that
//! they stay within one or two lines.

use alloc::boxed::Box;
use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::context::cache::PathCache;
use crate::signal::state::ThreadSignals;

/// General registers in the machine's numbering.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Regs {
    pub rax: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rbx: u64,
    pub rsp: u64,
    pub rbp: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
}

impl Regs {
    /// By machine number (rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8..r15).
    pub fn get(&self, number: u8) -> u64 {
        assert!(number < 16);
        // SAFETY: `Regs` is sixteen u64 in a row.
        unsafe { *(self as *const Regs as *const u64).add(number as usize) }
    }
    pub fn set(&mut self, number: u8, value: u64) {
        assert!(number < 16);
        // SAFETY: as in `get`.
        unsafe { *(self as *mut Regs as *mut u64).add(number as usize) = value }
    }
}

/// Where the thread is, as far as signals care (see `signal`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Place {
    /// In translated code (or in an asm trampoline on the way): the program's registers are in the machine.
    Cache = 0,
    /// In the engine: the program's state is in `regs`, `flags`, `pc`, `xmm`.
    Engine = 1,
}

#[repr(C, align(64))]
#[derive(Debug)]
pub struct Thread {
    /// This structure's own address (`mov rdi, gs:[0]`).
    pub this: u64,
    /// Spill slots of translated code.
    pub t0: u64,
    pub t1: u64,
    pub t2: u64,
    pub t3: u64,
    pub t4: u64,
    pub t5: u64,
    /// Target of the indirect branch under way; also the pc to go on at for `trampoline_reenter`.
    pub target: u64,
    /// Argument of the trampoline taken (exit number, site, ...).
    pub arg: u64,
    /// The program's rsp while the engine stack is in use inside a block.
    pub app_rsp: u64,
    /// Top of the engine stack.
    pub engine_rsp: u64,
    /// PM address (as the program sees it) of the access being recorded.
    pub ea: u64,
    /// Site being recorded (low 32 bits).
    pub site: u64,
    /// Second and third word of a record's first: kind and aux come from the site, the thread number from here (<< 16).
    pub header_thread: u64,
    /// Path of the last record of the block under way; `NO_PATH`: not known (see `site::flag::SAME_PATH`).
    pub last_path: u64,
    /// 1: this thread issued a flush or a non-temporal PM store since its last fence (contract rule 5).
    pub pending: u64,
    /// 1 while this thread holds the order lock.
    pub holds_order: u64,
    /// Kernel thread id.
    pub tid: u64,
    /// Where `trampoline_enter` goes: an address in the code cache.
    pub resume: u64,
    /// Executed blocks that the host does not know yet (see `flow`).
    pub flow: crate::flow::buffer::Buffer,
    /// In coverage mode: what is remembered of the last PM operation (`wire::cover::transition`).
    pub cover_before: u64,
    pub place: Place,
    /// 1: a signal waits to be delivered when the engine is left.
    pub signal_waits: u32,

    /// Old bytes of a read-modify-write; masks of masked stores.
    pub old: [u64; 8],
    pub mask: [u64; 8],

    pub regs: Regs,
    pub flags: u64,
    /// The program's pc while in the engine.
    pub pc: u64,
    pub xmm: [u128; 16],

    /// Number of the thread and of its process in the recording.
    pub number: u32,
    pub process: u32,
    /// Set while an instruction with implicit operands runs on the alias (see `translate::implicit`).
    pub shifted: crate::translate::implicit::Shifted,
    pub watch_returns: alloc::vec::Vec<crate::translate::watch::PendingReturn>,
    pub paths: PathCache,
    pub signals: ThreadSignals,
    /// When it last asked for the time.
    pub asked: crate::syscall::time::Asked,
    /// Stack of the engine: base address and length, for freeing.
    pub stack_base: u64,
    pub stack_len: u64,
    /// Generation of the code cache that this thread saw last (see `cache::arena`).
    pub generation: u64,
    /// `clear_child_tid` of the program, kept by the kernel itself; here for clone bookkeeping.
    pub next: *mut Thread,
}

/// No call path is known for the block under way.
pub const NO_PATH: u64 = u32::MAX as u64;

pub const ENGINE_STACK: u64 = 256 << 10;

impl Thread {
    /// A new thread's structure with its own engine stack. GS is not set: see [`Thread::install`].
    pub fn create(number: u32, process: u32) -> Box<Thread> {
        let layout = core::alloc::Layout::new::<Thread>();
        // SAFETY: zeroed memory is made a valid `Thread` field by field below before it is used; it comes from the allocator of `Box`.
        let mut thread = unsafe {
            let raw = alloc::alloc::alloc_zeroed(layout).cast::<Thread>();
            assert!(!raw.is_null(), "no memory for a thread");
            core::ptr::addr_of_mut!((*raw).watch_returns).write(alloc::vec::Vec::new());
            core::ptr::addr_of_mut!((*raw).paths).write(PathCache::new());
            core::ptr::addr_of_mut!((*raw).signals).write(ThreadSignals::new());
            core::ptr::addr_of_mut!((*raw).shifted).write(Default::default());
            core::ptr::addr_of_mut!((*raw).place).write(Place::Engine);
            Box::from_raw(raw)
        };
        let stack = crate::load::space::map_engine(ENGINE_STACK);
        thread.this = &raw const *thread as u64;
        thread.stack_base = stack;
        thread.stack_len = ENGINE_STACK;
        // The trampolines expect 16-byte alignment before their `call`.
        thread.engine_rsp = stack + ENGINE_STACK - 64;
        thread.number = number;
        thread.process = process;
        thread.header_thread = (number as u64 & 0xffff) << 16;
        crate::flow::buffer::create(&mut thread);
        thread
    }

    /// Makes this the current thread's structure (GS base, kernel tid).
    pub fn install(&mut self) {
        self.tid = crate::sys::sys!(crate::sys::nr::GETTID) as u64;
        set_gs(self.this);
        INSTALLED.store(true, Ordering::Relaxed);
    }

    /// Lends the current thread's structure. Everything else gets it from its caller; this is for those whom the kernel, or nobody, calls.
    ///
    /// # Safety
    /// GS must have been set by [`Thread::install`]. Whoever else has a reference to the structure must not use it before `f` has returned.
    pub unsafe fn with_current<R>(f: impl FnOnce(&mut Thread) -> R) -> R {
        let this: u64;
        // SAFETY: gs:[0] is the structure's own address.
        unsafe {
            asm!("mov {}, gs:[0]", out(reg) this, options(nostack, readonly, preserves_flags));
            f(&mut *(this as *mut Thread))
        }
    }
}

static INSTALLED: AtomicBool = AtomicBool::new(false);

/// Is there a thread structure yet?
pub fn any() -> bool {
    INSTALLED.load(Ordering::Relaxed)
}

const ARCH_SET_GS: u64 = 0x1001;
pub fn set_gs(base: u64) {
    // SAFETY: callers pass the structure of a thread, which lives as long as the thread.
    unsafe { crate::sys::raw!(crate::sys::nr::ARCH_PRCTL, ARCH_SET_GS, base) };
}

/// The first of the list; the others follow by `next`.
struct First(*mut Thread);

// SAFETY: what it points to is followed only with the list's lock held.
unsafe impl Send for First {}

static LIST: crate::lock::Locked<First> =
    crate::lock::Locked::new(crate::lock::LockName::Threads, First(core::ptr::null_mut()));

/// Every thread of this process is on the list from its start to its end.
pub fn register(thread: &mut Thread) {
    let mut first = LIST.lock();
    thread.next = first.0;
    first.0 = thread;
}

pub fn unregister(thread: &mut Thread) {
    let mut first = LIST.lock();
    // SAFETY: LIST is held; the list consists of live threads.
    unsafe {
        let mut link = core::ptr::addr_of_mut!(first.0);
        while !(*link).is_null() {
            if core::ptr::eq(*link, thread) {
                *link = thread.next;
                return;
            }
            link = core::ptr::addr_of_mut!((**link).next);
        }
    }
}

/// After fork: only the caller is left.
pub fn only(thread: &mut Thread) {
    thread.next = core::ptr::null_mut();
    LIST.reset(First(thread));
}

pub fn each(mut f: impl FnMut(&mut Thread)) {
    let first = LIST.lock();
    // SAFETY: LIST is held; callers touch only what may be changed under a running thread.
    unsafe {
        let mut at = first.0;
        while !at.is_null() {
            f(&mut *at);
            at = (*at).next;
        }
    }
}
