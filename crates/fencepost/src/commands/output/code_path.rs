//! Messages about PMDK's code path (for PM, or with `msync`).

use check::code_path::{Choice, FORCE, calls_msync};
use trace::TraceReader;

use crate::render;

pub fn say_choice(choice: Choice) {
    let [(libpmem, force), (libpmem2, granularity)] = FORCE;
    if choice == Choice::Ours {
        render::note(format_args!(
            "it uses PMDK: {libpmem}={force} and {libpmem2}={granularity} are set, \
             so that it runs the code that runs on persistent memory"
        ));
    }
}

/// libpmem decides by the file system, and a result for the other code says little.
pub fn warn_of_msync(reader: &TraceReader) {
    if calls_msync(reader) {
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
