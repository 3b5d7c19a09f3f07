//! The program's executable memory: what may be translated, and how the engine notices changes.

use alloc::vec::Vec;
use core::ops::Deref;

use super::{block, link};
use crate::context::path;
use crate::lock::{LockName, Locked};
use crate::pm::shared;
use crate::signal::careful;
use crate::sys::{PROT_EXEC, PROT_WRITE, nr, raw};
use crate::thread::Thread;
use crate::trampoline::peek;

/// Executable memory of the program.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    end: u64,
    prot: u64,
}

/// Changed with the engine lock held as well.
static REGIONS: Locked<Vec<Region>> = Locked::new(LockName::CodeRegions, Vec::new());

/// Holds the list, for fork.
pub fn hold() -> impl Sized {
    REGIONS.lock()
}

/// The region that an address lies in.
fn region_at(address: u64) -> Option<Region> {
    REGIONS.lock().iter().find(|r| (r.start..r.end).contains(&address)).copied()
}

const PAGE: u64 = 4096;
/// The longest instruction.
const LONGEST: u64 = 15;

/// The bytes of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    bytes: [u8; 16],
    len: u8,
}

impl Bytes {
    /// As many as an instruction can have.
    fn whole([low, high]: [u64; 2]) -> Bytes {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&low.to_le_bytes());
        bytes[8..].copy_from_slice(&high.to_le_bytes());
        Bytes { bytes, len: LONGEST as u8 }
    }
}

impl From<&[u8]> for Bytes {
    /// At most 16 of them: no instruction is longer than 15.
    fn from(from: &[u8]) -> Bytes {
        let mut bytes = [0; 16];
        let len = from.len().min(16);
        bytes[..len].copy_from_slice(&from[..len]);
        Bytes { bytes, len: len as u8 }
    }
}

impl Deref for Bytes {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len as usize]
    }
}

/// The bytes of the instruction at `pc`: at most 15, fewer where executable memory ends. `None`: not executable, or not there (a
/// file may have become shorter).
pub fn bytes(pc: u64) -> Option<Bytes> {
    Window::default().bytes(pc)
}

/// A part of the program's executable memory, for reading many instructions. It is right as long as the engine lock is held.
#[derive(Debug, Default)]
pub struct Window {
    start: u64,
    end: u64,
}

impl Window {
    /// As [`bytes`].
    #[inline]
    pub fn bytes(&mut self, pc: u64) -> Option<Bytes> {
        if pc < self.start || pc + 16 > self.end {
            let region = region_at(pc)?;
            (self.start, self.end) = (region.start, region.end);
        }
        if pc + 16 <= self.end
            && let Some(words) = peek::pair(pc)
        {
            return Some(Bytes::whole(words));
        }
        at_the_end(pc, self.end)
    }
}

/// The bytes of an instruction near the end of a region, or of one that cannot be read whole.
#[cold]
fn at_the_end(pc: u64, mut end: u64) -> Option<Bytes> {
    while end < pc + LONGEST {
        match region_at(end) {
            Some(next) => end = next.end,
            None => break,
        }
    }
    if end >= pc + 16
        && let Some(words) = peek::pair(pc)
    {
        return Some(Bytes::whole(words));
    }
    let mut found = Bytes { bytes: [0; 16], len: 0 };
    for at in pc..end.min(pc + LONGEST) {
        let Some(byte) = careful::read::<u8>(at) else { break };
        found.bytes[found.len as usize] = byte;
        found.len += 1;
    }
    (found.len != 0).then_some(found)
}

/// Is this the address behind a call instruction? Looks at the bytes in front of it: `call rel32`, or `call r/m` in its
/// possible lengths.
pub fn follows_call(address: u64) -> bool {
    let executable = |a: u64| region_at(a).is_some();
    if address < 16 || !executable(address) || !executable(address - 7) {
        return false;
    }
    let Some(before) = careful::read::<[u8; 7]>(address - 7) else { return false };
    let is_call_indirect = |modrm: u8| modrm & 0x38 == 0x10;
    before[2] == 0xe8 || (2..=7).any(|len| before[7 - len] == 0xff && is_call_indirect(before[8 - len]))
}

/// The program mapped memory; executable parts become known. Whatever was there before is gone.
pub fn mapped(start: u64, len: u64, prot: u64) {
    let _guard = super::lock().lock();
    cut(start, start + round(len));
    if prot & PROT_EXEC != 0 {
        REGIONS.lock().push(Region { start, end: start + round(len), prot });
    }
}

/// Call before the memory goes away.
pub fn unmapped(start: u64, len: u64) {
    let _guard = super::lock().lock();
    cut(start, start + round(len));
}

pub fn protected(start: u64, len: u64, prot: u64) {
    let _guard = super::lock().lock();
    let end = start + round(len);
    let same = REGIONS.lock().iter().any(|r| r.start <= start && end <= r.end && r.prot == prot);
    if same {
        // The program lifts our write protection again: it may be about to write.
        if prot & PROT_WRITE != 0 {
            drop_blocks(start, end);
        }
        return;
    }
    cut(start, end);
    if prot & PROT_EXEC != 0 {
        REGIONS.lock().push(Region { start, end, prot });
    }
}

/// The protection of executable memory, as the program set it; `None`: not executable.
pub fn protection(address: u64) -> Option<u64> {
    region_at(address).map(|r| r.prot)
}

fn round(len: u64) -> u64 {
    (len + PAGE - 1) & !(PAGE - 1)
}

/// Removes [start, end) from what is executable, and all code translated from it.
fn cut(start: u64, end: u64) {
    let mut touched = false;
    let mut rest = Vec::new();
    let mut regions = REGIONS.lock();
    regions.retain_mut(|r| {
        if r.end <= start || end <= r.start {
            return true;
        }
        touched = true;
        if r.start < start && end < r.end {
            rest.push(Region { start: end, ..*r });
        }
        if r.start < start {
            r.end = start;
            true
        } else if end < r.end {
            r.start = end;
            true
        } else {
            false
        }
    });
    regions.extend(rest);
    drop(regions);
    if touched {
        drop_blocks(start, end);
        path::forget();
    }
}

fn drop_blocks(start: u64, end: u64) {
    for page in start / PAGE..end.div_ceil(PAGE) {
        for number in block::on_page(page) {
            link::unlink(number);
        }
    }
}

/// A block was made from these pages. Where the program may write, we must hear of it.
pub fn translated(pages: &[u64]) {
    for &page in pages {
        let start = page * PAGE;
        if let Some(region) = region_at(start)
            && region.prot & PROT_WRITE != 0
            && !crate::pm::is_pm(start)
        {
            // SAFETY: a page of the program's code, which loses the right to be written.
            unsafe { raw!(nr::MPROTECT, start, PAGE, region.prot & !PROT_WRITE) };
        }
        // The same memory may be writable at another address.
        shared::protect_views(start);
    }
}

/// The program made a range writable, which lifts our protection of code that is executed elsewhere.
pub fn made_writable(start: u64, len: u64) {
    if !shared::may_hold_code() {
        return;
    }
    let _guard = super::lock().lock();
    for page in (start..start + len).step_by(PAGE as usize) {
        for code in shared::open_views(page) {
            drop_blocks(code, code + PAGE);
        }
    }
}

/// A write fault at `address`: is it a page that we write-protected? Then its blocks go and the page is writable again.
pub fn write_fault(_thread: &mut Thread, address: u64) -> bool {
    let _guard = super::lock().lock();
    let page = address & !(PAGE - 1);
    let elsewhere = shared::open_views(page);
    for code in &elsewhere {
        drop_blocks(*code, code + PAGE);
    }
    if !elsewhere.is_empty() {
        return true;
    }
    let Some(region) = region_at(address) else { return false };
    if region.prot & PROT_WRITE == 0 || crate::pm::is_pm(address) {
        return false;
    }
    drop_blocks(page, page + PAGE);
    // SAFETY: a page of the program's code, which gets the rights back that the program gave it.
    unsafe { raw!(nr::MPROTECT, page, PAGE, region.prot) };
    true
}
