//! The engine's access to the target's memory, through pointers that the target passed to the kernel and that may be invalid.

use alloc::vec::Vec;

use crate::pm;
use crate::signal::careful;
use crate::sys::PROT_WRITE;
use crate::syscall::event;
use crate::thread::Thread;
use crate::translate::code;

/// Longest path the kernel takes, with its end.
pub const PATH_MAX: u64 = 4096;

/// The C string at `address`, without its end; `None` if the pointer is bad or the string has no end.
pub fn c_string(address: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut at = address;
    while at - address < PATH_MAX {
        // Never beyond the page: the next one may not be there.
        let len = (4096 - at % 4096).min(256);
        let piece = copy_in(at, len)?;
        if let Some(end) = piece.iter().position(|b| *b == 0) {
            bytes.extend_from_slice(&piece[..end]);
            return Some(bytes);
        }
        bytes.extend_from_slice(&piece);
        at += len;
    }
    None
}

/// `len` bytes from `address`.
pub fn copy_in(address: u64, len: u64) -> Option<Vec<u8>> {
    let mut bytes = alloc::vec![0u8; len as usize];
    read_to(address, &mut bytes).then_some(bytes)
}

/// A value of plain data.
pub fn read<T: Copy>(address: u64) -> Option<T> {
    if !pm::any() {
        return careful::read(address);
    }
    let mut value = core::mem::MaybeUninit::<T>::zeroed();
    // SAFETY: the value's own bytes; callers use types for which every bit pattern is valid.
    unsafe {
        let bytes = core::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>());
        read_to(address, bytes).then(|| value.assume_init())
    }
}

/// Fills `bytes` from `address`, where a part of the range may be PM. False: not all of it can be read.
pub fn read_to(address: u64, bytes: &mut [u8]) -> bool {
    let mut done = 0;
    while done < bytes.len() {
        let (from, part) = pm::first_part(address.wrapping_add(done as u64), (bytes.len() - done) as u64);
        // SAFETY: fills a part of `bytes`.
        if !unsafe { careful::copy(bytes[done..].as_mut_ptr() as u64, from, part as usize) } {
            return false;
        }
        done += part as usize;
    }
    true
}

/// Stores bytes at `address`; false if the target may not write there. What lies in PM goes through the alias: the caller
/// records it (`syscall::event::kernel_write`).
pub fn copy_out(address: u64, bytes: &[u8]) -> bool {
    let copy = || {
        let mut done = 0;
        while done < bytes.len() {
            let (to, part) = pm::first_part(address.wrapping_add(done as u64), (bytes.len() - done) as u64);
            // SAFETY: the target asked for it.
            if !unsafe { careful::copy(to, bytes[done..].as_ptr() as u64, part as usize) } {
                return false;
            }
            done += part as usize;
        }
        true
    };
    copy() || (open_code_pages(&[address]) && copy())
}

/// As [`write`], for what the kernel would write: what lies in PM is recorded.
pub fn give<T: Copy>(thread: &mut Thread, address: u64, value: &T) -> bool {
    let written = write(address, value);
    if written {
        event::kernel_write(thread, address, size_of::<T>() as u64);
    }
    written
}

pub fn write<T: Copy>(address: u64, value: &T) -> bool {
    // SAFETY: plain data as bytes.
    copy_out(address, unsafe { core::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) })
}

/// Pages whose code is translated are write-protected by the engine, against the kernel too. Lifts that behind the pointers
/// of a call that failed for it; false if there was nothing to lift.
pub fn open_code_pages(pointers: &[u64]) -> bool {
    const PAGE: u64 = 4096;
    const MOST: u64 = 256 * PAGE;
    let mut lifted = false;
    for pointer in pointers {
        let mut page = pointer & !(PAGE - 1);
        while page - (pointer & !(PAGE - 1)) < MOST && code::protection(page).is_some_and(|prot| prot & PROT_WRITE != 0)
        {
            // SAFETY: the thread's structure is installed before the target's first system call; callers that have it wait for us.
            lifted |= unsafe { Thread::with_current(|thread| code::write_fault(thread, page)) };
            page += PAGE;
        }
    }
    lifted
}
