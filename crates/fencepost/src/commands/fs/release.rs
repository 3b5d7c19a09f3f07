//! The watchdog that removes mounts that everybody sees, even if Fencepost is killed.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Ends, and unmounts, when this is dropped or its process is gone.
#[derive(Debug)]
pub struct Release(Child);

impl Release {
    pub fn start(own: &OsStr, mount: &Path) -> io::Result<Release> {
        let mut command = Command::new(own);
        command.args(["drive", "release", "--mount"]).arg(mount);
        // What ends the check from the keyboard must not end this.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Release(command.spawn()?))
    }
}

impl Drop for Release {
    fn drop(&mut self) {
        if let Some(mut to) = self.0.stdin.take() {
            // If it is gone there is nobody to tell.
            let _ = to.write_all(&[drive::release::DONE]);
        }
        let _ = self.0.wait();
    }
}
