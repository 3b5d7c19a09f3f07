//! Which file a process runs at which address: turns addresses into places in modules.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use object::elf;
use object::read::ReadCache;
use object::read::elf::{ElfFile64, ProgramHeader};
use object::{Endianness, Object, ObjectSymbol};
use trace::event::{CodeAddr, ModuleId};
use trace::symbol::is_named;
use trace::{CodeModule, ModuleKind, TraceWriter};

/// What the host needs to know of an executable file.
#[derive(Debug, Default)]
pub(super) struct ElfFacts {
    segments: Vec<Segment>,
    build_id: Option<Vec<u8>>,
    /// (place in the list of watches, link-time address).
    watched: Vec<(u32, u64)>,
}

#[derive(Debug)]
struct Segment {
    offset: u64,
    address: u64,
    file_bytes: u64,
    executable: bool,
}

impl ElfFacts {
    fn read(path: &str, watches: &[String]) -> Option<ElfFacts> {
        let cache = ReadCache::new(File::open(path).ok()?);
        let elf = ElfFile64::<Endianness, _>::parse(&cache).ok()?;
        let endian = elf.endian();
        let loaded = elf.elf_program_headers().iter().filter(|p| p.p_type(endian) == elf::PT_LOAD);
        let segments = loaded
            .map(|p| Segment {
                offset: p.p_offset(endian),
                address: p.p_vaddr(endian),
                file_bytes: p.p_filesz(endian),
                executable: p.p_flags(endian).contains(elf::PF_X),
            })
            .collect();
        let build_id = elf.build_id().ok().flatten().map(<[u8]>::to_vec);
        let mut watched = Vec::new();
        if !watches.is_empty() {
            for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
                // An IFUNC's address is that of its resolver, not of the function.
                let is_code = matches!(symbol.kind(), object::SymbolKind::Text | object::SymbolKind::Unknown);
                if !is_code || symbol.is_undefined() || symbol.address() == 0 {
                    continue;
                }
                let Ok(name) = symbol.name() else { continue };
                if let Some(at) = watches.iter().position(|wanted| is_named(name, wanted)) {
                    watched.push((at as u32, symbol.address()));
                }
            }
            watched.sort_unstable();
            watched.dedup();
        }
        Some(ElfFacts { segments, build_id, watched })
    }

    /// What to subtract from an address to get the link-time address, if `address` shows the file from `file_offset`.
    fn bias(&self, address: u64, file_offset: u64) -> Option<u64> {
        // The loader maps whole pages: a segment that starts inside a page is mapped from the start of that page.
        let holds = |s: &&Segment| (s.offset & !0xfff) <= file_offset && file_offset < s.offset + s.file_bytes;
        let executable = self.segments.iter().filter(|s| s.executable).find(holds);
        let segment = executable.or_else(|| self.segments.iter().find(holds))?;
        Some(address.wrapping_sub(file_offset).wrapping_sub(segment.address.wrapping_sub(segment.offset)))
    }
}

/// Facts of every file met so far, of all processes.
#[derive(Debug, Default)]
pub(super) struct ElfCache {
    files: HashMap<(String, u64, u64, i64), Option<Rc<ElfFacts>>>,
    watches: Vec<String>,
}

impl ElfCache {
    pub fn new(watches: Vec<String>) -> ElfCache {
        ElfCache { files: HashMap::new(), watches }
    }

    fn get(&mut self, path: &str) -> Option<Rc<ElfFacts>> {
        let file = std::fs::metadata(path).ok()?;
        // A file may be replaced while the target runs (plugins that are rebuilt and loaded again).
        let key = (path.to_owned(), file.ino(), file.size(), file.mtime_nsec() ^ file.mtime());
        let watches = &self.watches;
        self.files.entry(key).or_insert_with(|| ElfFacts::read(path, watches).map(Rc::new)).clone()
    }
}

/// One mapping of code.
#[derive(Clone, Copy, Debug)]
struct Region {
    start: u64,
    end: u64,
    module: ModuleId,
    bias: u64,
}

/// The code that a process has mapped; later mappings cover earlier ones.
#[derive(Clone, Debug, Default)]
pub(super) struct CodeMap {
    regions: Vec<Region>,
}

/// Where a watched function lies in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WatchedAddress {
    pub watch: u32,
    pub address: u64,
}

impl CodeMap {
    /// Takes note of a mapping and returns the watched functions in it.
    pub fn map(
        &mut self,
        writer: &mut TraceWriter,
        cache: &mut ElfCache,
        mapping: (u64, u64, u64),
        path: &str,
    ) -> Vec<WatchedAddress> {
        let (start, len, file_offset) = mapping;
        let end = start.saturating_add(len);
        let facts = if path.is_empty() { None } else { cache.get(path) };
        let bias = facts.as_ref().and_then(|f| f.bias(start, file_offset));
        let (module, bias) = match (&facts, bias) {
            (Some(facts), Some(bias)) => {
                let build_id = facts.build_id.clone();
                (CodeModule { path: path.to_owned(), build_id, kind: ModuleKind::Elf }, bias)
            }
            // A file that is not ELF, or a part of it that no segment holds: its offset is the best name.
            _ if !path.is_empty() => {
                let module = CodeModule { path: path.to_owned(), build_id: None, kind: ModuleKind::Anonymous };
                (module, start.wrapping_sub(file_offset))
            }
            _ => (CodeModule { path: String::new(), build_id: None, kind: ModuleKind::Anonymous }, 0),
        };
        let module = writer.module(module);
        self.cut(start, end);
        let at = self.regions.partition_point(|r| r.start < start);
        self.regions.insert(at, Region { start, end, module, bias });
        let Some(facts) = facts else { return Vec::new() };
        let here = facts.watched.iter().map(|&(watch, vaddr)| (watch, vaddr.wrapping_add(bias)));
        here.filter(|&(_, a)| start <= a && a < end).map(|(watch, address)| WatchedAddress { watch, address }).collect()
    }

    fn cut(&mut self, start: u64, end: u64) {
        let mut kept = Vec::with_capacity(self.regions.len() + 1);
        for r in &self.regions {
            if r.start < start {
                kept.push(Region { end: r.end.min(start), ..*r });
            }
            if r.end > end {
                kept.push(Region { start: r.start.max(end), ..*r });
            }
        }
        self.regions = kept;
    }

    /// The place of an address. Code that no record announced is anonymous (`writer` interns that module).
    pub fn locate(&self, writer: &mut TraceWriter, address: u64) -> CodeAddr {
        let at = self.regions.partition_point(|r| r.end <= address);
        match self.regions.get(at).filter(|r| r.start <= address) {
            Some(r) => CodeAddr { module: r.module, addr: address.wrapping_sub(r.bias) },
            None => {
                let unknown = CodeModule { path: String::new(), build_id: None, kind: ModuleKind::Anonymous };
                CodeAddr { module: writer.module(unknown), addr: address }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A function whose place in memory and in its file are both known.
    #[unsafe(no_mangle)]
    extern "C" fn fencepost_watched_by_a_test() {}

    /// The executable mappings of this very program, as `MODULE` records would tell them: (start, length, offset).
    fn own_code(path: &str) -> Vec<(u64, u64, u64)> {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("mounted");
        let own = maps.lines().filter(|line| line.ends_with(path) && line.contains(" r-xp "));
        own.map(|line| {
            let mut words = line.split_whitespace();
            let (start, end) = words.next().and_then(|range| range.split_once('-')).expect("a range");
            let number = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
            let offset = number(words.nth(1).expect("an offset"));
            (number(start), number(end) - number(start), offset)
        })
        .collect()
    }

    #[test]
    fn addresses_are_found_in_the_file_and_functions_in_memory() {
        let directory = tempfile::tempdir().expect("temporary directory");
        let mut writer = TraceWriter::create(&directory.path().join("t"), trace::Meta::default()).expect("writable");
        let path = std::env::current_exe().expect("known").display().to_string();
        let mut cache = ElfCache::new(vec!["no_such_function".into(), "fencepost_watched_by_a_test".into()]);
        let mut code = CodeMap::default();
        let mappings = own_code(&path);
        assert!(!mappings.is_empty());
        let watched: Vec<_> =
            mappings.into_iter().flat_map(|mapping| code.map(&mut writer, &mut cache, mapping, &path)).collect();
        let address = fencepost_watched_by_a_test as *const () as u64;
        assert_eq!(watched, [WatchedAddress { watch: 1, address }]);

        let facts = cache.get(&path).expect("an ELF file");
        let found = code.locate(&mut writer, address + 1);
        assert_eq!(found.addr, facts.watched[0].1 + 1);

        // What was mapped over it is no longer found there.
        code.map(&mut writer, &mut cache, (address & !0xfff, 0x1000, 0), "");
        let covered = code.locate(&mut writer, address);
        assert_ne!(covered.module, found.module);
        assert_eq!(covered.addr, address);
    }
}
