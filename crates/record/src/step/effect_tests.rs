//! Differential test: the stores that this table predicts against those that another decoder (iced) knows of.

use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory, OpAccess, Register};
use yaxpeax_x86::long_mode::InstDecoder;

use super::*;

/// xorshift; the test needs variety, not quality.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Distinct values, so that no two addresses coincide by accident. rdx:rax request x87, SSE and AVX state.
fn registers() -> Registers {
    // SAFETY: all-zero is a valid value of this struct of integers.
    let mut r: Registers = unsafe { std::mem::zeroed() };
    (r.rax, r.rcx, r.rdx, r.rbx) = (0x7, 0x1_0002_0000, 0, 0x3_0000_0000);
    (r.rsp, r.rbp, r.rsi, r.rdi) = (0x4_0000_0000, 0x5_0000_0000, 0x6_0000_0000, 0x7_0000_0000);
    (r.r8, r.r9, r.r10, r.r11) = (0x8_0000_1000, 0x9_0000_2000, 0xa_0000_3000, 0xb_0000_4000);
    (r.r12, r.r13, r.r14, r.r15) = (0xc_0000_5000, 0xd_0000_6000, 0xe_0000_7000, 0xf_0000_8000);
    (r.rip, r.fs_base, r.gs_base, r.eflags) = (0x40_0000, 0x100_0000_0000, 0x200_0000_0000, 2);
    r
}

fn value(r: &Registers, register: Register) -> u64 {
    let whole =
        [r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15];
    match register {
        Register::FS => r.fs_base,
        Register::GS => r.gs_base,
        _ if register.is_gpr64() => whole[register.number()],
        _ if register.is_gpr32() => whole[register.number()] & 0xffff_ffff,
        _ => 0,
    }
}

/// A plausible instruction: prefixes, an opcode of some map, operands.
fn random_code(random: &mut Random) -> Vec<u8> {
    let mut code = Vec::new();
    for prefix in [0x66, 0xf2, 0xf3, 0xf0, 0x64, 0x67] {
        if random.below(6) == 0 {
            code.push(prefix);
        }
    }
    match random.below(8) {
        0 => code.extend([0xc5, random.next() as u8]),
        1 => code.extend([0xc4, random.next() as u8 & 0xe0 | (1 + random.below(3) as u8), random.next() as u8]),
        2 | 3 => {
            let third = random.next() as u8 | 4;
            code.extend([
                0x62,
                random.next() as u8 & 0xf0 | (1 + random.below(3) as u8),
                third,
                random.next() as u8 & !0x10,
            ]);
        }
        n => {
            if random.below(2) == 0 {
                code.push(0x40 | random.next() as u8 & 0xf);
            }
            match n {
                4 => {}
                5 => code.extend([0x0f, 0x38]),
                _ => code.push(0x0f),
            }
        }
    }
    code.extend((0..12).map(|_| random.next() as u8));
    code.truncate(15);
    code
}

#[test]
fn stores_agree_with_another_decoder() {
    let r = registers();
    let all_enabled = || Ok::<_, ()>(ExtendedState::new(vec![0xff; 16 << 10]));
    let mut factory = InstructionInfoFactory::new();
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut compared, mut storing) = (0, 0);
    let mut differences = std::collections::BTreeMap::new();
    for _ in 0..300_000 {
        let code = random_code(&mut random);
        let theirs = Decoder::with_ip(64, &code, r.rip, DecoderOptions::NONE).decode();
        let Ok(ours) = InstDecoder::default().decode_slice(&code) else { continue };
        // Two REX prefixes in a row: the decoders take different ones, compilers write none.
        let doubled = code.windows(2).any(|pair| pair.iter().all(|byte| byte & 0xf0 == 0x40));
        if doubled || theirs.is_invalid() || theirs.len() != operand::length(&ours) as usize || theirs.is_vsib() {
            continue;
        }
        compared += 1;
        let effect = effect(&code, &ours, &r, all_enabled).unwrap();
        let mut predicted: Vec<(u64, u64)> = effect.stores.iter().map(|span| (span.address, span.len)).collect();
        let mut known: Vec<(u64, u64)> = Vec::new();
        for memory in factory.info(&theirs).used_memory() {
            if matches!(
                memory.access(),
                OpAccess::Write | OpAccess::ReadWrite | OpAccess::CondWrite | OpAccess::ReadCondWrite
            ) {
                let address = memory.virtual_address(0, |register, _, _| Some(value(&r, register))).unwrap();
                known.push((address, memory.memory_size().size() as u64));
            }
        }
        storing += usize::from(!known.is_empty());
        predicted.sort_unstable();
        known.sort_unstable();
        if predicted != known && !is_known_difference(&theirs, &predicted, &known) {
            differences
                .entry(format!("{:?}", theirs.code()))
                .or_insert_with(|| format!("{ours}: predicted {predicted:x?}, known {known:x?}, code {code:02x?}"));
        }
    }
    assert!(compared > 30_000 && storing > 5_000, "only {compared} compared, {storing} of them store");
    let shown: Vec<String> = differences.into_iter().map(|(code, text)| format!("{code}: {text}")).collect();
    assert!(shown.is_empty(), "{} kinds differ:\n{}", shown.len(), shown.join("\n"));
}

/// Where iced's view is coarser than what the processor does.
fn is_known_difference(theirs: &iced_x86::Instruction, predicted: &[(u64, u64)], known: &[(u64, u64)]) -> bool {
    use iced_x86::Mnemonic::*;
    match theirs.mnemonic() {
        // iced gives no size for these areas, or counts the repeat count.
        Xsave | Xsave64 | Xsaveopt | Xsaveopt64 | Xsavec | Xsavec64 | Fxsave | Fxsave64 => {
            predicted.len() == 1 && known.len() == 1 && predicted[0].0 == known[0].0
        }
        // The bit number in a register selects another word: iced reports the first one.
        Bts | Btr | Btc => predicted.len() == 1 && theirs.op1_kind() == iced_x86::OpKind::Register,
        // Privileged, refused, or to no memory that could be PM (shadow stacks, enqueue registers).
        Xsaves | Xsaves64 | Insb | Insw | Insd | Enter | Call | Clrssbsy | Rstorssp | Enqcmd | Enqcmds => true,
        Movsb | Movsw | Movsd | Movsq | Stosb | Stosw | Stosd | Stosq => {
            theirs.has_rep_prefix() || theirs.has_repne_prefix()
        }
        _ => false,
    }
}
