//! Replays a finding of `fs check`: creates the paths that its daemon was given again.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;

use evidence::bundle::Bundle;
use fuse::case::Case;
use fuse::mounting::{self, Mounting};
use recover::command::Command;

use super::release::Release;

/// What a replay must have of a file system.
#[derive(Debug)]
pub struct Served {
    release: Option<Release>,
    pub case: Case,
    /// Made for the replay; removed with this.
    made: Vec<PathBuf>,
}

impl Served {
    /// Of a bundle that `fs check` has written; none: another. This process is in another mount namespace afterwards, and the
    /// bundle's recovery is run by this executable.
    pub fn of(bundle: &mut Bundle) -> Result<Option<Served>, String> {
        let Some(text) = &bundle.expectation.case else { return Ok(None) };
        let case = Case::of_text(text).map_err(|error| error.to_string())?;
        let mut served = Served { release: None, case, made: Vec::new() };
        let own = env::current_exe().map_err(|error| error.to_string())?;
        if let Some(mount) = &served.case.mount
            && mounting::enter().map_err(|error| error.to_string())? == Mounting::Helper
        {
            served.release = Some(Release::start(own.as_os_str(), mount).map_err(|error| error.to_string())?);
        }
        for folder in served.case.folders.clone() {
            if !folder.exists() {
                std::fs::create_dir(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
                served.made.push(folder);
            }
        }
        bundle.recovery.program = own;
        Ok(Some(served))
    }

    /// The daemon alone, for a debugger; of a preloaded library it is the whole recovery.
    pub fn daemon(recovery: &Command) -> Command {
        let mut words = recovery.args.iter().skip_while(|word| *word != "--").skip(1);
        match words.next() {
            Some(program) => {
                Command { program: program.into(), args: words.cloned().collect::<Vec<OsString>>(), ..recovery.clone() }
            }
            None => recovery.clone(),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // What is mounted in the folders goes first.
        self.release = None;
        for folder in self.made.iter().rev() {
            // What somebody else has put there stays.
            let _ = std::fs::remove_dir(folder);
        }
    }
}
