//! Numbers of call paths: (return address, number of the path above, frames above unknown) → number. A program can have half a million of them, so a
//! path takes 16 bytes, and 13 to 26 more to be found by.

use alloc::vec;
use alloc::vec::Vec;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// The top bit: frames above are unknown.
    return_to: u64,
    parent: u32,
}

#[derive(Debug)]
pub struct Numbers {
    /// By number, from 1.
    nodes: Vec<Node>,
    /// Hash and number, with open addressing; 0: free. A search looks at nodes only where the hash is the same, and growing at none.
    slots: Vec<NumberSlot>,
    /// Slots in use.
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
struct NumberSlot {
    hash: u32,
    number: u32,
}

impl Numbers {
    pub const fn new() -> Numbers {
        Numbers { nodes: Vec::new(), slots: Vec::new(), used: 0 }
    }

    /// The number, and whether it is new.
    pub fn number(&mut self, parent: u32, return_to: u64, partial: bool) -> (u32, bool) {
        if self.used * 8 >= self.slots.len() * 5 {
            self.grow();
        }
        let node = Node { return_to: return_to | (partial as u64) << 63, parent };
        // Return addresses differ in few bits, parents are numbers in a row: each must reach all bits of the slot.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mixed = (node.return_to.wrapping_mul(SPREAD).rotate_left(32) ^ u64::from(parent)).wrapping_mul(SPREAD);
        let hash = (mixed >> 32) as u32;
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at].number != 0 {
            let NumberSlot { hash: other, number } = self.slots[at];
            if other == hash && self.nodes[number as usize - 1] == node {
                return (number, false);
            }
            at = (at + 1) & mask;
        }
        self.nodes.push(node);
        self.used += 1;
        let number = self.nodes.len() as u32;
        self.slots[at] = NumberSlot { hash, number };
        (number, true)
    }

    /// Numbers given out stay; what is asked for from now on gets new ones.
    pub fn forget(&mut self) {
        self.slots.fill(NumberSlot::default());
        self.used = 0;
    }

    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(1024);
        let old = core::mem::replace(&mut self.slots, vec![NumberSlot::default(); size]);
        for slot in old.into_iter().filter(|slot| slot.number != 0) {
            let mut at = slot.hash as usize & (size - 1);
            while self.slots[at].number != 0 {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = slot;
        }
    }
}
