//! What an ELF file has of PM instructions, without running it: flushes, fences, non-temporal stores, and direct calls with where they lead.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget, SectionKind, SymbolKind};
use rustc_hash::FxHashMap;

/// What an instruction does to PM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PmInstruction {
    Flush,
    Fence,
    NtStore,
    /// Of a function that has some of these, or calls one that has.
    Call,
}

/// Where a call leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Callee {
    /// In the same file.
    Address(u64),
    /// Wherever the loader finds it.
    Name(String),
}

#[derive(Clone, Debug)]
pub struct Call {
    pub at: u64,
    pub returns_to: u64,
    pub callee: Callee,
}

/// One file.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// Functions by where they begin: where they end, and their names.
    pub functions: BTreeMap<u64, (u64, Vec<String>)>,
    pub instructions: Vec<(u64, PmInstruction)>,
    pub calls: Vec<Call>,
}

impl Scan {
    pub fn of(path: &Path) -> io::Result<Scan> {
        let bytes = fs::read(path)?;
        let file = object::File::parse(&bytes[..]).map_err(io::Error::other)?;
        let mut scan = Scan { functions: functions(&file), ..Scan::default() };
        let slots = slots(&file);
        // Stubs come before what calls them or behind it: they are found first.
        let mut stubs: FxHashMap<u64, String> = FxHashMap::default();
        let text = || file.sections().filter(|section| section.kind() == SectionKind::Text);
        for section in text().filter(|section| section.name().is_ok_and(|name| name.starts_with(".plt"))) {
            let mut begin = section.address();
            decode(section.data().unwrap_or_default(), section.address(), |instruction| {
                let is_mark = matches!(instruction.code(), Code::Endbr64);
                if is_mark {
                    begin = instruction.ip();
                }
                if let Some(name) = slot(instruction).and_then(|slot| slots.get(&slot)) {
                    stubs.insert(begin.min(instruction.ip()), name.clone());
                    stubs.insert(instruction.ip(), name.clone());
                }
                if !is_mark {
                    begin = instruction.next_ip();
                }
            });
        }
        for section in text() {
            decode(section.data().unwrap_or_default(), section.address(), |instruction| {
                scan.take(instruction, &slots, &stubs)
            });
        }
        Ok(scan)
    }

    fn take(&mut self, instruction: &Instruction, slots: &FxHashMap<u64, String>, stubs: &FxHashMap<u64, String>) {
        if let Some(kind) = kind(instruction) {
            self.instructions.push((instruction.ip(), kind));
            return;
        }
        let callee = match instruction.flow_control() {
            FlowControl::Call if instruction.op0_kind() == OpKind::NearBranch64 => {
                let target = instruction.near_branch_target();
                stubs.get(&target).map_or(Callee::Address(target), |name| Callee::Name(name.clone()))
            }
            FlowControl::IndirectCall => match slot(instruction).and_then(|slot| slots.get(&slot)) {
                Some(name) => Callee::Name(name.clone()),
                None => return,
            },
            _ => return,
        };
        self.calls.push(Call { at: instruction.ip(), returns_to: instruction.next_ip(), callee });
    }

    /// Where the function begins that has this instruction.
    pub fn function_of(&self, address: u64) -> Option<u64> {
        let (begin, (end, _)) = self.functions.range(..=address).next_back()?;
        (address < *end).then_some(*begin)
    }
}

fn decode(code: &[u8], address: u64, mut take: impl FnMut(&Instruction)) {
    let mut decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let mut instruction = Instruction::default();
    while decoder.can_decode() {
        decoder.decode_out(&mut instruction);
        take(&instruction);
    }
}

fn kind(instruction: &Instruction) -> Option<PmInstruction> {
    match instruction.mnemonic() {
        Mnemonic::Clwb | Mnemonic::Clflushopt | Mnemonic::Clflush => Some(PmInstruction::Flush),
        Mnemonic::Sfence | Mnemonic::Mfence => Some(PmInstruction::Fence),
        Mnemonic::Movnti
        | Mnemonic::Movntq
        | Mnemonic::Movntdq
        | Mnemonic::Movntps
        | Mnemonic::Movntpd
        | Mnemonic::Vmovntdq
        | Mnemonic::Vmovntps
        | Mnemonic::Vmovntpd
        | Mnemonic::Movdiri
        | Mnemonic::Movdir64b => Some(PmInstruction::NtStore),
        _ => None,
    }
}

/// The word that an instruction jumps or calls through.
fn slot(instruction: &Instruction) -> Option<u64> {
    let indirect = matches!(instruction.flow_control(), FlowControl::IndirectBranch | FlowControl::IndirectCall);
    (indirect && instruction.is_ip_rel_memory_operand()).then(|| instruction.ip_rel_memory_address())
}

/// Words that the loader fills with the addresses of functions elsewhere.
fn slots(file: &object::File<'_>) -> FxHashMap<u64, String> {
    let Some(symbols) = file.dynamic_symbol_table() else { return FxHashMap::default() };
    let relocations = file.dynamic_relocations().into_iter().flatten();
    let named = relocations.filter_map(|(at, relocation)| {
        let RelocationTarget::Symbol(index) = relocation.target() else { return None };
        let name = symbols.symbol_by_index(index).ok()?.name().ok()?.to_owned();
        (!name.is_empty()).then_some((at, name))
    });
    named.collect()
}

fn functions(file: &object::File<'_>) -> BTreeMap<u64, (u64, Vec<String>)> {
    let mut functions: BTreeMap<u64, (u64, Vec<String>)> = BTreeMap::new();
    for symbol in file.symbols().chain(file.dynamic_symbols()) {
        let Ok(name) = symbol.name() else { continue };
        if symbol.kind() != SymbolKind::Text || symbol.size() == 0 || name.is_empty() {
            continue;
        }
        let (end, names) = functions.entry(symbol.address()).or_default();
        *end = (*end).max(symbol.address() + symbol.size());
        // `name@@VERSION` is `name` for whoever calls it.
        let name = name.split('@').next().unwrap_or(name).to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    functions
}
