//! Effects where a detail of one instruction decides.

use iced_x86::{Decoder, DecoderOptions, Register};
use isa::effect::{Effect, Form, How, LoadForm, MaskSource, Opmask, StoreShape, StringAt, effect, loads};

fn decode(bytes: &[u8]) -> iced_x86::Instruction {
    let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
    assert_eq!(instruction.len(), bytes.len(), "{bytes:02x?} is not one instruction");
    instruction
}

fn plain(form: Form) -> Effect {
    Effect::Store(StoreShape { how: How::Plain, form, also_reads: false })
}

#[test]
fn enter_pushes_once_unless_nested() {
    assert_eq!(effect(&decode(&[0xc8, 0x10, 0, 0])), plain(Form::Push { size: 8 }));
    assert_eq!(effect(&decode(&[0xc8, 0x10, 0, 32])), plain(Form::Push { size: 8 }));
    assert!(matches!(effect(&decode(&[0xc8, 0x10, 0, 1])), Effect::Unsupported(_)));
}

#[test]
fn xchg_with_memory_is_locked_and_with_a_register_nothing() {
    assert_eq!(effect(&decode(&[0x48, 0x87, 0x03])), Effect::Rmw(Form::Explicit { size: 8 }));
    assert_eq!(effect(&decode(&[0x48, 0x87, 0xc3])), Effect::None);
}

#[test]
fn movsd_is_two_instructions() {
    // movsd [rax], xmm1 - movsd (string) - rep movsd - movsd xmm1, [rax]
    assert_eq!(effect(&decode(&[0xf2, 0x0f, 0x11, 0x08])), plain(Form::Explicit { size: 8 }));
    assert_eq!(effect(&decode(&[0xa5])), plain(Form::String { element: 4, repeats: false }));
    assert_eq!(effect(&decode(&[0xf3, 0xa5])), plain(Form::String { element: 4, repeats: true }));
    assert_eq!(effect(&decode(&[0xf2, 0x0f, 0x10, 0x08])), Effect::None);
}

#[test]
fn an_opmask_makes_a_store_masked() {
    // vmovdqu8 [rax]{k3}, zmm1 - vmovss [rax]{k2}, xmm1 - vmovdqu8 [rax], zmm1
    let mask = |k| MaskSource::Opmask(Opmask(k));
    let masked = decode(&[0x62, 0xf1, 0x7f, 0x4b, 0x7f, 0x08]);
    assert_eq!(effect(&masked), plain(Form::Masked { element: 1, size: 64, mask: mask(3) }));
    let scalar = decode(&[0x62, 0xf1, 0x7e, 0x0a, 0x11, 0x08]);
    assert_eq!(effect(&scalar), plain(Form::Masked { element: 4, size: 4, mask: mask(2) }));
    let whole = decode(&[0x62, 0xf1, 0x7f, 0x48, 0x7f, 0x08]);
    assert_eq!(effect(&whole), plain(Form::Explicit { size: 64 }));
}

#[test]
fn a_register_as_bit_number_reaches_beyond_the_operand() {
    // bts [rax], rcx - bts qword [rax], 5
    let form = Form::BitOffset { size: 8, bit: Register::RCX };
    let update = |form| Effect::Store(StoreShape { how: How::Plain, form, also_reads: true });
    assert_eq!(effect(&decode(&[0x48, 0x0f, 0xab, 0x08])), update(form));
    assert_eq!(effect(&decode(&[0xf0, 0x48, 0x0f, 0xab, 0x08])), Effect::Rmw(form));
    assert_eq!(effect(&decode(&[0x48, 0x0f, 0xba, 0x28, 5])), update(Form::Explicit { size: 8 }));
}

#[test]
fn what_touches_no_memory_has_no_effect() {
    // lea, nop with operand, cmp [rax], eax, prefetchw, rdsspq rax, endbr64
    for bytes in [
        &[0x48, 0x8d, 0x03][..],
        &[0x0f, 0x1f, 0x00],
        &[0x39, 0x00],
        &[0x0f, 0x0d, 0x08],
        &[0xf3, 0x48, 0x0f, 0x1e, 0xc8],
        &[0xf3, 0x0f, 0x1e, 0xfa],
    ] {
        assert_eq!(effect(&decode(bytes)), Effect::None, "{bytes:02x?}");
    }
}

#[test]
fn loads_tell_data_from_the_stack() {
    let forms = |bytes: &[u8]| loads(&decode(bytes)).iter().map(|load| load.form).collect::<Vec<_>>();
    // pop rax - ret - pop [rax] - call [rax] - push [rax]
    assert_eq!(forms(&[0x58]), [LoadForm::Stack { size: 8 }]);
    assert_eq!(forms(&[0xc3]), [LoadForm::Stack { size: 8 }]);
    assert_eq!(forms(&[0x8f, 0x00]), [LoadForm::Stack { size: 8 }]);
    assert_eq!(forms(&[0xff, 0x10]), [LoadForm::Explicit { size: 8 }]);
    assert_eq!(forms(&[0xff, 0x30]), [LoadForm::Explicit { size: 8 }]);
    // cmpsb - lea - mov [rax], eax
    let string = |at| LoadForm::String { element: 1, at, repeats: false };
    assert_eq!(forms(&[0xa6]), [string(StringAt::Rsi), string(StringAt::Rdi)]);
    assert_eq!(forms(&[0x48, 0x8d, 0x03]), []);
    assert_eq!(forms(&[0x89, 0x00]), []);
    // add [rax], eax reads what it writes
    let update = loads(&decode(&[0x01, 0x00]));
    assert!(update.iter().all(|load| load.also_writes && load.form == LoadForm::Explicit { size: 4 }));
}
