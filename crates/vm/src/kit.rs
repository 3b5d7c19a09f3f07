//! What is needed in addition to Fencepost itself: QEMU, and the *kit* (our QEMU plugin and the agent), which `cargo xtask vm-kit` builds.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::libraries::which;

pub const PLUGIN: &str = "libfencepost_qemu.so";
pub const AGENT: &str = "vm-agent";
/// The folder beside the program.
pub const FOLDER: &str = "vm-kit";
/// Names another folder.
pub const VARIABLE: &str = "FENCEPOST_VM_KIT";
/// The first QEMU whose plugins see values and registers.
const NEEDED: (u32, u32) = (9, 2);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kit {
    pub qemu: PathBuf,
    pub plugin: PathBuf,
    pub agent: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KitError {
    #[error(
        "`{0}` is not found; install qemu-system-x86, at least version 9.2 (Debian 12: from bookworm-backports), or name it with --qemu"
    )]
    NoQemu(String),
    #[error(
        "`{program}` says `{said}`; version 9.2 or later is needed, since older ones do not let plugins see values (Debian 12: install qemu-system-x86 from bookworm-backports)"
    )]
    OldQemu { program: String, said: String },
    #[error("{missing} is not there; build it with `cargo xtask vm-kit`, or say where it is with {VARIABLE}")]
    NotBuilt { missing: String },
}

impl Kit {
    /// Looks for everything.
    pub fn find(qemu: Option<&Path>) -> Result<Kit, KitError> {
        let qemu = qemu.map_or_else(|| "qemu-system-x86_64".into(), |path| path.to_string_lossy().into_owned());
        let found = which(&qemu).ok_or_else(|| KitError::NoQemu(qemu.clone()))?;
        check_version(&qemu, &found)?;
        let folder = folder();
        let file = |name: &str| {
            let path = folder.join(name);
            let missing = KitError::NotBuilt { missing: path.display().to_string() };
            if path.is_file() { Ok(path) } else { Err(missing) }
        };
        Ok(Kit { qemu: found, plugin: file(PLUGIN)?, agent: file(AGENT)? })
    }
}

fn folder() -> PathBuf {
    if let Some(named) = env::var_os(VARIABLE) {
        return named.into();
    }
    let own = env::current_exe().unwrap_or_default();
    own.parent().unwrap_or(Path::new(".")).join(FOLDER)
}

fn check_version(name: &str, program: &Path) -> Result<(), KitError> {
    let said = Command::new(program).arg("--version").output().map(|output| output.stdout).unwrap_or_default();
    let said = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().to_owned();
    match version(&said) {
        Some(found) if found >= NEEDED => Ok(()),
        _ => Err(KitError::OldQemu { program: name.to_owned(), said }),
    }
}

/// From `QEMU emulator version 10.0.2 (Debian …)`.
fn version(said: &str) -> Option<(u32, u32)> {
    let number = said.split_whitespace().skip_while(|word| *word != "version").nth(1)?;
    let mut parts = number.split('.').map(|part| part.parse().ok());
    Some((parts.next()??, parts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(version("QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)"), Some((10, 0)));
        assert_eq!(version("QEMU emulator version 7.2.15"), Some((7, 2)));
        assert!(version("QEMU emulator version 9.2.0") >= Some(NEEDED));
        assert_eq!(version("something else"), None);
    }
}
