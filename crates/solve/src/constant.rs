//! Constant tables: the content of read-only segments of the files of a process.

use std::path::Path;
use std::sync::Arc;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};

/// A segment, where it lies in the process.
#[derive(Clone, Debug)]
struct Segment {
    start: u64,
    bytes: Arc<[u8]>,
}

#[derive(Clone, Debug, Default)]
pub struct Constants {
    segments: Vec<Segment>,
    files: Vec<(String, u64)>,
}

impl Constants {
    /// Code of the file at `path`, from `offset` on, was mapped at `address`: its constants lie around.
    pub fn mapped(&mut self, address: u64, path: &str, offset: u64) {
        let Ok(data) = std::fs::read(Path::new(path)) else { return };
        let Some(bias) = bias_of(&data, address, offset) else { return };
        let Ok(header) = elf::FileHeader64::<Endianness>::parse(&*data) else { return };
        let Ok(endian) = header.endian() else { return };
        let Ok(headers) = header.program_headers(endian, &*data) else { return };
        if self.files.contains(&(path.to_owned(), bias)) {
            return;
        }
        self.files.push((path.to_owned(), bias));
        for h in headers {
            let constant = h.p_type(endian) == elf::PT_LOAD && !h.p_flags(endian).contains(elf::PF_W);
            if constant && let Ok(bytes) = h.data(endian, &*data) {
                self.segments.push(Segment { start: bias.wrapping_add(h.p_vaddr(endian)), bytes: bytes.into() });
            }
        }
    }

    /// Up to eight bytes.
    pub fn read(&self, address: u64, len: u64) -> Option<u64> {
        let segment = self.segments.iter().find(|s| (s.start..s.start + s.bytes.len() as u64).contains(&address))?;
        let from = (address - segment.start) as usize;
        let bytes = segment.bytes.get(from..from + len as usize)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}

/// What the addresses in the file at `path` are less than those in the process.
pub fn bias(address: u64, path: &str, offset: u64) -> Option<u64> {
    bias_of(&std::fs::read(path).ok()?, address, offset)
}

fn bias_of(data: &[u8], address: u64, offset: u64) -> Option<u64> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let page = |value: u64| value & !0xfff;
    let code = header.program_headers(endian, data).ok()?.iter().find(|h| {
        h.p_type(endian) == elf::PT_LOAD
            && h.p_flags(endian).contains(elf::PF_X)
            && page(h.p_offset(endian)) == page(offset)
    })?;
    Some(address.wrapping_sub(page(code.p_vaddr(endian))))
}
