//! Places in the code.

use finding::failure::{NamedStore, PoolBytes};
use finding::finding::Location;

/// `function (file:line)`, shorter than a whole path.
pub(super) fn place(location: &Location) -> String {
    let function = location.function.as_deref().unwrap_or("?");
    match (&location.file, location.line) {
        (Some(file), Some(line)) => format!("`{function}` ({}:{line})", file_name(file)),
        _ => format!("`{function}` ({}+{:#x})", location.module, location.address),
    }
}

/// The place of a store, with what is stored to if the source says so.
pub(super) fn store(store: Option<&NamedStore>) -> String {
    match store {
        Some(NamedStore { location, name: Some(name), .. }) => format!("`{name}` in {}", place(location)),
        Some(NamedStore { location, .. }) => place(location),
        None => "a store".to_owned(),
    }
}

/// As [`store`], with the bytes: for two stores that one place makes.
pub(super) fn store_with_bytes(named: Option<&NamedStore>) -> String {
    let bytes = named.and_then(|store| store.bytes.as_ref()).map(bytes);
    bytes.map_or_else(|| store(named), |bytes| format!("{} ({bytes})", store(named)))
}

/// `bytes 0x40–0x47 of pool`.
pub(super) fn bytes(bytes: &PoolBytes) -> String {
    let PoolBytes { pool, offset, len } = bytes;
    match len {
        0 | 1 => format!("byte {:#x} of {pool}", offset.0),
        len => format!("bytes {:#x}–{:#x} of {pool}", offset.0, offset.0 + len - 1),
    }
}

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
