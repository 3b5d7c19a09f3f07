//! The arithmetic flags. Most are never read, so they are computed only when they are.

use crate::expr::{Arena, Expr, Op};

/// The flags, by place in [`Flags`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    Carry,
    Parity,
    Adjust,
    Zero,
    Sign,
    Overflow,
}

pub const ALL: [Flag; 6] = [Flag::Carry, Flag::Parity, Flag::Adjust, Flag::Zero, Flag::Sign, Flag::Overflow];

/// What all flags came of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    pub kind: FlagsKind,
    pub a: Expr,
    pub b: Expr,
    pub result: Expr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagsKind {
    /// With or without a carry that came in.
    Add,
    Sub,
    /// Carry and overflow are clear, adjust is undefined.
    Logic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
enum State {
    /// Not followed, or undefined.
    #[default]
    None,
    Made(Expr),
    /// Follows from the origin.
    Of,
}

#[derive(Clone, Debug, Default)]
pub struct Flags {
    states: [State; 6],
    origin: Option<Origin>,
}

impl Flags {
    pub fn is_followed(&self) -> bool {
        self.states.iter().any(|state| *state != State::None)
    }

    pub fn forget(&mut self) {
        *self = Flags::default();
    }

    /// All flags come of this operation.
    pub fn set_origin(&mut self, origin: Origin) {
        self.states = [State::Of; 6];
        if origin.kind == FlagsKind::Logic {
            self.states[Flag::Adjust as usize] = State::None;
        }
        self.origin = Some(origin);
    }

    /// One flag; `None`: not followed.
    pub fn set(&mut self, flag: Flag, value: Option<Expr>) {
        self.states[flag as usize] = value.map_or(State::None, State::Made);
    }

    /// Works out what is not yet known, so that the origin may go.
    pub fn settle(&mut self, arena: &mut Arena, keep: &[Flag]) {
        for &flag in keep {
            if self.states[flag as usize] == State::Of {
                self.states[flag as usize] = self.get(arena, flag).map_or(State::None, State::Made);
            }
        }
    }

    /// The flag, if it is followed.
    pub fn get(&mut self, arena: &mut Arena, flag: Flag) -> Option<Expr> {
        match self.states[flag as usize] {
            State::None => None,
            State::Made(expr) => Some(expr),
            State::Of => self.origin.map(|origin| origin.flag(arena, flag)),
        }
    }

    /// The condition with this number (SDM vol. 1 appendix B), if all it needs is followed.
    pub fn condition(&mut self, arena: &mut Arena, number: u8) -> Option<Expr> {
        let holds = self.positive(arena, number >> 1)?;
        Some(if number & 1 == 1 { arena.not(holds) } else { holds })
    }

    fn positive(&mut self, arena: &mut Arena, number: u8) -> Option<Expr> {
        // After a comparison the condition is the comparison.
        if let Some(Origin { kind: FlagsKind::Sub, a, b, result }) = self.origin
            && self.states.iter().all(|state| *state == State::Of)
            && arena.sub(a, b) == result
        {
            match number {
                3 => {
                    let above = arena.ult(b, a);
                    return Some(arena.not(above));
                }
                6 => return Some(arena.slt(a, b)),
                7 => {
                    let greater = arena.slt(b, a);
                    return Some(arena.not(greater));
                }
                _ => {}
            }
        }
        Some(match number {
            0 => self.get(arena, Flag::Overflow)?,
            1 => self.get(arena, Flag::Carry)?,
            2 => self.get(arena, Flag::Zero)?,
            3 => {
                let (carry, zero) = (self.get(arena, Flag::Carry)?, self.get(arena, Flag::Zero)?);
                arena.or(carry, zero)
            }
            4 => self.get(arena, Flag::Sign)?,
            5 => self.get(arena, Flag::Parity)?,
            6 => self.less(arena)?,
            _ => {
                let (less, zero) = (self.less(arena)?, self.get(arena, Flag::Zero)?);
                arena.or(less, zero)
            }
        })
    }

    fn less(&mut self, arena: &mut Arena) -> Option<Expr> {
        let (sign, overflow) = (self.get(arena, Flag::Sign)?, self.get(arena, Flag::Overflow)?);
        Some(arena.xor(sign, overflow))
    }
}

impl Origin {
    fn flag(self, arena: &mut Arena, flag: Flag) -> Expr {
        let Origin { kind, a, b, result } = self;
        let width = arena.width(result);
        match (flag, kind) {
            (Flag::Zero, FlagsKind::Sub) if arena.sub(a, b) == result => arena.eq(a, b),
            (Flag::Zero, _) => {
                let zero = arena.constant(width, 0);
                arena.eq(result, zero)
            }
            (Flag::Sign, _) => arena.extract(result, width - 1, 1),
            (Flag::Parity, _) => parity(arena, result),
            (Flag::Carry | Flag::Overflow | Flag::Adjust, FlagsKind::Logic) => arena.truth(false),
            (Flag::Adjust, _) => {
                let ab = arena.xor(a, b);
                let all = arena.xor(ab, result);
                arena.extract(all, 4, 1)
            }
            (Flag::Carry, FlagsKind::Sub) if arena.sub(a, b) == result => arena.ult(a, b),
            (Flag::Carry, FlagsKind::Add) => {
                // (a & b) | ((a | b) & ~result)
                let (and, or, inverse) = (arena.and(a, b), arena.or(a, b), arena.not(result));
                let passed = arena.and(or, inverse);
                let carries = arena.or(and, passed);
                arena.extract(carries, width - 1, 1)
            }
            (Flag::Carry, FlagsKind::Sub) => {
                // (~a & b) | (~(a ^ b) & result)
                let inverse = arena.not(a);
                let made = arena.and(inverse, b);
                let differ = arena.xor(a, b);
                let same = arena.not(differ);
                let passed = arena.and(same, result);
                let borrows = arena.or(made, passed);
                arena.extract(borrows, width - 1, 1)
            }
            (Flag::Overflow, FlagsKind::Add) => {
                let (x, y) = (arena.xor(a, result), arena.xor(b, result));
                let both = arena.and(x, y);
                arena.extract(both, width - 1, 1)
            }
            (Flag::Overflow, FlagsKind::Sub) => {
                let (x, y) = (arena.xor(a, b), arena.xor(a, result));
                let both = arena.and(x, y);
                arena.extract(both, width - 1, 1)
            }
        }
    }
}

/// Whether the lowest byte has an even number of ones.
pub fn parity(arena: &mut Arena, value: Expr) -> Expr {
    let low = arena.extract(value, 0, 8);
    let count = arena.count(Op::Popcnt, low);
    let odd = arena.extract(count, 0, 1);
    arena.not(odd)
}
