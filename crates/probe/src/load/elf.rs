//! The few facts about an ELF file that loading needs. Offsets are those of the ELF-64 headers (System V gABI, chapters 4 and 5).

use alloc::string::String;
use alloc::vec::Vec;

use crate::sys::{nr, raw};

pub const PT_LOAD: u32 = 1;
pub const PT_INTERP: u32 = 3;
pub const PT_PHDR: u32 = 6;
pub const PT_GNU_EH_FRAME: u32 = 0x6474_e550;
pub const PT_GNU_STACK: u32 = 0x6474_e551;
pub const PF_X: u32 = 1;
pub const PF_W: u32 = 2;
pub const PF_R: u32 = 4;
pub const ET_EXEC: u16 = 2;
pub const ET_DYN: u16 = 3;
const EM_X86_64: u16 = 62;
pub const PAGE: u64 = 4096;

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct ProgramHeader {
    pub kind: u32,
    pub flags: u32,
    pub offset: u64,
    pub vaddr: u64,
    pub paddr: u64,
    pub file_size: u64,
    pub mem_size: u64,
    pub align: u64,
}

#[derive(Debug)]
pub struct Elf {
    pub kind: u16,
    pub entry: u64,
    pub header_offset: u64,
    pub headers: Vec<ProgramHeader>,
}

/// Reads the headers of an open file; the text says what is wrong with it.
pub fn read(fd: i32) -> Result<Elf, String> {
    let mut head = [0u8; 64];
    // SAFETY: the kernel writes at most `head.len()` bytes into `head`.
    let got = unsafe { raw!(nr::PREAD64, fd, head.as_mut_ptr(), head.len(), 0) };
    let half = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let long = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap_or_default());
    if got < 20 || &head[..4] != b"\x7fELF" {
        return Err(String::from("is not an ELF executable"));
    }
    if head[4] == 1 {
        return Err(String::from("is a 32-bit program; only 64-bit x86-64 programs can be recorded"));
    }
    if got < 64 || head[4] != 2 || half(18) != EM_X86_64 {
        return Err(String::from("is for another machine; only x86-64 programs can be recorded"));
    }
    let kind = half(16);
    if kind != ET_EXEC && kind != ET_DYN {
        return Err(String::from("is an ELF file but not an executable"));
    }
    let (header_offset, size, count) = (long(32), half(54) as usize, half(56) as usize);
    if size != size_of::<ProgramHeader>() || count == 0 || count > 1024 {
        return Err(String::from("has unusable program headers"));
    }
    let mut headers = alloc::vec![ProgramHeader::default(); count];
    let bytes = count * size;
    // SAFETY: the kernel writes at most `bytes` bytes, which is the size of `headers`; every bit pattern is a header.
    if unsafe { raw!(nr::PREAD64, fd, headers.as_mut_ptr(), bytes, header_offset) } != bytes as i64 {
        return Err(String::from("ends within its program headers"));
    }
    Ok(Elf { kind, entry: long(24), header_offset, headers })
}

impl Elf {
    pub fn loads(&self) -> impl Iterator<Item = &ProgramHeader> {
        self.headers.iter().filter(|h| h.kind == PT_LOAD && h.mem_size != 0)
    }

    pub fn find(&self, kind: u32) -> Option<&ProgramHeader> {
        self.headers.iter().find(|h| h.kind == kind)
    }

    /// The `PT_INTERP` path.
    pub fn interpreter(&self, fd: i32) -> Option<Vec<u8>> {
        let header = self.find(PT_INTERP)?;
        let mut path = alloc::vec![0u8; header.file_size.min(4096) as usize];
        // SAFETY: the kernel writes at most `path.len()` bytes into `path`.
        let got = unsafe { raw!(nr::PREAD64, fd, path.as_mut_ptr(), path.len(), header.offset) };
        path.truncate(got.max(0) as usize);
        let end = path.iter().position(|b| *b == 0).unwrap_or(path.len());
        path.truncate(end);
        Some(path)
    }

    /// Page-rounded first and last address of the loaded segments, before the bias.
    pub fn span(&self) -> (u64, u64) {
        let lo = self.loads().map(|h| h.vaddr & !(PAGE - 1)).min().unwrap_or(0);
        let hi = self.loads().map(|h| (h.vaddr + h.mem_size + PAGE - 1) & !(PAGE - 1)).max().unwrap_or(0);
        (lo, hi)
    }

    /// Largest alignment that a segment asks for.
    pub fn alignment(&self) -> u64 {
        self.loads().map(|h| h.align).filter(|a| a.is_power_of_two()).max().unwrap_or(PAGE).max(PAGE)
    }

    /// Where the program headers are in memory.
    pub fn header_address(&self) -> u64 {
        if let Some(h) = self.find(PT_PHDR) {
            return h.vaddr;
        }
        let covers = |h: &&ProgramHeader| h.offset <= self.header_offset && self.header_offset < h.offset + h.file_size;
        self.loads().find(covers).map_or(0, |h| self.header_offset - h.offset + h.vaddr)
    }
}

/// Address (before the bias) and size of a section, from the file's section headers.
pub fn section(fd: i32, name: &[u8]) -> Option<(u64, u64)> {
    const HEADER: usize = 64;
    let read = |at: u64, len: usize| {
        let mut bytes = alloc::vec![0u8; len];
        // SAFETY: the kernel writes at most `len` bytes into `bytes`, which has as many.
        (unsafe { raw!(nr::PREAD64, fd, bytes.as_mut_ptr(), len, at) } == len as i64).then_some(bytes)
    };
    let long = |bytes: &[u8], at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap_or_default());
    let half = |bytes: &[u8], at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let head = read(0, 64)?;
    let (offset, size, count, names) =
        (long(&head, 40), half(&head, 58), half(&head, 60) as usize, half(&head, 62) as usize);
    if offset == 0 || size as usize != HEADER || names >= count {
        return None;
    }
    let headers = read(offset, count * HEADER)?;
    let names = &headers[names * HEADER..][..HEADER];
    let text = read(long(names, 24), (long(names, 32) as usize).min(1 << 20))?;
    headers.chunks(HEADER).find_map(|header| {
        let found = text.get(word(header, 0) as usize..)?;
        let is_it = found.starts_with(name) && found.get(name.len()) == Some(&0);
        is_it.then(|| (long(header, 16), long(header, 32)))
    })
}
