//! What a freestanding program must provide itself: `mem*` and the heap.

use core::alloc::{GlobalAlloc, Layout};

use crate::layout;
use crate::lock::{Guard, LockName, Locked};
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
static BLOCKS: Locked<Blocks> =
    Locked::new(LockName::Heap, Blocks { free: [0; CLASSES], next: layout::HEAP, mapped: layout::HEAP });
const STEP: u64 = 1 << 20;

/// What the heap has given out and got back.
#[derive(Debug)]
pub struct Blocks {
    /// First free block of each class; each holds the address of the next.
    free: [u64; CLASSES],
    next: u64,
    mapped: u64,
}

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
        let mut blocks = BLOCKS.lock();
        if blocks.free[class] != 0 {
            let block = blocks.free[class] as *mut u64;
            // SAFETY: a free block of this heap, of at least 16 bytes; `blocks` is locked.
            blocks.free[class] = unsafe { *block };
            return block.cast();
        }
        let size = 16u64 << class;
        let align = size.min(4096);
        let start = (blocks.next + align - 1) & !(align - 1);
        let end = start + size;
        if end > layout::HEAP_END {
            return core::ptr::null_mut();
        }
        if end > blocks.mapped {
            let len = (end - blocks.mapped + STEP - 1) & !(STEP - 1);
            if sys::map_anonymous(blocks.mapped, len, PROT_READ | PROT_WRITE) < 0 {
                return core::ptr::null_mut();
            }
            blocks.mapped += len;
        }
        blocks.next = end;
        start as *mut u8
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is the same.
        let block = unsafe { self.alloc(layout) };
        // A mapping of its own is new, and so all zero; writing to it would make the kernel provide every page.
        if layout.size() < LARGE && !block.is_null() {
            // SAFETY: `alloc` gave this many bytes.
            unsafe { block.write_bytes(0, layout.size()) };
        }
        block
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        if layout.size() >= LARGE && new_size > layout.size() {
            return crate::load::space::grow_engine(block as u64, layout.size() as u64, new_size as u64) as *mut u8;
        }
        // SAFETY: the alignment is the old one's; `new_size` is not zero and does not overflow, as the caller promises.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks have that many bytes; the old one is the caller's to give back.
            unsafe {
                new.copy_from_nonoverlapping(block, layout.size().min(new_size));
                self.dealloc(block, layout);
            }
        }
        new
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if layout.size() >= LARGE {
            return crate::load::space::unmap_engine(block as u64, layout.size() as u64);
        }
        let class = class_of(&layout);
        let mut blocks = BLOCKS.lock();
        // SAFETY: the block came from `alloc` with the same layout and is at least 16 bytes.
        unsafe { *block.cast::<u64>() = blocks.free[class] };
        blocks.free[class] = block as u64;
    }
}

/// The heap's lock, for fork.
pub fn hold() -> Guard<'static, Blocks> {
    BLOCKS.lock()
}
