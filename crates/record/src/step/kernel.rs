//! System calls as the recorder sees them: noted at the `syscall` instruction, settled when it is done.

use super::buffers::{self, Noted};
use super::error::StepError;
use super::ptrace::{self, Registers};
use super::session::{Session, Task};
use super::virtual_calls::Wait;
use super::{file_calls, mapping_calls, name_calls};

/// A system call under way.
#[derive(Clone, Debug)]
pub struct SystemCall {
    /// Address of the `syscall` instruction.
    pub pc: u64,
    pub number: i64,
    pub args: [u64; 6],
    pub wait: Wait,
    /// What its pointers lead to.
    pub noted: Vec<Noted>,
    /// The output file offset that `copy_file_range` and `splice` take through a pointer.
    pub output_offset: Option<u64>,
    /// What `execve` is asked to run.
    pub exec_path: String,
    /// Length of the file behind the first argument, for calls that may change it.
    pub length_before: Option<u64>,
    /// It was announced as a change of names.
    pub changes_names: bool,
}

/// `ERESTARTSYS` to `ERESTART_RESTARTBLOCK`: the call will be made again or turned into `EINTR`.
pub fn is_restart(result: u64) -> bool {
    (-516..=-512).contains(&result.cast_signed())
}

/// Errors are the last 4095 values.
pub fn is_error(result: u64) -> bool {
    result > u64::MAX - 4095
}

/// Notes a call that is about to be made.
pub fn before(session: &mut Session, task: &mut Task, registers: &Registers) -> Result<SystemCall, StepError> {
    let number = registers.rax.cast_signed();
    let args = [registers.rdi, registers.rsi, registers.rdx, registers.r10, registers.r8, registers.r9];
    let mut call = SystemCall {
        pc: registers.rip,
        number,
        args,
        wait: Wait::before(task, number, &args),
        noted: Vec::new(),
        output_offset: None,
        exec_path: String::new(),
        length_before: None,
        changes_names: false,
    };
    match call.number {
        libc::SYS_execve => call.exec_path = text(task, call.args[0]),
        libc::SYS_execveat => {
            call.exec_path = text(task, call.args[1]);
            if call.exec_path.is_empty() {
                call.exec_path = super::pools::path_of(task.tid, call.args[0]).unwrap_or_default();
            }
        }
        libc::SYS_copy_file_range | libc::SYS_splice if call.args[3] != 0 => {
            call.output_offset = ptrace::read_u64(task.tid, call.args[3]).ok();
        }
        _ => {}
    }
    if matches!(call.number, libc::SYS_ftruncate | libc::SYS_fallocate) {
        let link = format!("/proc/{}/fd/{}", task.tid.0, call.args[0] as i32);
        call.length_before = std::fs::metadata(link).ok().map(|found| found.len());
    }
    name_calls::before(session, task, &mut call)?;
    call.noted = buffers::before(session, task, &call)?;
    Ok(call)
}

fn text(task: &Task, address: u64) -> String {
    let bytes = ptrace::read_text(task.tid, address).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Records what a call has done.
pub fn after(session: &mut Session, task: &mut Task, call: &SystemCall, result: u64) -> Result<(), StepError> {
    call.wait.after(session, call.number, result);
    if is_error(result) {
        return buffers::after(session, task, call, None);
    }
    match call.number {
        libc::SYS_mmap => mapping_calls::mmap(session, task, call, result)?,
        libc::SYS_munmap => mapping_calls::munmap(session, task, call)?,
        libc::SYS_mremap => mapping_calls::mremap(session, task, call, result)?,
        libc::SYS_mprotect | libc::SYS_pkey_mprotect => mapping_calls::mprotect(session, task, call)?,
        libc::SYS_madvise => mapping_calls::madvise(session, task, call)?,
        libc::SYS_msync => mapping_calls::msync(session, task, call)?,
        libc::SYS_shmat | libc::SYS_shmdt | libc::SYS_brk => {}
        _ => {
            name_calls::after(session, task, call)?;
            buffers::after(session, task, call, Some(result))?;
            file_calls::after(session, task, call, result)?;
        }
    }
    Ok(())
}
