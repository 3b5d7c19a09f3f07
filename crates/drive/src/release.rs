//! Where everybody sees the mounts, one must not outlive the check, whatever ends it: a process of its own waits for that, and
//! takes away what is still mounted.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use crate::fuse::unmount_now;

/// Said by a check that ends by itself. One that is killed says nothing.
pub const DONE: u8 = b'd';

const PAUSE: Duration = Duration::from_millis(50);
/// Daemons of a check that was killed may mount for so long.
const LOOKS: u32 = 60;

/// Waits for the end of the input, then sees to it that nothing is mounted there.
pub fn run(mount: &Path) {
    let mut said = Vec::new();
    // Whoever cannot be heard any more is gone.
    let _ = io::stdin().lock().read_to_end(&mut said);
    let looks = if said.contains(&DONE) { 1 } else { LOOKS };
    for look in 0..looks {
        if look > 0 {
            sleep(PAUSE);
        }
        if is_listed(mount) {
            release(mount);
        }
    }
}

fn release(mount: &Path) {
    if unmount_now(mount, libc::MNT_DETACH).is_err() {
        // Who may not do so himself asks the helper; if that fails there is nobody left to ask.
        let mut helper = Command::new("fusermount3");
        let _ = helper.args(["-u", "-z"]).arg(mount).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

/// Says the kernel that something is mounted there? A daemon is not asked: it may hang.
fn is_listed(mount: &Path) -> bool {
    let listed = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = mount.to_string_lossy();
    listed.lines().any(|line| line.split(' ').nth(4) == Some(&place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_listed() {
        assert!(is_listed(Path::new("/proc")));
        assert!(!is_listed(Path::new("/proc/self")));
    }
}
