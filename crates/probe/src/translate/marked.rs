//! Marks of operations (`wire::mark`): instructions that only mark where an operation begins or ends.

use wire::mark;
use wire::record::{Header, kind};

use super::build::{Builder, Instruction};
use super::implicit::{emit_call, tag};
use super::instrumented;
use crate::site;
use crate::syscall::operations;
use crate::thread::Thread;

pub fn is_mark(i: Instruction) -> bool {
    let bytes = &i.bytes[..i.scan.len as usize];
    bytes == mark::BEGIN || bytes == mark::END
}

pub fn emit(b: &mut Builder<'_>, i: Instruction) {
    let site = instrumented::plain_site_locked(b.thread, i.pc, &i.bytes[..i.scan.len as usize]);
    emit_call(b, tag::OPERATION, site);
}

/// A mark was met.
pub fn met(thread: &mut Thread, site: u32) {
    // Where lines are operations, or nothing is recorded, marks say nothing.
    if operations::wanted() || crate::recover::on() {
        return;
    }
    let regs = thread.regs;
    let place = site::get(site);
    let ends = place.bytes[..mark::END.len()] == mark::END;
    let context = crate::context::path::find(thread, place.pc, regs.rsp, regs.rbp);
    operations::marked(thread, Header { kind: kind::OPERATION, site, context, ..Header::default() }, ends);
}
