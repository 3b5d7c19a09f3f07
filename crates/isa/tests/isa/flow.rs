//! What flow mode logs: golden words for small blocks, and a check of the layout against plain address arithmetic.

use iced_x86::{Decoder, DecoderOptions, Instruction, InstructionInfoFactory, OpAccess, Register};
use isa::flow::{Layout, Logged, Place, Root, When};

const BASE: u64 = 0x40_0000;

fn decode(bytes: &[u8]) -> Vec<Instruction> {
    Decoder::with_ip(64, bytes, BASE, DecoderOptions::NONE).iter().collect()
}

fn layout(bytes: &[u8]) -> Layout {
    Layout::new(&decode(bytes))
}

fn slot(layout: &Layout, number: usize, nth: usize) -> (Logged, Place) {
    let value = layout.values(number)[nth];
    (value.what, value.place)
}

#[test]
fn a_base_register_is_logged_once() {
    // mov rax,[rdi]; mov rcx,[rdi+8]; mov [rdi+rcx*8],rax
    let l = layout(&[0x48, 0x8b, 0x07, 0x48, 0x8b, 0x4f, 0x08, 0x48, 0x89, 0x04, 0xcf]);
    assert_eq!(l.slots().len(), 2);
    assert_eq!(l.slots()[0].root, Root::Register(Register::RDI));
    assert_eq!(slot(&l, 1, 0), (Logged::Operand, Place::Slot { slot: 0, plus: 8 }));
    assert_eq!(slot(&l, 2, 0), (Logged::Operand, Place::Slot { slot: 1, plus: 0 }));
    assert_eq!((l.words_of(1), l.words_of(2), l.words_of(3)), (1, 1, 2));
}

#[test]
fn a_written_register_is_logged_again() {
    // mov rdi,[rdi]; mov rdi,[rdi]
    let l = layout(&[0x48, 0x8b, 0x3f, 0x48, 0x8b, 0x3f]);
    assert_eq!(l.slots().len(), 2);
}

#[test]
fn pushes_pops_and_constants_are_followed() {
    // push rbp; mov rbp,rsp; sub rsp,0x20; mov [rbp-8],rdi; pop rax; ret
    let l = layout(&[0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x48, 0x89, 0x7d, 0xf8, 0x58, 0xc3]);
    assert_eq!(l.slots().len(), 1);
    assert_eq!(slot(&l, 0, 0), (Logged::Stack, Place::Slot { slot: 0, plus: 0 }));
    assert_eq!(slot(&l, 3, 0), (Logged::Operand, Place::Slot { slot: 0, plus: 16u64.wrapping_neg() }));
    assert_eq!(slot(&l, 4, 0), (Logged::Stack, Place::Slot { slot: 0, plus: 0x28u64.wrapping_neg() }));
    assert_eq!(slot(&l, 5, 0), (Logged::Stack, Place::Slot { slot: 0, plus: 0x20u64.wrapping_neg() }));
}

#[test]
fn fixed_addresses_are_not_logged() {
    // mov rax,[rip+0x10]; lea rdi,[rip+0]; mov [rdi+4],eax
    let l = layout(&[0x48, 0x8b, 0x05, 0x10, 0, 0, 0, 0x48, 0x8d, 0x3d, 0, 0, 0, 0, 0x89, 0x47, 0x04]);
    assert!(l.slots().is_empty());
    assert_eq!(slot(&l, 0, 0).1, Place::Fixed(BASE + 7 + 0x10));
    assert!(l.values(1).is_empty());
    assert_eq!(slot(&l, 2, 0).1, Place::Fixed(BASE + 14 + 4));
}

#[test]
fn strings_have_source_destination_and_counts() {
    let kinds = |bytes: &[u8]| layout(bytes).values(0).iter().map(|v| v.what).collect::<Vec<_>>();
    assert_eq!(kinds(&[0xf3, 0x48, 0xa5]), [Logged::Source, Logged::Destination, Logged::Count]);
    assert_eq!(kinds(&[0xaa]), [Logged::Destination]);
    assert_eq!(kinds(&[0xf2, 0xae]), [Logged::Destination, Logged::Count, Logged::Remaining]);
    let l = layout(&[0xf2, 0xae]);
    assert_eq!(l.slots()[2].when, When::After);
}

#[test]
fn what_carries_no_data_is_not_logged() {
    for bytes in [
        &[0x0f, 0x1f, 0x44, 0x00, 0x00][..], // nop [rax+rax]
        &[0x48, 0x8d, 0x04, 0x07],           // lea
        &[0x0f, 0x18, 0x0f],                 // prefetcht0
        &[0x66, 0x0f, 0xae, 0x37],           // clwb
        &[0x66, 0x0f, 0xae, 0x3f],           // clflushopt
        &[0xf3, 0x0f, 0x1e, 0xfa],           // endbr64
        &[0x0f, 0x05],                       // syscall
    ] {
        assert!(layout(bytes).values(0).is_empty(), "{bytes:x?}");
    }
}

#[test]
fn operands_that_reach_elsewhere_are_opaque() {
    for bytes in [
        &[0x48, 0x0f, 0xab, 0x07][..],         // bts [rdi], rax
        &[0x0f, 0xae, 0x27],                   // xsave [rdi]
        &[0xc4, 0xe2, 0xed, 0x90, 0x04, 0x0f], // vpgatherdq ymm0, [rdi+xmm1], ymm2
        &[0xd7],                               // xlat
    ] {
        let l = layout(bytes);
        assert!(l.values(0)[0].opaque, "{bytes:x?}");
    }
    assert!(!layout(&[0x0f, 0xab, 0x07][..]).values(0).is_empty());
    assert!(!layout(&[0x0f, 0xba, 0x2f, 0x03]).values(0)[0].opaque); // bts [rdi], 3
}

/// A toy machine that knows just what `track` may assume: where it says "plus a constant", the machine must agree.
#[test]
fn derived_values_agree_with_plain_arithmetic_on_random_code() {
    let mut seed = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let pool: &[&[u8]] = &[
        &[0x48, 0x83, 0xc7, 0x10],                      // add rdi,16
        &[0x48, 0x83, 0xee, 0x08],                      // sub rsi,8
        &[0x48, 0xff, 0xc7],                            // inc rdi
        &[0x48, 0xff, 0xce],                            // dec rsi
        &[0x48, 0x89, 0xfe],                            // mov rsi,rdi
        &[0x48, 0x8d, 0x7e, 0x20],                      // lea rdi,[rsi+32]
        &[0x50],                                        // push rax
        &[0x5f],                                        // pop rdi
        &[0x48, 0x8b, 0x07],                            // mov rax,[rdi]
        &[0x48, 0x8b, 0x44, 0xf7, 0x08],                // mov rax,[rdi+rsi*8+8]
        &[0x48, 0x89, 0x46, 0x18],                      // mov [rsi+24],rax
        &[0x8f, 0x44, 0x24, 0x10],                      // pop [rsp+16]
        &[0xff, 0x74, 0x24, 0x08],                      // push [rsp+8]
        &[0x48, 0x0f, 0xaf, 0xfe],                      // imul rdi,rsi
        &[0x89, 0xff],                                  // mov edi,edi
        &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0], // mov rax,fs:[0x28]
        &[0x67, 0x8b, 0x07],                            // mov eax,[edi]
        &[0xc9],                                        // leave
    ];
    for _ in 0..3000 {
        let bytes: Vec<u8> = (0..12).flat_map(|_| pool[random() as usize % pool.len()].iter().copied()).collect();
        let instructions = decode(&bytes);
        let layout = Layout::new(&instructions);
        let mut machine = Machine { registers: std::array::from_fn(|_| random() >> 20), fs: random() >> 20 };
        let mut words = Vec::new();
        for (number, instruction) in instructions.iter().enumerate() {
            let before = machine.clone();
            for slot in layout.slots().iter().filter(|s| s.instruction as usize == number && s.when == When::Before) {
                words.push(before.root(slot.root, instruction));
            }
            for value in layout.values(number) {
                let expected = before.value(value.what, instruction);
                assert_eq!(value.resolve(&words), Some(expected), "{value:?} of {instruction:?} in {bytes:x?}");
            }
            machine.step(instruction, &mut random);
        }
        assert_eq!(words.len(), layout.slots().len());
    }
}

#[derive(Clone)]
struct Machine {
    registers: [u64; 16],
    fs: u64,
}

impl Machine {
    fn get(&self, register: Register) -> u64 {
        match register {
            Register::None => 0,
            r if r.is_gpr32() => self.registers[r.full_register().number()] & 0xffff_ffff,
            r => self.registers[r.number()],
        }
    }

    fn root(&self, root: Root, i: &Instruction) -> u64 {
        match root {
            Root::Register(r) => self.get(r),
            Root::Sum { base, index, scale, fs } => self
                .get(base)
                .wrapping_add(self.get(index).wrapping_mul(scale.into()))
                .wrapping_add(if fs { self.fs } else { 0 }),
            Root::Operand { .. } => self.value(Logged::Operand, i),
            Root::Vector { .. } | Root::Mask(_) | Root::Content { .. } | Root::Condition(_) => {
                panic!("only values mode has {root:?}")
            }
        }
    }

    fn value(&self, what: Logged, i: &Instruction) -> u64 {
        match what {
            Logged::Operand => {
                let mut machine = self.clone();
                if i.mnemonic() == iced_x86::Mnemonic::Pop {
                    machine.registers[4] = machine.registers[4].wrapping_add(8);
                }
                let get = |register: Register, _, _| match register {
                    Register::FS => Some(machine.fs),
                    segment if segment.is_segment_register() => Some(0),
                    register => Some(machine.get(register)),
                };
                let is_memory = |op: &u32| i.op_kind(*op) == iced_x86::OpKind::Memory;
                i.virtual_address((0..2).find(is_memory).unwrap(), 0, get).unwrap()
            }
            Logged::Stack if i.mnemonic() == iced_x86::Mnemonic::Leave => self.registers[5],
            Logged::Stack => self.registers[4],
            _ => unreachable!("no strings here"),
        }
    }

    /// Carries out the few instructions whose result must be exact; what others write is random.
    fn step(&mut self, i: &Instruction, random: &mut impl FnMut() -> u64) {
        use iced_x86::Mnemonic as M;
        let before = self.clone();
        for used in InstructionInfoFactory::new().info(i).used_registers() {
            let r = used.register().full_register();
            if r.is_gpr64() && !matches!(used.access(), OpAccess::Read | OpAccess::CondRead) {
                self.registers[r.number()] = random() >> 20;
            }
        }
        let to = i.op0_register().number();
        match i.mnemonic() {
            M::Add => self.registers[to] = before.registers[to].wrapping_add(i.immediate(1)),
            M::Sub => self.registers[to] = before.registers[to].wrapping_sub(i.immediate(1)),
            M::Inc => self.registers[to] = before.registers[to].wrapping_add(1),
            M::Dec => self.registers[to] = before.registers[to].wrapping_sub(1),
            M::Mov if i.op0_register().is_gpr64() && i.op1_register().is_gpr64() => {
                self.registers[to] = before.get(i.op1_register());
            }
            M::Lea => self.registers[to] = before.get(i.memory_base()).wrapping_add(i.memory_displacement64()),
            M::Push => self.registers[4] = before.registers[4].wrapping_sub(8),
            M::Pop => self.registers[4] = before.registers[4].wrapping_add(8),
            M::Leave => self.registers[4] = before.registers[5].wrapping_add(8),
            _ => {}
        }
    }
}
