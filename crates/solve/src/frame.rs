//! The state before and after one instruction: registers, flags and its memory operand, byte by byte.
//!
//! A byte is either followed (it has an expression) or has the processor's value. [`Known`] has the processor's values as far as they were
//! logged; moves do not need them.

use iced_x86::{Instruction, OpKind, Register};

use crate::expr::{Arena, Expr};
use crate::flags::Flags;

/// A byte: followed, or what the processor has there.
pub type Byte = Option<Expr>;

/// Bytes of the widest operand.
pub const WIDEST: usize = 64;

/// Why an instruction's results become concrete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Concrete {
    /// The table has no such instruction.
    NotCovered,
    /// It is covered, but not with these operands.
    Operands,
    /// A value is needed that was not logged.
    NotLogged,
    /// The kernel got it as an argument, and its answer does not depend on it.
    SystemCall,
    /// The kernel took it as a name or for a file.
    Kernel,
}

/// The followed registers of a thread.
#[derive(Clone, Debug)]
pub struct Registers {
    pub general: [[Byte; 8]; 16],
    pub vector: Box<[[Byte; WIDEST]; 32]>,
    pub mask: [[Byte; 8]; 8],
    pub flags: Flags,
    /// Families that may have a followed byte: a bit for each general register, from bit 16 each vector, from 48 each mask, 56 the flags.
    pub live: u64,
}

impl Default for Registers {
    fn default() -> Self {
        let none = [[None; 8]; 16];
        let vector = Box::new([[None; WIDEST]; 32]);
        Registers { general: none, vector, mask: [[None; 8]; 8], flags: Flags::default(), live: 0 }
    }
}

/// The family of the flags.
pub const FLAGS: u64 = 1 << 56;

/// The bit of a register's family; 0: not followed.
pub fn family(register: Register) -> u64 {
    let full = register.full_register();
    if full.is_gpr64() {
        1 << full.number()
    } else if full.is_vector_register() {
        1 << (16 + full.number())
    } else if full.is_k() {
        1 << (48 + full.number())
    } else {
        0
    }
}

impl Registers {
    /// The bytes of the register (of any size), lowest first.
    pub fn bytes(&self, register: Register) -> &[Byte] {
        let (len, full) = (register.size(), register.full_register());
        if full.is_gpr64() {
            let high = usize::from(is_high(register));
            &self.general[full.number()][high..high + len]
        } else if full.is_vector_register() {
            &self.vector[full.number()][..len]
        } else if full.is_k() {
            &self.mask[full.number()]
        } else {
            &[]
        }
    }

    /// The whole family.
    pub fn whole(&mut self, register: Register) -> &mut [Byte] {
        let full = register.full_register();
        if full.is_gpr64() {
            &mut self.general[full.number()]
        } else if full.is_vector_register() {
            &mut self.vector[full.number()][..]
        } else if full.is_k() {
            &mut self.mask[full.number()]
        } else {
            &mut []
        }
    }

    /// Sets a part of a family.
    pub fn set(&mut self, register: Register, from: usize, bytes: &[Byte]) {
        let whole = self.whole(register);
        if let Some(part) = whole.get_mut(from..from + bytes.len()) {
            part.copy_from_slice(bytes);
        }
        let live = whole.iter().any(Option::is_some);
        self.mark(family(register), live);
    }

    pub fn mark(&mut self, family: u64, live: bool) {
        if live {
            self.live |= family;
        } else {
            self.live &= !family;
        }
    }

    pub fn forget(&mut self, register: Register) {
        self.whole(register).fill(None);
        self.mark(family(register), false);
    }
}

/// `ah`, `ch`, `dh` or `bh`.
pub fn is_high(register: Register) -> bool {
    matches!(register, Register::AH | Register::CH | Register::DH | Register::BH)
}

/// What the processor has before the instruction.
pub trait Known {
    /// Byte `at` of the full register.
    fn register(&self, register: Register, at: usize) -> Option<u8>;
    /// Byte `at` of the memory operand.
    fn content(&self, at: usize) -> Option<u8>;
    /// Whether the condition that the instruction tests holds; carry for those that take it in.
    fn condition(&self) -> Option<bool>;
}

/// One instruction at work.
pub struct InstructionFrame<'f> {
    pub arena: &'f mut Arena,
    pub registers: &'f mut Registers,
    pub known: &'f dyn Known,
    pub instruction: &'f Instruction,
    /// The memory operand, before; as long as it is.
    pub memory: &'f [Byte],
    /// The memory operand, after, if it is written.
    pub stored: Option<Vec<Byte>>,
    /// Bytes that became concrete because their expression was too deep.
    pub cut: u64,
}

/// Operations between a value and the input, at most.
pub const MOST_DEPTH: u32 = 6000;

impl std::fmt::Debug for InstructionFrame<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").field("instruction", &self.instruction).finish_non_exhaustive()
    }
}

pub type Done<T = ()> = Result<T, Concrete>;

impl InstructionFrame<'_> {
    /// The bytes of an operand as they are followed.
    pub fn bytes(&self, op: u32) -> Done<Vec<Byte>> {
        match self.instruction.op_kind(op) {
            OpKind::Register => Ok(self.registers.bytes(self.instruction.op_register(op)).to_vec()),
            OpKind::Memory => Ok(self.memory.to_vec()),
            _ => Err(Concrete::Operands),
        }
    }

    /// The bytes of an operand, each with an expression.
    pub fn made(&mut self, op: u32) -> Done<Vec<Expr>> {
        match self.instruction.op_kind(op) {
            OpKind::Register => self.register_bytes(self.instruction.op_register(op)),
            OpKind::Memory => {
                let mut bytes = Vec::with_capacity(self.memory.len());
                for (at, byte) in self.memory.iter().enumerate() {
                    bytes.push(match byte {
                        Some(expr) => *expr,
                        None => {
                            let number = self.known.content(at).ok_or(Concrete::NotLogged)?;
                            self.arena.constant(8, number.into())
                        }
                    });
                }
                Ok(bytes)
            }
            _ => Err(Concrete::Operands),
        }
    }

    pub fn register_bytes(&mut self, register: Register) -> Done<Vec<Expr>> {
        let from = usize::from(is_high(register));
        let mut bytes = Vec::with_capacity(register.size());
        for at in 0..register.size() {
            bytes.push(match self.registers.bytes(register)[at] {
                Some(expr) => expr,
                None => {
                    let full = register.full_register();
                    let number = self.known.register(full, from + at).ok_or(Concrete::NotLogged)?;
                    self.arena.constant(8, number.into())
                }
            });
        }
        Ok(bytes)
    }

    /// Bytes, lowest first, as one value.
    pub fn join(&mut self, bytes: &[Expr]) -> Expr {
        let mut value = bytes[0];
        for &byte in &bytes[1..] {
            value = self.arena.concat(byte, value);
        }
        value
    }

    /// A value as bytes, lowest first.
    pub fn split(&mut self, value: Expr) -> Vec<Expr> {
        let width = self.arena.width(value);
        (0..width).step_by(8).map(|low| self.arena.extract(value, low, 8)).collect()
    }

    pub fn register(&mut self, register: Register) -> Done<Expr> {
        let bytes = self.register_bytes(register)?;
        Ok(self.join(&bytes))
    }

    /// The value of a general, memory or immediate operand; immediates get `width` bits.
    pub fn value(&mut self, op: u32, width: u8) -> Done<Expr> {
        match self.instruction.op_kind(op) {
            OpKind::Register | OpKind::Memory => {
                let bytes = self.made(op)?;
                if bytes.is_empty() || bytes.len() > 8 {
                    return Err(Concrete::Operands);
                }
                Ok(self.join(&bytes))
            }
            OpKind::Immediate8
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate64
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate32to64 => Ok(self.arena.constant(width, self.instruction.immediate(op))),
            _ => Err(Concrete::Operands),
        }
    }

    /// How many bits operand `op` has.
    pub fn width(&self, op: u32) -> Done<u8> {
        match self.instruction.op_kind(op) {
            OpKind::Register => Ok((self.instruction.op_register(op).size() * 8) as u8),
            OpKind::Memory => Ok((self.memory.len() * 8).min(255) as u8),
            _ => Err(Concrete::Operands),
        }
    }

    /// What is a number is not followed, nor what is deeper than the bound.
    fn followed(&mut self, expr: Expr) -> Byte {
        if self.arena.number(expr).is_some() {
            return None;
        }
        if self.arena.depth(expr) > MOST_DEPTH {
            self.cut += 1;
            return None;
        }
        Some(expr)
    }

    /// Writes a general register as the processor does: 32 bits clear the upper half.
    pub fn set_register(&mut self, register: Register, value: Expr) {
        let bytes: Vec<Byte> = self.split(value).into_iter().map(|byte| self.followed(byte)).collect();
        self.set_register_bytes(register, &bytes);
    }

    pub fn set_register_bytes(&mut self, register: Register, bytes: &[Byte]) {
        if register.is_gpr32() {
            let mut whole = [None; 8];
            whole[..4].copy_from_slice(&bytes[..4]);
            self.registers.set(register, 0, &whole);
        } else {
            self.registers.set(register, usize::from(is_high(register)), bytes);
        }
    }

    /// Writes a general register or memory.
    pub fn set(&mut self, op: u32, value: Expr) -> Done {
        match self.instruction.op_kind(op) {
            OpKind::Register => self.set_register(self.instruction.op_register(op), value),
            OpKind::Memory => {
                let bytes: Vec<Byte> = self.split(value).into_iter().map(|byte| self.followed(byte)).collect();
                self.stored = Some(bytes);
            }
            _ => return Err(Concrete::Operands),
        }
        Ok(())
    }

    /// Writes bytes as they are followed: registers of any kind, or memory.
    pub fn set_bytes(&mut self, op: u32, bytes: &[Byte]) -> Done {
        match self.instruction.op_kind(op) {
            OpKind::Register => {
                let register = self.instruction.op_register(op);
                if register.is_vector_register() {
                    self.set_vector(register, bytes);
                } else if register.is_k() {
                    let mut whole = [None; 8];
                    whole[..bytes.len()].copy_from_slice(bytes);
                    self.registers.set(register, 0, &whole);
                } else {
                    self.set_register_bytes(register, bytes);
                }
            }
            OpKind::Memory => self.stored = Some(bytes.to_vec()),
            _ => return Err(Concrete::Operands),
        }
        Ok(())
    }

    /// Instructions with VEX or EVEX clear what lies above; others keep it.
    pub fn set_vector(&mut self, register: Register, bytes: &[Byte]) {
        use iced_x86::EncodingKind as E;
        if matches!(self.instruction.code().encoding(), E::VEX | E::EVEX) {
            let mut whole = [None; WIDEST];
            whole[..bytes.len()].copy_from_slice(bytes);
            self.registers.set(register, 0, &whole);
        } else {
            self.registers.set(register, 0, bytes);
        }
    }

    /// As [`InstructionFrame::set_bytes`], for bytes that were made.
    pub fn set_made(&mut self, op: u32, bytes: &[Expr]) -> Done {
        let bytes: Vec<Byte> = bytes.iter().map(|&byte| self.followed(byte)).collect();
        self.set_bytes(op, &bytes)
    }
}
