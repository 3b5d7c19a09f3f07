//! Values mode: where the input comes to lie. It is one file, however it is opened and read, and the arguments.

use wire::record::{Header, kind};

use super::buffer;
use crate::load::user;
use crate::ring;
use crate::sys::{nr, sys};
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

/// Words of a `struct stat`; the first two are device and inode.
const STAT_WORDS: usize = 18;
const SEEK_CUR: u64 = 1;
const MAP_ANONYMOUS: u64 = 0x20;

/// After a system call that did not fail.
pub fn after(thread: &mut Thread, call: Call, result: u64) {
    let a = call.args;
    match call.nr {
        nr::READ if is_input(a[0]) => tell(thread, 0, a[1], result, position(a[0]).saturating_sub(result)),
        nr::PREAD64 if is_input(a[0]) => tell(thread, 0, a[1], result, a[3]),
        nr::READV if is_input(a[0]) => {
            let mut from = position(a[0]).saturating_sub(result);
            let mut left = result;
            for n in 0..a[2] {
                let Some((address, len)) = user::read::<(u64, u64)>(a[1] + n * 16) else { return };
                let len = len.min(left);
                tell(thread, 0, address, len, from);
                (from, left) = (from + len, left - len);
            }
        }
        nr::MMAP if a[3] & MAP_ANONYMOUS == 0 && is_input(a[4]) => tell(thread, 0, result, a[1], a[5]),
        _ => {}
    }
}

/// The arguments of a program that is about to start.
pub fn arguments(thread: &mut Thread, arguments: &[(u64, u64)]) {
    for (n, &(address, len)) in arguments.iter().enumerate() {
        tell(thread, n as u32 + 1, address, len, 0);
    }
}

fn is_input(fd: u64) -> bool {
    let mut stat = [0u64; STAT_WORDS];
    let control = ring::control();
    sys!(nr::FSTAT, fd, stat.as_mut_ptr()) == 0
        && control.input_inode != 0
        && (stat[0], stat[1]) == (control.input_device, control.input_inode)
}

fn position(fd: u64) -> u64 {
    sys!(nr::LSEEK, fd, 0, SEEK_CUR).max(0) as u64
}

fn tell(thread: &mut Thread, site: u32, address: u64, len: u64, from: u64) {
    if len == 0 {
        return;
    }
    buffer::flush(thread);
    let header = Header { kind: kind::FLOW_INPUT, site, address, ..Header::default() };
    ring::order(thread).put(header, &[&len.to_le_bytes(), &from.to_le_bytes()]);
}
