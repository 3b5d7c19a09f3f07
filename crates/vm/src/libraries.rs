//! Programs of the host that run in the guest: mkfs and its libraries are packed into the initial file system.

use std::collections::BTreeSet;
use std::env;
use std::fs as files;
use std::path::{Path, PathBuf};

use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Endianness, elf};

use crate::initramfs::Initramfs;

/// Where the dynamic linker looks, beside what a distribution configures.
const FOLDERS: [&str; 6] =
    ["/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"];

#[derive(Debug, thiserror::Error)]
pub enum PackError {
    #[error("`{0}` is not found in PATH; install it, or name it with its path")]
    NotFound(String),
    #[error("{path}: {what}")]
    Unreadable { path: String, what: String },
    #[error("{path} needs {library}, which is not found")]
    Library { path: String, library: String },
}

/// Puts a program and what it needs into the archive; its path there.
pub fn pack(program: &str, archive: &mut Initramfs) -> Result<PathBuf, PackError> {
    let path = which(program).ok_or_else(|| PackError::NotFound(program.to_owned()))?;
    let inside = Path::new("/bin").join(path.file_name().unwrap_or_default());
    let mut packed = BTreeSet::new();
    let mut wanted = vec![(path, inside.clone())];
    while let Some((from, to)) = wanted.pop() {
        if !packed.insert(to.clone()) {
            continue;
        }
        let unreadable = |what: String| PackError::Unreadable { path: from.display().to_string(), what };
        let bytes = files::read(&from).map_err(|error| unreadable(error.to_string()))?;
        archive.file(&to, &bytes);
        if bytes.starts_with(b"#!") {
            return Err(unreadable("is a script; only programs can be packed".into()));
        }
        let (needed, linker) = needs(&bytes).map_err(|error| unreadable(error.to_string()))?;
        for library in needed {
            let found = FOLDERS.iter().map(|folder| Path::new(folder).join(&library)).find(|path| path.exists());
            let found = found
                .ok_or_else(|| PackError::Library { path: from.display().to_string(), library: library.clone() })?;
            wanted.push((found, Path::new("/lib/x86_64-linux-gnu").join(&library)));
        }
        wanted.extend(linker.map(|linker| (linker.clone(), linker)));
    }
    Ok(inside)
}

/// The program of this name or path; system programs are often not in the PATH of ordinary users.
pub fn which(program: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Path::new(program).exists().then(|| program.into());
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The libraries that an ELF file names, and its dynamic linker.
fn needs(bytes: &[u8]) -> object::Result<(Vec<String>, Option<PathBuf>)> {
    let file = ElfFile64::<Endianness>::parse(bytes)?;
    let (endian, header) = (file.endian(), file.elf_header());
    let segments = header.program_headers(endian, bytes)?;
    let mut linker = None;
    let mut needed = Vec::new();
    for segment in segments {
        linker = linker.or(segment.interpreter(endian, bytes)?);
    }
    let sections = header.sections(endian, bytes)?;
    if let Some((entries, index)) = sections.dynamic(endian, bytes)? {
        let strings = sections.strings(endian, bytes, index)?;
        for entry in entries.iter().filter(|entry| entry.d_tag(endian) == elf::DT_NEEDED) {
            needed.push(String::from_utf8_lossy(entry.string(endian, strings)?).into_owned());
        }
    }
    Ok((needed, linker.map(|linker| PathBuf::from(String::from_utf8_lossy(linker).into_owned()))))
}
