//! What the kernel knows about the process: where its arguments, environment and heap are. `/proc` shows this.

use core::sync::atomic::{AtomicBool, Ordering};

use super::heap;
use super::image::Image;
use super::stack::Built;
use crate::sys::{nr, raw};

/// `struct prctl_mm_map` (prctl(2), `PR_SET_MM_MAP`).
#[repr(C)]
struct MemoryMap {
    start_code: u64,
    end_code: u64,
    start_data: u64,
    end_data: u64,
    start_brk: u64,
    brk: u64,
    start_stack: u64,
    arg_start: u64,
    arg_end: u64,
    env_start: u64,
    env_end: u64,
    auxv: *const u64,
    auxv_size: u32,
    exe_fd: u32,
}

static ASSUMED: AtomicBool = AtomicBool::new(false);

/// Did the kernel take it? Then it also keeps the program break.
pub fn assumed() -> bool {
    ASSUMED.load(Ordering::Relaxed)
}

/// Tells the kernel that this process is the target.
pub fn assume(program: &Image, built: &Built) {
    const PR_SET_MM: u64 = 35;
    const PR_SET_MM_MAP: u64 = 14;
    const KEEP_FILE: u32 = u32::MAX;
    let (start_brk, _) = heap::range();
    let map = MemoryMap {
        start_code: program.code.0,
        end_code: program.code.1,
        // The heap must lie above the data: without segments of their own it begins right behind.
        start_data: program.code.0,
        end_data: program.end - 1,
        start_brk,
        brk: start_brk,
        start_stack: built.stack,
        arg_start: built.arg_start,
        arg_end: built.env_start,
        env_start: built.env_start,
        env_end: built.env_end,
        auxv: built.auxv.as_ptr(),
        auxv_size: (built.auxv.len() * 8) as u32,
        exe_fd: KEEP_FILE,
    };
    // SAFETY: the kernel only reads `map`, and takes it for what it tells others of this process.
    let result = unsafe { raw!(nr::PRCTL, PR_SET_MM, PR_SET_MM_MAP, &raw const map, size_of::<MemoryMap>()) };
    ASSUMED.store(result == 0, Ordering::Relaxed);
}
