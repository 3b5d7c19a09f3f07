//! CPU time and memory of a process tree, from the kernel's accounting.

use std::fs;
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
    /// The part of it that the process itself spent, in the kernel's ticks (usually 10 ms).
    pub own: Duration,
    /// Largest resident set of any of these processes, in KiB.
    pub peak_kib: i64,
    pub exit_code: i32,
}

/// Seconds of all children that were waited for, and of theirs.
pub fn children_cpu() -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type, and zeroed is a valid value of it.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

/// Runs a command to its end. Unlike `Command::status` it asks the kernel for this child's resources alone.
pub fn run(command: &mut Command) -> anyhow::Result<Cost> {
    let child = command.spawn().with_context(|| format!("cannot run {command:?}"))?;
    let own = own_time(child.id())?;
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
    let cpu = time(usage.ru_utime) + time(usage.ru_stime);
    Ok(Cost { cpu, own: own.min(cpu), peak_kib: usage.ru_maxrss, exit_code })
}

/// Waits until the child has ended and reads its own time, without its descendants', before it is reaped: `wait4`
/// tells only the sum. Fields 14 and 15 of `/proc/PID/stat`, see proc_pid_stat(5).
fn own_time(pid: u32) -> anyhow::Result<Duration> {
    let mut ended = MaybeUninit::<libc::siginfo_t>::zeroed();
    // SAFETY: the pointer is to live, writable memory of the right type; WNOWAIT leaves the child to be waited for.
    let failed = unsafe { libc::waitid(libc::P_PID, pid, ended.as_mut_ptr(), libc::WEXITED | libc::WNOWAIT) } != 0;
    if failed {
        return Err(io::Error::last_os_error()).context("waitid");
    }
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the child's /proc/PID/stat")?;
    // The second field is the program's name in parentheses and may hold anything.
    let after_name = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after_name.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Ok(ticks_to_time(ticks))
}

/// Processor time that a process and its descendants have used so far, with those that they have waited for.
pub fn tree_time(root: u32) -> Duration {
    let stats: Vec<(u32, u32, u64)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
            let ticks = fields.get(11..15)?.iter().filter_map(|field| field.parse::<u64>().ok()).sum();
            Some((pid, fields.get(1)?.parse().ok()?, ticks))
        })
        .collect();
    let mut tree = vec![root];
    let mut next = 0;
    while let Some(&parent) = tree.get(next) {
        tree.extend(stats.iter().filter(|(_, of, _)| *of == parent).map(|(pid, ..)| *pid));
        next += 1;
    }
    let ticks: u64 = stats.iter().filter(|(pid, ..)| tree.contains(pid)).map(|(.., ticks)| ticks).sum();
    ticks_to_time(ticks)
}

fn ticks_to_time(ticks: u64) -> Duration {
    // SAFETY: takes no pointers.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) }.max(1) as u64;
    Duration::from_millis(ticks * 1000 / per_second)
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
        assert!(cost.cpu > Duration::from_micros(100) && cost.own <= cost.cpu, "{cost:?}");
    }

    #[test]
    fn the_median_is_the_middle() {
        let all = [5, 1, 9].map(Duration::from_secs).to_vec();
        assert_eq!(median(all), Duration::from_secs(5));
    }
}
