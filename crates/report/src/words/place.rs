//! Places in the code.

use finding::failure::NamedStore;
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

pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}
