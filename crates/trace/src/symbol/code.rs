//! What a loaded ELF file says about its code even when it is stripped: the bytes, the exported and imported names, and where functions
//! begin and end (`.eh_frame`).

use std::fs::File;
use std::ops::Range;
use std::path::Path;

use addr2line::gimli::{self, BaseAddresses, CieOrFde, EhFrame, LittleEndian, UnwindSection};
use iced_x86::{Code as Instruction, Decoder, DecoderOptions, FlowControl, OpKind};
use object::elf::{R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE, STT_GNU_IFUNC};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadCache, RelocationFlags, RelocationTarget};
use object::{SectionKind, SymbolFlags, SymbolKind};
use rustc_hash::FxHashMap;

/// Tail calls are looked for in no more of a function than this.
const LONGEST: u64 = 64 << 10;

/// Where a call or a tail call leads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Goal {
    /// An address in the same file.
    Here(u64),
    /// What the dynamic linker finds under this name.
    Named(String),
}

struct Section {
    range: Range<u64>,
    bytes: Vec<u8>,
}

/// An exported function.
#[derive(Clone, Copy)]
enum Export {
    At(u64),
    /// A function chooses, when the library is loaded, which one it is (`STT_GNU_IFUNC`: `memcpy` for this processor).
    Chosen,
}

#[derive(Default)]
pub(super) struct Code {
    sections: Vec<Section>,
    exports: FxHashMap<String, Export>,
    /// Of several names for one address the plainest.
    names: FxHashMap<u64, String>,
    /// Where the pointers of the global offset table lead, by their addresses.
    pointers: FxHashMap<u64, Goal>,
    /// Functions and parts of functions, in order.
    functions: Vec<Range<u64>>,
}

impl Code {
    /// Empty where the file cannot be read or understood.
    pub(super) fn load(path: &Path) -> Code {
        let mut code = Code::default();
        let Ok(file) = File::open(path) else { return code };
        let bytes = ReadCache::new(file);
        let Ok(file) = object::File::parse(&bytes) else { return code };
        for section in file.sections().filter(|section| section.kind() == SectionKind::Text) {
            let range = section.address()..section.address().saturating_add(section.size());
            code.sections.extend(section.data().map(|bytes| Section { range, bytes: bytes.to_vec() }));
        }
        code.read_exports(&file);
        code.read_pointers(&file);
        code.functions = functions(&file).unwrap_or_default();
        code.functions.sort_by_key(|function| function.start);
        code
    }

    fn read_exports<'d>(&mut self, file: &impl Object<'d>) {
        for symbol in file.dynamic_symbols().filter(|one| one.kind() == SymbolKind::Text && !one.is_undefined()) {
            let Ok(name) = symbol.name() else { continue };
            let chosen =
                matches!(symbol.flags(), SymbolFlags::Elf { st_info, .. } if st_info.st_type() == STT_GNU_IFUNC);
            self.exports.insert(name.to_owned(), if chosen { Export::Chosen } else { Export::At(symbol.address()) });
            let plainer = |other: &String| {
                let underscores = |name: &str| name.len() - name.trim_start_matches('_').len();
                (underscores(name), name) < (underscores(other), other.as_str())
            };
            let known = self.names.entry(symbol.address()).or_insert_with(|| name.to_owned());
            if plainer(known) {
                name.clone_into(known);
            }
        }
    }

    fn read_pointers<'d>(&mut self, file: &impl Object<'d>) {
        let Some(symbols) = file.dynamic_symbol_table() else { return };
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            let goal = match (r_type, relocation.target()) {
                (R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT, RelocationTarget::Symbol(index)) => {
                    let name =
                        symbols.symbol_by_index(index).ok().and_then(|symbol| Some(symbol.name().ok()?.to_owned()));
                    name.map(Goal::Named)
                }
                (R_X86_64_RELATIVE, _) => Some(Goal::Here(relocation.addend() as u64)),
                // The function that chooses: it has the name of what it chooses.
                (R_X86_64_IRELATIVE, _) => self.names.get(&(relocation.addend() as u64)).cloned().map(Goal::Named),
                _ => None,
            };
            self.pointers.extend(goal.map(|goal| (at, goal)));
        }
    }

    pub(super) fn exports(&self, name: &str) -> bool {
        self.exports.contains_key(name)
    }

    /// Where the exported function of this name begins, if that is known before the program runs.
    pub(super) fn exported_at(&self, name: &str) -> Option<u64> {
        match self.exports.get(name)? {
            Export::At(address) => Some(*address),
            Export::Chosen => None,
        }
    }

    /// The name under which the function that begins here is exported.
    pub(super) fn exported_as(&self, address: u64) -> Option<&String> {
        self.names.get(&address)
    }

    /// What the call instruction calls that ends at `end`, unless it is known only when it runs. The instruction before an address cannot be
    /// told from its bytes alone: a goal that is no function's beginning was none.
    pub(super) fn called_before(&self, end: u64) -> Option<Goal> {
        // `call rel32` has five bytes, `call [rip + disp32]` six (Intel SDM vol. 2, CALL).
        let direct = || match self.decode(end - 5..end)?.next()? {
            one if one.code() == Instruction::Call_rel32_64 && one.next_ip() == end => Some(one.near_branch_target()),
            _ => None,
        };
        let through_pointer = || match self.decode(end - 6..end)?.next()? {
            one if one.code() == Instruction::Call_rm64 && one.next_ip() == end => self.pointer(&one),
            _ => None,
        };
        let begins = |address: &u64| self.function(*address).is_some_and(|function| function.start == *address);
        let stub = |address: u64| self.stub(address).or_else(|| begins(&address).then_some(Goal::Here(address)));
        (end > 6).then_some(())?;
        direct().and_then(stub).or_else(through_pointer)
    }

    /// What the entry of the procedure linkage table at `address` leads to.
    fn stub(&self, address: u64) -> Option<Goal> {
        let mut code =
            self.decode(address..address.saturating_add(16))?.filter(|one| one.code() != Instruction::Endbr64);
        code.next().filter(|one| one.flow_control() == FlowControl::IndirectBranch).and_then(|one| self.pointer(&one))
    }

    fn pointer(&self, instruction: &iced_x86::Instruction) -> Option<Goal> {
        let at = instruction.is_ip_rel_memory_operand().then(|| instruction.ip_rel_memory_address())?;
        self.pointers.get(&at).cloned()
    }

    /// Where the function at `address` can go on without a call: its jumps out of itself.
    pub(super) fn tail_calls(&self, address: u64) -> Vec<Goal> {
        if let Some(goal) = self.stub(address) {
            return vec![goal];
        }
        let Some(function) = self.function(address).filter(|function| function.end - function.start <= LONGEST) else {
            return Vec::new();
        };
        let leaves = |one: iced_x86::Instruction| match one.flow_control() {
            FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch
                if one.op0_kind() == OpKind::NearBranch64 =>
            {
                let target = one.near_branch_target();
                (!function.contains(&target)).then_some(Goal::Here(target))
            }
            FlowControl::IndirectBranch => self.pointer(&one),
            _ => None,
        };
        self.decode(function.clone()).into_iter().flatten().filter_map(leaves).collect()
    }

    fn function(&self, address: u64) -> Option<&Range<u64>> {
        let next = self.functions.partition_point(|function| function.start <= address);
        self.functions.get(next.checked_sub(1)?).filter(|function| function.contains(&address))
    }

    /// The instructions there; none where there is no code.
    fn decode(&self, range: Range<u64>) -> Option<impl Iterator<Item = iced_x86::Instruction> + '_> {
        let section = self.sections.iter().find(|section| section.range.contains(&range.start))?;
        let offset = |address: u64| (address - section.range.start) as usize;
        let end = offset(range.end).min(section.bytes.len());
        let bytes = section.bytes.get(offset(range.start)..end)?;
        let mut decoder = Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE);
        Some(std::iter::from_fn(move || decoder.can_decode().then(|| decoder.decode())))
    }
}

fn functions<'d>(file: &impl Object<'d>) -> Option<Vec<Range<u64>>> {
    let section = file.section_by_name(".eh_frame")?;
    let bytes = section.uncompressed_data().ok()?;
    let frames = EhFrame::new(&bytes, LittleEndian);
    let text = file.section_by_name(".text").map_or(0, |text| text.address());
    let bases = BaseAddresses::default().set_eh_frame(section.address()).set_text(text);
    let mut functions = Vec::new();
    let mut entries = frames.entries(&bases);
    // What cannot be understood ends the list.
    while let Ok(Some(entry)) = entries.next() {
        let CieOrFde::Fde(partial) = entry else { continue };
        let Ok(entry) = partial.parse(|frames: &EhFrame<gimli::EndianSlice<'_, LittleEndian>>, bases, offset| {
            frames.cie_from_offset(bases, offset)
        }) else {
            continue;
        };
        functions.push(entry.initial_address()..entry.initial_address().saturating_add(entry.len()));
    }
    Some(functions)
}
