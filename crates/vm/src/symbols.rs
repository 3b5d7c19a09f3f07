//! Names of kernel functions: the guest's `/proc/kallsyms` becomes small ELF files with one symbol table each, which the trace
//! refers to as its modules. So all code that shows source locations works for kernel code, too.

use std::collections::BTreeMap;
use std::fs as files;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::debug_info::DebugInfo;
use crate::symbol_file::{LAST, symbol_file};

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
            if !matches!(kind, "t" | "T" | "w" | "W") || address == 0 || line.contains('/') {
                // The name of a module becomes that of a file.
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

    /// `vmlinux`, `xfs.ko`.
    pub fn file_names(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Where the first function of this name lies in a file.
    pub fn address(&self, file: &str, name: &str) -> Option<u64> {
        self.files.get(file)?.iter().find(|one| one.1 == name).map(|one| one.0)
    }

    /// The code of these modules; of those that are built in, the functions that begin with their names.
    pub fn code_of(&self, modules: &[String]) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for module in modules {
            if let Some(list) = self.files.get(&format!("{module}.ko")) {
                ranges.extend(list.first().zip(list.last()).map(|(first, last)| first.0..last.0.saturating_add(LAST)));
                continue;
            }
            let kernel = self.files.get(KERNEL).map_or(&[][..], Vec::as_slice);
            let begin = format!("{module}_");
            let mut functions = kernel.iter().map(|(at, name)| (*at, name.starts_with(&begin))).peekable();
            while let Some((at, wanted)) = functions.next() {
                let end = functions.peek().map_or(at.saturating_add(LAST), |next| next.0);
                match ranges.last_mut().filter(|last| last.end == at && wanted) {
                    Some(last) => last.end = end,
                    None if wanted => ranges.push(at..end),
                    None => {}
                }
            }
        }
        ranges
    }

    /// Writes the files into a folder, with what `debug` knows of their sources; their paths by their names.
    pub fn write(&self, folder: &Path, debug: &BTreeMap<String, DebugInfo>) -> io::Result<BTreeMap<String, PathBuf>> {
        let write = |(name, list): (&String, &Vec<(u64, String)>)| {
            let sections = match debug.get(name) {
                Some(DebugInfo::File(path)) => return Ok((name.clone(), path.clone())),
                Some(DebugInfo::Linked(sections)) => &sections[..],
                None => &[],
            };
            let path = folder.join(name);
            files::write(&path, symbol_file(list, sections))?;
            Ok((name.clone(), path))
        };
        self.files.iter().map(write).collect()
    }
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
    fn code_of_modules_and_of_what_is_built_in() {
        let symbols = Symbols::parse(&format!(
            "{TEXT}ffffffff81000200 T ext4_a\nffffffff81000280 t ext4_b\nffffffff81000300 T other\nffffffff81000380 t ext4_c\n"
        ));
        let code = symbols.code_of(&["nova".into()]);
        assert_eq!(
            code.iter().map(|range| (range.start, range.end)).collect::<Vec<_>>(),
            [(0xffff_ffff_c020_1000, 0xffff_ffff_c020_2080)]
        );
        let built_in = [0xffff_ffff_8100_0200..0xffff_ffff_8100_0300, 0xffff_ffff_8100_0380..0xffff_ffff_8100_1380];
        assert_eq!(symbols.code_of(&["ext4".into()]), built_in);
    }

    #[test]
    fn others_read_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let paths = Symbols::parse(TEXT).write(folder.path(), &BTreeMap::new()).unwrap();
        let bytes = files::read(&paths["nova.ko"]).unwrap();
        let file = object::File::parse(&*bytes).unwrap();
        let found: Vec<_> =
            file.symbols().map(|one| (one.name().unwrap().to_owned(), one.address(), one.size())).collect();
        assert_eq!(found[0], ("journal_write".to_owned(), 0xffff_ffff_c020_1000, 0x80));
        assert_eq!(found[1], ("nova_mount".to_owned(), 0xffff_ffff_c020_1080, 4096));
    }
}
