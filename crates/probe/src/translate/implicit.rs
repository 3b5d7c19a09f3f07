//! Stores with implicit operands, masks or computed lengths: string instructions, pushes, `maskmovdqu`, scatters, bit
//! strings, `xsave`, masked vectors.
//!
//! Such an instruction runs unchanged between two calls into Rust. The first moves the register that holds the address
//! to the alias; the second moves it back and records what was written. Such instructions are rare, so simple code is preferred to fast code.

use core::mem::offset_of;
use core::sync::atomic::Ordering;

use iced_x86::{Decoder, DecoderOptions, Instruction as Decoded};
use isa::effect::{Effect, Form, How, LoadForm, StateArea, StringAt, effect, loads};
use wire::record::{Header, kind};

use super::arena::trampoline;
use super::build::{Builder, Instruction};
use super::emit::RSP;
use super::marks::Flavour;
use super::{instrumented, marked, watch, written};
use crate::layout::alias;
use crate::ring;
use crate::thread::{Regs, Thread};
use crate::{pm, site};

/// The instruction under way runs on the alias.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shifted {
    /// It stores to PM.
    pub stores: bool,
    /// Registers that were changed, and what was added to each (0: none).
    pub changed: [(u8, u64); 2],
    /// Registers as the program had them before the instruction.
    pub rdi: u64,
    pub rsi: u64,
    pub rcx: u64,
    pub rsp: u64,
    pub address: u64,
}

impl Shifted {
    pub fn active(&self) -> bool {
        self.changed[0].1 != 0
    }

    /// Takes back what was added.
    pub fn undo(&mut self, regs: &mut Regs) {
        for (reg, delta) in core::mem::take(&mut self.changed) {
            if delta != 0 {
                regs.set(reg, regs.get(reg).wrapping_sub(delta));
            }
        }
    }
}

/// What a call through `trampoline_call` is for: the top four bits of its 32-bit argument.
pub mod tag {
    pub const BEFORE: u32 = 0;
    pub const AFTER: u32 = 1;
    pub const WATCH_ENTRY: u32 = 2;
    pub const WATCH_RETURN: u32 = 3;
    pub const OPERATION: u32 = 4;
}

/// Emits a call into Rust that may change the program's registers.
pub fn emit_call(b: &mut Builder<'_>, tag: u32, value: u32) {
    b.emit.save_imm64(offset_of!(Thread, arg), (tag << 28 | value) as u64);
    b.emit.save(offset_of!(Thread, app_rsp), RSP);
    b.emit.load(RSP, offset_of!(Thread, engine_rsp));
    b.emit.call_through(trampoline!(call));
    b.emit.load(RSP, offset_of!(Thread, app_rsp));
}

pub fn before(b: &mut Builder<'_>, i: Instruction) {
    let site = instrumented::plain_site_locked(b.thread, i.pc, &i.bytes[..i.scan.len as usize]);
    emit_call(b, tag::BEFORE, site);
}

pub fn after(b: &mut Builder<'_>, i: Instruction) {
    let site = instrumented::plain_site_locked(b.thread, i.pc, &i.bytes[..i.scan.len as usize]);
    b.mark(Flavour::Busy, i.pc, 0);
    emit_call(b, tag::AFTER, site);
}

/// The instruction between its two calls.
pub fn emit(b: &mut Builder<'_>, i: Instruction) {
    before(b, i);
    b.mark(Flavour::Alias, i.pc, instrumented::NO_REG);
    b.copy(i);
    after(b, i);
}

/// A call from a block (`trampoline_call`).
pub fn call(thread: &mut Thread) {
    thread.last_path = crate::thread::NO_PATH;
    let argument = thread.arg as u32;
    let value = argument & 0x0fff_ffff;
    match argument >> 28 {
        tag::BEFORE => shift(thread, value),
        tag::AFTER => shift_back(thread, value),
        tag::WATCH_ENTRY => watch::entered(thread, value),
        tag::OPERATION => marked::met(thread, value),
        _ => watch::returned(thread, value),
    }
}

/// The instruction of a site, and what it writes, if anything. `None` for how: a locked read-modify-write.
fn instruction(site: u32) -> (Decoded, Option<(Option<How>, Form)>) {
    let site = site::get(site);
    let decoded = Decoder::with_ip(64, &site.bytes[..site.len as usize], site.pc, DecoderOptions::NONE).decode();
    let writes = match effect(&decoded) {
        Effect::Store(shape) => Some((Some(shape.how), shape.form)),
        Effect::Rmw(form) => Some((None, form)),
        _ => None,
    };
    (decoded, writes)
}

/// The register that carries the address, and the address itself (of the first byte that may be written; for strings the
/// element at rdi).
fn address(thread: &mut Thread, decoded: &Decoded, form: &Form) -> (u8, u64) {
    let regs = thread.regs;
    match form {
        Form::String { .. } | Form::ByteMask { .. } => (super::emit::RDI, regs.rdi),
        Form::Push { size } => (RSP, regs.rsp.wrapping_sub(*size as u64)),
        Form::ClearLine => (super::emit::RAX, regs.rax & !63),
        Form::Movdir64b { to } => (to.number() as u8, regs.get(to.number() as u8)),
        _ => {
            let base = decoded.memory_base();
            if !base.is_gpr64() || decoded.segment_prefix() == iced_x86::Register::FS {
                crate::refuse!(
                    thread,
                    "a store without a base register into PM at {:#x}: {:?}",
                    decoded.ip(),
                    decoded.code()
                );
            }
            let mut at = regs.get(base.number() as u8).wrapping_add(decoded.memory_displacement64());
            if decoded.memory_index().is_gpr64() {
                let index = regs.get(decoded.memory_index().number() as u8);
                at = at.wrapping_add(index.wrapping_mul(decoded.memory_index_scale() as u64));
            }
            if let Form::BitOffset { size, bit } = form {
                let value = regs.get(bit.full_register().number() as u8) as i64;
                let (value, bits) = match size {
                    2 => (value as i16 as i64, 16),
                    4 => (value as i32 as i64, 32),
                    _ => (value, 64),
                };
                at = at.wrapping_add_signed(value.div_euclid(bits) * (bits / 8));
            }
            (base.number() as u8, at)
        }
    }
}

fn shift(thread: &mut Thread, site: u32) {
    let (decoded, writes) = instruction(site);
    let regs = thread.regs;
    thread.shifted = Shifted { rdi: regs.rdi, rsi: regs.rsi, rcx: regs.rcx, rsp: regs.rsp, ..Shifted::default() };
    if instrumented::loading() && !is_call(&decoded) {
        for load in loads(&decoded).iter() {
            if let Some((reg, at)) = load_address(thread, &decoded, &load.form)
                && pm::is_pm(at)
            {
                add_shift(thread, reg, at);
            }
        }
    }
    if let Some((how, form)) = writes {
        shift_store(thread, &decoded, how, form);
    }
    if thread.shifted.active() && ring::control().many_tasks.load(Ordering::Relaxed) != 0 {
        ring::take_order_lock(thread.tid as u32);
        thread.holds_order = 1;
        crate::flow::buffer::flush(thread);
    }
    for (reg, delta) in thread.shifted.changed {
        let value = thread.regs.get(reg).wrapping_add(delta);
        thread.regs.set(reg, value);
    }
}

/// Only its push goes through here: where it calls to is loaded, and recorded, by `loads::branch_target`.
fn is_call(decoded: &Decoded) -> bool {
    decoded.flow_control() == iced_x86::FlowControl::IndirectCall
}

/// The explicit operand of an instruction whose other one is implicit: `push [memory]`.
fn record_operand(thread: &mut Thread, decoded: &Decoded, size: u32, header: Header) {
    let (_, at) = address(thread, decoded, &Form::Explicit { size });
    if pm::is_pm(at) {
        ring::order(thread).put(Header { address: at, ..header }, &[&u64::from(size).to_le_bytes()]);
    }
}

/// The register that will be moved to the alias of `at` when the instruction runs.
fn add_shift(thread: &mut Thread, reg: u8, at: u64) {
    let change = (reg, alias(at).wrapping_sub(at));
    let changed = &mut thread.shifted.changed;
    if changed[0].1 == 0 {
        changed[0] = change;
    } else if changed[0].0 != reg {
        changed[1] = change;
    }
}

fn load_address(thread: &mut Thread, decoded: &Decoded, form: &LoadForm) -> Option<(u8, u64)> {
    let regs = thread.regs;
    Some(match *form {
        LoadForm::String { at: StringAt::Rsi, .. } => (super::emit::RSI, regs.rsi),
        LoadForm::String { at: StringAt::Rdi, .. } => (super::emit::RDI, regs.rdi),
        LoadForm::Xlat => (super::emit::RBX, regs.rbx),
        LoadForm::BitOffset { size, bit } => address(thread, decoded, &Form::BitOffset { size, bit }),
        LoadForm::Gather { .. } => {
            let base = decoded.memory_base().number() as u8;
            (base, regs.get(base))
        }
        LoadForm::Stack { .. } | LoadForm::Unknown => return None,
        _ => address(thread, decoded, &Form::Explicit { size: 8 }),
    })
}

fn shift_store(thread: &mut Thread, decoded: &Decoded, how: Option<How>, form: Form) {
    let (reg, at) = address(thread, decoded, &form);
    // A scatter's lanes may lie anywhere around its base; a string may start anywhere in a pool.
    let target = match &form {
        Form::Scatter { .. } => written::first_lane(thread, decoded, &form).unwrap_or(at),
        _ => at,
    };
    if !pm::is_pm(target) {
        return;
    }
    let conflict = match &form {
        Form::BitOffset { bit, .. } => bit.full_register().number() as u8 == reg,
        Form::Movdir64b { to } => decoded.memory_base() == *to || decoded.memory_index() == *to,
        Form::State(area) => *area != StateArea::Fxsave && (reg == super::emit::RAX || reg == super::emit::RDX),
        _ => false,
    };
    if conflict {
        let (code, ip) = (decoded.code(), decoded.ip());
        crate::refuse!(thread, "{code:?} at {ip:#x} uses its address register twice; cannot record it in PM");
    }
    if let (None, Some(size)) = (how, form.max_size()) {
        // SAFETY: PM that the instruction is about to read and write, through its alias.
        let old = unsafe { core::slice::from_raw_parts(alias(at) as *const u8, size as usize) };
        for (word, bytes) in thread.old.iter_mut().zip(old.chunks(8)) {
            let mut value = [0u8; 8];
            value[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(value);
        }
    }
    thread.shifted.stores = true;
    thread.shifted.address = at;
    add_shift(thread, reg, target);
}

fn shift_back(thread: &mut Thread, site: u32) {
    if !thread.shifted.active() {
        return;
    }
    let deltas = thread.shifted.changed;
    let mut regs = thread.regs;
    thread.shifted.undo(&mut regs);
    thread.regs = regs;
    let (decoded, writes) = instruction(site);
    if decoded.mnemonic() == iced_x86::Mnemonic::Enter {
        thread.regs.rbp = thread.regs.rbp.wrapping_sub(deltas[0].1);
    }
    let pc = site::get(site).pc;
    let (rsp, rbp) = (thread.shifted.rsp, thread.regs.rbp);
    let context = if crate::recover::on() { 0 } else { crate::context::path::find(thread, pc, rsp, rbp) };
    if instrumented::loading() && !matches!(writes, Some((None, _))) && !is_call(&decoded) {
        let header = Header { kind: kind::LOAD, site, context, ..Header::default() };
        for load in loads(&decoded).iter() {
            match load.form {
                LoadForm::Explicit { size } => record_operand(thread, &decoded, size, header),
                form => written::record_load(thread, &form, header),
            }
        }
    }
    if thread.shifted.stores {
        crate::cover::operated(thread, site::get(site).operation as u32);
    }
    match writes {
        Some((None, form)) if thread.shifted.stores => {
            written::record_rmw(thread, &form, Header { kind: kind::RMW, site, context, ..Header::default() });
            thread.pending = 0;
        }
        Some((Some(how), form)) if thread.shifted.stores => {
            let aux = instrumented::store_aux(how);
            let header = Header { kind: kind::STORE, aux, site, context, ..Header::default() };
            written::record(thread, &decoded, &form, header);
            if how != How::Plain {
                thread.pending = 1;
            }
        }
        _ => {}
    }
    if thread.holds_order != 0 {
        thread.holds_order = 0;
        ring::control().order_lock.store(0, Ordering::Release);
    }
}
