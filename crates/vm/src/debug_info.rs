//! Source lines of kernel code.
//!
//! A module is a relocatable file: its debug information names places by section, and the kernel chooses the address of each section. The guest
//! reports these addresses (`/sys/module/NAME/sections`); with them, the relocations of the debug sections are applied as a linker would. `vmlinux` is
//! already linked, and is loaded at its link address (`nokaslr`).

use std::collections::BTreeMap;
use std::fs as files;
use std::path::{Path, PathBuf};

use object::{Object, ObjectSection, ObjectSymbol, ReadCache, RelocationKind, RelocationTarget, SectionIndex};

use crate::modules::{self, Modules};
use crate::symbols::{KERNEL, Symbols};

/// What is known of the sources of one file of kernel code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DebugInfo {
    /// A file that can be used as it is.
    File(PathBuf),
    /// Sections, for the addresses in the guest.
    Linked(Vec<DebugSection>),
}

/// A section of debug information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugSection {
    pub name: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, thiserror::Error)]
pub enum DebugInfoError {
    #[error("--debug-info: {path}: {what}")]
    Unreadable { path: String, what: String },
    #[error("--debug-info: {path} is not of the kernel that runs: `{function}` lies elsewhere")]
    OtherKernel { path: String, function: String },
    #[error("--debug-info: {path} is not of the module that is loaded: their build ids differ")]
    OtherModule { path: String },
    #[error("--debug-info: there is neither a vmlinux nor a module with debug information in {0}")]
    Nothing(String),
}

/// Functions that every kernel has.
const EVERYWHERE: [&str; 3] = ["start_kernel", "panic", "vfs_write"];
const DEBUG: &str = ".debug_";

/// Where debug information may be: in the modules themselves, and in a folder of files that have it.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The files of the loaded modules.
    pub loaded: &'a [PathBuf],
    /// What the user names.
    pub folder: Option<&'a Path>,
}

impl Sources<'_> {
    /// By file name, for all files of code that have any. `sections` asks the guest where a module's sections lie.
    pub fn find<E: From<DebugInfoError>>(
        &self,
        symbols: &Symbols,
        mut sections: impl FnMut(&str) -> Result<BTreeMap<String, u64>, E>,
    ) -> Result<BTreeMap<String, DebugInfo>, E> {
        let mut found = BTreeMap::new();
        let named = self.folder.map(named_files).transpose()?.unwrap_or_default();
        for file in symbols.file_names() {
            if file == KERNEL {
                if let Some(path) = &named.kernel {
                    is_of_kernel(path, symbols)?;
                    found.insert(file.to_owned(), DebugInfo::File(path.clone()));
                }
                continue;
            }
            let Some(name) = file.strip_suffix(".ko") else { continue };
            let Some(own) = self.loaded.iter().find(|path| Modules::name_of(path).as_deref() == Some(name)) else {
                continue;
            };
            let separate = named.modules.get(name);
            let (path, build_id) = match separate {
                Some(path) => (path, build_id(own)?),
                None => (own, None),
            };
            let bytes = modules::content(path).map_err(|error| unreadable(path, error))?;
            let object = object::File::parse(&*bytes).map_err(|error| unreadable(path, error))?;
            if object.section_by_name(".debug_info").is_none_or(|section| section.size() == 0) {
                continue;
            }
            let same = build_id.is_none() || object.build_id().ok().flatten() == build_id.as_deref();
            if !same {
                return Err(DebugInfoError::OtherModule { path: path.display().to_string() }.into());
            }
            let linked = linked(&object, &sections(name)?).map_err(|error| unreadable(path, error))?;
            found.insert(file.to_owned(), DebugInfo::Linked(linked));
        }
        if let (Some(folder), true) = (self.folder, found.is_empty()) {
            return Err(DebugInfoError::Nothing(folder.display().to_string()).into());
        }
        Ok(found)
    }
}

fn unreadable(path: &Path, error: impl std::fmt::Display) -> DebugInfoError {
    DebugInfoError::Unreadable { path: path.display().to_string(), what: error.to_string() }
}

#[derive(Debug, Default)]
struct Named {
    kernel: Option<PathBuf>,
    modules: BTreeMap<String, PathBuf>,
}

/// A `vmlinux` itself, or a folder as Debian's packages `linux-image-…-dbg` have it: `vmlinux*` and modules below it.
fn named_files(path: &Path) -> Result<Named, DebugInfoError> {
    if path.is_file() {
        return Ok(Named { kernel: Some(path.to_owned()), ..Named::default() });
    }
    let mut named = Named::default();
    let mut folders = vec![path.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in files::read_dir(&folder).map_err(|error| unreadable(&folder, error))? {
            let entry = entry.map_err(|error| unreadable(&folder, error))?;
            let kind = entry.file_type().map_err(|error| unreadable(&folder, error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && name.starts_with(KERNEL) {
                named.kernel = Some(entry.path());
            } else if kind.is_file() {
                named.modules.extend(Modules::name_of(&entry.path()).map(|name| (name, entry.path())));
            }
        }
    }
    Ok(named)
}

/// Functions lie where the kernel that runs has them.
fn is_of_kernel(path: &Path, symbols: &Symbols) -> Result<(), DebugInfoError> {
    // Reads only what it is asked for: these files are huge.
    let bytes = ReadCache::new(files::File::open(path).map_err(|error| unreadable(path, error))?);
    let object = object::File::parse(&bytes).map_err(|error| unreadable(path, error))?;
    if object.section_by_name(".debug_info").is_none_or(|section| section.size() == 0) {
        return Err(unreadable(path, "has no debug information"));
    }
    for function in EVERYWHERE {
        let there = object.symbol_by_name(function).map(|symbol| symbol.address());
        if there != symbols.address(KERNEL, function) {
            let (path, function) = (path.display().to_string(), function.to_owned());
            return Err(DebugInfoError::OtherKernel { path, function });
        }
    }
    Ok(())
}

fn build_id(path: &Path) -> Result<Option<Vec<u8>>, DebugInfoError> {
    let bytes = modules::content(path).map_err(|error| unreadable(path, error))?;
    let object = object::File::parse(&*bytes).map_err(|error| unreadable(path, error))?;
    Ok(object.build_id().ok().flatten().map(<[u8]>::to_vec))
}

/// The debug sections with their relocations applied: sections of code and data lie where `places` says, those of debug information at 0.
fn linked(object: &object::File<'_>, places: &BTreeMap<String, u64>) -> object::Result<Vec<DebugSection>> {
    let place = |index: SectionIndex| -> u64 {
        let name = object.section_by_index(index).ok().and_then(|section| Some(section.name().ok()?.to_owned()));
        name.and_then(|name| places.get(&name).copied()).unwrap_or(0)
    };
    let mut linked = Vec::new();
    for section in object.sections() {
        let name = section.name()?;
        if !name.starts_with(DEBUG) {
            continue;
        }
        let mut bytes = section.uncompressed_data()?.into_owned();
        for (at, relocation) in section.relocations() {
            let base = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = object.symbol_by_index(index)?;
                    symbol.address().wrapping_add(symbol.section_index().map_or(0, place))
                }
                RelocationTarget::Section(index) => place(index),
                _ => 0,
            };
            let value = base.wrapping_add(relocation.addend() as u64);
            let len = usize::from(relocation.size()) / 8;
            let at = at as usize;
            // Others than plain addresses and offsets do not occur there.
            if relocation.kind() == RelocationKind::Absolute
                && let Some(to) = bytes.get_mut(at..at + len)
            {
                to.copy_from_slice(&value.to_le_bytes()[..len]);
            }
        }
        linked.push(DebugSection { name: name.to_owned(), bytes });
    }
    Ok(linked)
}
