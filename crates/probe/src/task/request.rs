//! Requests of the program to `clone` and related calls, in one form.

use crate::load::user;
use crate::sys::{EFAULT, EINVAL, nr};
use crate::thread::Thread;

pub const CLONE_VM: u64 = 0x100;
pub const CLONE_SIGHAND: u64 = 0x800;
pub const CLONE_VFORK: u64 = 0x4000;
pub const CLONE_THREAD: u64 = 0x1_0000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_CLEARTID: u64 = 0x20_0000;
const CLONE_CHILD_SETTID: u64 = 0x100_0000;
pub const CLONE_NEWPID: u64 = 0x2000_0000;
const SIGCHLD: u64 = 17;

/// `struct clone_args`, with room for fields to come.
const WORDS: usize = 16;
const STACK: usize = 5;
const STACK_SIZE: usize = 6;
/// `CLONE_ARGS_SIZE_VER0`.
const SMALLEST: u64 = 64;
const E2BIG: i64 = 7;

#[derive(Clone, Debug)]
pub struct Request {
    pub flags: u64,
    /// The new task's stack pointer; 0: the same as the parent's.
    pub stack: u64,
    /// The kernel's call: its number and arguments.
    number: u64,
    args: [u64; 6],
    /// The arguments of `clone3`.
    block: [u64; WORDS],
}

impl Request {
    /// Reads what the program asks for.
    pub fn read(thread: &Thread, number: u64) -> Result<Request, i64> {
        let r = &thread.regs;
        let mut request = Request { flags: 0, stack: 0, number: nr::CLONE, args: [0; 6], block: [0; WORDS] };
        match number {
            nr::FORK => request.args[0] = SIGCHLD,
            nr::VFORK => request.args[0] = CLONE_VM | CLONE_VFORK | SIGCHLD,
            nr::CLONE => request.args = [r.rdi, r.rsi, r.rdx, r.r10, r.r8, 0],
            _ => return request.read_block(r.rdi, r.rsi),
        }
        request.flags = request.args[0];
        request.stack = request.args[1];
        Ok(request)
    }

    fn read_block(mut self, address: u64, size: u64) -> Result<Request, i64> {
        if size < SMALLEST {
            return Err(-EINVAL);
        }
        if size > size_of_val(&self.block) as u64 {
            return Err(-E2BIG);
        }
        let Some(bytes) = user::copy_in(address, size) else { return Err(-EFAULT) };
        for (word, bytes) in self.block.iter_mut().zip(bytes.chunks(8)) {
            let mut full = [0; 8];
            full[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(full);
        }
        if (self.block[STACK] == 0) != (self.block[STACK_SIZE] == 0) {
            return Err(-EINVAL);
        }
        self.flags = self.block[0];
        self.stack = self.block[STACK].wrapping_add(self.block[STACK_SIZE]);
        self.number = nr::CLONE3;
        self.args[1] = size;
        Ok(self)
    }

    /// Where the kernel writes thread ids, now or later.
    pub fn id_places(&self) -> [u64; 2] {
        /// `struct clone_args`: `child_tid` and `parent_tid`.
        const CHILD: usize = 2;
        const PARENT: usize = 3;
        let (parent, child) = if self.number == nr::CLONE3 {
            (self.block[PARENT], self.block[CHILD])
        } else {
            (self.args[2], self.args[3])
        };
        let parent = if self.has(CLONE_PARENT_SETTID) { parent } else { 0 };
        [parent, if self.has(CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID) { child } else { 0 }]
    }

    pub fn has(&self, flag: u64) -> bool {
        self.flags & flag != 0
    }

    pub fn drop_flag(&mut self, flag: u64) {
        self.flags &= !flag;
    }

    /// The kernel's call, with the new task on an engine stack from `base` to `top` (0: on a copy of this one).
    pub fn call(&mut self, base: u64, top: u64) -> (u64, [u64; 6]) {
        if self.number == nr::CLONE3 {
            self.block[0] = self.flags;
            self.block[STACK] = base;
            self.block[STACK_SIZE] = top - base;
            self.args[0] = self.block.as_ptr() as u64;
        } else {
            self.args[0] = self.flags;
            self.args[1] = top;
        }
        (self.number, self.args)
    }
}
