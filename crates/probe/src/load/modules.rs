//! The files whose code is mapped, for unwinding and for the host.

use alloc::sync::Arc;
use alloc::vec::Vec;

use wire::record::{Header, kind};

use super::elf::{self, PF_X, PT_GNU_EH_FRAME};
use super::user;
use crate::lock::{Guard, LockName, Locked};
use crate::pm::pools::Stat;
use crate::ring;
use crate::sys::{nr, sys};
use crate::thread::Thread;

/// Code of a file.
#[derive(Clone, Debug)]
pub struct Module {
    /// Device, inode and offset of what is mapped at `start`; zero if it is not known.
    file: (u64, u64),
    offset: u64,
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
    /// A copy of the unwind data, once it was needed.
    frames: Option<Arc<Frames>>,
}

/// A copy of a module's unwind data. The program may take the original away, or make it unreadable, at any time.
#[derive(Debug)]
pub struct Frames {
    /// Where the first byte lies in the program's memory.
    pub start: u64,
    bytes: Vec<u8>,
}

impl Frames {
    /// From this address to the end.
    pub fn from(&self, address: u64) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(address.checked_sub(self.start)?).ok()?..)
    }
}

static MODULES: Locked<Vec<Module>> = Locked::new(LockName::Modules, Vec::new());

/// Holds the table and the path of the executable, for fork.
pub fn hold() -> (Guard<'static, Vec<Module>>, Guard<'static, Vec<u8>>) {
    (MODULES.lock(), EXECUTABLE.lock())
}

/// The module that the address `pc` lies in.
pub fn find(pc: u64) -> Option<Module> {
    MODULES.lock().iter().rev().find(|m| m.start <= pc && pc < m.end).cloned()
}

/// The unwind data for the code at `pc`, with its module and what `pc` is in that module. Code that a program has mapped a second
/// time (V8 does so with its own) comes without its unwind data: then those of the first mapping.
pub fn frames_for(pc: u64) -> Option<(Module, Arc<Frames>, u64)> {
    let module = find(pc)?;
    if let Some(frames) = frames_of(&module) {
        return Some((module, frames, pc));
    }
    let at = module.offset + (pc - module.start);
    let is_other = |m: &&Module| {
        m.file == module.file && m.start != module.start && m.offset <= at && at < m.offset + (m.end - m.start)
    };
    let others: Vec<Module> = MODULES.lock().iter().filter(is_other).cloned().collect();
    if module.file == (0, 0) {
        return None;
    }
    others.into_iter().find_map(|other| {
        let pc = other.start + (at - other.offset);
        frames_of(&other).map(|frames| (other, frames, pc))
    })
}

/// The copy of a module's unwind data; made now if there is none. `None`: there are none, or they cannot be read.
fn frames_of(module: &Module) -> Option<Arc<Frames>> {
    /// Larger ones are no unwind data.
    const MOST: u64 = 256 << 20;
    if let Some(frames) = &module.frames {
        return Some(frames.clone());
    }
    let mut start = if module.eh_frame_hdr == 0 { module.frames_start } else { module.eh_frame_hdr };
    if module.frames_end <= start || module.frames_end - start > MOST {
        return None;
    }
    if module.eh_frame_hdr != 0 {
        // .eh_frame_hdr: version, three encodings, then where .eh_frame is (LSB, "DWARF extensions"); it may lie in front.
        let head: [u8; 8] = user::read(start)?;
        if head[..2] == [1, 0x1b] {
            let distance = i32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            start = start.min((start + 4).wrapping_add_signed(distance.into()).max(module.frames_start));
        }
    }
    let bytes = user::copy_in(start, module.frames_end - start)?;
    let frames = Arc::new(Frames { start, bytes });
    let mut modules = MODULES.lock();
    if let Some(own) = modules.iter_mut().find(|m| m.start == module.start && m.file == module.file) {
        own.frames = Some(frames.clone());
    }
    Some(frames)
}

/// Code of the file behind `fd` was mapped: remembers it and tells the host.
pub fn mapped(thread: &mut Thread, fd: i32, start: u64, len: u64, offset: u64) {
    let mut module = Module {
        file: Stat::of(fd).map_or((0, 0), |stat| (stat.device, stat.inode)),
        offset,
        frames: None,
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
    MODULES.lock().push(module);
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
    let mut modules = MODULES.lock();
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
            kept.push(Module { end: start, ..module.clone() });
        }
        if module.end > end {
            kept.push(Module { offset: module.offset + (end - module.start), start: end, ..module });
        }
    }
    *modules = kept;
}

/// The executable file of the target, as `/proc/self/exe` would show it.
static EXECUTABLE: Locked<Vec<u8>> = Locked::new(LockName::Executable, Vec::new());

/// Called once, before the target runs.
pub fn set_executable(path: Vec<u8>) {
    *EXECUTABLE.lock() = path;
}

pub fn executable() -> Vec<u8> {
    EXECUTABLE.lock().clone()
}

/// Closes a descriptor that the engine opened.
pub fn close(fd: i32) {
    sys!(nr::CLOSE, fd);
}
