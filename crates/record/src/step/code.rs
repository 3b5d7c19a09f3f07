//! From the address of an instruction to its module and its address inside the file.

use std::collections::HashMap;
use std::fs;

use object::read::elf::{FileHeader, ProgramHeader};
use object::{Endianness, elf};
use trace::event::{CodeAddr, ModuleId, WatchId};
use trace::symbol::is_named;
use trace::{CodeModule, ModuleKind, TraceWriter};

use super::ptrace::Tid;

/// Executable parts of one file.
#[derive(Clone, Debug)]
struct Module {
    id: ModuleId,
    segments: Vec<Segment>,
    /// Link-time addresses of watched functions.
    watched: Vec<(u64, WatchId)>,
}

/// An executable `PT_LOAD`.
#[derive(Clone, Copy, Debug)]
struct Segment {
    offset: u64,
    len: u64,
    vaddr: u64,
}

/// All modules of the recording, by path.
#[derive(Debug, Default)]
pub struct Modules {
    by_path: HashMap<String, Module>,
    watches: Vec<(String, WatchId)>,
}

/// A line of `/proc/<pid>/maps` that is executable.
#[derive(Clone, Debug)]
struct Range {
    start: u64,
    end: u64,
    offset: u64,
    path: String,
}

/// The code of one address space. Read again after every change of the mappings.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    ranges: Option<Vec<Range>>,
    known: HashMap<u64, CodeAddr>,
    watch_sites: Option<HashMap<u64, Vec<WatchId>>>,
}

impl CodeMap {
    /// The mappings have changed.
    pub fn forget(&mut self) {
        *self = CodeMap::default();
    }

    pub fn locate(&mut self, modules: &mut Modules, trace: &mut TraceWriter, tid: Tid, address: u64) -> CodeAddr {
        if let Some(&known) = self.known.get(&address) {
            return known;
        }
        let ranges = self.ranges.get_or_insert_with(|| read_ranges(tid));
        let range = ranges.iter().find(|range| (range.start..range.end).contains(&address));
        let place = modules.place(trace, range, address);
        self.known.insert(address, place);
        place
    }

    /// Watched functions that begin at this address.
    pub fn watched(&mut self, modules: &mut Modules, trace: &mut TraceWriter, tid: Tid, address: u64) -> Vec<WatchId> {
        if modules.watches.is_empty() {
            return Vec::new();
        }
        let ranges = self.ranges.get_or_insert_with(|| read_ranges(tid));
        let sites = self.watch_sites.get_or_insert_with(|| modules.watch_sites(trace, ranges));
        sites.get(&address).cloned().unwrap_or_default()
    }
}

fn read_ranges(tid: Tid) -> Vec<Range> {
    let maps = fs::read_to_string(format!("/proc/{}/maps", tid.0)).unwrap_or_default();
    maps.lines().filter_map(parse_range).collect()
}

fn parse_range(line: &str) -> Option<Range> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let permissions = fields.next()?;
    let offset = fields.next()?;
    let path = fields.nth(2).unwrap_or_default().trim_start();
    if permissions.as_bytes().get(2) != Some(&b'x') {
        return None;
    }
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some(Range { start: hex(start)?, end: hex(end)?, offset: hex(offset)?, path: path.to_owned() })
}

impl Modules {
    pub fn watch(&mut self, trace: &mut TraceWriter, symbols: &[String]) {
        self.watches = symbols.iter().map(|symbol| (symbol.clone(), trace.watch(symbol))).collect();
    }

    /// Where the watched functions are in these mappings.
    fn watch_sites(&mut self, trace: &mut TraceWriter, ranges: &[Range]) -> HashMap<u64, Vec<WatchId>> {
        let mut sites: HashMap<u64, Vec<WatchId>> = HashMap::new();
        for range in ranges.iter().filter(|range| range.path.starts_with('/')) {
            let module = self.module(trace, &range.path);
            for &(vaddr, watch) in &module.watched {
                let inside = |segment: &&Segment| (segment.vaddr..segment.vaddr + segment.len).contains(&vaddr);
                let Some(segment) = module.segments.iter().find(inside) else { continue };
                let offset = vaddr - segment.vaddr + segment.offset;
                if (range.offset..range.offset + (range.end - range.start)).contains(&offset) {
                    sites.entry(range.start + offset - range.offset).or_default().push(watch);
                }
            }
        }
        sites
    }

    fn place(&mut self, trace: &mut TraceWriter, range: Option<&Range>, address: u64) -> CodeAddr {
        let Some(range) = range.filter(|range| range.path.starts_with('/')) else {
            let vdso = range.is_some_and(|range| range.path == "[vdso]");
            let kind = if vdso { ModuleKind::Vdso } else { ModuleKind::Anonymous };
            let addr = if vdso { address - range.map_or(0, |range| range.start) } else { address };
            return CodeAddr { module: trace.module(CodeModule { kind, ..CodeModule::default() }), addr };
        };
        let module = self.module(trace, &range.path);
        let offset = address - range.start + range.offset;
        let inside = |segment: &&Segment| (segment.offset..segment.offset + segment.len).contains(&offset);
        let addr =
            module.segments.iter().find(inside).map_or(offset, |segment| offset - segment.offset + segment.vaddr);
        CodeAddr { module: module.id, addr }
    }

    fn module(&mut self, trace: &mut TraceWriter, path: &str) -> &Module {
        let watches = &self.watches;
        self.by_path.entry(path.to_owned()).or_insert_with(|| read_module(trace, path, watches))
    }
}

/// Reads what is needed of an ELF file; a file that is gone or is no ELF keeps its file offsets as addresses.
fn read_module(trace: &mut TraceWriter, path: &str, watches: &[(String, WatchId)]) -> Module {
    let data = fs::read(path).unwrap_or_default();
    let parsed = parse_elf(&data);
    let (segments, build_id) = parsed.unwrap_or_default();
    let watched = if watches.is_empty() { Vec::new() } else { find_symbols(&data, watches) };
    let id = trace.module(CodeModule { path: path.to_owned(), build_id, kind: ModuleKind::Elf });
    Module { id, segments, watched }
}

fn parse_elf(data: &[u8]) -> Option<(Vec<Segment>, Option<Vec<u8>>)> {
    let header = elf::FileHeader64::<Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let mut segments = Vec::new();
    let mut build_id = None;
    for segment in header.program_headers(endian, data).ok()? {
        if segment.p_type(endian) == elf::PT_LOAD && segment.p_flags(endian).0 & elf::PF_X.0 != 0 {
            let (offset, len, vaddr) = (segment.p_offset(endian), segment.p_filesz(endian), segment.p_vaddr(endian));
            segments.push(Segment { offset, len, vaddr });
        }
        let Ok(Some(mut notes)) = segment.notes(endian, data) else { continue };
        while let Ok(Some(note)) = notes.next() {
            if note.name() == elf::ELF_NOTE_GNU && note.n_type(endian) == elf::NT_GNU_BUILD_ID {
                build_id = Some(note.desc().to_vec());
            }
        }
    }
    Some((segments, build_id))
}

fn find_symbols(data: &[u8], watches: &[(String, WatchId)]) -> Vec<(u64, WatchId)> {
    use object::{Object, ObjectSymbol};
    let Ok(file) = object::File::parse(data) else { return Vec::new() };
    let mut found: Vec<(u64, WatchId)> = file
        .symbols()
        .chain(file.dynamic_symbols())
        .filter(|symbol| symbol.is_definition() && symbol.kind() == object::SymbolKind::Text)
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            let (_, watch) = watches.iter().find(|(wanted, _)| is_named(name, wanted))?;
            Some((symbol.address(), *watch))
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
