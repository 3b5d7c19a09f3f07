//! A folder as bytes: its files, by name. Data from other machines is unpacked below one folder and nowhere else.
//!
//! For each file: length of its name, name, length of its content, content. Lengths are 64-bit, little-endian.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// All regular files below `folder`, in the order of their names.
pub fn pack(folder: &Path) -> io::Result<Vec<u8>> {
    let mut names = Vec::new();
    list(folder, Path::new(""), &mut names)?;
    names.sort();
    let mut packed = Vec::new();
    for name in names {
        let (content, name) = (fs::read(folder.join(&name))?, name.as_os_str().as_bytes());
        for part in [name, &content[..]] {
            packed.extend((part.len() as u64).to_le_bytes());
            packed.extend(part);
        }
    }
    Ok(packed)
}

fn list(folder: &Path, below: &Path, names: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder.join(below))? {
        let entry = entry?;
        let (name, kind) = (below.join(entry.file_name()), entry.file_type()?);
        if kind.is_dir() {
            list(folder, &name, names)?;
        } else if kind.is_file() {
            names.push(name);
        }
    }
    Ok(())
}

/// Puts what [`pack`] has packed into `folder`.
pub fn unpack(packed: &[u8], folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for file in files(packed) {
        let (name, content) = file?;
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// The files that are packed there. No name leads out of the folder.
pub fn files(mut packed: &[u8]) -> impl Iterator<Item = io::Result<(PathBuf, &[u8])>> {
    let mut next = move || {
        let name = PathBuf::from(OsString::from_vec(part(&mut packed)?.to_vec()));
        let is_below = name.components().all(|component| matches!(component, Component::Normal(_)));
        Some((name, part(&mut packed)?)).filter(|_| is_below)
    };
    let mut is_over = packed.is_empty();
    let mut left = packed.len();
    std::iter::from_fn(move || {
        if is_over {
            return None;
        }
        let file = next();
        left = file.as_ref().map_or(0, |(name, content)| left - 16 - name.as_os_str().len() - content.len());
        is_over = left == 0;
        Some(file.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a folder arrived damaged")))
    })
}

fn part<'p>(packed: &mut &'p [u8]) -> Option<&'p [u8]> {
    let (len, rest) = packed.split_first_chunk::<8>()?;
    let (part, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    *packed = rest;
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_arrives_as_it_was() {
        let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(here.path().join("a/b")).unwrap();
        fs::write(here.path().join("a/b/one"), b"1").unwrap();
        fs::write(here.path().join("none"), b"").unwrap();
        let packed = pack(here.path()).unwrap();
        unpack(&packed, there.path()).unwrap();
        assert_eq!(pack(there.path()).unwrap(), packed);
        assert_eq!(fs::read(there.path().join("a/b/one")).unwrap(), b"1");
    }

    #[test]
    fn nothing_is_written_beside_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["../out", "/tmp/fencepost-out", "a/../../out"] {
            let mut packed = (name.len() as u64).to_le_bytes().to_vec();
            packed.extend(name.bytes());
            packed.extend(0u64.to_le_bytes());
            assert!(unpack(&packed, &folder.path().join("inner")).is_err(), "{name}");
        }
        assert!(unpack(b"short", folder.path()).is_err());
        assert!(!folder.path().join("out").exists());
    }
}
