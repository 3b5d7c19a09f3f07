//! The instructions that the translator puts together itself: what a decoder reads is what was meant.

use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};

use crate::emit::{Emit, RAX, RBP, RCX, RDI, RDX, RSI, RSP};

const R8: u8 = 8;
const R12: u8 = 12;
const R13: u8 = 13;
const R15: u8 = 15;

/// Emits into a buffer and reads it back, an instruction per line.
fn read_back(write: impl FnOnce(&mut Emit)) -> String {
    let mut code = vec![0u8; 4096];
    let start = code.as_mut_ptr() as u64;
    let mut emit = Emit { at: start, end: start + code.len() as u64, full: false };
    write(&mut emit);
    assert!(!emit.full);
    let used = (emit.at - start) as usize;
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    // At a fixed address: relative branches then read the same in every run.
    for instruction in &mut Decoder::with_ip(64, &code[..used], 0x1000, DecoderOptions::NONE) {
        assert!(!instruction.is_invalid(), "at {:#x}", instruction.ip());
        formatter.format(&instruction, &mut text);
        text.push('\n');
    }
    text
}

#[test]
fn registers_go_to_the_thread_and_back() {
    let text = read_back(|emit| {
        emit.save(0x38, RAX);
        emit.save(0x40, R15);
        emit.load(RSP, 0x50);
        emit.load(R8, 0x58);
        emit.save_imm(0x40, 7);
        emit.save_imm64(0x38, 0x7fff_f7a0_1234);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn constants_of_every_size() {
    let text = read_back(|emit| {
        emit.constant(RCX, 5);
        emit.constant(R12, 0x7100_0000);
        emit.constant(RDX, 0x7fff_f7a0_1234);
        emit.constant(R13, u64::MAX);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn an_address_becomes_its_alias_and_back() {
    let text = read_back(|emit| {
        emit.flip_to_alias(RDI);
        emit.flip_to_alias(R12);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn memory_behind_every_kind_of_base() {
    let text = read_back(|emit| {
        for base in [RAX, RSP, RBP, R12, R13, RSI] {
            emit.lea(RDX, base, 0);
            emit.load_from(R8, base, 16);
            emit.store_imm(base, 8, 0xff);
            emit.store(base, 0x1234, RDX);
        }
    });
    insta::assert_snapshot!(text);
}

#[test]
fn branches_go_where_they_are_patched_to() {
    let text = read_back(|emit| {
        let start = emit.at;
        let over = emit.jcc(4);
        let jump = emit.jmp();
        emit.u8(0x90);
        let here = emit.at;
        emit.patch(over, here);
        emit.patch(jump, start);
        emit.jump_through(0x7000_1230);
        emit.call_through(0x7000_1238);
    });
    insta::assert_snapshot!(text);
}

#[test]
fn what_does_not_fit_is_not_written() {
    let mut code = [0xccu8; 16];
    let start = code.as_mut_ptr() as u64;
    let mut emit = Emit { at: start, end: start + 8, full: false };
    emit.bytes(&[1, 2, 3, 4, 5, 6]);
    emit.bytes(&[7, 8, 9]);
    assert!(emit.full && emit.at == start + 6);
    assert_eq!(code[..8], [1, 2, 3, 4, 5, 6, 0xcc, 0xcc]);
}
