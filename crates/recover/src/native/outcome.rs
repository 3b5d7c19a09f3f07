//! From what the system says of the processes to how the run ended.

use super::watch::Cut;
use supervise::limits::Limits;
use supervise::supervised::Ended;
use verdict::end::{End, Limit};

pub(super) fn end(cut: Option<Cut>, ended: &Ended, limits: &Limits) -> End {
    match (cut, ended.status) {
        (Some(Cut::Limit(limit)), _) => End::OverLimit(limit),
        (Some(Cut::Wall), _) => End::Hung,
        // Nobody asks how such a run ended.
        (Some(Cut::Cancelled), _) => signalled(libc::SIGKILL),
        (_, Some(status)) => natural(status, ended, limits),
        // The supervisor itself was killed from outside, by the system for want of memory or by somebody.
        (_, None) => signalled(libc::SIGKILL),
    }
}

fn natural(status: i32, ended: &Ended, limits: &Limits) -> End {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        // The net of `RLIMIT_CPU`, had the host been too slow to count.
        let by_limit = matches!(signal, libc::SIGKILL | libc::SIGXCPU) && ended.cpu >= limits.cpu;
        return if by_limit { End::OverLimit(Limit::Cpu) } else { signalled(signal) };
    }
    match ended.orphan_signal {
        Some(signal) => signalled(signal),
        None => End::Exited(libc::WEXITSTATUS(status)),
    }
}

fn signalled(signal: i32) -> End {
    End::Signalled { signal, path: Vec::new() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ended(status: Option<i32>, orphan_signal: Option<i32>, cpu: u64) -> Ended {
        Ended { failed: None, status, orphan_signal, cpu: Duration::from_secs(cpu) }
    }

    #[test]
    fn a_crashed_orphan_outweighs_the_first_process_and_a_cut_outweighs_both() {
        let limits = Limits::default();
        let ok = ended(Some(0), None, 0);
        let orphan = ended(Some(0), Some(libc::SIGSEGV), 0);
        assert_eq!(end(None, &ok, &limits), End::Exited(0));
        assert_eq!(end(Some(Cut::Idle), &ok, &limits), End::Exited(0));
        assert_eq!(end(None, &orphan, &limits), signalled(libc::SIGSEGV));
        assert_eq!(end(Some(Cut::Wall), &orphan, &limits), End::Hung);
        assert_eq!(end(Some(Cut::Limit(Limit::Memory)), &ok, &limits), End::OverLimit(Limit::Memory));
    }

    #[test]
    fn a_kill_is_the_cpu_limits_only_when_the_cpu_time_was_used() {
        let limits = Limits::default();
        assert_eq!(end(None, &ended(Some(libc::SIGKILL), None, 0), &limits), signalled(libc::SIGKILL));
        assert_eq!(end(None, &ended(Some(libc::SIGKILL), None, 11), &limits), End::OverLimit(Limit::Cpu));
    }
}
