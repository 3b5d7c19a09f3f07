//! The processor time of a command and of everything that it starts, also of processes that nobody waits for: those of a cgroup.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::measure::children_cpu;

/// Where groups are made: version 1, with its hierarchy for this, or version 2.
const ROOTS: [&str; 2] = ["/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"];

/// Counts the processor time of one command.
pub enum CpuGroup {
    Group(PathBuf),
    /// No group can be made here: children that were waited for, and theirs. Less than all.
    Waited(f64),
}

impl CpuGroup {
    /// The command's processes will be counted.
    pub fn of(command: &mut Command) -> CpuGroup {
        let joined = ROOTS.iter().find_map(|root| joined(Path::new(root), command).ok());
        joined.map_or_else(|| CpuGroup::Waited(children_cpu()), CpuGroup::Group)
    }

    /// While the command runs; `None` where no group can be made.
    pub fn so_far(&self) -> Option<Duration> {
        match self {
            CpuGroup::Waited(_) => None,
            CpuGroup::Group(group) => used(group).map(Duration::from_secs_f64),
        }
    }

    /// When the command has ended.
    pub fn seconds(self) -> f64 {
        match self {
            CpuGroup::Waited(before) => children_cpu() - before,
            CpuGroup::Group(group) => {
                let used = used(&group).unwrap_or_default();
                // Processes that are just ending keep it, and an empty group costs nothing.
                let _ = fs::remove_dir(&group);
                used
            }
        }
    }
}

fn joined(root: &Path, command: &mut Command) -> io::Result<PathBuf> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let group = root.join(format!("fencepost-bench-{}-{number}", process::id()));
    fs::create_dir(&group)?;
    if used(&group).is_none() {
        let _ = fs::remove_dir(&group);
        return Err(io::ErrorKind::Unsupported.into());
    }
    let members: File = OpenOptions::new().write(true).open(group.join("cgroup.procs"))?;
    let join = move || {
        // 0: whoever writes it.
        // SAFETY: one byte of a constant, into a descriptor that the closure owns.
        match unsafe { libc::write(members.as_raw_fd(), c"0".as_ptr().cast(), 1) } {
            1 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: `join` only makes one system call.
    unsafe { command.pre_exec(join) };
    Ok(group)
}

/// Seconds.
fn used(group: &Path) -> Option<f64> {
    if let Ok(nanoseconds) = fs::read_to_string(group.join("cpuacct.usage")) {
        return Some(nanoseconds.trim().parse::<f64>().ok()? / 1e9);
    }
    let all = fs::read_to_string(group.join("cpu.stat")).ok()?;
    let microseconds = all.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
    Some(microseconds.parse::<f64>().ok()? / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process that nobody waits for counts too, where groups can be made.
    #[test]
    fn orphans_are_counted() {
        let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo done";
        // The inner shell goes on when the outer one has ended, and holds the pipe until it ends.
        let mut command = Command::new("sh");
        command.args(["-c", &format!("({busy}) & exit 0")]);
        let group = CpuGroup::of(&mut command);
        let is_group = matches!(group, CpuGroup::Group(_));
        let output = command.output().unwrap();
        assert_eq!(output.stdout, b"done\n");
        assert!(group.so_far().is_none_or(|so_far| so_far.as_secs_f64() > 0.02));
        let seconds = group.seconds();
        assert!(!is_group || seconds > 0.02, "{seconds}");
    }
}
