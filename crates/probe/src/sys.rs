//! Raw system calls of the engine itself, and their numbers.

use core::arch::asm;

/// A system call with up to six arguments; the kernel's raw answer (negative errno on failure).
///
/// # Safety
/// As dangerous as the call named by `nr`.
#[inline(always)]
pub unsafe fn call(nr: u64, a: [u64; 6]) -> i64 {
    let ret: i64;
    // SAFETY: the kernel clobbers rcx, r11 and rax only; the caller vouches for the rest.
    unsafe {
        asm!("syscall", inlateout("rax") nr => ret, in("rdi") a[0], in("rsi") a[1], in("rdx") a[2], in("r10") a[3],
             in("r8") a[4], in("r9") a[5], lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    if is_about_mappings(nr) {
        crate::recover::undo::mappings::changed(nr, &a, ret);
    }
    ret
}

/// Calls that change which memory there is, or the rights to it. The answer is known when the probe is built.
#[inline(always)]
const fn is_about_mappings(call: u64) -> bool {
    matches!(
        call,
        nr::MMAP
            | nr::MUNMAP
            | nr::MREMAP
            | nr::MPROTECT
            | nr::PKEY_MPROTECT
            | nr::MADVISE
            | nr::BRK
            | nr::SHMAT
            | nr::REMAP_FILE_PAGES
    )
}

macro_rules! arguments {
    ($($arg:expr),*) => {{
        #[allow(unused_mut, unused_assignments, reason = "shared by calls of every arity")]
        let arguments = { let mut a = [0u64; 6]; let mut i = 0; $( a[i] = $arg as u64; i += 1; )* let _ = i; a };
        arguments
    }};
}
pub(crate) use arguments;

/// Any system call: as unsafe as the call.
macro_rules! raw {
    ($nr:expr $(, $arg:expr)*) => { $crate::sys::call($nr as u64, $crate::sys::arguments!($($arg),*)) };
}
pub(crate) use raw;

/// A system call that is always safe. The build fails for any other.
macro_rules! sys {
    ($nr:expr $(, $arg:expr)*) => {{
        const { assert!($crate::sys::is_harmless($nr), "this call writes or maps memory: use `raw!`") };
        // SAFETY: it neither writes memory of this process nor changes what is mapped.
        #[allow(unused_unsafe, reason = "used inside and outside unsafe blocks")]
        unsafe { $crate::sys::raw!($nr $(, $arg)*) }
    }};
}
pub(crate) use sys;

/// Calls that the engine makes and that neither write memory of this process nor change what is mapped, whatever they are given. (Of `fcntl` only
/// the commands for locks would write; the engine sets locks and does not ask for them.)
pub const fn is_harmless(call: u64) -> bool {
    matches!(
        call,
        nr::CLOSE
            | nr::CLOSE_RANGE
            | nr::EXIT_GROUP
            | nr::FACCESSAT2
            | nr::FCNTL
            | nr::FLOCK
            | nr::GETPID
            | nr::GETPPID
            | nr::GETTID
            | nr::KILL
            | nr::LSEEK
            | nr::MEMFD_CREATE
            | nr::MKDIR
            | nr::MSYNC
            | nr::OPEN
            | nr::OPENAT
            | nr::PERSONALITY
            | nr::PWRITE64
            | nr::RT_TGSIGQUEUEINFO
            | nr::SCHED_YIELD
            | nr::SENDMSG
            | nr::SETRLIMIT
            | nr::TGKILL
            | nr::TKILL
            | nr::WRITE
    )
}

/// The kernel's x86-64 system call numbers.
#[expect(dead_code, reason = "the whole table: which of them the engine names changes all the time")]
pub mod nr {
    include!("sys_numbers.rs");
}

pub const PROT_READ: u64 = 1;
pub const PROT_WRITE: u64 = 2;
pub const PROT_EXEC: u64 = 4;
pub const MAP_SHARED: u64 = 1;
pub const MAP_PRIVATE: u64 = 2;
pub const MAP_FIXED: u64 = 0x10;
pub const MAP_ANONYMOUS: u64 = 0x20;
pub const MAP_NORESERVE: u64 = 0x4000;
pub const MAP_FIXED_NOREPLACE: u64 = 0x10_0000;

pub const ENOENT: i64 = 2;
pub const EBADF: i64 = 9;
pub const ENOMEM: i64 = 12;
pub const EFAULT: i64 = 14;
pub const EINVAL: i64 = 22;
pub const ENOSYS: i64 = 38;

/// Maps fresh zeroed memory at a fixed, free address.
pub fn map_anonymous(address: u64, len: u64, prot: u64) -> i64 {
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    // SAFETY: `MAP_FIXED_NOREPLACE` takes no place where something lies.
    unsafe { raw!(nr::MMAP, address, len, prot, flags, -1i64, 0) }
}
