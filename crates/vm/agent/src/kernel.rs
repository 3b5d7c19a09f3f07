//! System calls that the agent makes apart from those of the operations.

use std::ffi::CString;
use std::fs::{self as files, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use fs::errno::Errno;

pub fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

pub fn mount(kind: &str, device: &str, place: &str, options: &str) -> Result<(), Errno> {
    let text = |text: &str| CString::new(text).map_err(|_| Errno(libc::EINVAL));
    let (kind, device, place, options) = (text(kind)?, text(device)?, text(place)?, text(options)?);
    // SAFETY: four strings that live during the call.
    let done = unsafe { libc::mount(device.as_ptr(), place.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
    if done == 0 { Ok(()) } else { Err(Errno(errno())) }
}

pub fn unmount(place: &str) -> Result<(), Errno> {
    let place = CString::new(place).map_err(|_| Errno(libc::EINVAL))?;
    // SAFETY: a string that lives during the call.
    if unsafe { libc::umount2(place.as_ptr(), 0) } == 0 { Ok(()) } else { Err(Errno(errno())) }
}

/// What is not in use is read again from the device the next time.
pub fn drop_caches() {
    let _ = files::write("/proc/sys/vm/drop_caches", "3");
}

/// `NAME ADDRESS`, one per line.
pub fn sections(module: &str) -> String {
    let entries = files::read_dir(format!("/sys/module/{module}/sections")).into_iter().flatten().flatten();
    let section = |entry: files::DirEntry| {
        let address = files::read_to_string(entry.path()).ok()?;
        Some(format!("{} {}\n", entry.file_name().to_string_lossy(), address.trim()))
    };
    entries.filter_map(section).collect()
}

pub fn power_off() {
    // SAFETY: a call without conditions.
    unsafe {
        libc::sync();
        libc::reboot(libc::LINUX_REBOOT_CMD_POWER_OFF);
    }
}

/// What the kernel says.
#[derive(Debug)]
pub struct Log(Option<File>);

impl Log {
    pub fn open() -> Log {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        Log(file.ok())
    }

    /// `LEVEL TEXT`, one per line, since the last time.
    pub fn news(&mut self) -> String {
        let mut news = String::new();
        let mut record = [0; 8192];
        let Some(file) = &mut self.0 else { return news };
        // Each read is one record; an overrun (EPIPE) goes on with the oldest that is left.
        loop {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(len) => news.push_str(&line(&String::from_utf8_lossy(&record[..len]))),
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(_) => break,
            }
        }
        news
    }
}

/// From `PRIORITY,SEQUENCE,TIME,FLAGS;TEXT`.
fn line(record: &str) -> String {
    let (head, text) = record.split_once(';').unwrap_or(("", record));
    let priority: u32 = head.split(',').next().and_then(|number| number.parse().ok()).unwrap_or(6);
    format!("{} {}\n", priority & 7, text.lines().next().unwrap_or_default())
}
