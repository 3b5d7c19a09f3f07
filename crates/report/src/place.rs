//! Source paths as URIs (RFC 3986), relative where the file lies inside the folder in which fencepost was started.

use std::path::{Component, Path, PathBuf};

/// Knows what paths are relative to.
#[derive(Debug)]
pub(crate) struct Places {
    folder: PathBuf,
    recorded_in: PathBuf,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub uri: String,
    /// The URI is relative to the folder.
    pub is_inside: bool,
}

impl Places {
    pub fn new(folder: &Path, recorded_in: &Path) -> Places {
        let folder = normal(folder);
        // An old recording does not tell where it was made.
        let recorded_in = if recorded_in.is_absolute() { normal(recorded_in) } else { folder.clone() };
        Places { folder, recorded_in }
    }

    /// The folder; ends with a slash, as SARIF wants of a base (§3.14.14).
    pub fn base(&self) -> String {
        let uri = absolute(&self.folder);
        if uri.ends_with('/') { uri } else { uri + "/" }
    }

    /// As people write it: relative where the file lies inside the folder, else as debug information names it.
    pub fn path(&self, file: &str) -> String {
        let path = normal(&self.recorded_in.join(file));
        let inside = path.strip_prefix(&self.folder).ok().filter(|inside| !inside.as_os_str().is_empty());
        inside.map_or_else(|| file.to_owned(), |inside| inside.to_string_lossy().into_owned())
    }

    pub fn of(&self, file: &str) -> Place {
        let path = normal(&self.recorded_in.join(file));
        match path.strip_prefix(&self.folder) {
            Ok(inside) if !inside.as_os_str().is_empty() => {
                Place { uri: escaped(&inside.to_string_lossy()), is_inside: true }
            }
            _ => Place { uri: absolute(&path), is_inside: false },
        }
    }
}

fn absolute(path: &Path) -> String {
    format!("file://{}", escaped(&path.to_string_lossy()))
}

/// Without `.` and `..`: the compiler writes paths as it was given them. Links are not followed; the file may not exist.
fn normal(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                result.pop();
            }
            other => result.push(other),
        }
    }
    result
}

/// Everything but what may stand in a path as it is. A colon may not in the first segment of a relative one (§4.2).
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~+@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(file: &str) -> (String, bool) {
        let place = Places::new(Path::new("/home/me/kv"), Path::new("/home/me/kv/build")).of(file);
        (place.uri, place.is_inside)
    }

    #[test]
    fn what_is_inside_the_folder_is_relative() {
        assert_eq!(of("/home/me/kv/src/put.c"), ("src/put.c".to_owned(), true));
        assert_eq!(of("../src/./put.c"), ("src/put.c".to_owned(), true));
        assert_eq!(of("gen.c"), ("build/gen.c".to_owned(), true));
        assert_eq!(of("/home/me/kv2/put.c"), ("file:///home/me/kv2/put.c".to_owned(), false));
        assert_eq!(of("/home/me/kv"), ("file:///home/me/kv".to_owned(), false));
    }

    #[test]
    fn people_see_paths_without_escapes() {
        let places = Places::new(Path::new("/home/me/kv"), Path::new("/home/me/kv/build"));
        assert_eq!(places.path("../src/a b.c"), "src/a b.c");
        assert_eq!(places.path("/usr/include/x.h"), "/usr/include/x.h");
    }

    #[test]
    fn what_a_uri_cannot_hold_is_escaped() {
        assert_eq!(of("/home/me/kv/a b%c:#é.c"), ("a%20b%25c%3A%23%C3%A9.c".to_owned(), true));
    }

    #[test]
    fn a_base_ends_with_one_slash() {
        assert_eq!(Places::new(Path::new("/"), Path::new("")).base(), "file:///");
        assert_eq!(Places::new(Path::new("/a b/"), Path::new("")).base(), "file:///a%20b/");
    }

    #[test]
    fn without_the_place_of_recording_the_folder_counts() {
        assert_eq!(Places::new(Path::new("/kv"), Path::new("")).of("put.c").uri, "put.c");
    }
}
