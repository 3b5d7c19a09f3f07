//! Builds one block: scans the program's code, copies what can be copied, and rewrites the rest.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::mem::offset_of;

use isa::scan::{Class, Scan, scan};

use super::arena::{self, trampoline};
use super::block::{self, Block};
use super::code::{Bytes, Window};
use super::emit::{self, Emit, RCX, RDX, Reg};
use super::marks::{Flavour, Mark, Marks};
use super::{branch, code, emulate, instrumented, link, marked, order, watch};
use crate::thread::Thread;

/// Blocks go on past conditional jumps and through direct jumps, up to this many instructions.
pub const MAX_INSTRUCTIONS: usize = 96;

/// Code to be emitted behind the block: what is rarely taken must not lie in the way.
type Tail = Box<dyn FnOnce(&mut Builder<'_>)>;

pub struct Builder<'a> {
    pub thread: &'a mut Thread,
    pub emit: Emit,
    /// Where the block's code begins, and its first instruction.
    code: u64,
    pub pc: u64,
    marks: Vec<Mark>,
    /// Direct exits: displacement to patch, and the target's pc.
    exits: Vec<(u64, u64)>,
    /// rip-relative disp32 fields that refer to an 8-byte constant behind the block.
    literals: Vec<(u64, u64)>,
    tails: Vec<Tail>,
    /// A site was emitted before, with no call in between (see `site::flag::SAME_PATH`).
    pub path_known: bool,
    /// Pages of the program that the block's code is on.
    pages: Vec<u64>,
    /// In flow mode: how to cut the block's entry.
    pub flow: Option<crate::flow::cut::BlockEntry>,
}

impl fmt::Debug for Builder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Builder({:#x})", self.pc)
    }
}

/// One instruction of the program.
#[derive(Clone, Copy, Debug)]
pub struct Instruction {
    pub pc: u64,
    pub bytes: Bytes,
    pub scan: Scan,
}

impl Instruction {
    pub fn next(&self) -> u64 {
        self.pc + self.scan.len as u64
    }
    /// Absolute address of a rip-relative operand.
    pub fn rip_target(&self) -> u64 {
        let at = self.scan.disp_at as usize;
        let disp = i32::from_le_bytes([self.bytes[at], self.bytes[at + 1], self.bytes[at + 2], self.bytes[at + 3]]);
        self.next().wrapping_add_signed(disp as i64)
    }
}

pub const fn slot_t0() -> usize {
    offset_of!(Thread, t0)
}

/// A landing apart from its block (see [`Builder::landing`]). Returns its address and the displacement of its chain.
pub fn landing_stub(thread: &mut Thread, number: u32) -> Option<(u64, u64)> {
    let (pc, entry, index) = block::with(number, |block| (block.pc, block.entry, block.arena as usize));
    let (start, end, miss) = arena::with(index, |arena| ((arena.at + 15) & !15, arena.end, arena.miss));
    let mut b = Builder::new(thread, Emit { at: start, end, full: false }, pc);
    let chain = b.landing(pc, miss);
    let jump = b.emit.jmp();
    b.emit.patch(jump, entry);
    if b.emit.full {
        return None;
    }
    let end = b.emit.at;
    arena::with(index, |arena| arena.filled(start, end, number));
    Some((start, chain))
}

/// Translates from `pc`. `indirect`: indirect branches come here, so the block starts by checking their target.
/// The engine lock is held. Returns the block's number.
pub fn build(thread: &mut Thread, pc: u64, indirect: bool) -> u32 {
    let index = match arena::for_code(pc) {
        Some(index) => index,
        None => crate::refuse!(thread, "no room for a code cache within 1.5 GiB of the code at {pc:#x}"),
    };
    let (start, end, miss) = arena::with(index, |arena| ((arena.at + 15) & !15, arena.end, arena.miss));
    let emit = Emit { at: start, end, full: false };
    let mut b = Builder::new(thread, emit, pc);
    b.mark(Flavour::Busy, pc, 0);
    let (mut indirect_at, mut chain) = (0, 0);
    if indirect {
        indirect_at = start;
        chain = b.landing(pc, miss);
    }
    let entry = b.emit.at;
    if crate::flow::on() {
        crate::flow::body::emit(&mut b)
    } else {
        b.body()
    }
    b.finish();
    if b.emit.full {
        // A block fits into BLOCK_ROOM: `for_code` guarantees it.
        crate::refuse!(b.thread, "a block at {pc:#x} does not fit into the code cache");
    }
    let Builder { emit, marks, pages, flow, .. } = b;
    let block = Block {
        pc,
        code: start,
        code_end: emit.at,
        entry,
        indirect: indirect_at,
        chain,
        is_in_table: false,
        marks: Marks::pack(&marks),
        incoming: block::NONE,
        dead: false,
        arena: index as u32,
        flow: flow.map(Box::new),
    };
    let number = block::add(block, &pages);
    arena::with(index, |arena| arena.filled(start, emit.at, number));
    code::translated(&pages);
    number
}

impl<'a> Builder<'a> {
    fn new(thread: &'a mut Thread, emit: Emit, pc: u64) -> Self {
        let code = emit.at;
        Builder {
            thread,
            emit,
            code,
            pc,
            marks: Vec::with_capacity(128),
            exits: Vec::with_capacity(16),
            literals: Vec::new(),
            tails: Vec::new(),
            path_known: false,
            pages: Vec::with_capacity(2),
            flow: None,
        }
    }

    /// What the machine address reached now means, until the next mark.
    pub fn mark(&mut self, flavour: Flavour, pc: u64, reg: Reg) {
        let at = (self.emit.at - self.code) as u16;
        let pc = pc.wrapping_sub(self.pc) as i32;
        match self.marks.last_mut() {
            Some(last) if last.at == at => *last = Mark { at, flavour, reg, pc },
            _ => self.marks.push(Mark { at, flavour, reg, pc }),
        }
    }

    pub fn tail(&mut self, tail: impl FnOnce(&mut Builder<'_>) + 'static) {
        self.tails.push(Box::new(tail));
    }

    /// A direct exit through the displacement at `at`.
    pub fn exit(&mut self, at: u64, target: u64) {
        self.exits.push((at, target));
    }

    /// The disp32 just emitted (its address) shall refer to this constant.
    pub fn literal(&mut self, disp_at: u64, value: u64) {
        self.literals.push((disp_at, value));
    }

    /// Checks that an indirect branch really wants `pc` (its table index is only 16 bits): its target is in rdx, the
    /// program's rcx and rdx are in t0 and t1. Touches no flag: if the target is another one, that one may need them.
    /// Returns the displacement of the jump taken if not.
    pub fn landing(&mut self, pc: u64, miss: u64) -> u64 {
        self.emit.constant(RCX, pc.wrapping_neg());
        self.emit.bytes(&[0x48, 0x8d, 0x0c, 0x11]); // lea rcx, [rcx + rdx]
        let same = self.emit.short(0xe3); // jrcxz
        let chain = self.emit.jmp();
        self.emit.here(same);
        if crate::cover::on() {
            crate::cover::emit::arrival(self, pc);
        }
        self.emit.load(RDX, offset_of!(Thread, t1));
        self.emit.load(RCX, slot_t0());
        self.emit.patch(chain, miss);
        chain
    }

    fn body(&mut self) {
        let mut pc = self.pc;
        // Direct jumps that were followed: never into the same block twice.
        let mut followed: [u64; 8] = [0; 8];
        let mut hops = 0;
        let mut window = Window::default();
        if watch::is_return(pc) {
            watch::emit_return(self, pc);
        }
        for _ in 0..MAX_INSTRUCTIONS {
            let Some(bytes) = window.bytes(pc) else {
                return emulate::emit(self, pc, pc, emulate::What::NoCode);
            };
            if crate::pm::is_pm(pc) {
                // Its stores to itself go to the alias, unseen by us as changes of code.
                return emulate::emit(self, pc, pc, emulate::What::CodeInPm);
            }
            let Some(scan) = scan(&bytes) else {
                // The instruction reaches into a page that is not there: it faults when it runs.
                return emulate::emit(self, pc, pc, emulate::What::NoCode);
            };
            let i = Instruction { pc, bytes, scan };
            if scan.class == Class::Unknown {
                return emulate::emit_unknown(self, i);
            }
            self.uses_code(pc, i.next());
            if watch::is_entry(pc) {
                watch::emit_entry(self, pc);
            }
            self.mark(Flavour::Clean, pc, 0);
            match branch::emit(self, i) {
                branch::After::Next => {}
                branch::After::End => return,
                branch::After::Jump(target) => {
                    if hops == followed.len() || followed[..hops].contains(&target) || target == self.pc {
                        self.jump_out(target);
                        return;
                    }
                    followed[hops] = target;
                    hops += 1;
                    pc = target;
                    continue;
                }
                branch::After::NotABranch => self.straight(i),
            }
            pc = i.next();
            if watch::is_return(pc) {
                break;
            }
        }
        self.mark(Flavour::Clean, pc, 0);
        self.jump_out(pc);
    }

    /// The block holds the program's code from `start` to `end`.
    pub fn uses_code(&mut self, start: u64, end: u64) {
        for page in [start >> 12, (end - 1) >> 12] {
            if !self.pages.contains(&page) {
                self.pages.push(page);
            }
        }
    }

    /// Leaves the block for `target`.
    pub fn jump_out(&mut self, target: u64) {
        let at = self.emit.jmp();
        self.exit(at, target);
    }

    pub fn straight(&mut self, i: Instruction) {
        match i.scan.class {
            Class::Clflush | Class::Clflushopt | Class::Clwb | Class::Cldemote => order::emit_flush(self, i),
            Class::Sfence | Class::Mfence => order::emit_fence(self, i),
            _ if instrumented::is_known(i.pc) => instrumented::emit(self, i),
            Class::Plain if marked::is_mark(i) => marked::emit(self, i),
            Class::Locked => order::emit_locked(self, i),
            Class::Plain | Class::Lfence | Class::Cpuid | Class::Int3 | Class::Ud | Class::Hlt | Class::IntN => {
                self.copy(i)
            }
            class => emulate::emit_class(self, i, class),
        }
    }

    /// Copies an instruction; a rip-relative operand gets a new displacement.
    pub fn copy(&mut self, i: Instruction) {
        let bytes = &i.bytes[..i.scan.len as usize];
        if i.scan.disp_at == 0 {
            return self.emit.bytes(bytes);
        }
        let target = i.rip_target();
        let at = i.scan.disp_at as usize;
        let end = self.emit.at + bytes.len() as u64;
        let distance = target.wrapping_sub(end) as i64;
        if let Ok(near) = i32::try_from(distance) {
            self.emit.bytes(&bytes[..at]);
            self.emit.bytes(&near.to_le_bytes());
            self.emit.bytes(&bytes[at + 4..]);
        } else if target < 1 << 31 {
            // Absolute: the ModRM byte in front of the displacement gets a SIB byte without base and index.
            self.emit.bytes(&bytes[..at - 1]);
            self.emit.bytes(&[bytes[at - 1] & !7 | 4, 0x25]);
            self.emit.u32(target as u32);
            self.emit.bytes(&bytes[at + 4..]);
        } else {
            instrumented::copy_far(self, i, target);
        }
    }

    /// Tails, constants and exit stubs behind the block. Returns the number of exits made.
    fn finish(&mut self) -> usize {
        let end_pc = self.pc;
        self.mark(Flavour::Busy, end_pc, 0);
        // Tails may add tails.
        while !self.tails.is_empty() {
            for tail in core::mem::take(&mut self.tails) {
                tail(self);
            }
        }
        self.mark(Flavour::Busy, end_pc, 0);
        if !self.literals.is_empty() {
            while self.emit.at & 7 != 0 {
                self.emit.u8(0xcc);
            }
            for (disp_at, value) in core::mem::take(&mut self.literals) {
                let here = self.emit.at;
                self.emit.patch(disp_at, here);
                self.emit.u64(value);
            }
        }
        if let Some(flow) = &mut self.flow {
            flow.stubs_at = self.emit.at;
        }
        let exits = core::mem::take(&mut self.exits);
        let count = exits.len();
        for (displacement, target) in exits {
            if self.emit.full {
                break;
            }
            // A stub leaves for the engine; its state is the program's at `target`.
            self.mark(Flavour::Clean, target, 0);
            let stub = self.emit.at;
            let number = link::add(displacement, target, stub);
            self.emit.save_imm(offset_of!(Thread, arg), number);
            self.emit.jump_through(trampoline!(exit));
            emit::patch(displacement, stub);
        }
        count
    }
}
