//! The code of a block in flow mode.

use alloc::vec::Vec;
use core::mem::offset_of;

use iced_x86::{Code, Instruction as Decoded, InstructionInfoFactory, MemoryOperand, Mnemonic, Register};
use isa::flow::{Layout, LoggedWord, Root, When};
use isa::scan::{Class, scan};
use wire::record::{Header, flow, kind};

use super::buffer::{AHEAD, Buffer};
use super::cut::BlockEntry;
use crate::ring;
use crate::thread::Thread;
use crate::translate::branch::{self, After};
use crate::translate::build::{Builder, Instruction, MAX_INSTRUCTIONS};
use crate::translate::emit::Reg;
use crate::translate::guarded::UnderEngineLock;
use crate::translate::instrumented::{self, NO_REG};
use crate::translate::marks::Flavour;
use crate::translate::{code, emulate, marked, watch};

/// Registers that may be put away, in order of preference: those that code uses least come first. Never rsp and rbp: call
/// paths are found with them.
const SPARE: [Reg; 14] = [15, 14, 11, 10, 13, 12, 9, 8, 3, 2, 1, 6, 7, 0];

/// Instructions of a block in values mode, so that an entry is never longer than [`AHEAD`].
const MOST_WITH_VALUES: usize = 14;

/// Why there is no further instruction in the block.
enum Ending {
    /// The last instruction is not simply copied.
    Special,
    /// The block is long enough, or the next instruction belongs to another.
    Plain,
    /// There is no instruction at all.
    Nothing(emulate::What),
    Unknown,
}

/// The program's instructions of one block.
struct Found {
    instructions: Vec<(Instruction, Decoded)>,
    /// General registers that must keep their places, a bit each.
    used: u16,
    ending: Ending,
}

pub fn emit(b: &mut Builder<'_>) {
    let pc = b.pc;
    if watch::is_return(pc) {
        watch::emit_return(b, pc);
    }
    if watch::is_entry(pc) {
        watch::emit_entry(b, pc);
    }
    let found = find(b, pc);
    let Some(&(last, _)) = found.instructions.last() else {
        return match found.ending {
            Ending::Nothing(what) => emulate::emit(b, pc, pc, what),
            _ => {
                let Some(bytes) = code::bytes(pc) else { return emulate::emit(b, pc, pc, emulate::What::NoCode) };
                let Some(scan) = scan(&bytes) else { return emulate::emit(b, pc, pc, emulate::What::NoCode) };
                emulate::emit_unknown(b, Instruction { pc, bytes, scan })
            }
        };
    };
    let decoded: Vec<Decoded> = found.instructions.iter().map(|(_, decoded)| *decoded).collect();
    let layout = if super::values() { Layout::with_values(&decoded) } else { Layout::new(&decoded) };
    let number = announce(b, &found.instructions);
    let special = matches!(found.ending, Ending::Special);
    let open = found.instructions.len() - usize::from(special);
    let x = spare(found.used);
    let needs_y = layout.slots().iter().any(|slot| !matches!(slot.root, Root::Register(_)));
    let y = if needs_y { spare(found.used | 1 << x) } else { NO_REG };

    let mut log = Log { x, y, slots: layout.slots(), next: 0 };
    log.begin(b, number);
    for (n, (i, decoded)) in found.instructions.iter().enumerate().take(open) {
        log.slots_at(b, n, decoded, When::Before);
        b.mark(Flavour::Clean, i.pc, 0);
        b.copy(*i);
        b.mark(Flavour::Busy, i.pc, 0);
        log.slots_at(b, n, decoded, When::After);
    }
    if special {
        log.slots_at(b, open, &decoded[open], When::Before);
    }
    log.end(b);
    let closed_at = b.emit.at;
    b.flow = Some(BlockEntry {
        x,
        y,
        lengths: found.instructions.iter().map(|(i, _)| i.scan.len).collect(),
        words: (0..=decoded.len()).map(|n| layout.words_of(n) as u16).collect(),
        open,
        closed_at,
        stubs_at: u64::MAX,
    });
    if special {
        emit_special(b, last);
    } else {
        b.mark(Flavour::Clean, last.next(), 0);
        b.jump_out(last.next());
    }
}

/// The instruction that ends the block: a branch, or one that does more than its copy.
fn emit_special(b: &mut Builder<'_>, i: Instruction) {
    b.mark(Flavour::Clean, i.pc, 0);
    match branch::emit(b, i) {
        After::End => return,
        After::Jump(target) => return b.jump_out(target),
        After::Next => {}
        After::NotABranch => b.straight(i),
    }
    b.mark(Flavour::Clean, i.next(), 0);
    b.jump_out(i.next());
}

/// Goes through the program's code up to the end of the block.
fn find(b: &mut Builder<'_>, pc: u64) -> Found {
    let mut found = Found { instructions: Vec::new(), used: 0, ending: Ending::Plain };
    let mut factory = InstructionInfoFactory::new();
    let mut at = pc;
    let most = if super::values() { MOST_WITH_VALUES } else { MAX_INSTRUCTIONS };
    while found.instructions.len() < most {
        let first = found.instructions.is_empty();
        if !first && (watch::is_return(at) || watch::is_entry(at)) {
            break;
        }
        let Some(bytes) = code::bytes(at) else {
            found.ending = Ending::Nothing(emulate::What::NoCode);
            break;
        };
        if crate::pm::is_pm(at) {
            found.ending = Ending::Nothing(emulate::What::CodeInPm);
            break;
        }
        let Some(scan) = scan(&bytes) else {
            found.ending = Ending::Nothing(emulate::What::NoCode);
            break;
        };
        if scan.class == Class::Unknown {
            found.ending = Ending::Unknown;
            break;
        }
        let i = Instruction { pc: at, bytes, scan };
        let decoded = instrumented::decode(i);
        let special = is_special(i, &decoded);
        let mut used = found.used;
        for register in factory.info(&decoded).used_registers() {
            let register = register.register().full_register();
            if register.is_gpr64() {
                used |= 1 << register.number();
            }
        }
        // Two must be left; the last instruction runs with all registers in place, but its operand is logged before.
        if (!used & spare_bits()).count_ones() < 2 && !first {
            break;
        }
        found.used = used;
        b.uses_code(at, i.next());
        found.instructions.push((i, decoded));
        if special {
            found.ending = Ending::Special;
            break;
        }
        at = i.next();
    }
    found
}

/// Does the block end with this instruction?
fn is_special(i: Instruction, decoded: &Decoded) -> bool {
    !matches!(i.scan.class, Class::Plain | Class::Lfence | Class::Cpuid)
        || instrumented::is_known(i.pc)
        || marked::is_mark(i)
        // Another base for what was logged.
        || decoded.mnemonic() == Mnemonic::Wrfsbase
}

fn spare_bits() -> u16 {
    SPARE.iter().fold(0, |bits, reg| bits | 1 << reg)
}

/// A register that is not among `used`. A single instruction never uses all.
fn spare(used: u16) -> Reg {
    SPARE.into_iter().find(|reg| used >> reg & 1 == 0).unwrap_or(SPARE[0])
}

/// Blocks that the host knows.
static COUNT: UnderEngineLock<u32> = UnderEngineLock::new(0);

/// Tells the host of the block; its number.
fn announce(b: &mut Builder<'_>, instructions: &[(Instruction, Decoded)]) -> u32 {
    let number = COUNT.with(|count| {
        *count += 1;
        *count
    });
    let bytes: Vec<u8> =
        instructions.iter().flat_map(|(i, _)| i.bytes[..i.scan.len as usize].iter().copied()).collect();
    let header = Header { kind: kind::BLOCK, site: number, address: b.pc, ..Header::default() };
    ring::order(b.thread).put(header, &[&bytes]);
    number
}

/// Writing the entry.
struct Log<'a> {
    x: Reg,
    y: Reg,
    slots: &'a [LoggedWord],
    /// The slot to be written next.
    next: usize,
}

const fn field(offset: usize) -> usize {
    offset_of!(Thread, flow) + offset
}

impl Log<'_> {
    fn begin(&self, b: &mut Builder<'_>, number: u32) {
        b.mark(Flavour::Busy, b.pc, 0);
        b.emit.save(field(offset_of!(Buffer, x)), self.x);
        if self.y != NO_REG {
            b.emit.save(field(offset_of!(Buffer, y)), self.y);
        }
        b.emit.load(self.x, field(offset_of!(Buffer, at)));
        // Is there room? Whatever is written will be overwritten.
        b.emit.store(self.x, AHEAD as u32, self.x);
        b.emit.store_imm(self.x, 0, flow::whole(number));
    }

    fn end(&self, b: &mut Builder<'_>) {
        let bytes = 8 * (1 + self.slots.len() as u32);
        b.emit.lea(self.x, self.x, bytes);
        b.emit.save(field(offset_of!(Buffer, at)), self.x);
        b.emit.load(self.x, field(offset_of!(Buffer, x)));
        if self.y != NO_REG {
            b.emit.load(self.y, field(offset_of!(Buffer, y)));
        }
    }

    /// Logs what is to be logged before or after instruction `number`.
    fn slots_at(&mut self, b: &mut Builder<'_>, number: usize, decoded: &Decoded, when: When) {
        while let Some(slot) = self.slots.get(self.next)
            && slot.instruction as usize == number
            && slot.when == when
        {
            self.next += 1;
            self.write(b, slot.root, 8 * self.next as u32, decoded);
        }
    }

    fn write(&self, b: &mut Builder<'_>, root: Root, at: u32, decoded: &Decoded) {
        match root {
            Root::Register(register) => b.emit.store(self.x, at, register.number() as Reg),
            Root::Sum { base, index, scale, fs: false } => {
                self.lea(b, MemoryOperand::with_base_index_scale(base, index, scale.into()));
                b.emit.store(self.x, at, self.y);
            }
            Root::Sum { base, index, scale, fs: true } => {
                self.read_fs_base(b);
                if base != Register::None {
                    self.lea(b, MemoryOperand::with_base_index_scale(self.y(), base, 1));
                }
                if index != Register::None {
                    self.lea(b, MemoryOperand::with_base_index_scale(self.y(), index, scale.into()));
                }
                b.emit.store(self.x, at, self.y);
            }
            Root::Operand { fs } => {
                if decoded.is_ip_rel_memory_operand() {
                    b.emit.constant(self.y, decoded.ip_rel_memory_address());
                } else {
                    self.lea(b, instrumented::operand(decoded));
                }
                b.emit.store(self.x, at, self.y);
                if fs {
                    // Three numbers and two registers: the position is in memory as well.
                    self.read_fs_base(b);
                    b.emit.load_from(self.x, self.x, at);
                    let x = Register::RAX + u32::from(self.x);
                    self.lea(b, MemoryOperand::with_base_index_scale(self.y(), x, 1));
                    b.emit.load(self.x, field(offset_of!(Buffer, at)));
                    b.emit.store(self.x, at, self.y);
                }
            }
            Root::Vector { register, part: 0 } => {
                let code = match register.size() {
                    16 if register.number() < 16 => Code::Movdqu_xmmm128_xmm,
                    16 => Code::EVEX_Vmovdqu64_xmmm128_k1z_xmm,
                    32 if register.number() < 16 => Code::VEX_Vmovdqu_ymmm256_ymm,
                    32 => Code::EVEX_Vmovdqu64_ymmm256_k1z_ymm,
                    _ => Code::EVEX_Vmovdqu64_zmmm512_k1z_zmm,
                };
                self.store_register(b, code, at, register);
            }
            // Written with the first part.
            Root::Vector { .. } => {}
            Root::Mask(register) => self.store_register(b, Code::VEX_Kmovq_m64_kr, at, register),
            Root::Content { from, len } => {
                self.read_content(b, decoded, from, len);
                b.emit.store(self.x, at, self.y);
            }
            Root::Condition(condition) => {
                // setcc
                b.emit.bytes(&[0x40 | self.y >> 3, 0x0f, 0x90 | condition, 0xc0 | self.y & 7]);
                b.emit.store(self.x, at, self.y);
            }
        }
    }

    /// `mov [x + at], register` for one that is not general.
    fn store_register(&self, b: &mut Builder<'_>, code: Code, at: u32, register: Register) {
        let place = MemoryOperand::with_base_displ(Register::RAX + u32::from(self.x), at.into());
        instrumented::encode(b, &Decoded::with2(code, place, register).unwrap_or_default());
    }

    /// `len` bytes of the memory operand into `y`. If they cannot be read, that is the fault of the instruction.
    fn read_content(&self, b: &mut Builder<'_>, decoded: &Decoded, from: u8, len: u8) {
        let mut operand = instrumented::operand(decoded);
        if decoded.is_ip_rel_memory_operand() {
            b.emit.constant(self.y, decoded.ip_rel_memory_address());
            operand = MemoryOperand::with_base(self.y());
        }
        operand.displacement = operand.displacement.wrapping_add(from.into());
        if operand.displ_size <= 1 && from != 0 {
            operand.displ_size = 8;
        }
        if decoded.segment_prefix() == Register::FS {
            operand.segment_prefix = Register::FS;
        }
        let narrow = Register::EAX + u32::from(self.y);
        let (code, to) = match len {
            1 => (Code::Movzx_r32_rm8, narrow),
            2 => (Code::Movzx_r32_rm16, narrow),
            4 => (Code::Mov_r32_rm32, narrow),
            _ => (Code::Mov_r64_rm64, self.y()),
        };
        b.mark(Flavour::Clean, decoded.ip(), 0);
        instrumented::encode(b, &Decoded::with2(code, to, operand).unwrap_or_default());
        b.mark(Flavour::Busy, decoded.ip(), 0);
    }

    fn y(&self) -> Register {
        Register::RAX + u32::from(self.y)
    }

    /// `lea y, operand`
    fn lea(&self, b: &mut Builder<'_>, operand: MemoryOperand) {
        let lea = Decoded::with2(Code::Lea_r64_m, self.y(), operand);
        instrumented::encode(b, &lea.unwrap_or_default());
    }

    fn read_fs_base(&self, b: &mut Builder<'_>) {
        // FSGSBASE: the kernel offers it on every processor that has PM instructions.
        b.emit.bytes(&[0xf3, 0x48 | self.y >> 3, 0x0f, 0xae, 0xc0 | self.y & 7]);
    }
}
