//! Watched functions (`--watch`): their entry with arguments, and their return with its value.
//!
//! The host resolves symbols when a module is mapped. A return is noticed at the return address: the first time a watched
//! function is called from a place, the code there is translated again with a check in front.

use wire::record::{Header, kind};

use super::build::Builder;
use super::guarded::UnderEngineLock;
use super::implicit::{emit_call, tag};
use super::{block, link};
use crate::map::U64Map;
use crate::ring::{self, control};
use crate::thread::Thread;
use core::sync::atomic::Ordering;

/// A watched function that has not returned yet.
#[derive(Clone, Copy, Debug)]
pub struct PendingReturn {
    pub watch: u32,
    /// rsp after the return.
    pub rsp: u64,
    pub return_to: u64,
}

static RETURNS: UnderEngineLock<U64Map<u8>> = UnderEngineLock::new(U64Map::new());

fn watching() -> bool {
    control().watch_count != 0
}

/// The place in `watch_sites` of this pc, if any. The host writes sites before it answers the `PLEASE` after `MODULE`.
fn watch_at(pc: u64) -> Option<u32> {
    let count = control().watch_site_count.load(Ordering::Acquire) as usize;
    let pid = crate::sys::sys!(crate::sys::nr::GETPID) as u32;
    control().watch_sites[..count].iter().position(|s| s.address == pc && s.pid == pid).map(|i| i as u32)
}

pub fn is_entry(pc: u64) -> bool {
    watching() && watch_at(pc).is_some()
}

pub fn is_return(pc: u64) -> bool {
    watching() && RETURNS.with(|returns| returns.get(pc).is_some())
}

pub fn emit_entry(b: &mut Builder<'_>, pc: u64) {
    if let Some(index) = watch_at(pc) {
        emit_call(b, tag::WATCH_ENTRY, index);
    }
}

pub fn emit_return(b: &mut Builder<'_>, _pc: u64) {
    emit_call(b, tag::WATCH_RETURN, 0);
}

/// At a watched function's first instruction: rsp points at the return address.
pub fn entered(thread: &mut Thread, index: u32) {
    let regs = thread.regs;
    let wire::control::WatchSite { watch, address: pc, .. } = control().watch_sites[index as usize];
    let Some(return_to) = crate::trampoline::peek::word(regs.rsp) else { return };
    // Frames that were left without returning (longjmp, exceptions) lie below.
    thread.watch_returns.retain(|p| p.rsp > regs.rsp + 8);
    thread.watch_returns.push(PendingReturn { watch, rsp: regs.rsp + 8, return_to });
    {
        let _guard = super::lock().lock();
        if !is_return(return_to) {
            RETURNS.with(|returns| returns.insert(return_to, 1));
            for number in block::with_instruction(return_to) {
                link::unlink(number);
            }
        }
    }
    let site = super::instrumented::plain_site(thread, pc, &[]);
    let context = crate::context::path::find(thread, pc, regs.rsp, regs.rbp);
    let mut payload = [0u8; 48];
    for (i, value) in [regs.rdi, regs.rsi, regs.rdx, regs.rcx, regs.r8, regs.r9].into_iter().enumerate() {
        payload[i * 8..i * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }
    let header = Header { kind: kind::CALL, address: watch as u64, site, context, ..Header::default() };
    ring::order(thread).put(header, &[&payload]);
}

/// At a return address of watched functions: did one just return?
pub fn returned(thread: &mut Thread, _value: u32) {
    let regs = thread.regs;
    while let Some(&last) = thread.watch_returns.last() {
        if last.rsp > regs.rsp {
            return;
        }
        thread.watch_returns.pop();
        if last.rsp == regs.rsp {
            let site = super::instrumented::plain_site(thread, last.return_to, &[]);
            let context = crate::context::path::find(thread, last.return_to, regs.rsp, regs.rbp);
            let header = Header { kind: kind::RETURN, address: last.watch as u64, site, context, ..Header::default() };
            ring::order(thread).put(header, &[&regs.rax.to_le_bytes()]);
            return;
        }
    }
}
