//! System calls that are answered by the recorder, so that time and randomness are the same in every run.

use wire::virtual_time::{NS_PER_SECOND, split};

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
