//! Records of system calls.

use wire::control::MAX_PAYLOAD;
use wire::record::{Header, kind};

use crate::load::user;
use crate::pm;
use crate::ring;
use crate::thread::Thread;

/// Contract rule 2: long writes are cut at these boundaries of the pool offset.
const BOUNDARY: u64 = MAX_PAYLOAD as u64;

/// A header for an event at the `syscall` instruction under way.
pub fn header(thread: &mut Thread, kind: u8) -> Header {
    if crate::recover::on() {
        return Header { kind, ..Header::default() };
    }
    let site = crate::translate::syscall_site(thread);
    let context = crate::context::path::current(thread);
    Header { kind, site, context, ..Header::default() }
}

/// The kernel (or the engine in its place) wrote `len` bytes at `address`: the parts in PM become events.
pub fn kernel_write(thread: &mut Thread, address: u64, len: u64) {
    if !pm::any() || len == 0 {
        return;
    }
    let pieces = pm::pieces(address, len);
    if pieces.is_empty() {
        return;
    }
    let header = header(thread, kind::KERNEL_WRITE);
    let mut order = ring::order(thread);
    for piece in pieces {
        for (offset, len) in cut(piece.offset, piece.len) {
            let address = piece.start + (offset - piece.offset);
            let Some(bytes) = user::copy_in(address, len) else { continue };
            order.put(Header { address, ..header }, &[&bytes]);
        }
    }
}

/// `offset..offset+len` of a pool in parts that cross no boundary.
pub fn cut(offset: u64, len: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset + len;
    let mut at = offset;
    core::iter::from_fn(move || {
        let part = (BOUNDARY - at % BOUNDARY).min(end - at);
        let here = (part != 0).then_some((at, part));
        at += part;
        here
    })
}
