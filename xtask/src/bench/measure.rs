//! CPU time and memory of a process tree, from the kernel's accounting.

use std::io;
use std::mem::MaybeUninit;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;

/// What one run cost.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// User and system time of the process and of all its descendants that were waited for.
    pub cpu: Duration,
    /// Largest resident set of any of these processes, in KiB.
    pub peak_kib: i64,
    pub exit_code: i32,
}

/// Runs a command to its end. Unlike `Command::status` it asks the kernel for this child's resources alone.
pub fn run(command: &mut Command) -> anyhow::Result<Cost> {
    let child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    loop {
        // SAFETY: both pointers are to live, writable memory of the right type; the pid is that of our own child,
        // which nobody else waits for.
        let pid = unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) };
        if pid > 0 {
            break;
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error).context("wait4");
        }
    }
    // SAFETY: zeroed is a valid rusage, and wait4 filled it.
    let usage = unsafe { usage.assume_init() };
    let exit_code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    Ok(Cost { cpu: time(usage.ru_utime) + time(usage.ru_stime), peak_kib: usage.ru_maxrss, exit_code })
}

fn time(value: libc::timeval) -> Duration {
    Duration::from_secs(value.tv_sec as u64) + Duration::from_micros(value.tv_usec as u64)
}

/// The middle value.
pub fn median(mut costs: Vec<Duration>) -> Duration {
    costs.sort();
    costs[costs.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_the_work_of_grandchildren() {
        let script = "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; exit 3";
        let cost = run(Command::new("sh").args(["-c", script])).expect("sh runs");
        assert_eq!(cost.exit_code, 3);
        assert!(cost.cpu > Duration::from_micros(100), "{cost:?}");
    }

    #[test]
    fn the_median_is_the_middle() {
        let all = [5, 1, 9].map(Duration::from_secs).to_vec();
        assert_eq!(median(all), Duration::from_secs(5));
    }
}
