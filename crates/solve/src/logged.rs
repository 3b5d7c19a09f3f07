//! What the recording has of an instruction's operands.

use iced_x86::Register;
use isa::flow::{Place, Wanted};

use crate::frame::Known;

/// The value of this place.
pub fn resolve(place: Option<Place>, words: &[u64]) -> Option<u64> {
    match place? {
        Place::Fixed(value) => Some(value),
        Place::Slot { slot, plus } => words.get(usize::from(slot)).map(|word| word.wrapping_add(plus)),
    }
}

/// The logged operands of one instruction.
#[derive(Debug)]
pub struct Logged<'w> {
    pub operands: &'w [(Wanted, Place)],
    pub words: &'w [u64],
}

impl Logged<'_> {
    fn byte(&self, place: Place, at: usize) -> Option<u8> {
        match place {
            Place::Fixed(value) => value.to_le_bytes().get(at).copied(),
            Place::Slot { slot, plus } => {
                let word = self.words.get(usize::from(slot) + at / 8)?.wrapping_add(plus);
                Some(word.to_le_bytes()[at % 8])
            }
        }
    }
}

impl Known for Logged<'_> {
    fn register(&self, register: Register, at: usize) -> Option<u8> {
        let full = register.full_register();
        self.operands.iter().find_map(|&(wanted, place)| match wanted {
            Wanted::Register(logged) | Wanted::Mask(logged) if logged == full => self.byte(place, at),
            Wanted::Vector(logged) if logged.full_register() == full && at < logged.size() => self.byte(place, at),
            _ => None,
        })
    }

    fn content(&self, at: usize) -> Option<u8> {
        self.operands.iter().find_map(|&(wanted, place)| match wanted {
            Wanted::Content { bytes } if at < usize::from(bytes) => self.byte(place, at),
            _ => None,
        })
    }

    fn condition(&self) -> Option<bool> {
        self.operands.iter().find_map(|&(wanted, place)| match wanted {
            Wanted::Condition(_) => self.byte(place, 0).map(|byte| byte & 1 == 1),
            _ => None,
        })
    }
}
