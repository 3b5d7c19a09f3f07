//! Whether the recorded code is the code that runs on persistent memory.
//!
//! PMDK asks the file system whether a pool is PM, and calls `msync` instead of flushing where it is not. It can be told otherwise by variables
//! of the environment. Programs that ask for its libraries get them here, unless the user has set them.

use std::env;
use std::ffi::OsString;

use finding::pmdk::{self, Library};
use record::libraries;
use record::target::Target;
use trace::TraceReader;

use crate::render;

/// Instructions without which PMDK makes nothing durable, except by `msync`.
const FLUSHES: [&str; 4] = ["clwb", "clflush", "clflushopt", "movnt"];

/// What PMDK looks at before it looks at the file system: libpmem(7), libpmem2's `PMEM2_FORCE_GRANULARITY`.
const FORCE: [(&str, &str); 2] = [("PMEM_IS_PMEM_FORCE", "1"), ("PMEM2_FORCE_GRANULARITY", "CACHE_LINE")];

/// Who decided which code of PMDK runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The variables are set by us, just now.
    Ours,
    /// There was nothing to choose, or somebody else chose.
    NotOurs,
}

impl Choice {
    pub fn say(self) {
        let [(libpmem, force), (libpmem2, granularity)] = FORCE;
        if self == Choice::Ours {
            render::note(format_args!(
                "it uses PMDK: {libpmem}={force} and {libpmem2}={granularity} are set, \
                 so that it runs the code that runs on persistent memory"
            ));
        }
    }
}

/// Has the program run the code for PM, if its own file asks for PMDK. To be called before anything else is started.
pub fn choose_for(command: &[OsString]) -> Choice {
    let needed = |target: Target| libraries::needed(&target.path);
    let asks =
        Target::resolve(command).is_ok_and(|target| needed(target).iter().any(|library| pmdk::is_named_like(library)));
    if asks { choose() } else { Choice::NotOurs }
}

/// As [`choose_for`], for a command line.
pub fn choose_for_line(line: &str) -> Choice {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    choose_for(&words)
}

/// Has recoveries run the code that the recorded program ran.
pub fn choose_as_recorded(reader: &TraceReader) -> Choice {
    let flushes = loaded(reader, decides) && has_flushed(reader);
    if flushes { choose() } else { Choice::NotOurs }
}

/// A user who has set one of the variables has chosen.
fn choose() -> Choice {
    if FORCE.iter().any(|(name, _)| env::var_os(name).is_some()) {
        return Choice::NotOurs;
    }
    for (name, value) in FORCE {
        // SAFETY: the caller has started no thread, so nobody else reads or writes the environment.
        unsafe { env::set_var(name, value) };
    }
    Choice::Ours
}

/// Whether one of these libraries was loaded.
pub fn loaded(reader: &TraceReader, which: impl Fn(Library) -> bool) -> bool {
    reader.tables().modules.iter().filter_map(|module| Library::of(&module.path)).any(which)
}

/// libpmem and libpmem2 look at the file system; the others ask them.
fn decides(library: Library) -> bool {
    !library.keeps_pools()
}

/// libpmem decides by the file system, and a result for the other code says little.
pub fn warn_of_msync(reader: &TraceReader) {
    if loaded(reader, decides) && !has_flushed(reader) {
        say_msync();
    }
}

pub fn say_msync() {
    render::warning(
        "libpmem took the pool for an ordinary file: it called msync and executed no flush. \
         This is not the code that runs on persistent memory",
    );
    render::help(
        "set PMEM_IS_PMEM_FORCE=1 (libpmem2: PMEM2_FORCE_GRANULARITY=CACHE_LINE) to make it use the PM code path",
    );
}

fn has_flushed(reader: &TraceReader) -> bool {
    let seen = &reader.tables().instructions_seen;
    seen.iter().any(|name| FLUSHES.iter().any(|flush| name.contains(flush)))
}
