//! A small ELF file: one section of code (without content), its symbols, and sections of debug information (System V ABI, chapter 4).

use crate::debug_info::DebugSection;

const HEADER: usize = 64;
const SYMBOL: usize = 24;
/// Behind the last function of a file, whose end nobody says.
pub const LAST: u64 = 4096;

/// Kinds of sections.
const BITS: u32 = 1;
const SYMBOLS: u32 = 2;
const STRINGS: u32 = 3;
const NO_BITS: u32 = 8;
/// Flags: in memory, executed.
const CODE: u64 = 6;

struct Section<'a> {
    name: &'a str,
    kind: u32,
    flags: u64,
    address: u64,
    content: &'a [u8],
    /// As long as its content, if it has one.
    size: u64,
    link: u32,
    info: u32,
    entry: u64,
}

impl<'a> Section<'a> {
    fn holding(name: &'a str, kind: u32, content: &'a [u8]) -> Section<'a> {
        let size = content.len() as u64;
        Section { name, kind, flags: 0, address: 0, content, size, link: 0, info: 0, entry: 0 }
    }
}

/// An executable file for x86-64 with these functions, by address.
pub fn symbol_file(functions: &[(u64, String)], debug: &[DebugSection]) -> Vec<u8> {
    let start = functions.first().map_or(0, |one| one.0);
    let end = functions.last().map_or(0, |one| one.0.saturating_add(LAST));
    let mut strings = vec![0];
    let mut table = vec![0; SYMBOL];
    for (number, (address, name)) in functions.iter().enumerate() {
        let next = functions[number..].iter().find(|other| other.0 > *address).map_or(end, |other| other.0);
        table.extend_from_slice(&(strings.len() as u32).to_le_bytes());
        // A global function in section 1.
        table.extend_from_slice(&[0x12, 0, 1, 0]);
        table.extend_from_slice(&address.to_le_bytes());
        table.extend_from_slice(&(next - address).to_le_bytes());
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    let mut sections = vec![
        Section::holding("", 0, &[]),
        Section { flags: CODE, address: start, size: end - start, ..Section::holding(".text", NO_BITS, &[]) },
        // The strings follow; one local symbol.
        Section { link: 3, info: 1, entry: SYMBOL as u64, ..Section::holding(".symtab", SYMBOLS, &table) },
        Section::holding(".strtab", STRINGS, &strings),
    ];
    sections.extend(debug.iter().map(|section| Section::holding(&section.name, BITS, &section.bytes)));
    file(sections)
}

fn file(sections: Vec<Section<'_>>) -> Vec<u8> {
    const NAMES: &str = ".shstrtab";
    let mut names = Vec::new();
    let mut name_at = Vec::new();
    for name in sections.iter().map(|section| section.name).chain([NAMES]) {
        name_at.push(names.len() as u32);
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    let sections: Vec<Section<'_>> = sections.into_iter().chain([Section::holding(NAMES, STRINGS, &names)]).collect();
    let mut contents = Vec::new();
    let mut content_at = Vec::new();
    for section in &sections {
        contents.resize(contents.len().next_multiple_of(8), 0);
        content_at.push((HEADER + contents.len()) as u64);
        contents.extend_from_slice(section.content);
    }
    contents.resize(contents.len().next_multiple_of(8), 0);
    // 64 bits, little endian, version 1; an executable file for x86-64.
    let mut bytes = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    bytes.extend_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
    let table_at = (HEADER + contents.len()) as u64;
    [0, 0, table_at].iter().for_each(|word: &u64| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.extend_from_slice(&[0; 4]);
    let count = sections.len() as u16;
    let halves = [HEADER as u16, 56, 0, 64, count, count - 1];
    halves.iter().for_each(|half| bytes.extend_from_slice(&half.to_le_bytes()));
    bytes.extend_from_slice(&contents);
    for (number, section) in sections.iter().enumerate() {
        bytes.extend_from_slice(&name_at[number].to_le_bytes());
        bytes.extend_from_slice(&section.kind.to_le_bytes());
        let words = [section.flags, section.address, content_at[number], section.size];
        words.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.extend_from_slice(&section.link.to_le_bytes());
        bytes.extend_from_slice(&section.info.to_le_bytes());
        [8, section.entry].iter().for_each(|word: &u64| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    bytes
}
