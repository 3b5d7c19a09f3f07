//! Writing machine code. Synthesised instructions are few and fixed, so their bytes are written directly.

/// General registers by machine number.
pub type Reg = u8;
pub const RAX: Reg = 0;
pub const RCX: Reg = 1;
pub const RDX: Reg = 2;
pub const RBX: Reg = 3;
pub const RSP: Reg = 4;
pub const RBP: Reg = 5;
pub const RSI: Reg = 6;
pub const RDI: Reg = 7;

/// A position in a code cache, and how far it may go.
#[derive(Debug)]
pub struct Emit {
    pub at: u64,
    pub end: u64,
    /// Set when something did not fit; the block is then thrown away.
    pub full: bool,
}

impl Emit {
    pub fn bytes(&mut self, bytes: &[u8]) {
        if self.at + bytes.len() as u64 > self.end {
            self.full = true;
            return;
        }
        // SAFETY: [at, end) is writable code cache owned by the holder of the engine lock.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at += bytes.len() as u64;
    }
    pub fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }
    pub fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }
    pub fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    /// Opcode with a gs-relative absolute operand: `op reg, gs:[offset]` in the direction of the opcode.
    fn gs(&mut self, opcode: u8, reg: Reg, offset: usize, wide: bool) {
        let rex = 0x40 | (wide as u8) << 3 | (reg >> 3) << 2;
        if rex != 0x40 {
            self.bytes(&[0x65, rex, opcode, (reg & 7) << 3 | 4, 0x25]);
        } else {
            self.bytes(&[0x65, opcode, (reg & 7) << 3 | 4, 0x25]);
        }
        self.u32(offset as u32);
    }
    /// `mov gs:[offset], reg`
    pub fn save(&mut self, offset: usize, reg: Reg) {
        self.gs(0x89, reg, offset, true);
    }
    /// `mov reg, gs:[offset]`
    pub fn load(&mut self, reg: Reg, offset: usize) {
        self.gs(0x8b, reg, offset, true);
    }
    /// `mov dword ptr gs:[offset], value`
    pub fn save_imm(&mut self, offset: usize, value: u32) {
        self.bytes(&[0x65, 0xc7, 0x04, 0x25]);
        self.u32(offset as u32);
        self.u32(value);
    }
    /// A 64-bit constant into gs:[offset], without a register.
    pub fn save_imm64(&mut self, offset: usize, value: u64) {
        self.save_imm(offset, value as u32);
        self.save_imm(offset + 4, (value >> 32) as u32);
    }
    /// `op reg, [absolute]` with a 32-bit absolute address (64-bit operand).
    pub fn absolute(&mut self, opcode: u8, reg: Reg, address: u64) {
        debug_assert!(address < 1 << 31);
        self.bytes(&[0x48 | (reg >> 3) << 2, opcode, (reg & 7) << 3 | 4, 0x25]);
        self.u32(address as u32);
    }
    /// `cmp dword ptr [absolute], value`
    pub fn cmp_absolute_byte(&mut self, address: u64, value: u8) {
        self.bytes(&[0x83, 0x3c, 0x25]);
        self.u32(address as u32);
        self.u8(value);
    }
    /// `jmp` / `call` through a pointer at a 32-bit absolute address.
    pub fn jump_through(&mut self, address: u64) {
        self.bytes(&[0xff, 0x24, 0x25]);
        self.u32(address as u32);
    }
    pub fn call_through(&mut self, address: u64) {
        self.bytes(&[0xff, 0x14, 0x25]);
        self.u32(address as u32);
    }
    /// `mov reg, imm64` (or the 5-byte form for small values)
    pub fn constant(&mut self, reg: Reg, value: u64) {
        if value <= u32::MAX as u64 {
            if reg >= 8 {
                self.u8(0x41);
            }
            self.u8(0xb8 | reg & 7);
            self.u32(value as u32);
        } else {
            self.bytes(&[0x48 | reg >> 3, 0xb8 | reg & 7]);
            self.u64(value);
        }
    }
    /// `btc reg, 46`: PM address to alias. Destroys flags.
    pub fn flip_to_alias(&mut self, reg: Reg) {
        self.bytes(&[0x48 | reg >> 3, 0x0f, 0xba, 0xf8 | reg & 7, crate::layout::ALIAS_BIT as u8]);
    }

    /// Opcode with the operand `[base + disp32]`, 64 bits wide.
    fn based(&mut self, opcode: u8, reg: Reg, base: Reg, displacement: u32) {
        self.bytes(&[0x48 | (reg >> 3) << 2 | base >> 3, opcode]);
        self.modrm(reg, base, displacement);
    }
    fn modrm(&mut self, reg: Reg, base: Reg, displacement: u32) {
        let short = displacement < 128;
        let mode = if short { 0x40 } else { 0x80 };
        self.u8(mode | (reg & 7) << 3 | base & 7);
        if base & 7 == RSP {
            self.u8(0x24);
        }
        if short { self.u8(displacement as u8) } else { self.u32(displacement) }
    }
    /// `mov [base + displacement], reg`
    pub fn store(&mut self, base: Reg, displacement: u32, reg: Reg) {
        self.based(0x89, reg, base, displacement);
    }
    /// `mov reg, [base + displacement]`
    pub fn load_from(&mut self, reg: Reg, base: Reg, displacement: u32) {
        self.based(0x8b, reg, base, displacement);
    }
    /// `lea reg, [base + displacement]`
    pub fn lea(&mut self, reg: Reg, base: Reg, displacement: u32) {
        self.based(0x8d, reg, base, displacement);
    }
    /// `mov qword ptr [base + displacement], value`, which is extended by its sign.
    pub fn store_imm(&mut self, base: Reg, displacement: u32, value: u32) {
        self.based(0xc7, 0, base, displacement);
        self.u32(value);
    }

    /// A 4-byte displacement that will be patched while other threads may run it must not cross a line.
    /// Call right before an instruction whose rel32 starts `ahead` bytes in.
    pub fn align_patch(&mut self, ahead: u64) {
        while (self.at + ahead) & 63 > 60 {
            self.u8(0x90);
        }
    }
    /// `jcc rel32` to be patched; returns the address of the displacement.
    pub fn jcc(&mut self, condition: u8) -> u64 {
        self.align_patch(2);
        self.bytes(&[0x0f, 0x80 | condition]);
        self.u32(0);
        self.at - 4
    }
    /// `jmp rel32` to be patched; returns the address of the displacement.
    pub fn jmp(&mut self) -> u64 {
        self.align_patch(1);
        self.u8(0xe9);
        self.u32(0);
        self.at - 4
    }
    /// Points a displacement made by `jcc` or `jmp` at `target`.
    pub fn patch(&mut self, displacement: u64, target: u64) {
        if !self.full {
            patch(displacement, target);
        }
    }
    /// Short forward jump; returns a token for [`Emit::here`].
    pub fn short(&mut self, opcode: u8) -> u64 {
        self.bytes(&[opcode, 0]);
        self.at - 1
    }
    pub fn here(&mut self, token: u64) {
        let distance = self.at - (token + 1);
        assert!(self.full || distance < 128);
        if !self.full {
            // SAFETY: the token is the address of a displacement byte written by `short`.
            unsafe { *(token as *mut u8) = distance as u8 };
        }
    }
}

/// Is `target` within reach of a rel32 at `displacement`?
pub fn reaches(displacement: u64, target: u64) -> bool {
    let distance = target.wrapping_sub(displacement + 4) as i64;
    i32::try_from(distance).is_ok()
}

/// Redirects a linked jump. One aligned-in-line 4-byte store: other threads see the old or the new target.
pub fn patch(displacement: u64, target: u64) {
    debug_assert!(reaches(displacement, target));
    let distance = target.wrapping_sub(displacement + 4) as u32;
    // SAFETY: the address of a rel32 in a code cache; not crossing a line, so the store is single-copy atomic.
    unsafe { core::ptr::write_volatile(displacement as *mut u32, distance) };
}
