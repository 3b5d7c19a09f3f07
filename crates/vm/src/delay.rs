//! How long a process has waited for a processor (`/proc/PID/task/TID/schedstat`, sched-stats in the kernel's documentation).

use std::fs;
use std::time::Duration;

/// Of the thread that waited longest; in QEMU, that is the guest's processor. Zero where the kernel does not count it.
pub fn delay(pid: u32) -> Duration {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let delay = |thread: fs::DirEntry| parse(&fs::read_to_string(thread.path().join("schedstat")).ok()?);
    threads.filter_map(delay).max().unwrap_or_default()
}

/// Nanoseconds on a processor, nanoseconds of waiting for one, time slices.
fn parse(text: &str) -> Option<Duration> {
    text.split_ascii_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::time::Instant;

    use super::*;

    #[test]
    fn the_second_number_is_the_delay() {
        assert_eq!(parse("90 1500000000 7\n"), Some(Duration::from_millis(1500)));
        assert_eq!(parse("garbage"), None);
        assert_eq!(delay(u32::MAX), Duration::ZERO);
    }

    /// Two busy processes on one processor: each waits about half of the time.
    #[test]
    fn who_shares_a_processor_waits() {
        // SAFETY: a call without conditions.
        let processor = unsafe { libc::sched_getcpu() }.to_string();
        let busy = || Command::new("taskset").args(["-c", &processor, "sh", "-c", "while :; do :; done"]).spawn();
        let mut two = [busy().unwrap(), busy().unwrap()];
        let start = Instant::now();
        while delay(two[0].id()) < Duration::from_millis(20) && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let waited = delay(two[0].id());
        for child in &mut two {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(waited >= Duration::from_millis(20), "{waited:?}");
    }
}
