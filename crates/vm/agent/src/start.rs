//! Starts the guest until it can answer: mounts, modules, the serial line.

use std::ffi::CString;
use std::fs::{self as files, File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;

use crate::kernel::{self, mount};

/// Modules, one per line, in the order in which they are loaded: the file's name, and parameters.
const MODULES: &str = "/modules/order";
/// The serial line to the host.
const BELL: &str = "/dev/ttyS1";

/// The line to the host.
pub fn bring_up() -> Result<File, String> {
    for folder in ["/proc", "/sys", "/dev", "/mnt", "/tmp"] {
        let _ = files::create_dir(folder);
    }
    mount("proc", "proc", "/proc", "").map_err(|errno| format!("cannot mount /proc: {errno}"))?;
    mount("sysfs", "sysfs", "/sys", "").map_err(|errno| format!("cannot mount /sys: {errno}"))?;
    mount("devtmpfs", "devtmpfs", "/dev", "").map_err(|errno| format!("cannot mount /dev: {errno}"))?;
    // Without modules the kernel has everything built in.
    for line in files::read_to_string(MODULES).unwrap_or_default().lines() {
        let (name, parameters) = line.split_once(' ').unwrap_or((line, ""));
        load(Path::new("/modules").join(name).as_path(), parameters)?;
    }
    let bell = OpenOptions::new().read(true).write(true).open(BELL);
    let bell = bell.map_err(|error| format!("cannot open {BELL}: {error}"))?;
    raw(&bell);
    Ok(bell)
}

fn load(path: &Path, parameters: &str) -> Result<(), String> {
    let file = File::open(path).map_err(|error| format!("cannot open {}: {error}", path.display()))?;
    let parameters = CString::new(parameters).unwrap_or_default();
    // SAFETY: a descriptor and a string that live during the call.
    let done = unsafe { libc::syscall(libc::SYS_finit_module, file.as_raw_fd(), parameters.as_ptr(), 0) };
    if done == 0 || kernel::errno() == libc::EEXIST {
        return Ok(());
    }
    Err(format!("module {}: {}", path.display(), fs::errno::Errno(kernel::errno())))
}

/// Bytes as they are, each at once.
fn raw(bell: &File) {
    // SAFETY: the structure is filled by the first call before the second reads it.
    unsafe {
        let mut settings: libc::termios = std::mem::zeroed();
        if libc::tcgetattr(bell.as_raw_fd(), &mut settings) == 0 {
            libc::cfmakeraw(&mut settings);
            libc::tcsetattr(bell.as_raw_fd(), libc::TCSANOW, &settings);
        }
    }
}
