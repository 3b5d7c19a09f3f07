//! The few `ptrace`, `waitpid` and memory calls that the reference recorder needs, with typed errors.

use std::{io, mem};

use super::error::StepError;

/// Kernel id of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tid(pub i32);

pub type Registers = libc::user_regs_struct;

/// How a thread came to a halt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It exited.
    Exited(i32),
    /// A signal killed it.
    Killed(i32),
    /// One of the `PTRACE_EVENT_*` stops.
    Event(i32),
    /// It is about to get this signal (a single-step trap is a `SIGTRAP`).
    Signal(i32),
}

impl Stop {
    fn from_status(status: i32) -> Stop {
        if libc::WIFEXITED(status) {
            Stop::Exited(libc::WEXITSTATUS(status))
        } else if libc::WIFSIGNALED(status) {
            Stop::Killed(libc::WTERMSIG(status))
        } else if status >> 16 != 0 {
            Stop::Event(status >> 16)
        } else {
            Stop::Signal(libc::WSTOPSIG(status))
        }
    }
}

/// Begins to trace a process: follow every child, and end them all should this thread end.
pub fn seize(tid: Tid) -> Result<(), StepError> {
    let options = libc::PTRACE_O_TRACEFORK
        | libc::PTRACE_O_TRACEVFORK
        | libc::PTRACE_O_TRACECLONE
        | libc::PTRACE_O_TRACEEXEC
        | libc::PTRACE_O_TRACEVFORKDONE
        | libc::PTRACE_O_EXITKILL;
    request("SEIZE", libc::PTRACE_SEIZE, tid, 0, options as usize)
}

fn request(name: &'static str, request: libc::c_uint, tid: Tid, addr: usize, data: usize) -> Result<(), StepError> {
    // SAFETY: every caller passes either numbers or the address of a live local of the size the request asks for.
    if unsafe { libc::ptrace(request, tid.0, addr, data) } == -1 {
        return Err(StepError::Ptrace { request: name, tid: tid.0, source: io::Error::last_os_error() });
    }
    Ok(())
}

/// Executes one instruction, after delivering `signal` (0: none).
pub fn single_step(tid: Tid, signal: i32) -> Result<(), StepError> {
    request("SINGLESTEP", libc::PTRACE_SINGLESTEP, tid, 0, signal as usize)
}

pub fn registers(tid: Tid) -> Result<Registers, StepError> {
    // SAFETY: all-zero is a valid value of this struct of integers.
    let mut registers: Registers = unsafe { mem::zeroed() };
    request("GETREGS", libc::PTRACE_GETREGS, tid, 0, &raw mut registers as usize)?;
    Ok(registers)
}

pub fn set_registers(tid: Tid, registers: &Registers) -> Result<(), StepError> {
    request("SETREGS", libc::PTRACE_SETREGS, tid, 0, &raw const *registers as usize)
}

/// The message of the last `PTRACE_EVENT_*` stop: the new thread's id, for the fork events.
pub fn event_message(tid: Tid) -> Result<u64, StepError> {
    let mut message: libc::c_ulong = 0;
    request("GETEVENTMSG", libc::PTRACE_GETEVENTMSG, tid, 0, &raw mut message as usize)?;
    Ok(message)
}

/// `si_code` of the signal that the thread is about to get.
pub fn signal_code(tid: Tid) -> Result<i32, StepError> {
    // SAFETY: all-zero is a valid `siginfo_t`.
    let mut info: libc::siginfo_t = unsafe { mem::zeroed() };
    request("GETSIGINFO", libc::PTRACE_GETSIGINFO, tid, 0, &raw mut info as usize)?;
    Ok(info.si_code)
}

/// The extended register state in the processor's standard `xsave` layout.
pub fn extended_state(tid: Tid) -> Result<Vec<u8>, StepError> {
    const NT_X86_XSTATE: usize = 0x202;
    let mut area = vec![0u8; 16 << 10];
    let mut vector = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
    request("GETREGSET", libc::PTRACE_GETREGSET, tid, NT_X86_XSTATE, &raw mut vector as usize)?;
    area.truncate(vector.iov_len);
    Ok(area)
}

/// Waits for one thread, or (`None`) for any; without `block` returns at once if there is nothing to report.
pub fn wait(tid: Option<Tid>, block: bool) -> Result<Option<(Tid, Stop)>, StepError> {
    // Other threads of this process may have children of their own: leave those alone.
    let flags = libc::__WALL | libc::__WNOTHREAD | if block { 0 } else { libc::WNOHANG };
    let mut status = 0;
    loop {
        // SAFETY: `status` is a live local.
        let found = unsafe { libc::waitpid(tid.map_or(-1, |tid| tid.0), &raw mut status, flags) };
        match found {
            0 => return Ok(None),
            -1 => {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(StepError::Wait(error));
                }
            }
            found => return Ok(Some((Tid(found), Stop::from_status(status)))),
        }
    }
}

/// Reads up to `buffer.len()` bytes; fewer if the memory ends before.
pub fn read_some(tid: Tid, address: u64, buffer: &mut [u8]) -> usize {
    let local = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    // A page boundary inside the range: the part before it must come out even if the part behind is not readable,
    // which `process_vm_readv` only promises for whole vector elements.
    let first = buffer.len().min(4096 - (address as usize & 4095));
    let remote = [
        libc::iovec { iov_base: address as *mut libc::c_void, iov_len: first },
        libc::iovec { iov_base: (address as usize + first) as *mut libc::c_void, iov_len: buffer.len() - first },
    ];
    // SAFETY: `local` describes `buffer`; the remote addresses are only used in the other process.
    let read = unsafe { libc::process_vm_readv(tid.0, &raw const local, 1, remote.as_ptr(), 2, 0) };
    usize::try_from(read).unwrap_or(0)
}

/// Reads exactly `buffer.len()` bytes.
pub fn read(tid: Tid, address: u64, buffer: &mut [u8]) -> Result<(), StepError> {
    if read_some(tid, address, buffer) == buffer.len() {
        return Ok(());
    }
    // Pages without read permission (`PROT_WRITE` only, `PROT_NONE`) can still be read this way.
    transfer(tid, address, |memory| std::os::unix::fs::FileExt::read_exact_at(memory, buffer, address))
}

/// Writes `bytes`, whatever the protection of the page.
pub fn write(tid: Tid, address: u64, bytes: &[u8]) -> Result<(), StepError> {
    transfer(tid, address, |memory| std::os::unix::fs::FileExt::write_all_at(memory, bytes, address))
}

fn transfer(tid: Tid, address: u64, job: impl FnOnce(&std::fs::File) -> io::Result<()>) -> Result<(), StepError> {
    std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(format!("/proc/{}/mem", tid.0))
        .and_then(|memory| job(&memory))
        .map_err(|source| StepError::Memory { tid: tid.0, address, source })
}

pub fn read_u64(tid: Tid, address: u64) -> Result<u64, StepError> {
    let mut word = [0; 8];
    read(tid, address, &mut word)?;
    Ok(u64::from_le_bytes(word))
}

/// A string that ends with a zero byte.
pub fn read_text(tid: Tid, address: u64) -> Result<Vec<u8>, StepError> {
    let mut text = Vec::new();
    let mut chunk = [0; 256];
    loop {
        let at = address + text.len() as u64;
        let read = read_some(tid, at, &mut chunk);
        if read == 0 {
            let source = io::Error::from_raw_os_error(libc::EFAULT);
            return Err(StepError::Memory { tid: tid.0, address: at, source });
        }
        match chunk[..read].iter().position(|&byte| byte == 0) {
            Some(end) => {
                text.extend_from_slice(&chunk[..end]);
                return Ok(text);
            }
            None => text.extend_from_slice(&chunk[..read]),
        }
    }
}

/// Kills a process of the recording for good.
pub fn kill(tid: Tid) {
    // SAFETY: no memory is involved; `tid` is a child that this recorder started and has not reaped.
    unsafe { libc::kill(tid.0, libc::SIGKILL) };
}
