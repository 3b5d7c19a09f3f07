//! What to run: a recovery or a checker.

use std::env;
use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use wire::recover::{MAX_ANSWERS, MAX_BYTE_RANGES};

/// What a run finds on its standard input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Input {
    /// Nothing: the end of the file at once.
    #[default]
    Empty,
    Bytes(Vec<u8>),
    File(PathBuf),
    Operations(Operations),
}

/// Operations, one per line, some of which a run is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// All of them.
    pub text: Arc<[u8]>,
    /// Those of the run, in this order: byte ranges of whole lines, at most [`MAX_BYTE_RANGES`].
    pub byte_ranges: Vec<Range<u64>>,
}

impl Operations {
    /// What the run reads.
    pub fn bytes(&self) -> Vec<u8> {
        self.byte_ranges.iter().flat_map(|s| &self.text[s.start as usize..s.end as usize]).copied().collect()
    }
}

/// A command with everything that it sees of its surroundings, except its pools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    /// As the user wrote it; also the program's `argv[0]`.
    pub program: PathBuf,
    /// Without `argv[0]`.
    pub args: Vec<OsString>,
    /// The complete environment.
    pub env: Vec<(OsString, OsString)>,
    pub dir: PathBuf,
    pub stdin: Input,
}

impl Command {
    /// `argv` in this process's environment and working directory, with an empty standard input. None without words.
    pub fn here(argv: &[OsString]) -> Option<Command> {
        let (program, args) = argv.split_first()?;
        Some(Command {
            program: program.into(),
            args: args.to_vec(),
            env: env::vars_os().collect(),
            dir: env::current_dir().unwrap_or_else(|_| "/".into()),
            stdin: Input::Empty,
        })
    }

    /// The file to execute: a word without a slash is looked up in the command's own `PATH`, as a shell would.
    pub fn executable(&self) -> Option<PathBuf> {
        if self.program.as_os_str().as_bytes().contains(&b'/') {
            return Some(self.dir.join(&self.program));
        }
        let path = self.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
        env::split_paths(path.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")))
            .map(|dir| self.dir.join(dir).join(&self.program))
            .find(|file| is_executable(file))
    }
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str, path: &str) -> Command {
        Command {
            program: program.into(),
            args: Vec::new(),
            env: vec![("PATH".into(), path.into())],
            dir: "/etc".into(),
            stdin: Input::Empty,
        }
    }

    #[test]
    fn a_bare_word_is_looked_up_in_the_commands_own_path() {
        assert_eq!(command("sh", "/nowhere:/bin").executable(), Some("/bin/sh".into()));
        assert_eq!(command("sh", "/nowhere").executable(), None);
    }

    #[test]
    fn a_path_is_relative_to_the_commands_directory() {
        assert_eq!(command("./x", "/bin").executable(), Some("/etc/./x".into()));
        assert_eq!(command("/bin/x", "/bin").executable(), Some("/bin/x".into()));
    }
}
