//! What the host knows of each process of the recording.

use std::rc::Rc;

use iced_x86::{Decoder, DecoderOptions};
use trace::event::{CodeAddr, ContextId, ProcessId, ThreadId};

use super::code_map::CodeMap;
use super::flow::Block;
use super::mappings::Mappings;

/// Number of a kind of instruction, for counting which were met (`iced_x86::Mnemonic`, and whether it is locked).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct InstructionName(u16);

impl InstructionName {
    /// More than iced's mnemonics, twice.
    pub const LIMIT: usize = 8192;
    const LOCKED: u16 = 4096;

    pub fn decode(bytes: &[u8]) -> InstructionName {
        let instruction = Decoder::new(64, bytes, DecoderOptions::NONE).decode();
        let locked = if instruction.has_lock_prefix() { InstructionName::LOCKED } else { 0 };
        InstructionName(instruction.mnemonic() as u16 | locked)
    }

    pub fn index(self) -> usize {
        self.0 as usize
    }

    /// As an assembler writes it.
    pub fn text(self) -> Option<String> {
        let mnemonic = iced_x86::Mnemonic::try_from(usize::from(self.0 & !InstructionName::LOCKED)).ok()?;
        let name = format!("{mnemonic:?}").to_lowercase();
        Some(if self.0 & InstructionName::LOCKED == 0 { name } else { format!("lock {name}") })
    }
}

/// An instruction that makes events.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Site {
    pub pc: CodeAddr,
    pub name: InstructionName,
    pub defined: bool,
}

/// The tables of one process. Fork copies them; exec starts afresh.
#[derive(Clone, Debug)]
pub(super) struct Process {
    pub id: ProcessId,
    /// As the process itself sees it.
    pub pid: u32,
    pub first_thread: ThreadId,
    pub ended: bool,
    /// The process (its place in the list) whose memory, and so whose tables, this one uses until it execs (`vfork`).
    pub shares: Option<usize>,
    pub mappings: Mappings,
    pub code: CodeMap,
    sites: Rc<Vec<Site>>,
    contexts: Rc<Vec<Option<ContextId>>>,
    /// Of flow mode.
    blocks: Rc<Vec<Block>>,
}

/// The probe numbers instructions and call paths one after the other, though threads may tell them out of order; a number that is so much larger than
/// all before it means damage.
const MOST_AHEAD: usize = 1 << 16;

impl Process {
    pub fn new(id: ProcessId, pid: u32, first_thread: ThreadId) -> Process {
        let sites = vec![Site { defined: true, ..Site::default() }];
        Process {
            id,
            pid,
            first_thread,
            ended: false,
            shares: None,
            mappings: Mappings::default(),
            code: CodeMap::default(),
            sites: Rc::new(sites),
            contexts: Rc::new(vec![Some(ContextId(0))]),
            blocks: Rc::default(),
        }
    }

    /// The child of a fork: sees what its parent saw.
    pub fn fork(&self, id: ProcessId, pid: u32, first_thread: ThreadId) -> Process {
        Process { id, pid, first_thread, ended: false, shares: None, ..self.clone() }
    }

    /// Forgets everything about the program that was there before an exec.
    pub fn exec(&mut self) {
        *self = Process::new(self.id, self.pid, self.first_thread);
    }

    #[inline]
    pub fn site(&self, number: u32) -> Option<Site> {
        self.sites.get(number as usize).copied().filter(|s| s.defined)
    }

    #[inline]
    pub fn context(&self, number: u32) -> Option<ContextId> {
        self.contexts.get(number as usize).copied().flatten()
    }

    #[inline]
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// False if the number cannot be right.
    #[must_use]
    pub fn define_block(&mut self, number: u32, block: Block) -> bool {
        set(Rc::make_mut(&mut self.blocks), number, block)
    }

    /// False if the number cannot be right.
    #[must_use]
    pub fn define_site(&mut self, number: u32, site: Site) -> bool {
        set(Rc::make_mut(&mut self.sites), number, site)
    }

    /// False if the number cannot be right.
    #[must_use]
    pub fn define_context(&mut self, number: u32, context: ContextId) -> bool {
        set(Rc::make_mut(&mut self.contexts), number, Some(context))
    }
}

fn set<T: Clone + Default>(table: &mut Vec<T>, number: u32, value: T) -> bool {
    let at = number as usize;
    if at == 0 || at >= table.len() + MOST_AHEAD {
        return false;
    }
    if at >= table.len() {
        table.resize(at + 1, T::default());
    }
    table[at] = value;
    true
}
