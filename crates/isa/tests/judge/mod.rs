//! The slow, obviously right reference for `isa::scan`: everything from a full decode.

use iced_x86::{CpuidFeature, Decoder, DecoderOptions, EncodingKind, Instruction, InstructionInfoFactory};
use iced_x86::{Mnemonic, OpAccess, OpKind, Register, RflagsBits};
use isa::scan::{Class, FlagUse, Scan, scan};

const ARITHMETIC: u32 =
    RflagsBits::CF | RflagsBits::PF | RflagsBits::AF | RflagsBits::ZF | RflagsBits::SF | RflagsBits::OF;

/// What became of a comparison.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    Agreed,
    /// The decoder refuses these bytes.
    Invalid,
    /// The decoder knows the instruction, the scanner does not.
    Unknown(Instruction),
}

/// Compares scanner and decoder on the instruction at the start of `bytes` (at least 16); panics if they disagree.
pub fn compare(bytes: &[u8]) -> Verdict {
    let scan = scan(bytes).expect("16 bytes hold any instruction");
    let mut decoder = Decoder::with_ip(64, &bytes[..15], 0x1000, DecoderOptions::NONE);
    let instruction = decoder.decode();
    if scan.class == Class::Unknown {
        assert_eq!(scan.len, 0, "an unknown instruction has no length: {bytes:02x?}");
        return if instruction.is_invalid() { Verdict::Invalid } else { Verdict::Unknown(instruction) };
    }
    if instruction.is_invalid() {
        return Verdict::Invalid;
    }
    let what = || format!("{:?} = {:02x?}\n{scan:?}", instruction.code(), &bytes[..instruction.len()]);
    assert_eq!(scan.len as usize, instruction.len(), "length of {}", what());
    let offsets = decoder.get_constant_offsets(&instruction);
    let rip = instruction.is_ip_rel_memory_operand();
    assert_eq!(scan.disp_at as usize, if rip { offsets.displacement_offset() } else { 0 }, "disp_at of {}", what());
    let class = class_of(&instruction);
    assert_eq!(scan.class, class, "class of {}", what());
    if matches!(class, Class::JccRel | Class::JmpRel | Class::CallRel | Class::LoopLike | Class::RetImm | Class::Xbegin)
    {
        assert_eq!(scan.imm_at as usize, offsets.immediate_offset(), "imm_at of {}", what());
    }
    if class == Class::JccRel {
        assert_eq!(scan.cond as u32 + 1, condition(&instruction), "condition of {}", what());
    }
    if scan.modrm_at != 0 && instruction.op_count() > 0 && scan.map as u8 <= 3 {
        let memory = (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
        assert_eq!(scan.has_modrm_memory(), memory, "memory operand of {}", what());
    }
    assert_eq!(scan.lock, instruction.has_lock_prefix(), "lock of {}", what());
    check_flags(&scan, &instruction, &what);
    Verdict::Agreed
}

fn condition(instruction: &Instruction) -> u32 {
    // iced numbers the conditions as the opcode does, after `None`.
    instruction.condition_code() as u32
}

fn check_flags(scan: &Scan, instruction: &Instruction, what: &dyn Fn() -> String) {
    let read = instruction.rflags_read() & ARITHMETIC;
    let changed = instruction.rflags_modified() & ARITHMETIC;
    match scan.flags {
        FlagUse::Reads => {}
        _ if read != 0 => panic!("reads flags {read:#x}: {}", what()),
        FlagUse::Kills => assert_eq!(changed, ARITHMETIC, "not all flags are dead before {}", what()),
        FlagUse::Keeps => assert_eq!(changed, 0, "writes flags: {}", what()),
        FlagUse::Mixed => {}
    }
}

fn class_of(instruction: &Instruction) -> Class {
    use Mnemonic as M;
    if instruction.has_lock_prefix() {
        return Class::Locked;
    }
    match instruction.mnemonic() {
        M::Loop | M::Loope | M::Loopne | M::Jrcxz | M::Jecxz => Class::LoopLike,
        M::Jmp if instruction.is_jmp_short_or_near() => Class::JmpRel,
        M::Jmp if instruction.is_jmp_near_indirect() => Class::JmpInd,
        M::Call if instruction.is_call_near() => Class::CallRel,
        M::Call if instruction.is_call_near_indirect() => Class::CallInd,
        M::Jmp | M::Call | M::Retf | M::Iret | M::Iretd | M::Iretq | M::Sysenter | M::Sysexit | M::Sysexitq => {
            Class::Unsupported
        }
        M::Sysret | M::Sysretq | M::Rsm | M::Int1 | M::Enclu | M::Uiret => Class::Unsupported,
        M::Ret if instruction.op_count() == 1 => Class::RetImm,
        M::Ret => Class::Ret,
        M::Syscall => Class::Syscall,
        M::Int3 => Class::Int3,
        M::Int => Class::IntN,
        M::Ud0 | M::Ud1 | M::Ud2 => Class::Ud,
        M::Hlt => Class::Hlt,
        M::Clflush => Class::Clflush,
        M::Clflushopt => Class::Clflushopt,
        M::Clwb => Class::Clwb,
        M::Cldemote => Class::Cldemote,
        M::Sfence => Class::Sfence,
        M::Mfence => Class::Mfence,
        M::Lfence => Class::Lfence,
        M::Rdtsc => Class::Rdtsc,
        M::Rdtscp => Class::Rdtscp,
        M::Rdrand => Class::Rdrand,
        M::Rdseed => Class::Rdseed,
        M::Cpuid => Class::Cpuid,
        M::Xbegin => Class::Xbegin,
        M::Rdgsbase | M::Wrgsbase | M::Swapgs | M::Lgs => Class::GsAccess,
        M::Xchg if has_memory(instruction) => Class::Locked,
        _ if instruction.cpuid_features().contains(&CpuidFeature::CMPCCXADD) => Class::Locked,
        _ if instruction.is_jcc_short_or_near() => Class::JccRel,
        _ if touches_gs(instruction) => Class::GsAccess,
        _ => Class::Plain,
    }
}

fn has_memory(instruction: &Instruction) -> bool {
    (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory)
}

fn touches_gs(instruction: &Instruction) -> bool {
    use Mnemonic as M;
    let register = (0..instruction.op_count())
        .any(|op| instruction.op_kind(op) == OpKind::Register && instruction.op_register(op) == Register::GS);
    if register || instruction.segment_prefix() != Register::GS {
        return register;
    }
    // iced does not list the segment of these.
    if matches!(instruction.mnemonic(), M::Monitor | M::Monitorx | M::Umonitor | M::Clzero) {
        return true;
    }
    let mut factory = InstructionInfoFactory::new();
    let memory = factory.info(instruction).used_memory();
    memory.iter().any(|memory| memory.segment() == Register::GS && memory.access() != OpAccess::NoMemAccess)
}

/// XOP is left out on purpose, and near branches with a 66 prefix are not the same on all processors.
pub fn is_left_out(instruction: &Instruction, bytes: &[u8]) -> bool {
    let branch = instruction.is_jcc_short_or_near()
        || instruction.is_jmp_short_or_near()
        || instruction.is_jmp_near_indirect()
        || instruction.is_call_near()
        || instruction.is_call_near_indirect()
        || matches!(instruction.mnemonic(), Mnemonic::Ret | Mnemonic::Xbegin | Mnemonic::Jrcxz | Mnemonic::Jecxz)
        || matches!(instruction.mnemonic(), Mnemonic::Loop | Mnemonic::Loope | Mnemonic::Loopne);
    instruction.op_code().encoding() == EncodingKind::XOP || branch && bytes[..instruction.len()].contains(&0x66)
}
