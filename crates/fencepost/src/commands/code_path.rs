//! Whether the recorded code is the code that runs on persistent memory.

use trace::TraceReader;

use crate::render;

/// Instructions without which PMDK makes nothing durable, except by `msync`.
const FLUSHES: [&str; 4] = ["clwb", "clflush", "clflushopt", "movnt"];

/// Whether a library was loaded; `name` is the beginning of its file name.
pub fn loaded(reader: &TraceReader, name: &str) -> bool {
    let file_name = |path: &str| path.rsplit('/').next().unwrap_or_default().starts_with(name);
    reader.tables().modules.iter().any(|module| file_name(&module.path))
}

/// libpmem decides by the file system, and a result for the other code says little.
pub fn warn_of_msync(reader: &TraceReader) {
    let seen = &reader.tables().instructions_seen;
    let flushed = seen.iter().any(|name| FLUSHES.iter().any(|flush| name.contains(flush)));
    if loaded(reader, "libpmem.so") && !flushed {
        render::warning(
            "libpmem took the pool for an ordinary file: it called msync and executed no flush. \
             This is not the code that runs on persistent memory",
        );
        render::help("set PMEM_IS_PMEM_FORCE=1 to make it use the PM code path");
    }
}
