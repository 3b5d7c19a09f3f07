//! A fatal signal inside recovery: the call path, for the report.

use alloc::format;
use alloc::string::String;
use core::sync::atomic::Ordering;

use wire::recover::CRASH_BYTES;

use crate::context::path;
use crate::load::maps;
use crate::ring::control;

const MOST_FRAMES: usize = 64;

/// Does the fork server want to know where this process is?
pub fn is_asked() -> bool {
    control().recovery.asking.load(Ordering::Relaxed) != 0
}

/// Has a process of this run left word already?
pub fn is_described() -> bool {
    control().recovery.crash_len.load(Ordering::Acquire) != 0
}

/// Leaves "module+0xoffset" lines, innermost frame first: file offsets, which do not depend on where the module lies.
pub fn describe(pc: u64, rsp: u64, rbp: u64) {
    let text = maps::read_file(c"/proc/self/maps");
    let mut lines = String::new();
    for address in core::iter::once(pc).chain(path::frames(pc, rsp, rbp, MOST_FRAMES)) {
        let found = maps::lines(&text).find(|line| line.start <= address && address < line.end);
        match found {
            Some(line) => {
                let name = String::from_utf8_lossy(line.name);
                lines += &format!("{name}+{:#x}\n", line.offset + (address - line.start));
            }
            None => lines += &format!("?+{address:#x}\n"),
        }
    }
    let recovery = &control().recovery;
    let len = lines.len().min(CRASH_BYTES);
    let to = (&raw const recovery.crash).cast::<u8>().cast_mut();
    // SAFETY: shared memory that only a dying process of this run writes; at most `CRASH_BYTES`.
    unsafe { core::ptr::copy_nonoverlapping(lines.as_ptr(), to, len) };
    recovery.crash_len.store(len as u32, Ordering::Release);
}
