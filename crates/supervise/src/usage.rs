//! What the processes of a run use, read from `/proc`.
//!
//! A look takes a moment in which processes come and go: it may miss some, and counts none twice.

use std::fs;
use std::time::Duration;

/// What a supervisor's descendants use at the moment of a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The processes whose memory counts.
    pub pids: Vec<i32>,
    pub processes: u32,
    /// Of all, ended ones included; in steps of a clock tick.
    pub cpu: Duration,
    /// Bytes of memory that no file is behind; what processes share is counted for each of them.
    pub memory: u64,
    /// One of them runs, would like to, or waits for a disk.
    pub busy: bool,
}

impl Usage {
    /// Looks at no more processes than make clear that there are more than `enough`: a fork bomb wins time otherwise.
    pub fn look(supervisor: i32, enough: u32) -> Usage {
        let mut usage = Usage::default();
        let mut ticks = 0;
        let mut todo = vec![supervisor];
        while let Some(pid) = todo.pop() {
            let Some(stat) = fs::read_to_string(format!("/proc/{pid}/stat")).ok().and_then(|text| Stat::parse(&text))
            else {
                continue;
            };
            ticks += stat.ticks;
            if pid != supervisor && !stat.dead {
                usage.processes += 1;
                if !(stat.unexecuted && is_hosts_copy(pid)) {
                    usage.pids.push(pid);
                    usage.memory += anonymous(pid);
                }
                usage.busy |= stat.busy;
                if usage.processes > enough {
                    break;
                }
            }
            children(pid, &mut todo);
        }
        usage.cpu = Duration::from_nanos(ticks.saturating_mul(1_000_000_000 / ticks_per_second()));
        usage
    }

    /// As [`Usage::memory`], with what is shared counted once. Much slower: the kernel looks at every page.
    pub fn memory_shared_once(&self) -> u64 {
        self.pids.iter().map(|&pid| proportional(pid).unwrap_or_else(|| anonymous(pid))).sum()
    }
}

/// `PF_FORKNOEXEC` of the kernel's sched.h.
const FORKED_NOT_EXECUTED: u64 = 0x40;

/// What `/proc/PID/stat` says (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    dead: bool,
    busy: bool,
    /// It has not executed a program since it was forked.
    unexecuted: bool,
    /// Of the process and the children that it waited for.
    ticks: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Stat> {
        // The second field is the program's name in brackets, which may hold anything.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        // The state is field 3 there.
        let field = |number: usize| fields.get(number - 3).copied();
        let number = |at| field(at).and_then(|text| text.parse::<u64>().ok());
        let state = field(3)?;
        Some(Stat {
            dead: matches!(state, "Z" | "X"),
            busy: matches!(state, "R" | "D"),
            unexecuted: number(9)? & FORKED_NOT_EXECUTED != 0,
            // utime, stime, cutime, cstime
            ticks: (14..=17).filter_map(number).sum(),
        })
    }
}

/// The first process of a run is a copy of this one until it executes the command, and its memory is ours.
fn is_hosts_copy(pid: i32) -> bool {
    let program = |of: &str| fs::read_link(format!("/proc/{of}/exe")).ok();
    program("self") == program(&pid.to_string())
}

/// Resident pages less those of files and shared memory (proc_pid_statm(5)).
fn anonymous(pid: i32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
    let mut fields = text.split_ascii_whitespace().skip(1).map(|field| field.parse().unwrap_or(0_u64));
    let (resident, shared) = (fields.next().unwrap_or(0), fields.next().unwrap_or(0));
    resident.saturating_sub(shared) * page_size()
}

/// Each page divided by the number of processes that share it (proc_pid_smaps(5), since Linux 5.14).
fn proportional(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss_Anon:"))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}

fn children(pid: i32, into: &mut Vec<i32>) {
    // Each thread has the children that it forked.
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        into.extend(text.split_ascii_whitespace().filter_map(|pid| pid.parse::<i32>().ok()));
    }
}

fn ticks_per_second() -> u64 {
    // SAFETY: plain query.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).unwrap_or(100).max(1)
}

fn page_size() -> u64 {
    // SAFETY: plain query.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_cannot_confuse_the_fields() {
        let text = "7 (a) D 1 (b) R 1 7 7 0 -1 4194368 99 98 97 96 10 20 300 4000 20 0 1 0 5 6 7";
        let stat = Stat { dead: false, busy: true, unexecuted: true, ticks: 4330 };
        assert_eq!(Stat::parse(text), Some(stat));
        let dead = Stat::parse("7 (x) Z 1 7 7 0 -1 4194304 0 0 0 0 1 0 0 0 20 0").unwrap();
        assert!(dead.dead && dead.ticks == 1 && !dead.unexecuted);
    }
}
