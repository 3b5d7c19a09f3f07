//! Which isolation this system allows.

use std::fmt;
use std::fs;
use std::io;

use super::bind::Bind;
use super::error::PlainError;
use super::launch::Running;
use super::mounts::Mounts;
use super::overlay::Overlay;
use super::placement::{Placement, Pool, PoolFile};

/// How private content comes to lie at the pool's path; the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// The pool's directory, privately.
    Overlay,
    /// The pool's file, privately.
    Bind,
    /// The pool's file, for everybody, and put back.
    Swap,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Overlay => "private overlay over the pool's directory",
            Method::Bind => "private mount over the pool's file",
            Method::Swap => "the pool's file is swapped for the image and put back",
        })
    }
}

/// The namespaces of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Namespaces {
    /// Needed by ordinary users for the others.
    pub user: bool,
    pub mount: bool,
    /// The kernel ends all processes of the run together.
    pub pid: bool,
}

impl Namespaces {
    pub const NONE: Namespaces = Namespaces { user: false, mount: false, pid: false };

    /// For `clone`.
    pub(super) fn flags(self) -> i32 {
        [(self.user, libc::CLONE_NEWUSER), (self.mount, libc::CLONE_NEWNS), (self.pid, libc::CLONE_NEWPID)]
            .into_iter()
            .filter_map(|(wanted, flag)| wanted.then_some(flag))
            .sum()
    }

    /// Those with private mounts, the best first. Root does without a user namespace, so that all owners of files stay
    /// what they are.
    fn candidates() -> impl Iterator<Item = Namespaces> {
        // SAFETY: cannot fail, no side effects.
        let root = unsafe { libc::geteuid() } == 0;
        let users = if root { [false, true].as_slice() } else { &[true] };
        [true, false].into_iter().flat_map(|pid| users.iter().map(move |&user| Namespaces { user, mount: true, pid }))
    }
}

/// What this system allows, and why not better.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Isolation {
    pub method: Method,
    pub namespaces: Namespaces,
    /// What was tried and refused, for `doctor`.
    pub refused: Vec<String>,
}

impl Isolation {
    /// Tries once, with files in the directory for temporary ones.
    pub fn detect() -> Isolation {
        let mut refused = Vec::new();
        for method in [Method::Overlay, Method::Bind] {
            for namespaces in Namespaces::candidates() {
                match Trial::create().and_then(|trial| trial.placed(method, namespaces)) {
                    Ok(()) => return Isolation { method, namespaces, refused },
                    Err(error) => refused.push(format!("{method} ({namespaces}): {error}")),
                }
            }
        }
        let method = Method::Swap;
        for namespaces in Namespaces::candidates() {
            match attempt(namespaces, &Mounts::default()) {
                Ok(()) => return Isolation { method, namespaces, refused },
                Err(error) => refused.push(format!("{namespaces}: {error}")),
            }
        }
        Isolation { method, namespaces: Namespaces::NONE, refused }
    }
}

impl fmt::Display for Namespaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [(self.user, "user"), (self.mount, "mount"), (self.pid, "PID")];
        let names: Vec<&str> = names.into_iter().filter_map(|(there, name)| there.then_some(name)).collect();
        if names.is_empty() { f.write_str("no namespaces") } else { write!(f, "{} namespaces", names.join(", ")) }
    }
}

impl fmt::Display for Isolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}", self.method, self.namespaces)
    }
}

/// A pool to try with.
#[derive(Debug)]
struct Trial {
    dir: tempfile::TempDir,
    pool: Pool,
}

impl Trial {
    fn create() -> io::Result<Trial> {
        let dir = tempfile::tempdir()?;
        fs::create_dir(dir.path().join("public"))?;
        let (path, content) = (dir.path().join("public/pool"), dir.path().join("image"));
        fs::write(&path, b"")?;
        fs::write(&content, b"")?;
        let pool = Pool::find(&PoolFile { path, content: &content }).map_err(io::Error::other)?;
        Ok(Trial { dir, pool })
    }

    fn placed(self, method: Method, namespaces: Namespaces) -> io::Result<()> {
        let pools = [self.pool];
        let mut placement: Box<dyn Placement> = match method {
            Method::Overlay => Box::new(Overlay::prepare(&pools)?),
            _ => Box::new(Bind::prepare(&pools)?),
        };
        let mounts = placement.mounts()?;
        attempt(namespaces, &mounts)?;
        drop((placement, self.dir));
        Ok(())
    }
}

fn attempt(namespaces: Namespaces, mounts: &Mounts) -> io::Result<()> {
    let run = Running::start(namespaces, mounts, None).map_err(|error| match error {
        PlainError::Isolate { source, .. } => source,
        other => io::Error::other(other),
    })?;
    match run.finish().failed {
        Some((stage, error)) => Err(io::Error::new(error.kind(), format!("{stage:?}: {error}"))),
        None => Ok(()),
    }
}
