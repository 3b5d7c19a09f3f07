//! Call paths without frame pointers: the return addresses of calls, by kernel stack.
//!
//! Kernel stacks are 16 KiB and aligned to that, so a stack pointer identifies its stack. If an entry is below the stack pointer, its call
//! has returned.

use std::collections::HashMap;

const STACK: u64 = 16 << 10;

#[derive(Default)]
pub struct Stacks {
    /// By stack: place and value of each return address, outermost first.
    stacks: HashMap<u64, Vec<(u64, u64)>>,
}

/// The stack that this stack pointer is in.
pub fn stack(pointer: u64) -> u64 {
    pointer & !(STACK - 1)
}

impl Stacks {
    pub fn clear(&mut self) {
        self.stacks.clear();
    }

    /// A call that returns to `to` is about to be made.
    pub fn call(&mut self, pointer: u64, to: u64) {
        let place = pointer.wrapping_sub(8);
        let entries = self.stacks.entry(stack(place)).or_default();
        while entries.last().is_some_and(|entry| entry.0 <= place) {
            entries.pop();
        }
        entries.push((place, to));
    }

    /// The calls that have not returned, innermost first.
    pub fn path(&self, pointer: u64) -> impl Iterator<Item = u64> + '_ {
        let entries = self.stacks.get(&stack(pointer)).map_or(&[][..], Vec::as_slice);
        entries.iter().rev().skip_while(move |entry| entry.0 < pointer).map(|entry| entry.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returned_calls_are_gone() {
        let top = 0xffff_c900_0001_4000;
        let mut stacks = Stacks::default();
        stacks.call(top - 0x100, 1);
        stacks.call(top - 0x200, 2);
        stacks.call(top - 0x300, 3);
        assert_eq!(stacks.path(top - 0x400).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(stacks.path(top - 0x208).collect::<Vec<_>>(), [2, 1]);
        // 2 and 3 have returned.
        stacks.call(top - 0x180, 4);
        assert_eq!(stacks.path(top - 0x400).collect::<Vec<_>>(), [4, 1]);
        // Another stack.
        assert_eq!(stacks.path(top + 0x100).count(), 0);
    }
}
