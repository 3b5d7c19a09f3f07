//! Pointers into PM. At the program's address PM cannot be written, not even by the kernel: calls that fill a buffer there get
//! the alias instead, and what they wrote becomes an event.
//!
//! Calls that people aim at PM have a rule. For all others, PM behind their pointer arguments is compared before and
//! after: that shows every changed byte, though not bytes that were overwritten with what they were.

use alloc::vec::Vec;

use wire::control::option;

use super::dispatch::Call;
use super::{arity, event};
use crate::layout;
use crate::load::user;
use crate::pm;
use crate::ring;
use crate::sys::{self, nr};
use crate::thread::Thread;

/// How much behind a pointer is compared for calls without a rule: larger than every structure of the kernel's.
const COMPARED: u64 = 4096;
/// `UIO_MAXIOV`.
const MAX_VECTOR: u64 = 1024;

/// Where a call writes.
#[derive(Clone, Copy, Debug)]
enum Rule {
    /// As many bytes as it returns, at this argument; the length is the next argument.
    Returned(usize),
    /// So many bytes at this argument.
    Fixed(usize, u64),
    /// As many bytes as it returns, over the vector at this argument with this many elements.
    Vector { at: usize, count: usize },
    /// As many bytes as it returns, over the vector inside a `msghdr`.
    Message(usize),
    /// As `Message`, for a list of `mmsghdr`; it returns how many.
    Messages { at: usize, count: usize },
    /// A vector that is only read.
    ReadVector { at: usize, count: usize },
    /// Nothing: pointers are only read.
    Nothing,
}

fn rule(number: u64) -> Option<Rule> {
    Some(match number {
        nr::READ | nr::PREAD64 | nr::RECVFROM | nr::READLINK | nr::GETDENTS64 => Rule::Returned(1),
        nr::READLINKAT => Rule::Returned(2),
        nr::GETCWD | nr::GETRANDOM => Rule::Returned(0),
        nr::READV | nr::PREADV | nr::PREADV2 => Rule::Vector { at: 1, count: 2 },
        nr::RECVMSG => Rule::Message(1),
        nr::RECVMMSG => Rule::Messages { at: 1, count: 2 },
        nr::STAT | nr::LSTAT | nr::FSTAT => Rule::Fixed(1, 144),
        nr::NEWFSTATAT => Rule::Fixed(2, 144),
        nr::CLOCK_GETTIME => Rule::Fixed(1, 16),
        nr::GETTIMEOFDAY => Rule::Fixed(0, 16),
        nr::UNAME => Rule::Fixed(0, 390),
        nr::PIPE | nr::PIPE2 => Rule::Fixed(0, 8),
        nr::WRITEV | nr::PWRITEV | nr::PWRITEV2 => Rule::ReadVector { at: 1, count: 2 },
        nr::WRITE
        | nr::PWRITE64
        | nr::SENDTO
        | nr::OPEN
        | nr::OPENAT
        | nr::CREAT
        | nr::FTRUNCATE
        | nr::FALLOCATE
        | nr::FSYNC
        | nr::FDATASYNC
        | nr::CLOSE => Rule::Nothing,
        _ => return None,
    })
}

/// Lets the kernel do a call, with pointers into PM redirected to the alias.
pub fn pass(thread: &mut Thread, call: Call) -> i64 {
    if !pm::any() {
        return call.pass(thread);
    }
    match rule(call.nr) {
        None => compare(thread, call),
        Some(Rule::Nothing) => {
            // Input can be read where it is, unless loads are recorded.
            let call = if ring::control().options & option::LOADS != 0 { redirect_all(call) } else { call };
            call.pass(thread)
        }
        Some(Rule::Returned(at)) => returned(thread, call, at),
        Some(Rule::Fixed(at, len)) => {
            let address = call.args[at];
            let result = redirect_all(call).pass(thread);
            if result >= 0 {
                event::kernel_write(thread, address, len);
            }
            result
        }
        Some(Rule::Vector { at, count }) => vector(thread, call, at, count, true),
        Some(Rule::ReadVector { at, count }) => vector(thread, call, at, count, false),
        Some(Rule::Message(at)) => message(thread, call, at),
        Some(Rule::Messages { at, count }) => messages(thread, call, at, count),
    }
}

fn redirect_all(mut call: Call) -> Call {
    for argument in &mut call.args {
        *argument = pm::alias_of(*argument);
    }
    call
}

/// The first part of a range that is all PM or all not, and where the kernel finds it.
fn stretch(address: u64, len: u64) -> (u64, u64) {
    let pieces = pm::pieces(address, len);
    let Some(first) = pieces.first() else { return (address, len) };
    if first.start > address {
        return (address, first.start - address);
    }
    let mut end = address;
    for piece in &pieces {
        // Ranges in a row have aliases in a row.
        if piece.start != end
            || layout::alias(piece.start).wrapping_sub(layout::alias(address)) != piece.start - address
        {
            break;
        }
        end = piece.end();
    }
    (layout::alias(address), end - address)
}

fn returned(thread: &mut Thread, mut call: Call, at: usize) -> i64 {
    let address = call.args[at];
    let wanted = call.args[at + 1];
    let (real, len) = stretch(address, wanted);
    call = redirect_all(call);
    call.args[at] = real;
    // A buffer half in PM: a short count is a right answer of these calls.
    call.args[at + 1] = len;
    let result = call.pass(thread);
    if result > 0 {
        event::kernel_write(thread, address, result as u64);
    }
    result
}

/// A `struct iovec`.
type Vector = (u64, u64);

/// The buffers of a list: address and length of each.
pub fn read_vectors(address: u64, count: u64) -> Option<Vec<Vector>> {
    (0..count).map(|i| user::read::<Vector>(address + i * 16)).collect()
}

/// The same buffers as the kernel may reach them.
fn redirected(vectors: &[Vector]) -> Vec<Vector> {
    let mut real = Vec::with_capacity(vectors.len());
    for &(mut address, mut len) in vectors {
        if len == 0 {
            real.push((address, 0));
        }
        while len != 0 {
            let (at, part) = stretch(address, len);
            real.push((at, part));
            address += part;
            len -= part;
        }
    }
    real
}

fn written(thread: &mut Thread, vectors: &[Vector], result: i64) {
    let mut left = result.max(0) as u64;
    for &(address, len) in vectors {
        let len = len.min(left);
        event::kernel_write(thread, address, len);
        left -= len;
    }
}

fn vector(thread: &mut Thread, mut call: Call, at: usize, count: usize, writes: bool) -> i64 {
    if call.args[count] > MAX_VECTOR {
        return -sys::EINVAL;
    }
    let Some(vectors) = read_vectors(call.args[at], call.args[count]) else { return -sys::EFAULT };
    let real = redirected(&vectors);
    call.args[at] = real.as_ptr() as u64;
    call.args[count] = real.len() as u64;
    let result = call.pass(thread);
    if writes {
        written(thread, &vectors, result);
    }
    result
}

/// A `struct msghdr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Message {
    name: u64,
    name_len: u64,
    vectors: u64,
    count: u64,
    control: u64,
    control_len: u64,
    flags: u64,
}

fn message(thread: &mut Thread, mut call: Call, at: usize) -> i64 {
    let address = call.args[at];
    let Some(asked) = user::read::<Message>(address) else { return -sys::EFAULT };
    if asked.count > MAX_VECTOR {
        return call.pass(thread);
    }
    let Some(vectors) = read_vectors(asked.vectors, asked.count) else { return -sys::EFAULT };
    let real = redirected(&vectors);
    let mut message = Message {
        name: pm::alias_of(asked.name),
        vectors: real.as_ptr() as u64,
        count: real.len() as u64,
        control: pm::alias_of(asked.control),
        ..asked
    };
    call.args[at] = &raw mut message as u64;
    let result = call.pass(thread);
    if result >= 0 {
        let Message { name_len, control_len, flags, .. } = message;
        user::write(address, &Message { name_len, control_len, flags, ..asked });
        event::kernel_write(thread, address, size_of::<Message>() as u64);
    }
    written(thread, &vectors, result);
    result
}

/// A `struct mmsghdr`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Received {
    message: Message,
    len: u32,
    pad: u32,
}

fn messages(thread: &mut Thread, mut call: Call, at: usize, count: usize) -> i64 {
    let address = call.args[at];
    let each = size_of::<Received>() as u64;
    let asked: Option<Vec<Received>> =
        (0..call.args[count].min(MAX_VECTOR)).map(|i| user::read(address + i * each)).collect();
    let Some(asked) = asked else { return -sys::EFAULT };
    let mut vectors = Vec::new();
    for one in &asked {
        match read_vectors(one.message.vectors, one.message.count.min(MAX_VECTOR)) {
            Some(list) => vectors.push(list),
            None => return -sys::EFAULT,
        }
    }
    let real: Vec<Vec<Vector>> = vectors.iter().map(|list| redirected(list)).collect();
    let mut list = asked.clone();
    for (one, real) in list.iter_mut().zip(&real) {
        one.message.vectors = real.as_ptr() as u64;
        one.message.count = real.len() as u64;
        one.message.name = pm::alias_of(one.message.name);
        one.message.control = pm::alias_of(one.message.control);
    }
    call.args[at] = list.as_ptr() as u64;
    call.args[count] = list.len() as u64;
    let result = call.pass(thread);
    for i in 0..result.max(0) as usize {
        let Received { message: Message { name_len, control_len, flags, .. }, len, pad } = list[i];
        let message = Message { name_len, control_len, flags, ..asked[i].message };
        let place = address + i as u64 * each;
        user::write(place, &Received { message, len, pad });
        event::kernel_write(thread, place, each);
        written(thread, &vectors[i], len as i64);
    }
    result
}

/// A call without a rule: what changed in PM behind its pointers?
fn compare(thread: &mut Thread, call: Call) -> i64 {
    let mut before = Vec::new();
    for &address in &call.args[..arity::count(call.nr)] {
        for piece in pm::pieces(address, COMPARED) {
            before.push((piece.start, content(piece.start, piece.len).to_vec()));
        }
    }
    if before.is_empty() {
        return call.pass(thread);
    }
    let result = redirect_all(call).pass(thread);
    for (start, old) in before {
        let now = content(start, old.len() as u64);
        let differs = |i: &usize| old[*i] != now[*i];
        if let (Some(first), Some(last)) = ((0..old.len()).find(differs), (0..old.len()).rfind(differs)) {
            event::kernel_write(thread, start + first as u64, (last - first + 1) as u64);
        }
    }
    result
}

/// PM as it is now.
fn content(start: u64, len: u64) -> &'static [u8] {
    // SAFETY: the alias of a mapped range is readable; only looked at while the range is mapped.
    unsafe { core::slice::from_raw_parts(layout::alias(start) as *const u8, len as usize) }
}
