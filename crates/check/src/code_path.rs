//! Whether the recorded code is the code that runs on persistent memory.
//!
//! PMDK asks the file system whether a pool is PM, and calls `msync` instead of flushing where it is not. It can be told otherwise by variables
//! of the environment. Programs that ask for its libraries get them here, unless the user has set them.

use std::ffi::OsString;

use finding::pmdk::{self, Library};
use record::libraries;
use supervise::target::Target;
use trace::TraceReader;

/// Instructions without which PMDK makes nothing durable, except by `msync`.
const FLUSHES: [&str; 4] = ["clwb", "clflush", "clflushopt", "movnt"];

/// What PMDK looks at before it looks at the file system: libpmem(7), libpmem2's `PMEM2_FORCE_GRANULARITY`.
pub const FORCE: [(&str, &str); 2] = [("PMEM_IS_PMEM_FORCE", "1"), ("PMEM2_FORCE_GRANULARITY", "CACHE_LINE")];

/// A program's environment: names and values.
pub type Environment = Vec<(OsString, OsString)>;

/// Who decided which code of PMDK runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The variables were put into the environment just now.
    Ours,
    /// There was nothing to choose, or somebody else chose.
    NotOurs,
}

/// Has the program run the code for PM, if its own file asks for PMDK: what that takes goes into its environment.
pub fn choose_for(command: &[OsString], env: &mut Environment) -> Choice {
    let needed = |target: Target| libraries::needed(&target.path);
    let asks = Target::resolve_in(command, env, None)
        .is_ok_and(|target| needed(target).iter().any(|library| pmdk::is_named_like(library)));
    if asks { choose(env) } else { Choice::NotOurs }
}

/// As [`choose_for`], for a command line.
pub fn choose_for_line(line: &str, env: &mut Environment) -> Choice {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    choose_for(&words, env)
}

/// Has recoveries run the code that the recorded program ran.
pub fn choose_as_recorded(reader: &TraceReader, env: &mut Environment) -> Choice {
    let flushes = loaded(reader, decides) && has_flushed(reader);
    if flushes { choose(env) } else { Choice::NotOurs }
}

/// A user who has set one of the variables has chosen.
fn choose(env: &mut Environment) -> Choice {
    if FORCE.iter().any(|(force, _)| env.iter().any(|(name, _)| name == force)) {
        return Choice::NotOurs;
    }
    env.extend(FORCE.map(|(name, value)| (name.into(), value.into())));
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

/// libpmem took the pool for an ordinary file: a result for that code says little.
pub fn calls_msync(reader: &TraceReader) -> bool {
    loaded(reader, decides) && !has_flushed(reader)
}

fn has_flushed(reader: &TraceReader) -> bool {
    let seen = &reader.tables().instructions_seen;
    seen.iter().any(|name| FLUSHES.iter().any(|flush| name.contains(flush)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_who_has_chosen_is_left_alone() {
        let mut env = Environment::new();
        assert_eq!(choose(&mut env), Choice::Ours);
        assert_eq!(env.len(), FORCE.len());
        assert_eq!(choose(&mut env), Choice::NotOurs);
        let mut set: Environment = vec![("PMEM2_FORCE_GRANULARITY".into(), "PAGE".into())];
        assert_eq!(choose(&mut set), Choice::NotOurs);
        assert_eq!(set.len(), 1);
    }

    #[test]
    fn a_program_without_pmdk_needs_nothing() {
        let mut env: Environment = std::env::vars_os().collect();
        let before = env.clone();
        assert_eq!(choose_for(&["/bin/sh".into()], &mut env), Choice::NotOurs);
        assert_eq!(env, before);
    }
}
