//! Limits that the kernel keeps, beneath the host's own counting: a fork bomb can leave the host no time to count.

use std::fs;
use std::time::Duration;

use supervise::limits::Limits;
use supervise::supervisor::KernelLimits;

/// Threads count here and not in [`Limits::processes`], hence the room above it.
const TASKS_PER_PROCESS: u64 = 16;
/// The lowest number that `pid_max` can have less one (`RESERVED_PIDS` in the kernel's pid.h).
const RESERVED_PIDS: u64 = 300;

pub(super) fn beneath(limits: &Limits) -> KernelLimits {
    let tasks = u64::from(limits.processes.max(1)) * TASKS_PER_PROCESS;
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    KernelLimits {
        cpu_seconds: limits.cpu.saturating_add(Duration::from_millis(1999)).as_secs(),
        tasks,
        pid_max: pid_max_is_per_namespace(&release).then(|| (RESERVED_PIDS + tasks).to_string().into_bytes()),
    }
}

/// Linux 6.14 gave each PID namespace its own `pid_max`; before, there was one for all, which must not be touched.
fn pid_max_is_per_namespace(release: &str) -> bool {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_max_of_all_namespaces_is_never_touched() {
        for (release, own) in [
            ("6.14.0", true),
            ("6.18.44-fc", true),
            ("7.0-rc1", true),
            ("6.13.9", false),
            ("5.15.0-91", false),
            ("", false),
        ] {
            assert_eq!(pid_max_is_per_namespace(release), own, "{release}");
        }
    }
}
