//! The only program of a guest. It is `/init`: it loads the modules from the initial file system, then answers the host's requests.
//!
//! A request consists of lines, and so does its reply; the lines are answered in order:
//!
//! ```text
//!   mount TYPE DEVICE [OPTIONS]   ok, or the name of the error
//!   unmount                       `unmounted`, or `unmount EBUSY`
//!   recover TYPE DEVICE [OPTIONS] mounts, walks, tests whether the tree is usable, unmounts; observed by the plugin
//!   exec PROGRAM ARGUMENT …       its output, then `exit 0`
//!   record, observe, cover, quiet no answer: marks for the plugin
//!   symbols, modules              /proc/kallsyms; the addresses of modules
//!   sections MODULE               the addresses of its sections: NAME ADDRESS
//!   device PATH                   `ok` once it exists, `missing` after some seconds
//!   filesystems                   /proc/filesystems
//!   log                           kernel messages since the last request, with their levels, then `ok`
//!   drop                          drops caches that are not in use
//!   walk, usable, OPERATION       as defined by the crate `fs`
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
