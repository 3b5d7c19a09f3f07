//! A block of code that may never have run: its successors, its calls, and its PM instructions.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};
use rustc_hash::FxHashMap;

/// A block, from its first instruction to the first that does not simply go on.
#[derive(Clone, Debug, Default)]
pub struct Node {
    pub successors: Vec<u64>,
    pub calls: Option<u64>,
    /// PM instructions in it, by address.
    pub pm: Vec<u64>,
    /// Address of the call that ends it.
    pub call_at: u64,
    pub end: u64,
    pub indirect: Option<Indirect>,
}

/// A jump or call to where a word says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indirect {
    pub at: u64,
    pub is_call: bool,
    pub through: Through,
}

/// What has the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Through {
    /// A word of the file, as in a procedure linkage table.
    Slot(u64),
    /// A table of 32-bit distances from its own beginning.
    Distances(u64),
    /// A table of addresses.
    Addresses(u64),
    Unknown,
}

/// Reads the block at `pc`; `code` begins there. Also how many instructions it has.
pub fn read(code: &[u8], pc: u64) -> (Node, usize) {
    let mut decoder = Decoder::with_ip(64, code, pc, DecoderOptions::NONE);
    let mut node = Node::default();
    let mut count = 0;
    let mut tables = Tables::default();
    while decoder.can_decode() {
        let i = decoder.decode();
        count += 1;
        if i.is_invalid() {
            break;
        }
        node.end = i.next_ip();
        if touches_pm(&i) {
            node.pm.push(i.ip());
        }
        match i.flow_control() {
            FlowControl::Next => {
                tables.see(&i);
                continue;
            }
            FlowControl::UnconditionalBranch => node.successors.push(i.near_branch_target()),
            FlowControl::ConditionalBranch => node.successors.extend([i.near_branch_target(), i.next_ip()]),
            FlowControl::Call if i.op0_kind() == OpKind::NearBranch64 => {
                node.calls = Some(i.near_branch_target());
                node.call_at = i.ip();
                node.successors.push(i.next_ip());
            }
            // A system call.
            FlowControl::Call => continue,
            FlowControl::IndirectCall => {
                node.indirect = Some(Indirect { at: i.ip(), is_call: true, through: tables.through(&i) });
                node.call_at = i.ip();
                node.successors.push(i.next_ip());
            }
            FlowControl::IndirectBranch => {
                node.indirect = Some(Indirect { at: i.ip(), is_call: false, through: tables.through(&i) });
            }
            FlowControl::Return | FlowControl::Exception => {}
            FlowControl::Interrupt | FlowControl::XbeginXabortXend => continue,
        }
        break;
    }
    (node, count)
}

/// What compilers make of `switch`: `lea base, [rip+table]`, `movsxd to, [base+index*4]`, `add to, base`, `jmp to`; or `jmp [table+index*8]`.
#[derive(Default)]
struct Tables {
    bases: FxHashMap<Register, u64>,
    loaded: Option<u64>,
}

impl Tables {
    fn see(&mut self, i: &Instruction) {
        if i.mnemonic() == Mnemonic::Lea && i.is_ip_rel_memory_operand() {
            self.bases.insert(i.op0_register().full_register(), i.ip_rel_memory_address());
        } else if i.mnemonic() == Mnemonic::Movsxd && i.op1_kind() == OpKind::Memory && i.memory_index_scale() == 4 {
            self.loaded = self.bases.get(&i.memory_base()).copied();
        }
    }

    fn through(&self, i: &Instruction) -> Through {
        if i.op0_kind() == OpKind::Memory {
            if i.is_ip_rel_memory_operand() {
                return Through::Slot(i.ip_rel_memory_address());
            }
            let table = i.memory_base() == Register::None && i.memory_index_scale() == 8;
            return if table { Through::Addresses(i.memory_displacement64()) } else { Through::Unknown };
        }
        self.loaded.map_or(Through::Unknown, Through::Distances)
    }
}

fn touches_pm(i: &Instruction) -> bool {
    use Mnemonic as M;
    matches!(
        i.mnemonic(),
        M::Clwb
            | M::Clflush
            | M::Clflushopt
            | M::Movnti
            | M::Movntdq
            | M::Movntps
            | M::Movntpd
            | M::Vmovntdq
            | M::Vmovntps
            | M::Vmovntpd
            | M::Movdiri
            | M::Movdir64b
            | M::Sfence
    )
}
