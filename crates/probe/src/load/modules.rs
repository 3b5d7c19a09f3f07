//! The files whose code is mapped, for unwinding and for the host.

use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::elf::{self, PF_X, PT_GNU_EH_FRAME};
use crate::memory::SpinLock;
use crate::ring;
use crate::sys::{nr, sys};
use crate::thread::Thread;

/// Code of a file.
#[derive(Clone, Copy, Debug)]
pub struct Module {
    /// Load bias: what to add to the file's virtual addresses.
    pub base: u64,
    pub start: u64,
    pub end: u64,
    /// Address of `.eh_frame_hdr`; 0: there is none.
    pub eh_frame_hdr: u64,
    /// The segment that `.eh_frame_hdr` and `.eh_frame` lie in; without the former, the latter itself.
    pub frames_start: u64,
    pub frames_end: u64,
    /// In coverage mode, what stands for its file (`wire::cover::module`).
    pub name: u64,
}

static LOCK: SpinLock = SpinLock::new();
static mut MODULES: Vec<Module> = Vec::new();

/// The lock over this table, for fork.
pub fn lock() -> &'static SpinLock {
    &LOCK
}

/// The module that the address `pc` lies in.
pub fn find(pc: u64) -> Option<Module> {
    let _guard = LOCK.lock();
    // SAFETY: the lock is held.
    let modules = unsafe { &*core::ptr::addr_of!(MODULES) };
    modules.iter().rev().find(|m| m.start <= pc && pc < m.end).copied()
}

/// Code of the file behind `fd` was mapped: remembers it and tells the host.
pub fn mapped(thread: &mut Thread, fd: i32, start: u64, len: u64, offset: u64) {
    let mut module = Module {
        base: start.wrapping_sub(offset),
        start,
        end: start + len,
        eh_frame_hdr: 0,
        frames_start: 0,
        frames_end: 0,
        name: 0,
    };
    let path = crate::pm::path_of(fd);
    if crate::cover::on() {
        module.name = wire::cover::module(&path);
    }
    if let Ok(elf) = elf::read(fd) {
        let covers = |h: &&elf::ProgramHeader| h.offset & !(elf::PAGE - 1) <= offset && offset < h.offset + h.file_size;
        let code = elf.loads().filter(|h| h.flags & PF_X != 0).find(covers).or_else(|| elf.loads().find(covers));
        if let Some(h) = code {
            module.base = start.wrapping_sub(h.vaddr.wrapping_add(offset).wrapping_sub(h.offset));
            let table = elf.find(PT_GNU_EH_FRAME).map_or(0, |h| h.vaddr);
            let inside = |h: &&elf::ProgramHeader| h.vaddr <= table && table < h.vaddr + h.file_size;
            if let Some(h) = elf.loads().find(inside).filter(|_| table != 0) {
                module.eh_frame_hdr = module.base.wrapping_add(table);
                module.frames_start = module.base.wrapping_add(h.vaddr);
                module.frames_end = module.frames_start + h.file_size;
            } else if let Some((address, size)) = elf::section(fd, b".eh_frame") {
                // Static programs have no table to search in.
                module.frames_start = module.base.wrapping_add(address);
                module.frames_end = module.frames_start + size;
            }
        }
    }
    {
        let _guard = LOCK.lock();
        // SAFETY: the lock is held.
        unsafe { (*core::ptr::addr_of_mut!(MODULES)).push(module) };
    }
    announce(thread, start, len, offset, &path);
}

/// Tells the host; with symbols to watch, waits until it has looked for them there.
pub fn announce(thread: &mut Thread, start: u64, len: u64, offset: u64, path: &[u8]) {
    let mut order = ring::order(thread);
    let header = Header { kind: kind::MODULE, address: start, ..Header::default() };
    order.put(header, &[&len.to_le_bytes(), &offset.to_le_bytes(), path]);
    let wait = (ring::control().watch_count != 0).then(|| order.ask());
    drop(order);
    if let Some(number) = wait {
        ring::wait_for_answer(number);
    }
}

/// Memory went away or was replaced.
pub fn unmapped(start: u64, len: u64) {
    let end = start.saturating_add(len);
    let _guard = LOCK.lock();
    // SAFETY: the lock is held.
    let modules = unsafe { &mut *core::ptr::addr_of_mut!(MODULES) };
    if !modules.iter().any(|m| m.start < end && m.end > start) {
        return;
    }
    let mut kept = Vec::new();
    for module in modules.drain(..) {
        if module.end <= start || module.start >= end {
            kept.push(module);
            continue;
        }
        if module.start < start {
            kept.push(Module { end: start, ..module });
        }
        if module.end > end {
            kept.push(Module { start: end, ..module });
        }
    }
    *modules = kept;
}

/// The executable file of the target, as `/proc/self/exe` would show it.
static mut EXECUTABLE: Vec<u8> = Vec::new();

pub fn set_executable(path: Vec<u8>) {
    // SAFETY: called once, before the target runs.
    unsafe { *core::ptr::addr_of_mut!(EXECUTABLE) = path };
}

pub fn executable() -> &'static [u8] {
    // SAFETY: never changed after the start.
    unsafe { &*core::ptr::addr_of!(EXECUTABLE) }
}

/// Closes a descriptor that the engine opened.
pub fn close(fd: i32) {
    sys!(nr::CLOSE, fd);
}
