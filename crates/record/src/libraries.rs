//! Which shared libraries a program asks for.

use std::fs;
use std::path::Path;

use object::elf;
use object::read::elf::{Dyn as _, FileHeader as _};

/// The names in the program's dynamic section (`DT_NEEDED`), not those that its libraries need in turn. None for a script, and for what
/// cannot be read.
pub fn needed(program: &Path) -> Vec<String> {
    fs::read(program).ok().and_then(|data| names(&data)).unwrap_or_default()
}

fn names(data: &[u8]) -> Option<Vec<String>> {
    let header = elf::FileHeader64::<object::Endianness>::parse(data).ok()?;
    let endian = header.endian().ok()?;
    let sections = header.sections(endian, data).ok()?;
    let (entries, link) = sections.dynamic(endian, data).ok()??;
    let strings = sections.strings(endian, data, link).ok()?;
    let needed = entries.iter().filter(|entry| entry.tag(endian) == elf::DT_NEEDED);
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some(needed.filter_map(|entry| entry.string(endian, strings).ok().map(name)).collect())
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn of_this_test() {
        let own = needed(&env::current_exe().unwrap());
        assert!(own.iter().any(|name| name.starts_with("libc.so")), "{own:?}");
    }

    #[test]
    fn of_what_is_no_program() {
        assert_eq!(needed(Path::new("/dev/null")), Vec::<String>::new());
        assert_eq!(needed(Path::new("does/not/exist")), Vec::<String>::new());
        assert_eq!(names(b"\x7fELF but not really"), None);
    }
}
