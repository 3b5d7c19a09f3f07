//! System calls that fail, as on a machine where something is broken or used up.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// A call fails so if the lower half of this argument, masked, has this value.
#[derive(Clone, Copy, Debug)]
pub struct Denied {
    pub call: libc::c_long,
    pub argument: u32,
    pub mask: u32,
    pub value: u32,
    pub error: libc::c_int,
}

impl Denied {
    /// For the command and all that it starts.
    pub fn bind(self, command: &mut Command) {
        // SAFETY: `prctl` is async-signal-safe, and `install` does nothing else.
        unsafe { command.pre_exec(move || self.install()) };
    }

    fn install(self) -> io::Result<()> {
        // Where `seccomp_data` has the number and the arguments (linux/seccomp.h).
        let (number, argument) = (0, 16 + 8 * self.argument);
        let step =
            |code: u32, skip_if_not: u8, k: u32| libc::sock_filter { code: code as u16, jt: 0, jf: skip_if_not, k };
        let filter = [
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, number),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 4, self.call as u32),
            step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, argument),
            step(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0, self.mask),
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, self.value),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | self.error as u32),
            step(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
        // SAFETY: the kernel copies the filter, which lives until then, and does not write to it.
        let done = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
        };
        if done { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
