//! Where calls between files go, and which functions only a pointer reaches, from the relocations that the loader applies.

use object::elf::{R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT, R_X86_64_RELATIVE};
use object::{Object, ObjectSymbol, ObjectSymbolTable, RelocationFlags, RelocationTarget, SymbolKind};
use rustc_hash::FxHashMap;

use crate::constant::bias;
use crate::follow::Mapped;

/// Of all files of a process.
#[derive(Debug, Default)]
pub struct Linkage {
    /// Words that the loader fills with the address of a function, by name.
    slots: FxHashMap<u64, String>,
    exports: FxHashMap<String, u64>,
}

impl Linkage {
    /// Takes a file in. Returns the places in its code that its data points to.
    pub fn add(&mut self, mapped: &Mapped) -> Vec<u64> {
        let Ok(data) = std::fs::read(&mapped.path) else { return Vec::new() };
        let Ok(file) = object::File::parse(&*data) else { return Vec::new() };
        let Some(bias) = bias(mapped.address, &mapped.path, mapped.offset) else { return Vec::new() };
        for symbol in file.dynamic_symbols() {
            if symbol.kind() == SymbolKind::Text
                && !symbol.is_undefined()
                && let Ok(name) = symbol.name()
            {
                // The first file that has it, as for the loader.
                self.exports.entry(name.to_owned()).or_insert(bias.wrapping_add(symbol.address()));
            }
        }
        let mut pointed = Vec::new();
        let symbols = file.dynamic_symbol_table();
        for (at, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationFlags::Elf { r_type } = relocation.flags() else { continue };
            match (r_type, relocation.target()) {
                (R_X86_64_GLOB_DAT | R_X86_64_JUMP_SLOT | R_X86_64_64, RelocationTarget::Symbol(index)) => {
                    let symbol = symbols.as_ref().and_then(|symbols| symbols.symbol_by_index(index).ok());
                    if let Some(name) = symbol.and_then(|symbol| Some(symbol.name().ok()?.to_owned())) {
                        self.slots.insert(bias.wrapping_add(at), name);
                    }
                }
                (R_X86_64_RELATIVE, _) => pointed.push(bias.wrapping_add(relocation.addend() as u64)),
                _ => {}
            }
        }
        let code = mapped.address..mapped.address + mapped.len;
        pointed.retain(|at| code.contains(at));
        pointed.sort_unstable();
        pointed.dedup();
        pointed
    }

    /// The function whose address the loader puts there.
    pub fn function(&self, slot: u64) -> Option<u64> {
        self.exports.get(self.slots.get(&slot)?).copied()
    }
}
