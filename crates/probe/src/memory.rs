//! What a freestanding program must bring itself: `mem*` and the heap.

use core::alloc::{GlobalAlloc, Layout};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::layout;
use crate::sys::{self, PROT_READ, PROT_WRITE};

core::arch::global_asm!(
    // `rep movsb/stosb` are fast for every size that matters here and use no vector register.
    ".globl memcpy",
    "memcpy:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "rep movsb",
    "ret",
    ".globl memmove",
    "memmove:",
    "mov rax, rdi",
    "mov rcx, rdx",
    "mov r8, rdi",
    "sub r8, rsi",
    "cmp r8, rdx",
    "jb 2f",
    "rep movsb",
    "ret",
    "2:",
    "std",
    "lea rdi, [rdi + rdx - 1]",
    "lea rsi, [rsi + rdx - 1]",
    "rep movsb",
    "cld",
    "ret",
    ".globl memset",
    "memset:",
    "mov r8, rdi",
    "mov eax, esi",
    "mov rcx, rdx",
    "rep stosb",
    "mov rax, r8",
    "ret",
    ".globl memcmp",
    "memcmp:",
    ".globl bcmp",
    "bcmp:",
    "xor ecx, ecx",
    "2:",
    "cmp rcx, rdx",
    "je 3f",
    "movzx eax, byte ptr [rdi + rcx]",
    "movzx r8d, byte ptr [rsi + rcx]",
    "inc rcx",
    "sub eax, r8d",
    "je 2b",
    "ret",
    "3:",
    "xor eax, eax",
    "ret",
    ".globl strlen",
    "strlen:",
    "xor eax, eax",
    "2:",
    "cmp byte ptr [rdi + rax], 0",
    "je 3f",
    "inc rax",
    "jmp 2b",
    "3:",
    "ret",
);

/// Size classes are powers of two from 16 bytes; freed blocks go to a list per class. The engine allocates little and
/// frees less; it must only be right in a process with many threads (spin lock) and after fork (taken by the forker).
struct Heap;

#[global_allocator]
static HEAP: Heap = Heap;

/// From this size on a block is a mapping of its own, given back when it is freed: growing tables must not fill the heap
/// with their former selves.
const LARGE: usize = 128 << 10;
const CLASSES: usize = 28;
static LOCK: SpinLock = SpinLock::new();
static mut FREE: [u64; CLASSES] = [0; CLASSES];
static mut NEXT: u64 = layout::HEAP;
static mut MAPPED: u64 = layout::HEAP;
const STEP: u64 = 1 << 20;

fn class_of(layout: &Layout) -> usize {
    let size = layout.size().max(layout.align()).max(16);
    size.next_power_of_two().trailing_zeros() as usize - 4
}

// SAFETY: blocks are disjoint, aligned to their (power of two) size up to a page, and owned by the lock's holder.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.size() >= LARGE {
            return crate::load::space::map_engine(layout.size() as u64) as *mut u8;
        }
        let class = class_of(&layout);
        if class >= CLASSES {
            return core::ptr::null_mut();
        }
        let _guard = LOCK.lock();
        // SAFETY: the lock is held; list links live in the free blocks themselves.
        unsafe {
            if FREE[class] != 0 {
                let block = FREE[class] as *mut u64;
                FREE[class] = *block;
                return block.cast();
            }
            let size = 16u64 << class;
            let align = size.min(4096);
            let start = (NEXT + align - 1) & !(align - 1);
            let end = start + size;
            if end > layout::HEAP_END {
                return core::ptr::null_mut();
            }
            if end > MAPPED {
                let len = (end - MAPPED + STEP - 1) & !(STEP - 1);
                if sys::map_anonymous(MAPPED, len, PROT_READ | PROT_WRITE) < 0 {
                    return core::ptr::null_mut();
                }
                MAPPED += len;
            }
            NEXT = end;
            start as *mut u8
        }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= LARGE {
            return crate::load::space::unmap_engine(block as u64, layout.size() as u64);
        }
        let class = class_of(&layout);
        let _guard = LOCK.lock();
        // SAFETY: the block came from `alloc` with the same layout and is at least 16 bytes.
        unsafe {
            *block.cast::<u64>() = FREE[class];
            FREE[class] = block as u64;
        }
    }
}

/// More than one thread has run in this address space.
static PARALLEL: AtomicBool = AtomicBool::new(false);

/// A second thread is about to start. The caller holds no lock.
pub fn parallel() {
    PARALLEL.store(true, Ordering::SeqCst);
}

/// A spin lock for short critical sections of the engine; yields the processor when it is contended.
#[derive(Debug)]
pub struct SpinLock(AtomicU64);

impl SpinLock {
    pub const fn new() -> Self {
        SpinLock(AtomicU64::new(0))
    }
    pub fn lock(&self) -> SpinGuard<'_> {
        if !PARALLEL.load(Ordering::Relaxed) {
            // A locked instruction would wait for the program's flushes and non-temporal stores: hundreds of cycles.
            self.0.store(1, Ordering::Relaxed);
            return SpinGuard(self);
        }
        while self.0.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            sys::sys!(sys::nr::SCHED_YIELD);
        }
        SpinGuard(self)
    }
    /// After fork: the child is the only thread.
    pub fn reset(&self) {
        self.0.store(0, Ordering::Release);
    }
}

#[derive(Debug)]
pub struct SpinGuard<'a>(&'a SpinLock);

impl Drop for SpinGuard<'_> {
    fn drop(&mut self) {
        self.0.0.store(0, Ordering::Release);
    }
}

/// The heap's lock, for fork.
pub fn heap_lock() -> &'static SpinLock {
    &LOCK
}
