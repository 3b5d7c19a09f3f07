//! Whose fault it is: the first frame outside the libraries through which PM is reached.

use trace::Tables;
use trace::event::ModuleId;
use trace::symbol::Symbolizer;

use crate::finding::{Location, Role};
use crate::glob;
use crate::pmdk;
use crate::site::Site;

/// Files whose code is never to blame for what its caller asked of it.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// Patterns over the file name of a module.
    pub modules: Vec<String>,
    /// Patterns over the path of a source file: library code that was compiled into the program.
    pub sources: Vec<String>,
}

/// What PMDK and programs copy with.
const MODULES: &[&str] =
    &["libc.so*", "libc-*.so", "libpthread*.so*", "ld-linux*.so*", "libstdc++.so*", "libgcc_s.so*"];

/// The compilers' own headers (intrinsics), the system's, and Rust's standard library.
const SOURCES: &[&str] = &["*/lib/gcc/*", "*/lib/clang/*", "/usr/include/*", "/rustc/*", "*/rustlib/src/*"];

impl Default for Libraries {
    fn default() -> Self {
        let owned = |list: &'static [&str]| list.iter().map(|&pattern| pattern.to_owned());
        Libraries { modules: pmdk::patterns().chain(owned(MODULES)).collect(), sources: owned(SOURCES).collect() }
    }
}

impl Libraries {
    /// Whether this frame belongs to a library.
    pub fn own(&self, location: &Location) -> bool {
        let module = || self.modules.iter().any(|pattern| glob::matches(pattern, &location.module));
        let source = |file: &String| self.sources.iter().any(|pattern| glob::matches(pattern, file));
        module() || location.file.as_ref().is_some_and(source)
    }
}

/// For each module of a trace, whether it is a PM library: code there stores on behalf of its caller.
pub fn pm_library_modules(tables: &Tables) -> Vec<bool> {
    tables.modules.iter().map(|module| pmdk::is_named_like(&module.path)).collect()
}

/// The frames of a site with their names, innermost first, inlined functions as frames of their own.
pub fn frames(site: Site, role: Role, tables: &Tables, symbols: &mut Symbolizer<'_>) -> Vec<Location> {
    let mut frames = Vec::new();
    for (at, named) in symbols.path_frames(site.pc, tables.call_path(site.context)) {
        push(&mut frames, role, at.module, at.addr, &named, tables);
    }
    frames
}

fn push(
    into: &mut Vec<Location>,
    role: Role,
    module: ModuleId,
    address: u64,
    named: &[trace::symbol::Frame],
    tables: &Tables,
) {
    let location = |file, line, function| Location {
        role,
        file,
        line,
        function,
        module: file_name(&tables.module(module).path).to_owned(),
        address,
    };
    if named.is_empty() {
        into.push(location(None, None, None));
    }
    for frame in named {
        let file = frame.source.as_ref().map(|source| source.file.clone());
        let line = frame.source.as_ref().map(|source| source.line);
        into.push(location(file, line, frame.function.clone()));
    }
}

/// The place among the frames of the one to blame; the innermost if all are a library's.
pub fn guilty(frames: &[Location], libraries: &Libraries) -> usize {
    frames.iter().position(|frame| !libraries.own(frame)).unwrap_or(0)
}

pub(crate) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(module: &str, file: Option<&str>) -> Location {
        Location {
            role: Role::Flush,
            file: file.map(str::to_owned),
            line: Some(1),
            function: None,
            module: module.to_owned(),
            address: 0,
        }
    }

    #[test]
    fn the_first_frame_outside_libraries_is_guilty() {
        let libraries = Libraries::default();
        let path = [frame("libpmem.so.1", None), frame("libpmemobj.so.1.0.0", None), frame("app", Some("/src/app.c"))];
        assert_eq!(guilty(&path, &libraries), 2);
        let inlined = [frame("app", Some("/usr/lib/gcc/x86_64-linux-gnu/14/include/clwbintrin.h")), frame("app", None)];
        assert_eq!(guilty(&inlined, &libraries), 1);
        assert_eq!(guilty(&path[..2], &libraries), 0);
    }
}
