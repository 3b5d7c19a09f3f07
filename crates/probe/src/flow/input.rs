//! Values mode: where the input's bytes go in memory. The input is one file, however it is opened and read, and the arguments. Data that goes through
//! sockets and pipes is reported with its content, so that the host can find sent data in received data.

use syscalls::{Access, Shape};
use wire::control::MAX_PAYLOAD;
use wire::record::{Header, kind};

use super::buffer;
use crate::load::user;
use crate::ring;
use crate::sys::{nr, raw, sys};
use crate::syscall::dispatch::Call;
use crate::thread::Thread;

/// Words of a `struct stat`; the first two are device and inode.
const STAT_WORDS: usize = 18;
const SEEK_CUR: u64 = 1;
const MAP_ANONYMOUS: u64 = 0x20;
/// In the word of a `struct stat` that begins with the mode.
const MODE_WORD: usize = 3;
const FORMAT: u64 = 0o170_000;
const SOCKET: u64 = 0o140_000;
const PIPE: u64 = 0o010_000;
const FILE: u64 = 0o100_000;
/// Vectors of one call that are looked at.
const MOST_VECTORS: u64 = 64;

/// Which way through a socket or pipe, or into the kernel.
#[derive(Clone, Copy)]
enum Way {
    Sent = 0,
    Received = 1,
    /// A name, or content for a file.
    Taken = 2,
}

/// Before a system call: others may receive what it sends before it returns.
pub fn before(thread: &mut Thread, call: Call) {
    let a = call.args;
    match call.nr {
        nr::WRITE | nr::SENDTO if is_channel(a[0]) => channel(thread, Way::Sent, a[1], a[2]),
        nr::WRITEV if is_channel(a[0]) => vectors(thread, Way::Sent, a[1], a[2], u64::MAX),
        nr::SENDMSG if is_channel(a[0]) => message(thread, Way::Sent, a[1], u64::MAX),
        nr::EXECVE => words(thread, a[1]),
        nr::WRITE | nr::PWRITE64 if is_file(a[0]) => channel(thread, Way::Taken, a[1], a[2]),
        nr::WRITEV | nr::PWRITEV if is_file(a[0]) => vectors(thread, Way::Taken, a[1], a[2], u64::MAX),
        _ => names(thread, call),
    }
}

/// Texts that the call reads: names of files, mostly.
fn names(thread: &mut Thread, call: Call) {
    let Some(entry) = syscalls::entry(call.nr) else { return };
    for used in entry.uses.iter().filter(|used| used.access == Access::Read && used.shape == Shape::Text) {
        let address = call.args[used.argument as usize];
        let Some(name) = user::c_string(address) else { continue };
        channel(thread, Way::Taken, address, name.len() as u64);
    }
}

/// After a system call that did not fail.
pub fn after(thread: &mut Thread, call: Call, result: u64) {
    let a = call.args;
    match call.nr {
        nr::READ | nr::RECVFROM if is_channel(a[0]) => channel(thread, Way::Received, a[1], result.min(a[2])),
        nr::READV if is_channel(a[0]) => vectors(thread, Way::Received, a[1], a[2], result),
        nr::RECVMSG if is_channel(a[0]) => message(thread, Way::Received, a[1], result),
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

/// The arguments of a program that is about to start; an empty one may have been cut short, too.
pub fn arguments(thread: &mut Thread, arguments: &[(u64, u64)]) {
    for (n, &(address, len)) in arguments.iter().enumerate() {
        channel(thread, Way::Received, address, len);
        put(thread, n as u32 + 1, address, len, 0);
    }
}

/// The arguments of a program that is to be executed: they go to it as through a pipe.
fn words(thread: &mut Thread, list: u64) {
    for n in 0..MOST_VECTORS {
        let Some(address) = user::read::<u64>(list + n * 8).filter(|&address| address != 0) else { return };
        let Some(word) = user::c_string(address) else { return };
        channel(thread, Way::Sent, address, word.len() as u64);
    }
}

fn vectors(thread: &mut Thread, way: Way, list: u64, count: u64, mut left: u64) {
    for n in 0..count.min(MOST_VECTORS) {
        let Some((address, len)) = user::read::<(u64, u64)>(list + n * 16) else { return };
        let len = len.min(left);
        channel(thread, way, address, len);
        left -= len;
    }
}

/// A `struct msghdr`.
fn message(thread: &mut Thread, way: Way, header: u64, len: u64) {
    if let Some((list, count)) = user::read::<(u64, u64)>(header + 16) {
        vectors(thread, way, list, count, len);
    }
}

/// Long content is told from its beginning on, as far as a record goes.
fn channel(thread: &mut Thread, way: Way, address: u64, len: u64) {
    let Some(content) = user::copy_in(address, len.min(MAX_PAYLOAD as u64)) else { return };
    if content.is_empty() {
        return;
    }
    buffer::flush(thread);
    let header = Header { kind: kind::FLOW_CHANNEL, aux: way as _, address, ..Header::default() };
    ring::order(thread).put(header, &[&content]);
}

fn is_channel(fd: u64) -> bool {
    matches!(format(fd), SOCKET | PIPE)
}

fn is_file(fd: u64) -> bool {
    format(fd) == FILE
}

/// What a descriptor is for; 0: it is none.
fn format(fd: u64) -> u64 {
    let mut stat = [0u64; STAT_WORDS];
    // SAFETY: the kernel fills `stat`, which has its size.
    if unsafe { raw!(nr::FSTAT, fd, stat.as_mut_ptr()) } == 0 { stat[MODE_WORD] & FORMAT } else { 0 }
}

fn is_input(fd: u64) -> bool {
    let mut stat = [0u64; STAT_WORDS];
    let control = ring::control();
    // SAFETY: the kernel fills `stat`, which has its size.
    let got = unsafe { raw!(nr::FSTAT, fd, stat.as_mut_ptr()) };
    got == 0 && control.input_inode != 0 && (stat[0], stat[1]) == (control.input_device, control.input_inode)
}

fn position(fd: u64) -> u64 {
    sys!(nr::LSEEK, fd, 0, SEEK_CUR).max(0) as u64
}

fn tell(thread: &mut Thread, site: u32, address: u64, len: u64, from: u64) {
    if len > 0 {
        put(thread, site, address, len, from);
    }
}

fn put(thread: &mut Thread, site: u32, address: u64, len: u64, from: u64) {
    buffer::flush(thread);
    let header = Header { kind: kind::FLOW_INPUT, site, address, ..Header::default() };
    ring::order(thread).put(header, &[&len.to_le_bytes(), &from.to_le_bytes()]);
}
