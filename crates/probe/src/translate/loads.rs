//! Loads from PM (`--loads`). PM is then not even readable at the program's address: every accessing instruction faults once, is instrumented,
//! and uses the alias from then on.
//!
//! Explicit memory operands and the sources of string instructions are recorded. Gathers, `pop` and `ret` from
//! PM are executed but not recorded if that is possible, and refused otherwise; a recovery run then notes
//! that its read set is incomplete (`recover::notes::incomplete`).

use iced_x86::{Instruction as Decoded, Mnemonic, OpKind};
use isa::effect::{Effect, Form, LoadForm, effect, loads};
use isa::scan::Class;
use wire::record::kind;

use super::build::{Builder, Instruction};
use super::instrumented::{self, Spill, Value};
use super::{emulate, implicit, order};
use crate::site::{self, flag};

/// The operand that this instruction reads, if the trampoline can record it.
fn explicit_size(decoded: &Decoded) -> Option<u32> {
    loads(decoded).iter().find_map(|load| match load.form {
        LoadForm::Explicit { size } | LoadForm::Masked { size, .. } | LoadForm::Expand { size, .. } => Some(size),
        LoadForm::State(area) => Some(area.size().unwrap_or(576)),
        _ => None,
    })
}

pub fn emit(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded) {
    let what = effect(decoded);
    // A locked instruction records what it read as its old bytes.
    if matches!(what, Effect::Rmw(_)) {
        return instrumented::emit_store(b, i, decoded, Spill::T0);
    }
    let implicit_load = loads(decoded).iter().any(|load| {
        matches!(
            load.form,
            LoadForm::String { .. } | LoadForm::Gather { .. } | LoadForm::BitOffset { .. } | LoadForm::Xlat
        )
    });
    let stores_implicitly =
        matches!(what, Effect::Store(s) if !matches!(s.form, Form::Explicit { .. } | Form::Pop { .. }));
    if implicit_load || stores_implicitly {
        return implicit::emit(b, i);
    }
    match (explicit_size(decoded), what) {
        // Reads and writes the same operand: the load first.
        (Some(size), Effect::Store(_)) => {
            note(b, i, decoded, size);
            instrumented::emit_store(b, i, decoded, Spill::T0);
        }
        (Some(size), _) => load(b, i, decoded, size, Spill::T0),
        (None, Effect::Store(_)) => instrumented::emit_store(b, i, decoded, Spill::T0),
        (None, _) if decoded.is_stack_instruction() => emulate::emit(b, i.pc, i.pc, emulate::What::Unsupported),
        (None, _) => b.copy(i),
    }
}

fn add_site(b: &mut Builder<'_>, i: Instruction) -> u32 {
    let same = order::same_path(b);
    site::add(b.thread, i.pc, &i.bytes[..i.scan.len as usize], (kind::LOAD, 0), 8, flag::CAPTURED | same)
}

/// An instruction that only reads its operand.
fn load(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded, size: u32, slot: Spill) {
    let site = add_site(b, i);
    instrumented::explicit(b, i, decoded, site, size, Value::Number(size), slot);
}

/// Records that the operand is read, without the instruction itself.
fn note(b: &mut Builder<'_>, i: Instruction, decoded: &Decoded, size: u32) {
    let site = add_site(b, i);
    instrumented::touch(b, i, decoded, site, size);
}

/// `mov rdx, [pointer in PM]` on behalf of an indirect branch; t0 is taken.
pub fn branch_target(b: &mut Builder<'_>, i: Instruction) {
    let mut decoded = instrumented::decode(i);
    debug_assert!(matches!(i.scan.class, Class::JmpInd | Class::CallInd) && decoded.op0_kind() == OpKind::Memory);
    decoded =
        match Decoded::with2(iced_x86::Code::Mov_r64_rm64, iced_x86::Register::RDX, instrumented::operand(&decoded)) {
            Ok(mov) => mov,
            Err(_) => return emulate::emit(b, i.pc, i.pc, emulate::What::Unsupported),
        };
    debug_assert!(decoded.mnemonic() == Mnemonic::Mov);
    load(b, i, &decoded, 8, Spill::T3);
}
