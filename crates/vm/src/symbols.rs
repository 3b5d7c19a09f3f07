//! Names of kernel functions: what `/proc/kallsyms` of the guest says becomes small ELF files with a symbol table each, which the trace
//! refers to as its modules. So everything that shows code shows kernel code, too.

use std::collections::BTreeMap;
use std::fs as files;
use std::io;
use std::path::{Path, PathBuf};

/// The kernel itself, beside its modules.
pub const KERNEL: &str = "vmlinux";

/// The functions of the kernel and of each module, by address.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Symbols {
    /// By file name: `vmlinux`, `xfs.ko`.
    files: BTreeMap<String, Vec<(u64, String)>>,
}

impl Symbols {
    /// From lines such as `ffffffff81000000 T _stext` and `ffffffffc0201000 t foo [nova]`.
    pub fn parse(text: &str) -> Symbols {
        let mut symbols = Symbols::default();
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(address), Some(kind), Some(name)) = (words.next(), words.next(), words.next()) else { continue };
            let Ok(address) = u64::from_str_radix(address, 16) else { continue };
            if !matches!(kind, "t" | "T" | "w" | "W") || address == 0 {
                continue;
            }
            let file = words.next().map_or_else(
                || KERNEL.to_owned(),
                |module| format!("{}.ko", module.trim_matches(|end| end == '[' || end == ']')),
            );
            symbols.files.entry(file).or_default().push((address, name.to_owned()));
        }
        symbols.files.values_mut().for_each(|list| list.sort());
        symbols
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The file whose code lies there.
    pub fn file_of(&self, address: u64) -> Option<&str> {
        let last = |list: &[(u64, String)]| {
            list.get(list.partition_point(|one| one.0 <= address).checked_sub(1)?).map(|one| one.0)
        };
        let nearest = self.files.iter().filter_map(|(file, list)| Some((last(list)?, file)));
        nearest.max().map(|(_, file)| file.as_str())
    }

    /// Writes the files into a folder; their paths by their names.
    pub fn write(&self, folder: &Path) -> io::Result<BTreeMap<String, PathBuf>> {
        let write = |(name, list): (&String, &Vec<(u64, String)>)| {
            let path = folder.join(name);
            files::write(&path, elf(list))?;
            Ok((name.clone(), path))
        };
        self.files.iter().map(write).collect()
    }
}

const HEADER: usize = 64;
const SECTION: usize = 64;
const SYMBOL: usize = 24;
/// Behind the last function of a file, whose end nobody says.
const LAST: u64 = 4096;

/// An ELF file with one section of code (without content) and its symbols (System V ABI, chapter 4).
fn elf(list: &[(u64, String)]) -> Vec<u8> {
    let start = list.first().map_or(0, |one| one.0);
    let end = list.last().map_or(0, |one| one.0.saturating_add(LAST));
    let mut strings = vec![0];
    let mut table = vec![0; SYMBOL];
    for (number, (address, name)) in list.iter().enumerate() {
        let next = list[number..].iter().find(|other| other.0 > *address).map_or(end, |other| other.0);
        table.extend_from_slice(&(strings.len() as u32).to_le_bytes());
        // A global function in section 1.
        table.extend_from_slice(&[0x12, 0, 1, 0]);
        table.extend_from_slice(&address.to_le_bytes());
        table.extend_from_slice(&(next - address).to_le_bytes());
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    let names = b"\0.text\0.symtab\0.strtab\0.shstrtab\0";
    let (at_table, at_strings) = (HEADER, HEADER + table.len());
    let at_names = at_strings + strings.len();
    let at_sections = (at_names + names.len()).next_multiple_of(8);
    let mut bytes = Vec::with_capacity(at_sections + 5 * SECTION);
    // 64 bits, little endian, version 1; an executable file for x86-64.
    bytes.extend_from_slice(b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0");
    bytes.extend_from_slice(&[2, 0, 62, 0, 1, 0, 0, 0]);
    [0, 0, at_sections as u64].iter().for_each(|word: &u64| bytes.extend_from_slice(&word.to_le_bytes()));
    bytes.extend_from_slice(&[0; 4]);
    [HEADER as u16, 56, 0, SECTION as u16, 5, 4].iter().for_each(|half| bytes.extend_from_slice(&half.to_le_bytes()));
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(&strings);
    bytes.extend_from_slice(names);
    bytes.resize(at_sections, 0);
    // name, kind, flags, address, offset, size, link, info, alignment, entry
    let (nothing, symbols, text) = (8, 2, 3);
    let sections: [[u64; 10]; 5] = [
        [0; 10],
        [1, nothing, 6, start, 0, end - start, 0, 0, 16, 0],
        [7, symbols, 0, 0, at_table as u64, table.len() as u64, 3, 1, 8, SYMBOL as u64],
        [15, text, 0, 0, at_strings as u64, strings.len() as u64, 0, 0, 1, 0],
        [23, text, 0, 0, at_names as u64, names.len() as u64, 0, 0, 1, 0],
    ];
    for [name, kind, flags, address, offset, size, link, info, alignment, entry] in sections {
        bytes.extend_from_slice(&(name as u32).to_le_bytes());
        bytes.extend_from_slice(&(kind as u32).to_le_bytes());
        [flags, address, offset, size].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        bytes.extend_from_slice(&(link as u32).to_le_bytes());
        bytes.extend_from_slice(&(info as u32).to_le_bytes());
        [alignment, entry].iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
    }
    bytes
}

#[cfg(test)]
mod tests {
    use object::{Object, ObjectSymbol};

    use super::*;

    const TEXT: &str = "0000000000000000 A fixed_percpu_data\nffffffff81000000 T _stext\nffffffff81000100 t copy\n\
                        ffffffffc0201000 t journal_write\t[nova]\nffffffffc0201080 T nova_mount\t[nova]\n\
                        ffffffff82000000 D data\n";

    #[test]
    fn code_is_found_in_its_file() {
        let symbols = Symbols::parse(TEXT);
        assert_eq!(symbols.file_of(0xffff_ffff_8100_0104), Some("vmlinux"));
        assert_eq!(symbols.file_of(0xffff_ffff_c020_1004), Some("nova.ko"));
        assert_eq!(symbols.file_of(0x40_0000), None);
    }

    #[test]
    fn others_read_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Symbols::parse(TEXT).write(folder.path()).unwrap();
        let bytes = files::read(&paths["nova.ko"]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let found: Vec<_> =
            file.symbols().map(|one| (one.name().unwrap().to_owned(), one.address(), one.size())).collect();
        assert_eq!(found[0], ("journal_write".to_owned(), 0xffff_ffff_c020_1000, 0x80));
        assert_eq!(found[1], ("nova_mount".to_owned(), 0xffff_ffff_c020_1080, 4096));
    }
}
