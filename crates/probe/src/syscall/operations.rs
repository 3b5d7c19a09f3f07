//! Operations on standard input: one line per `read`, so that the recorder knows where each begins and ends.

use core::sync::atomic::Ordering;

use alloc::vec::Vec;

use wire::control::{Operations, option};
use wire::record::{Header, kind};

use super::dispatch::Call;
use super::{buffers, event, standard};
use crate::load::user;
use crate::recover::{self, reference, script, serve};
use crate::ring;
use crate::signal;
use crate::sys::{self, nr};
use crate::thread::Thread;

const BEGIN: u8 = 0;
const END: u8 = 1;
/// Longest piece of a line that is served at once.
const PIECE: u64 = 64 << 10;

pub fn wanted() -> bool {
    ring::control().options & option::OPERATIONS_STDIN != 0
}

fn state() -> &'static Operations {
    &ring::control().operations
}

/// The first process starts: what is behind its standard input has the operations. Those that it starts may have another.
pub fn begin() {
    if wanted() || crate::cover::on() {
        state().input.store(file(0), Ordering::Relaxed);
        state().output.store(file(1), Ordering::Relaxed);
    }
}

/// Stands for the file behind a descriptor; 0: there is none.
fn file(fd: i32) -> u64 {
    standard::file_behind(fd).map_or(0, |file| (file.inode ^ file.device.rotate_left(40)).max(1))
}

/// Are there operations behind this descriptor?
pub fn on_input(fd: i32) -> bool {
    wanted() && is_input(fd)
}

/// Is this the file behind the first process's standard output?
pub fn is_output(fd: i32) -> bool {
    let output = state().output.load(Ordering::Relaxed);
    output != 0 && output == file(fd)
}

/// Is this the file behind the first process's standard input?
pub fn is_input(fd: i32) -> bool {
    let input = state().input.load(Ordering::Relaxed);
    input != 0 && input == file(fd)
}

/// `readv`: into the first buffer that has room. Reading less than asked for is every kernel's right.
pub fn read_vector(thread: &mut Thread, call: Call) -> i64 {
    let vectors = (0..call.args[2].min(1024)).map(|at| user::read::<[u64; 2]>(call.args[1] + at * 16));
    for vector in vectors {
        let Some([address, len]) = vector else { return -sys::EFAULT };
        if len != 0 {
            return read(thread, Call { nr: nr::READ, args: [call.args[0], address, len, 0, 0, 0] });
        }
    }
    0
}

/// A read of standard input: the operation before is over; the next line, if there is one, begins another.
pub fn read(thread: &mut Thread, call: Call) -> i64 {
    if call.args[2] == 0 {
        return nothing(thread);
    }
    let fd = call.fd(0);
    let begins = state().inside.load(Ordering::Relaxed) == 0;
    if begins {
        finish(thread);
    }
    let most = call.args[2].min(PIECE);
    let (line, result) = if recover::on() { (served(thread, fd, begins, most), 0) } else { typed(thread, fd, most) };
    if line.is_empty() {
        return result;
    }
    if !user::copy_out(call.args[1], &line) {
        return -sys::EFAULT;
    }
    state().inside.store((line.last() != Some(&b'\n')).into(), Ordering::Relaxed);
    if begins {
        state().open.store(1, Ordering::Relaxed);
        mark(thread, BEGIN, state().begun.fetch_add(1, Ordering::Relaxed));
    }
    event::kernel_write(thread, call.args[1], line.len() as u64);
    line.len() as i64
}

/// A read of nothing begins no operation. A driver says by it that all it did so far is the same for every run.
fn nothing(thread: &mut Thread) -> i64 {
    if recover::on() && !reference::on() {
        serve::first_use(thread);
    }
    0
}

/// From the operations of a recovery run.
fn served(thread: &mut Thread, fd: i32, begins: bool, most: u64) -> Vec<u8> {
    if reference::on() {
        if begins {
            reference::boundary(thread);
        }
    } else {
        // What is read depends on the run as much as a pool does.
        serve::first_use(thread);
        if let Some(place) = script::place().filter(|_| begins) {
            serve::at_input(thread, place);
        }
    }
    if begins {
        script::answered();
    }
    let line = script::read(fd, most as usize);
    if line.is_empty() {
        reference::told();
        serve::input_over();
    }
    line
}

/// From the real standard input; and the result of the last system call.
fn typed(thread: &mut Thread, fd: i32, most: u64) -> (Vec<u8>, i64) {
    let mut line: Vec<u8> = Vec::new();
    let mut result = 0;
    while (line.len() as u64) < most && line.last() != Some(&b'\n') {
        let mut byte = 0u8;
        result = signal::blocking_syscall(thread, nr::READ, [fd as u64, &raw mut byte as u64, 1, 0, 0, 0]);
        if result != 1 {
            break;
        }
        line.push(byte);
    }
    (line, result)
}

/// By a mark in the program's code. One that begins ends the one before, if it is open.
pub fn marked(thread: &mut Thread, header: Header, ends: bool) {
    if state().open.swap((!ends).into(), Ordering::Relaxed) != 0 {
        let last = state().begun.load(Ordering::Relaxed) - 1;
        ring::order(thread).put(Header { aux: END, address: last, ..header }, &[]);
    }
    if !ends {
        let next = state().begun.fetch_add(1, Ordering::Relaxed);
        ring::order(thread).put(Header { aux: BEGIN, address: next, ..header }, &[]);
    }
}

/// The operation under way, if there is one, is over.
pub fn finish(thread: &mut Thread) {
    if state().open.swap(0, Ordering::Relaxed) != 0 {
        mark(thread, END, state().begun.load(Ordering::Relaxed) - 1);
    }
}

fn mark(thread: &mut Thread, aux: u8, index: u64) {
    let header = Header { aux, address: index, ..event::header(thread, kind::OPERATION) };
    ring::order(thread).put(header, &[]);
}

fn is_standard(fd: i32) -> bool {
    matches!(fd, 0 | 1) || on_input(fd)
}

/// Does the call ask what kind of file standard output is, or, on behalf of the C library, standard input?
pub fn asks_about_output(call: Call) -> bool {
    const TIOCGWINSZ: u64 = 0x5413;
    const AT_EMPTY_PATH: u64 = 0x1000;
    let empty = |address: u64| address == 0 || user::read::<u8>(address) == Some(0);
    match (call.nr, call.fd(0)) {
        (nr::IOCTL, 1) => call.args[1] == TIOCGWINSZ,
        (nr::FSTAT, fd) => is_standard(fd),
        (nr::NEWFSTATAT, fd) if is_standard(fd) => call.args[3] & AT_EMPTY_PATH != 0 && empty(call.args[1]),
        _ => false,
    }
}

/// The device number of a terminal: the C library then writes every line as it ends (glibc, `_IO_file_doallocate`, looks at
/// the number; musl, `__stdout_write`, asks for the size of the window), and the beginning of one before it reads
/// (`_IO_new_file_underflow`). Programs that ask by `isatty` whether these are terminals are told the truth: they would
/// talk to a person.
pub fn output_is_terminal(thread: &mut Thread, call: Call) -> i64 {
    const WINSIZE: usize = 8;
    const S_IFMT: u32 = 0o170000;
    const S_IFCHR: u32 = 0o020000;
    /// Offsets in `struct stat`, and the first pseudo-terminal.
    const ST_MODE: u64 = 24;
    const ST_RDEV: u64 = 40;
    const PTS_0: u64 = 136 << 8;
    if call.nr == nr::IOCTL {
        if !user::copy_out(call.args[2], &[0; WINSIZE]) {
            return -sys::EFAULT;
        }
        event::kernel_write(thread, call.args[2], WINSIZE as u64);
        return 0;
    }
    let result = buffers::pass(thread, call);
    let stat = if call.nr == nr::FSTAT { call.args[1] } else { call.args[2] };
    if result == 0 {
        let mode = user::read::<u32>(stat + ST_MODE).unwrap_or(0);
        user::write(stat + ST_MODE, &(mode & !S_IFMT | S_IFCHR));
        user::write(stat + ST_RDEV, &PTS_0);
    }
    result
}
