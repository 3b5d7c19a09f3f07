//! Random programs: two functions of a few blocks, and a way through them with made-up addresses.

use iced_x86::code_asm::{CodeAssembler, CodeLabel, *};
use iced_x86::{Decoder, DecoderOptions, Instruction, Register};
use isa::flow::{Layout, Root};

use crate::naive::POOL_AT;

pub struct Block {
    pub pc: u64,
    pub bytes: Vec<u8>,
    pub instructions: Vec<Instruction>,
    pub layout: Layout,
    pub ends: Ends,
}

/// Blocks are named by their place in [`Program::blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Goes(usize),
    Branches(usize, usize),
    /// Calls the second function, and goes on there.
    Calls(usize),
    Returns,
}

pub struct Program {
    pub blocks: Vec<Block>,
    /// Where the second function begins.
    callee: usize,
}

pub struct Random(u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

const GENERAL: [AsmRegister64; 6] = [rax, rbx, rcx, rdx, rsi, rdi];
const HALF: [AsmRegister32; 6] = [eax, ebx, ecx, edx, esi, edi];
const BYTE: [AsmRegister8; 6] = [al, bl, cl, dl, sil, dil];
const VECTOR: [AsmRegisterXmm; 3] = [xmm0, xmm1, xmm2];
/// Bases of operands; never written, so that all addresses can be made up.
const BASES: [AsmRegister64; 3] = [r8, r9, r10];

fn one(a: &mut CodeAssembler, random: &mut Random) -> Result<(), iced_x86::IcedError> {
    let n = |random: &mut Random| random.below(6);
    let (x, y) = (n(random), n(random));
    let base = BASES[random.below(3)] + [0, 4, 8, 16][random.below(4)];
    let v = VECTOR[random.below(3)];
    match random.below(32) {
        0..=3 => a.mov(GENERAL[x], qword_ptr(base)),
        4..=6 => a.mov(qword_ptr(base), GENERAL[x]),
        7 => a.mov(HALF[x], dword_ptr(base)),
        8 => a.mov(dword_ptr(base), HALF[x]),
        9 => a.movzx(HALF[x], byte_ptr(base)),
        10 => a.mov(BYTE[x], byte_ptr(base)),
        11 => a.mov(byte_ptr(base), BYTE[x]),
        12 => a.sete(BYTE[x]),
        13 => a.movzx(HALF[x], BYTE[y]),
        14 => a.add(GENERAL[x], GENERAL[y]),
        15 => a.add(GENERAL[x], qword_ptr(base)),
        16 => a.add(qword_ptr(base), GENERAL[x]),
        17 => a.lea(GENERAL[x], qword_ptr(GENERAL[x] + GENERAL[y] * 2 + 4)),
        18 => a.xor(HALF[x], HALF[y]),
        19 => a.sub(GENERAL[x], GENERAL[x]),
        20 => a.cmp(GENERAL[x], qword_ptr(base)),
        21 => a.test(GENERAL[x], GENERAL[y]),
        22 => a.cmove(GENERAL[x], GENERAL[y]),
        23 => a.push(GENERAL[x]),
        24 => a.pop(GENERAL[x]),
        25 => a.xchg(GENERAL[x], GENERAL[y]),
        26 => a.xchg(qword_ptr(base), GENERAL[x]),
        27 => a.movups(v, xmmword_ptr(base)),
        28 => a.movups(xmmword_ptr(base), v),
        29 => a.paddd(v, VECTOR[random.below(3)]),
        30 => match random.below(6) {
            0 => a.pxor(v, v),
            1 => a.inc(GENERAL[x]),
            2 => a.adc(GENERAL[x], GENERAL[y]),
            3 => a.mul(GENERAL[x]),
            4 => a.rep().movsb(),
            _ => a.mov(ah, BYTE[random.below(4)]),
        },
        _ => match random.below(4) {
            0 => a.mov(GENERAL[x], GENERAL[y]),
            1 => a.mov(GENERAL[x], 7u64),
            2 => a.mov(qword_ptr(base), 5),
            _ => a.cmp(qword_ptr(base), 0),
        },
    }
}

impl Program {
    pub fn random(seed: u64) -> Program {
        let mut random = Random(seed);
        let mut a = CodeAssembler::new(64).unwrap();
        let (count, callee) = (9, 6);
        let mut labels: Vec<CodeLabel> = (0..count).map(|_| a.create_label()).collect();
        let mut ends = Vec::new();
        for at in 0..count {
            a.set_label(&mut labels[at]).unwrap();
            let own = if at < callee { 0..callee } else { callee..count };
            let jump = own.start + random.below(own.len());
            let end = match random.below(8) {
                _ if at + 1 == own.end => Ends::Returns,
                0 => Ends::Returns,
                1 => Ends::Goes(jump),
                2 if at < callee => Ends::Calls(at + 1),
                _ => Ends::Branches(jump, at + 1),
            };
            // Where frames come and go the stack pointer must be what the walk says.
            let plain = matches!(end, Ends::Calls(_) | Ends::Returns);
            if !plain {
                for _ in 0..2 + random.below(8) {
                    one(&mut a, &mut random).unwrap();
                }
            } else {
                a.nop().unwrap();
            }
            match end {
                Ends::Returns => a.ret(),
                Ends::Goes(to) => a.jmp(labels[to]),
                Ends::Calls(_) => a.call(labels[callee]),
                Ends::Branches(to, _) => match random.below(3) {
                    0 => a.jz(labels[to]),
                    1 => a.jb(labels[to]),
                    _ => a.jle(labels[to]),
                },
            }
            .unwrap();
            ends.push(end);
        }
        let options = iced_x86::BlockEncoderOptions::RETURN_NEW_INSTRUCTION_OFFSETS;
        let made = a.assemble_options(0x40_0000, options).unwrap();
        let starts: Vec<u64> = labels.iter().map(|label| made.label_ip(label).unwrap()).collect();
        let bytes = made.inner.code_buffer;
        let blocks = ends.into_iter().enumerate().map(|(at, ends)| {
            let pc = starts[at];
            let end = starts.get(at + 1).copied().unwrap_or(0x40_0000 + bytes.len() as u64);
            let bytes = bytes[(pc - 0x40_0000) as usize..(end - 0x40_0000) as usize].to_vec();
            let instructions: Vec<Instruction> =
                Decoder::with_ip(64, &bytes, pc, DecoderOptions::NONE).into_iter().collect();
            let layout = Layout::new(&instructions);
            Block { pc, bytes, instructions, layout, ends }
        });
        Program { blocks: blocks.collect(), callee }
    }

    /// A way through the program: blocks and their words.
    pub fn walk(&self, seed: u64) -> Vec<(usize, Vec<u64>)> {
        let mut random = Random(seed);
        let (mut at, mut steps) = (0, Vec::new());
        let mut returns = Vec::new();
        while steps.len() < 120 {
            let block = &self.blocks[at];
            let depth = returns.len() as u64;
            let stack = |depth: u64| 0x7fff_0000 - depth * 0x1000;
            let word = |root: Root, random: &mut Random| match root {
                Root::Register(Register::RSP) if block.ends == Ends::Returns => stack(depth.max(1) - 1) - 8,
                Root::Register(Register::RSP) => stack(depth),
                Root::Register(Register::RCX) => random.below(25) as u64,
                _ => {
                    let offset = [0, 8, 64, 128, 192, 256][random.below(6)];
                    if random.below(2) == 0 { POOL_AT + offset } else { 0x5555_0000 + offset }
                }
            };
            let words = block.layout.slots().iter().map(|slot| word(slot.root, &mut random)).collect();
            steps.push((at, words));
            at = match block.ends {
                Ends::Goes(to) => to,
                Ends::Branches(to, next) => [to, next][random.below(2)],
                Ends::Calls(next) => {
                    returns.push(next);
                    self.callee
                }
                // The outermost one is called again from outside.
                Ends::Returns => returns.pop().unwrap_or_default(),
            };
        }
        steps
    }
}
