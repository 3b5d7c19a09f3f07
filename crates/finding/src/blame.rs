//! Whose fault it is: the first frame outside the libraries through which PM is reached.

use std::collections::BTreeSet;

use trace::Tables;
use trace::event::{CodeAddr, ModuleId};
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
    /// Patterns over the names of the program's own functions through which it flushes, fences or copies.
    pub wrappers: Vec<String>,
}

/// What PMDK and programs copy with.
const MODULES: &[&str] =
    &["libc.so*", "libc-*.so", "libpthread*.so*", "ld-linux*.so*", "libstdc++.so*", "libgcc_s.so*"];

/// The compilers' own headers (intrinsics), the system's, and Rust's standard library.
const SOURCES: &[&str] = &["*/lib/gcc/*", "*/lib/clang/*", "/usr/include/*", "/rustc/*", "*/rustlib/src/*"];

impl Default for Libraries {
    fn default() -> Self {
        let owned = |list: &'static [&str]| list.iter().map(|&pattern| pattern.to_owned());
        Libraries {
            modules: pmdk::patterns().chain(owned(MODULES)).collect(),
            sources: owned(SOURCES).collect(),
            wrappers: Vec::new(),
        }
    }
}

impl Libraries {
    /// Whether this frame belongs to a library.
    pub fn own(&self, location: &Location) -> bool {
        let module = || self.modules.iter().any(|pattern| glob::matches(pattern, &location.module));
        let source = |file: &String| self.sources.iter().any(|pattern| glob::matches(pattern, file));
        let wrapper = |name: &String| self.wrappers.iter().any(|pattern| glob::matches(pattern, name));
        module() || location.file.as_ref().is_some_and(source) || location.function.as_ref().is_some_and(wrapper)
    }
}

/// For each module of a trace, whether it is of the system: its locked instructions are nobody's intention.
pub fn system_modules(tables: &Tables) -> Vec<bool> {
    tables.modules.iter().map(|module| is_system(file_name(&module.path))).collect()
}

/// Whether a file of this name is the system's.
pub fn is_system(file: &str) -> bool {
    MODULES.iter().any(|pattern| glob::matches(pattern, file))
}

/// The program's own `persist(p, n)`, `flush(p)`, `fence()`: functions, or inlined bodies, whose effects on PM in the whole run are
/// flushes and fences only. Whoever called one is to blame for what it did. Known by what they are not: under them nothing was stored.
#[derive(Debug, Default)]
pub struct Wrappers {
    /// File name of the module, and function.
    storing: BTreeSet<(String, String)>,
}

impl Wrappers {
    /// `stores` are all places from which something was stored to PM.
    pub fn learn(stores: impl Iterator<Item = Site>, tables: &Tables, symbols: &mut Symbolizer<'_>) -> Wrappers {
        let (mut instructions, mut calls) = (BTreeSet::new(), BTreeSet::new());
        let key = |at: CodeAddr| (at.module.0, at.addr);
        for site in stores {
            instructions.insert(key(site.pc));
            calls.extend(tables.call_path(site.context).map(key));
        }
        let mut wrappers = Wrappers::default();
        let mut add = |module: u32, frames: &[trace::symbol::SourceFrame]| {
            let module = file_name(&tables.module(ModuleId(module)).path);
            for function in frames.iter().filter_map(|frame| frame.function.as_ref()) {
                wrappers.storing.insert((module.to_owned(), function.clone()));
            }
        };
        for (module, addr) in instructions {
            add(module, &symbols.frames(CodeAddr { module: ModuleId(module), addr }));
        }
        for (module, addr) in calls {
            add(module, &symbols.call_frames(CodeAddr { module: ModuleId(module), addr }));
        }
        wrappers
    }

    /// Of a frame on the path to a flush or a fence.
    fn is_wrapper(&self, frame: &Location) -> bool {
        let stores = |function: &String| self.storing.contains(&(frame.module.clone(), function.clone()));
        frame.function.as_ref().is_some_and(|function| !stores(function))
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
    named: &[trace::symbol::SourceFrame],
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

/// As [`guilty`], of a flush or a fence: who called the wrapper. If nobody on the path stores anything, there is none to look through.
pub fn guilty_caller(frames: &[Location], libraries: &Libraries, wrappers: &Wrappers) -> usize {
    let caller = frames.iter().position(|frame| !libraries.own(frame) && !wrappers.is_wrapper(frame));
    caller.unwrap_or_else(|| guilty(frames, libraries))
}

/// The function that the thread runs: the outermost that is the program's own.
pub fn thread_function(frames: &[Location], libraries: &Libraries) -> Option<String> {
    let own = |frame: &&Location| !libraries.own(frame) && frame.function.as_deref() != Some("_start");
    frames.iter().rev().find(own).and_then(|frame| frame.function.clone())
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
