//! Where the kernel writes into the target's memory, as the prototypes tell ([`super::prototypes`]).
//!
//! What may be changed in parts is compared before and after: that shows every changed byte, though not bytes that were
//! overwritten with what they were.

use super::error::StepError;
use super::kernel::SystemCall;
use super::prototypes::{self, Extent, Pointer, Role};
use super::ptrace;
use super::session::{Session, Task};

/// How much behind an opaque pointer is compared: larger than every structure of the kernel's.
const COMPARED: u64 = 4096;
/// `UIO_MAXIOV`.
const MAX_VECTOR: u64 = 1024;

/// A pointer of a call under way.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// How much the kernel may touch.
    most: u64,
    /// PM behind it, before the call.
    before: Vec<(u64, Vec<u8>)>,
    /// The headers of messages, before the call.
    headers: Vec<[u64; 7]>,
}

/// The pointers of a call. A thread that waits for a futex is not the one who changes it, and the rare operations that
/// change one themselves are left out; the pointers of `clone` depend on its flags.
fn pointers(number: i64) -> &'static [Pointer] {
    match number {
        libc::SYS_futex | libc::SYS_clone => &[],
        _ => prototypes::of(number).map_or(&[], |prototype| &prototype.pointers),
    }
}

/// Notes what the pointers of a call lead to.
pub fn before(session: &Session, task: &Task, call: &SystemCall) -> Result<Vec<Noted>, StepError> {
    pointers(call.number).iter().map(|pointer| note(session, task, call, pointer)).collect()
}

fn note(session: &Session, task: &Task, call: &SystemCall, pointer: &Pointer) -> Result<Noted, StepError> {
    let address = call.args[pointer.argument];
    let mut noted = Noted::default();
    if address == 0 {
        return Ok(noted);
    }
    noted.most = most(task, call, pointer.extent);
    let mut compared = Vec::new();
    match (pointer.role, pointer.points_to) {
        (Role::InOut, "iovec") => {
            let count = noted.most / 16;
            for i in 0..count.min(MAX_VECTOR) {
                let at = ptrace::read_u64(task.tid, address + i * 16).unwrap_or(0);
                let len = ptrace::read_u64(task.tid, address + i * 16 + 8).unwrap_or(0);
                compared.extend(session.pieces(task, at, len));
            }
        }
        (Role::InOut, _) => compared = session.pieces(task, address, noted.most),
        (Role::Opaque, _) => {
            // Many of these are numbers: only one that lies in PM is a pointer for sure.
            let inside = session.pieces(task, address, COMPARED).into_iter().next();
            compared.extend(inside.filter(|piece| piece.address == address));
        }
        (Role::Out, "msghdr" | "mmsghdr") => {
            let size = if pointer.points_to == "msghdr" { MSGHDR } else { MMSGHDR };
            for i in 0..(noted.most / size).min(MAX_VECTOR) {
                let mut header = [0; 7];
                for (at, word) in header.iter_mut().enumerate() {
                    *word = ptrace::read_u64(task.tid, address + i * size + at as u64 * 8).unwrap_or(0);
                }
                noted.headers.push(header);
            }
        }
        _ => {}
    }
    for piece in compared {
        noted.before.push((piece.address, session.content(task, piece)?));
    }
    Ok(noted)
}

fn int_at(task: &Task, address: u64) -> u64 {
    let mut bytes = [0; 4];
    match ptrace::read(task.tid, address, &mut bytes) {
        Ok(()) if address != 0 => u32::from_le_bytes(bytes).into(),
        _ => 0,
    }
}

/// How much the kernel may touch.
fn most(task: &Task, call: &SystemCall, extent: Extent) -> u64 {
    match extent {
        Extent::Bytes(bytes) => bytes,
        // Not looked at.
        Extent::Text | Extent::Texts => 0,
        Extent::Of { argument, size, more } | Extent::Returned { argument, size, more } => {
            // Counts of larger things are 32-bit numbers.
            let count = if size > 1 { call.args[argument] & 0xffff_ffff } else { call.args[argument] };
            count.saturating_mul(size).saturating_add(more)
        }
        Extent::Behind(argument) => int_at(task, call.args[argument]),
        Extent::Bits(argument) => (call.args[argument] & 0xffff_ffff).div_ceil(64) * 8,
        Extent::Pages(argument) => call.args[argument].div_ceil(4096),
    }
}

/// Records what a call wrote; `result` is none if it failed.
pub fn after(session: &mut Session, task: &mut Task, call: &SystemCall, result: Option<u64>) -> Result<(), StepError> {
    for (pointer, noted) in pointers(call.number).iter().zip(&call.noted) {
        let address = call.args[pointer.argument];
        match (pointer.role, result) {
            (Role::InOut | Role::Opaque, _) => compare(session, task, call.pc, noted)?,
            (Role::Out, Some(result)) if address != 0 => written(session, task, call, pointer, noted, result)?,
            _ => {}
        }
        // `sendmmsg` says of each message how much of it went out.
        if let (Role::In, "mmsghdr", Some(sent)) = (pointer.role, pointer.points_to, result) {
            for i in 0..sent {
                session.emit_kernel_write(task, call.pc, address + i * MMSGHDR + MSGHDR, 4)?;
            }
        }
    }
    Ok(())
}

fn written(
    session: &mut Session,
    task: &mut Task,
    call: &SystemCall,
    pointer: &Pointer,
    noted: &Noted,
    result: u64,
) -> Result<(), StepError> {
    let address = call.args[pointer.argument];
    match pointer.points_to {
        "iovec" => return vector(session, task, call.pc, address, noted.most / 16, result),
        // The value behind the structure, not the structure; a call that asks for the length alone gives no place.
        "xattr_args" => {
            let place = ptrace::read_u64(task.tid, address)?;
            let most = int_at(task, address + 8);
            return if place == 0 { Ok(()) } else { session.emit_kernel_write(task, call.pc, place, result.min(most)) };
        }
        "msghdr" => return message(session, task, call.pc, address, MSGHDR, &noted.headers[0], result),
        "mmsghdr" => {
            return noted.headers.iter().enumerate().take(result as usize).try_for_each(|(i, header)| {
                let place = address + i as u64 * MMSGHDR;
                let len = int_at(task, place + MSGHDR);
                message(session, task, call.pc, place, MMSGHDR, header, len)
            });
        }
        _ => {}
    }
    let len = match pointer.extent {
        Extent::Returned { size, more, .. } => (result * size + more).min(noted.most),
        Extent::Behind(argument) => int_at(task, call.args[argument]).min(noted.most),
        _ => noted.most,
    };
    session.emit_kernel_write(task, call.pc, address, len)
}

/// Bytes of a `struct msghdr` and a `struct mmsghdr`.
const MSGHDR: u64 = 56;
const MMSGHDR: u64 = 64;

/// One message has been received: its header is filled in, then who sent it, its buffers, its control data.
fn message(
    session: &mut Session,
    task: &mut Task,
    pc: u64,
    place: u64,
    size: u64,
    before: &[u64; 7],
    len: u64,
) -> Result<(), StepError> {
    let [name, name_len, list, count, control, control_len, _] = *before;
    session.emit_kernel_write(task, pc, place, size)?;
    if name != 0 {
        let len = int_at(task, place + 8).min(name_len & 0xffff_ffff);
        session.emit_kernel_write(task, pc, name, len)?;
    }
    vector(session, task, pc, list, count, len)?;
    if control != 0 {
        let len = ptrace::read_u64(task.tid, place + 40)?.min(control_len);
        session.emit_kernel_write(task, pc, control, len)?;
    }
    Ok(())
}

fn vector(
    session: &mut Session,
    task: &mut Task,
    pc: u64,
    list: u64,
    count: u64,
    mut left: u64,
) -> Result<(), StepError> {
    for i in 0..count {
        if left == 0 {
            break;
        }
        let address = ptrace::read_u64(task.tid, list + i * 16)?;
        let len = ptrace::read_u64(task.tid, list + i * 16 + 8)?.min(left);
        session.emit_kernel_write(task, pc, address, len)?;
        left -= len;
    }
    Ok(())
}

fn compare(session: &mut Session, task: &mut Task, pc: u64, noted: &Noted) -> Result<(), StepError> {
    for (address, before) in &noted.before {
        let mut now = vec![0; before.len()];
        ptrace::read(task.tid, *address, &mut now)?;
        let differs = |i: &usize| before[*i] != now[*i];
        let first = (0..now.len()).find(differs);
        let last = (0..now.len()).rfind(differs);
        if let (Some(first), Some(last)) = (first, last) {
            session.emit_kernel_write(task, pc, address + first as u64, (last - first + 1) as u64)?;
        }
    }
    Ok(())
}
