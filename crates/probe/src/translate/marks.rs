//! The marks of a block: what the machine addresses in its code mean.
//!
//! A block has a mark for nearly every instruction, and a large program has millions of instructions. Packed they take about
//! a byte each: a mark that follows an instruction copied as it is says only how long that was.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::emit::Reg;

/// What a machine address in a block means (see [`super::locate`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Flavour {
    /// The program's registers are in the machine; the instruction at pc is next.
    Clean,
    /// As clean, but one register is in the spill slot `t0`.
    Spilled,
    /// The same with the slot `t1`.
    SpilledT1,
    /// The instruction's own access to the alias: the register is in `t0`, flags may be in `t2`.
    Alias,
    /// Inside instrumentation.
    Busy,
}

const FLAVOURS: [Flavour; 5] = [Flavour::Clean, Flavour::Spilled, Flavour::SpilledT1, Flavour::Alias, Flavour::Busy];

/// From `at` (offset in the block's code) on, this holds, up to the next mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    pub at: u16,
    pub flavour: Flavour,
    pub reg: Reg,
    /// pc relative to the block's.
    pub pc: i32,
}

impl Mark {
    /// What the first mark is told relative to.
    const START: Mark = Mark { at: 0, flavour: Flavour::Clean, reg: 0, pc: 0 };
}

/// The packed form begins with a byte. Up to this: a clean mark this many bytes further, in the code and in the program.
const LONGEST_STEP: u8 = 15;
/// This, plus a flavour: the register, and both distances follow.
const WHOLE: u8 = 0x10;

/// The marks of one block, ascending in `at`.
#[derive(Debug)]
pub struct Marks(Box<[u8]>);

impl Marks {
    pub fn pack(marks: &[Mark]) -> Marks {
        let mut packed = Vec::with_capacity(2 * marks.len());
        let mut last = Mark::START;
        for &mark in marks {
            let step = mark.at.wrapping_sub(last.at);
            let ahead = mark.pc.wrapping_sub(last.pc);
            let is_plain = mark.flavour == Flavour::Clean && mark.reg == 0;
            if is_plain && (1..=u16::from(LONGEST_STEP)).contains(&step) && ahead == i32::from(step) {
                packed.push(step as u8);
            } else {
                packed.extend([WHOLE + mark.flavour as u8, mark.reg]);
                number(&mut packed, u32::from(step));
                // The sign in the lowest bit: jumps back are as short as jumps ahead.
                number(&mut packed, (ahead << 1 ^ ahead >> 31) as u32);
            }
            last = mark;
        }
        Marks(packed.into_boxed_slice())
    }

    pub fn iter(&self) -> impl Iterator<Item = Mark> + '_ {
        let mut bytes = self.0.iter().copied();
        let mut last = Mark::START;
        core::iter::from_fn(move || {
            let first = bytes.next()?;
            let (flavour, reg, step, ahead) = if first <= LONGEST_STEP {
                (Flavour::Clean, 0, u16::from(first), i32::from(first))
            } else {
                let flavour = FLAVOURS[usize::from(first - WHOLE)];
                let reg = bytes.next()?;
                let step = take(&mut bytes)? as u16;
                let ahead = take(&mut bytes)?;
                (flavour, reg, step, (ahead >> 1) as i32 ^ -((ahead & 1) as i32))
            };
            last = Mark { at: last.at.wrapping_add(step), flavour, reg, pc: last.pc.wrapping_add(ahead) };
            Some(last)
        })
    }

    /// What they take.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.len()
    }

    /// The mark that holds at this offset.
    pub fn at(&self, at: u16) -> Option<Mark> {
        self.iter().take_while(|mark| mark.at <= at).last()
    }
}

/// Seven bits a byte, lowest first; the highest bit says that more follow.
fn number(to: &mut Vec<u8>, mut value: u32) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}

fn take(bytes: &mut impl Iterator<Item = u8>) -> Option<u32> {
    let mut value = 0;
    for shift in (0..32).step_by(7) {
        let byte = bytes.next()?;
        value |= u32::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    Some(value)
}
