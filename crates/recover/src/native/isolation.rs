//! Which isolation this system allows.

use std::fmt;
use std::fs;
use std::io;

use super::bind::Bind;
use super::overlay::Overlay;
use super::placement::{Placement, Pool, PoolFile};
use supervise::mounts::Mounts;
use supervise::namespaces::Namespaces;
use supervise::supervised::Supervised;

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
            Method::Overlay => Box::new(Overlay::prepare(&pools, &[])?),
            _ => Box::new(Bind::prepare(&pools)?),
        };
        let mounts = placement.mounts(&[])?;
        attempt(namespaces, &mounts)?;
        drop((placement, self.dir));
        Ok(())
    }
}

fn attempt(namespaces: Namespaces, mounts: &Mounts) -> io::Result<()> {
    match Supervised::attempt(namespaces, mounts).map_err(|error| error.source)?.failed {
        Some((stage, error)) => Err(io::Error::new(error.kind(), format!("{stage:?}: {error}"))),
        None => Ok(()),
    }
}
