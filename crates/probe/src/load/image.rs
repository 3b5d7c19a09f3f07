//! Maps the segments of an ELF file as `fs/binfmt_elf.c` does.

use alloc::format;
use alloc::string::String;

use super::elf::{ET_EXEC, Elf, PAGE, PF_R, PF_W, PF_X, ProgramHeader};
use super::{modules, space};
use crate::sys::{
    MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE, nr, raw,
};
use crate::thread::Thread;

/// Where the kernel loads position-independent programs: two thirds of the address space (`ELF_ET_DYN_BASE`).
const DYN_BASE: u64 = 0x5555_5555_4aaa;

/// Where the program break begins: behind the image. Programs without an interpreter lie among the mappings, where there is no room
/// behind them; theirs begins where the others' image would (`load_elf_binary`).
pub fn heap_start(elf: &Elf, image: &Image, is_alone: bool) -> u64 {
    if is_alone && elf.kind != ET_EXEC { DYN_BASE } else { image.end }
}

/// A mapped file.
#[derive(Clone, Copy, Debug)]
pub struct Image {
    pub bias: u64,
    pub entry: u64,
    pub header_address: u64,
    /// First byte of the first executable segment, and the end of the last one.
    pub code: (u64, u64),
    /// End of the last segment's memory (not rounded).
    pub end: u64,
}

/// Where an image goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spot {
    /// The program itself, with an interpreter.
    Program,
    /// Interpreters, and programs without one: where the kernel puts the next mapping.
    Next,
}

pub fn map(thread: &mut Thread, fd: i32, elf: &Elf, spot: Spot) -> Result<Image, String> {
    let (lo, hi) = elf.span();
    if hi <= lo {
        return Err(String::from("has nothing to load"));
    }
    let len = hi - lo;
    let bias = match (elf.kind, spot) {
        (ET_EXEC, _) => 0,
        (_, Spot::Program) => (DYN_BASE & !(elf.alignment() - 1) & !(PAGE - 1)).wrapping_sub(lo),
        (_, Spot::Next) => find_room(len, elf.alignment())?.wrapping_sub(lo),
    };
    let base = lo.wrapping_add(bias);
    if space::overlaps_engine(base, len) {
        return Err(format!("is linked to {lo:#x}–{hi:#x}, where the probe itself lies"));
    }
    let mut end = 0;
    let mut code = (u64::MAX, 0);
    for segment in elf.loads() {
        map_segment(fd, bias, segment)?;
        end = end.max(bias.wrapping_add(segment.vaddr + segment.mem_size));
        if segment.flags & PF_X != 0 {
            code.0 = code.0.min(bias.wrapping_add(segment.vaddr));
            code.1 = code.1.max(bias.wrapping_add(segment.vaddr + segment.file_size));
            let start = bias.wrapping_add(segment.vaddr) & !(PAGE - 1);
            let len = (segment.vaddr % PAGE + segment.mem_size + PAGE - 1) & !(PAGE - 1);
            crate::translate::code::mapped(start, len, protection(segment.flags));
            modules::mapped(thread, fd, start, len, segment.offset & !(PAGE - 1));
        }
    }
    let address = |vaddr: u64| if vaddr == 0 { 0 } else { bias.wrapping_add(vaddr) };
    Ok(Image { bias, entry: address(elf.entry), header_address: address(elf.header_address()), code, end })
}

/// Lets the kernel choose a place and gives it free again. Nothing else runs yet.
fn find_room(len: u64, align: u64) -> Result<u64, String> {
    let extra = if align > PAGE { align } else { 0 };
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    // SAFETY: the kernel chooses a free place.
    let got = unsafe { raw!(nr::MMAP, 0, len + extra, 0, flags, -1i64, 0) };
    if got < 0 {
        return Err(format!("does not fit into the address space (error {})", -got));
    }
    // SAFETY: the place that was just mapped, which nobody uses.
    unsafe { raw!(nr::MUNMAP, got, len + extra) };
    Ok((got as u64 + extra) & !(align - 1))
}

fn protection(flags: u32) -> u64 {
    let bit = |flag, prot| if flags & flag != 0 { prot } else { 0 };
    bit(PF_R, PROT_READ) | bit(PF_W, PROT_WRITE) | bit(PF_X, PROT_EXEC)
}

fn map_segment(fd: i32, bias: u64, segment: &ProgramHeader) -> Result<(), String> {
    let prot = protection(segment.flags);
    let start = bias.wrapping_add(segment.vaddr);
    let page = start & !(PAGE - 1);
    let file_end = start + segment.file_size;
    let mem_end = start + segment.mem_size;
    let mut mapped_to = page;
    let check = |got: i64| match got {
        got if got < 0 => Err(format!("cannot be mapped at {page:#x} (error {})", -got)),
        _ => Ok(()),
    };
    if segment.file_size != 0 {
        let len = file_end - page;
        let offset = segment.offset.wrapping_sub(start - page);
        // SAFETY: `MAP_FIXED_NOREPLACE` takes no place where something lies.
        check(unsafe { raw!(nr::MMAP, page, len, prot, MAP_PRIVATE | MAP_FIXED_NOREPLACE, fd, offset) })?;
        mapped_to = (file_end + PAGE - 1) & !(PAGE - 1);
    }
    if mem_end > file_end && segment.file_size != 0 && segment.flags & PF_W != 0 {
        let tail = mapped_to.min(mem_end).max(file_end);
        // SAFETY: the rest of the segment's last page, just mapped writable; the kernel clears the whole page.
        unsafe { core::ptr::write_bytes(file_end as *mut u8, 0, (mapped_to.max(tail) - file_end) as usize) };
    }
    let end = (mem_end + PAGE - 1) & !(PAGE - 1);
    if end > mapped_to {
        let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        // SAFETY: `MAP_FIXED_NOREPLACE` takes no place where something lies.
        check(unsafe { raw!(nr::MMAP, mapped_to, end - mapped_to, prot, flags, -1i64, 0) })?;
    }
    Ok(())
}
