//! The only program of a guest. It is `/init`: loads the modules that the initial file system brings, then answers requests of the host.
//!
//! A request is lines, and so is its reply; each line is answered in order:
//!
//! ```text
//!   mount TYPE DEVICE [OPTIONS]   ok, or the name of the error
//!   unmount                       `unmounted`, or `unmount EBUSY`
//!   recover TYPE DEVICE [OPTIONS] mounts, walks, tries whether the tree is usable, unmounts; observed by the plugin
//!   exec PROGRAM ARGUMENT …       what it says, then `exit 0`
//!   record, observe, cover, quiet no answer: marks for the plugin
//!   symbols, modules              /proc/kallsyms; where modules lie
//!   sections MODULE               where its sections lie: NAME ADDRESS
//!   device PATH                   `ok` once it is there, `missing` after some seconds
//!   filesystems                   /proc/filesystems
//!   log                           what the kernel has said since the last time, level by level, then `ok`
//!   drop                          caches that are not in use are dropped
//!   walk, usable, OPERATION       as everywhere (the crate `fs`)
//! ```

mod answer;
mod kernel;
mod mailbox;
mod start;

use std::process::ExitCode;

fn main() -> ExitCode {
    let trouble = match start::bring_up().and_then(|bell| answer::requests(&bell)) {
        Ok(()) => "the host has closed the line".to_owned(),
        Err(error) => error,
    };
    // The console is the host's last resort.
    eprintln!("fencepost agent: {trouble}");
    kernel::power_off();
    ExitCode::FAILURE
}
