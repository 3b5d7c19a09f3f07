//! Which files hold the debug information and the symbols of a module.

use std::fs;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSegment, ReadCache};

use crate::tables::{CodeModule, ModuleKind};

use super::crc::crc32;

/// Why a module has no names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SymbolProblem {
    #[error("{0} cannot be read any more; its functions are shown as addresses")]
    Gone(String),
    #[error("{0} has changed since the recording; its functions are shown as addresses, record again")]
    Changed(String),
    #[error("{0} is not an ELF file that can be understood")]
    NotElf(String),
    #[error("this code lies in no file")]
    NoFile,
}

/// Files to read for a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Files {
    /// Has symbols.
    pub binary: Option<PathBuf>,
    /// Has DWARF, if any file has.
    pub debug: Option<PathBuf>,
    /// What `.gnu_debugaltlink` of `debug` names.
    pub supplement: Option<PathBuf>,
}

/// What one file says about itself.
struct Facts {
    build_id: Option<Vec<u8>>,
    has_dwarf: bool,
    debug_link: Option<(PathBuf, u32)>,
    alt_link: Option<(PathBuf, Vec<u8>)>,
}

/// A byte range of a file and the address that it is loaded to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment {
    pub offset: u64,
    pub len: u64,
    pub addr: u64,
}

/// The loaded ranges of an ELF file; none if it cannot be read.
pub(super) fn segments(path: &str) -> Vec<Segment> {
    let Ok(file) = fs::File::open(path) else { return Vec::new() };
    let bytes = ReadCache::new(file);
    let Ok(file) = object::File::parse(&bytes) else { return Vec::new() };
    file.segments()
        .map(|segment| {
            let (offset, len) = segment.file_range();
            Segment { offset, len, addr: segment.address() }
        })
        .collect()
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

fn facts(path: &Path) -> Option<Facts> {
    // Reads only what it is asked for: some binaries are huge.
    let bytes = ReadCache::new(fs::File::open(path).ok()?);
    let file = object::File::parse(&bytes).ok()?;
    let has_dwarf = file.section_by_name(".debug_info").is_some_and(|section| section.size() > 0);
    Some(Facts {
        build_id: file.build_id().ok().flatten().map(<[u8]>::to_vec),
        has_dwarf,
        debug_link: file.gnu_debuglink().ok().flatten().map(|(name, crc)| (path_of(name), crc)),
        alt_link: file.gnu_debugaltlink().ok().flatten().map(|(name, id)| (path_of(name), id.to_vec())),
    })
}

/// Finds the files of `module`; `roots` are folders like `/usr/lib/debug`.
pub(super) fn find(module: &CodeModule, roots: &[PathBuf]) -> Result<Files, SymbolProblem> {
    if module.kind != ModuleKind::Elf || module.path.is_empty() {
        return Err(SymbolProblem::NoFile);
    }
    let binary = Path::new(&module.path);
    let own = facts(binary);
    let right = |facts: &Facts| module.build_id.is_none() || facts.build_id == module.build_id;
    let own_is_right = own.as_ref().is_some_and(right);
    let mut files = Files { binary: own_is_right.then(|| binary.to_owned()), ..Files::default() };
    let mut debug = None;
    if let Some(own) = own.as_ref().filter(|own| own_is_right && own.has_dwarf) {
        debug = Some((binary.to_owned(), own.alt_link.clone()));
    }
    let build_id = module.build_id.as_ref().or(own.as_ref().and_then(|own| own.build_id.as_ref()));
    if let Some(id) = build_id.filter(|_| debug.is_none()) {
        debug = by_build_id(id, roots);
    }
    if let Some((name, crc)) = own.as_ref().filter(|_| own_is_right).and_then(|own| own.debug_link.as_ref()) {
        debug = debug.or_else(|| by_link(binary, name, *crc, roots));
    }
    if let Some((path, alt_link)) = debug {
        files.supplement = alt_link.and_then(|(name, id)| supplement(&path, &name, &id, roots));
        files.debug = Some(path);
    }
    match (files == Files::default(), own.is_some(), binary.exists()) {
        (false, ..) => Ok(files),
        (true, true, _) => Err(SymbolProblem::Changed(module.path.clone())),
        (true, false, true) => Err(SymbolProblem::NotElf(module.path.clone())),
        (true, false, false) => Err(SymbolProblem::Gone(module.path.clone())),
    }
}

type Found = Option<(PathBuf, Option<(PathBuf, Vec<u8>)>)>;

fn by_build_id(id: &[u8], roots: &[PathBuf]) -> Found {
    let path = build_id_path(id)?;
    roots.iter().map(|root| root.join(&path)).find_map(|path| {
        let facts = facts(&path)?;
        (facts.has_dwarf && facts.build_id.as_deref() == Some(id)).then_some((path, facts.alt_link))
    })
}

fn build_id_path(id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = id.split_first()?;
    let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(PathBuf::from(format!(".build-id/{first:02x}/{rest}.debug")))
}

fn by_link(binary: &Path, name: &Path, crc: u32, roots: &[PathBuf]) -> Found {
    let folder = binary.parent()?;
    let below_root = folder.strip_prefix("/").unwrap_or(folder);
    let mut candidates = vec![folder.join(name), folder.join(".debug").join(name)];
    candidates.extend(roots.iter().map(|root| root.join(below_root).join(name)));
    candidates.into_iter().filter(|path| path != binary).find_map(|path| {
        let bytes = fs::read(&path).ok()?;
        let facts = facts(&path)?;
        (crc32(&bytes) == crc && facts.has_dwarf).then_some((path, facts.alt_link))
    })
}

fn supplement(debug: &Path, name: &Path, id: &[u8], roots: &[PathBuf]) -> Option<PathBuf> {
    let beside = debug.parent().map(|folder| folder.join(name));
    let by_id = build_id_path(id).into_iter().flat_map(|path| roots.iter().map(move |root| root.join(&path)));
    let right = |path: &PathBuf| facts(path).is_some_and(|facts| facts.build_id.as_deref() == Some(id));
    beside.into_iter().chain(by_id).find(right)
}
