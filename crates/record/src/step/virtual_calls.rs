//! System calls that are answered by the recorder, so that time and randomness are the same in every run.

use std::time::Instant;

use wire::virtual_time::{NS_PER_SECOND, WAIT_COUNTS_NS, split};

use super::error::StepError;
use super::pools;
use super::ptrace::{self, Registers};
use super::session::{Session, Task};

/// Calls for which `/dev/urandom` is read are answered up to here at once; the kernel does not give more either.
const RANDOM_LIMIT: u64 = (1 << 25) - 1;

/// Answers the call at this `syscall` instruction: its result, or none if the kernel shall see it.
/// What was written to the target's memory is in the second part.
pub fn answer(session: &mut Session, task: &Task, r: &Registers) -> Option<Answer> {
    let time = !session.options.real_time;
    let random = !session.options.real_random;
    match r.rax.cast_signed() {
        libc::SYS_clock_gettime if time && r.rdi as u32 <= 11 => {
            let (seconds, nanoseconds) = split(session.world.clock(r.rdi as i32));
            Some(Answer::pair(r.rsi, seconds, nanoseconds))
        }
        libc::SYS_gettimeofday if time => {
            let (seconds, nanoseconds) = split(session.world.clock(libc::CLOCK_REALTIME));
            let mut answer = Answer::pair(r.rdi, seconds, nanoseconds / 1000);
            answer.writes.retain(|(address, _)| *address != 0);
            if r.rsi != 0 {
                answer.writes.push((r.rsi, vec![0; 8]));
            }
            Some(answer)
        }
        libc::SYS_time if time => {
            let (seconds, _) = split(session.world.clock(libc::CLOCK_REALTIME));
            let writes = if r.rdi == 0 { Vec::new() } else { vec![(r.rdi, seconds.to_le_bytes().to_vec())] };
            Some(Answer { result: seconds, writes })
        }
        libc::SYS_nanosleep if time => {
            session.world.sleep(duration(task, r.rdi)?);
            Some(Answer { result: 0, writes: Vec::new() })
        }
        libc::SYS_clock_nanosleep if time && r.rdi as u32 <= 11 => {
            let ns = duration(task, r.rdx)?;
            if r.rsi as i32 & libc::TIMER_ABSTIME != 0 {
                session.world.sleep_until(r.rdi as i32, ns);
            } else {
                session.world.sleep(ns);
            }
            Some(Answer { result: 0, writes: Vec::new() })
        }
        libc::SYS_getrandom if random => Some(random_bytes(session, r.rdi, r.rsi)),
        libc::SYS_read if random && reads_random(task, r.rdi) => Some(random_bytes(session, r.rsi, r.rdx)),
        _ => None,
    }
}

/// What a call waits for, and how long at most, as far as its arguments tell.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    kind: WaitKind,
    limit: Option<u64>,
    began: Instant,
}

/// Which part of a call's real time the target may notice. A busy machine makes every call long: one that waits for nothing moves no clock.
#[derive(Clone, Copy, Debug)]
enum WaitKind {
    /// It waits for nothing.
    None,
    /// It waits for somebody else.
    Others,
    /// It waits for a timer of the kernel's.
    Timer,
}

impl WaitKind {
    fn of(task: &Task, number: i64, args: &[u64; 6]) -> WaitKind {
        match number {
            libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_select
            | libc::SYS_pselect6
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_semtimedop
            | libc::SYS_futex => WaitKind::Others,
            libc::SYS_pause | libc::SYS_rt_sigsuspend | libc::SYS_rt_sigtimedwait => WaitKind::Timer,
            libc::SYS_read if pools::path_of(task.tid, args[0]).is_some_and(|path| path.contains("[timerfd]")) => {
                WaitKind::Timer
            }
            _ => WaitKind::None,
        }
    }
}

impl Wait {
    /// Notes a call that is about to be made.
    pub fn before(task: &Task, number: i64, args: &[u64; 6]) -> Wait {
        let milliseconds = |value: u64| u64::try_from(value as i32).ok().map(|ms| ms * 1_000_000);
        let limit = match number {
            libc::SYS_poll => milliseconds(args[2]),
            libc::SYS_epoll_wait | libc::SYS_epoll_pwait => milliseconds(args[3]),
            libc::SYS_epoll_pwait2 | libc::SYS_semtimedop => duration(task, args[3]),
            libc::SYS_ppoll | libc::SYS_rt_sigtimedwait => duration(task, args[2]),
            libc::SYS_pselect6 => duration(task, args[4]),
            libc::SYS_select => {
                let seconds = ptrace::read_u64(task.tid, args[4]).ok();
                seconds.zip(ptrace::read_u64(task.tid, args[4] + 8).ok()).map(|(s, us)| s * NS_PER_SECOND + us * 1000)
            }
            // Relative only for this one; the others are given points in time.
            libc::SYS_futex if args[1] & 0x7f == 0 => duration(task, args[3]),
            _ => None,
        };
        Wait { kind: WaitKind::of(task, number, args), limit, began: Instant::now() }
    }

    /// The call is over. A limit that ran out has passed; so has, for calls that waited long for something else, the real time.
    pub fn after(&self, session: &mut Session, number: i64, result: u64) {
        if session.options.real_time {
            return;
        }
        let error = |code: i32| result == (code as u64).wrapping_neg();
        let ran_out = match number {
            libc::SYS_poll
            | libc::SYS_ppoll
            | libc::SYS_epoll_wait
            | libc::SYS_epoll_pwait
            | libc::SYS_epoll_pwait2
            | libc::SYS_select
            | libc::SYS_pselect6 => result == 0,
            libc::SYS_rt_sigtimedwait | libc::SYS_semtimedop => error(libc::EAGAIN),
            libc::SYS_futex => error(libc::ETIMEDOUT),
            _ => false,
        };
        let waited = self.began.elapsed().as_nanos() as u64;
        match self.limit {
            Some(ns) if ran_out => session.world.sleep(ns),
            _ if waited < WAIT_COUNTS_NS => {}
            // A limit that is not among the arguments (of a socket), or not looked up.
            _ if error(libc::EAGAIN) || error(libc::ETIMEDOUT) => session.world.sleep(waited),
            _ => match self.kind {
                WaitKind::None => {}
                WaitKind::Others => session.world.waited_for_others(waited),
                WaitKind::Timer => session.world.sleep(waited),
            },
        }
    }
}

fn reads_random(task: &Task, fd: u64) -> bool {
    pools::path_of(task.tid, fd).is_some_and(|path| path == "/dev/urandom" || path == "/dev/random")
}

/// A `timespec` of the target's; none if it is not valid.
fn duration(task: &Task, address: u64) -> Option<u64> {
    let seconds = ptrace::read_u64(task.tid, address).ok()?;
    let nanoseconds = ptrace::read_u64(task.tid, address + 8).ok()?;
    let valid = seconds.cast_signed() >= 0 && nanoseconds < NS_PER_SECOND;
    valid.then(|| seconds.saturating_mul(NS_PER_SECOND).saturating_add(nanoseconds))
}

fn random_bytes(session: &mut Session, address: u64, len: u64) -> Answer {
    let len = len.min(RANDOM_LIMIT);
    Answer { result: len, writes: vec![(address, session.world.random_bytes(len as usize))] }
}

/// What the recorder answers in the kernel's place.
#[derive(Debug)]
pub struct Answer {
    pub result: u64,
    /// What goes to the target's memory.
    pub writes: Vec<(u64, Vec<u8>)>,
}

impl Answer {
    fn pair(address: u64, first: u64, second: u64) -> Answer {
        let bytes = [first.to_le_bytes(), second.to_le_bytes()].concat();
        Answer { result: 0, writes: vec![(address, bytes)] }
    }

    /// Puts the answer where the program expects it, as the `syscall` instruction would.
    pub fn give(self, session: &mut Session, task: &mut Task, r: &Registers, length: u64) -> Result<(), StepError> {
        let mut result = self.result;
        for (address, bytes) in &self.writes {
            if ptrace::write(task.tid, *address, bytes).is_err() {
                result = u64::from(libc::EFAULT.unsigned_abs()).wrapping_neg();
                continue;
            }
            session.emit_kernel_write(task, r.rip, *address, bytes.len() as u64)?;
        }
        // SDM, SYSCALL: rcx gets the next address, r11 the flags.
        let next = r.rip + length;
        let after = Registers { rax: result, rcx: next, r11: r.eflags, rip: next, ..*r };
        ptrace::set_registers(task.tid, &after)
    }
}
