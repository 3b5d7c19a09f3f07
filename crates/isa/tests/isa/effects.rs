//! The table of effects against the decoder's own facts about memory, for every code there is.

use crate::corpus::{Corpus, Member};
use iced_x86::{Code, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, Register, UsedMemory};
use isa::effect::{Effect, FenceKind, FlushKind, Form, LoadForm, Source, effect, is_listed, loads};
use isa::scan::{Class, scan};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::LazyLock;

static CORPUS: LazyLock<Corpus> = LazyLock::new(Corpus::new);

fn used(instruction: &Instruction, accesses: &[OpAccess]) -> Vec<UsedMemory> {
    let mut factory = InstructionInfoFactory::new();
    let used = factory.info(instruction).used_memory().to_vec();
    used.into_iter().filter(|memory| accesses.contains(&memory.access())).collect()
}

fn writes(instruction: &Instruction) -> Vec<UsedMemory> {
    use OpAccess::*;
    used(instruction, &[Write, CondWrite, ReadWrite, ReadCondWrite])
}

#[test]
fn every_write_has_an_effect_of_its_size() {
    for Member { instruction, .. } in CORPUS.members.values() {
        let code = instruction.code();
        let (form, also_reads) = match effect(instruction) {
            Effect::Store(shape) => (shape.form, shape.also_reads),
            Effect::Rmw(form) => (form, true),
            Effect::Unsupported(_) => continue,
            _ => {
                assert_eq!(writes(instruction), [], "{code:?} writes memory");
                continue;
            }
        };
        assert!(is_listed(instruction.mnemonic()), "{code:?} is in no row");
        if form == Form::ClearLine {
            // The decoder has no fact about it.
            assert_eq!(instruction.mnemonic(), Mnemonic::Clzero);
            continue;
        }
        let [write] = writes(instruction)[..] else { panic!("{code:?} writes {:?}", writes(instruction)) };
        let reads = matches!(write.access(), OpAccess::ReadWrite | OpAccess::ReadCondWrite);
        let size = write.memory_size().size() as u32;
        match form {
            Form::State(area) => {
                assert_eq!(area.size().unwrap_or(0), size, "{code:?}");
                continue;
            }
            Form::Scatter { element, count, index, .. } => {
                assert_eq!(element as u32, size, "{code:?}");
                let data = instruction.op1_register().size() / element as usize;
                let indices = instruction.memory_index().size() / index as usize;
                assert!(count as usize == data.min(indices) && count > 1, "{code:?}");
            }
            Form::String { element, .. } => {
                assert!(matches!(write.base(), Register::RDI | Register::EDI), "{code:?}");
                assert_eq!(element as usize, instruction.memory_size().size(), "{code:?}");
            }
            Form::Push { size: pushed } => {
                assert_eq!((write.base(), pushed as u32), (Register::RSP, size), "{code:?}");
                assert_eq!(write.displacement() as i64, -(pushed as i64), "{code:?}");
            }
            Form::Movdir64b { to } => assert_eq!((to, 64), (write.base(), size), "{code:?}"),
            Form::ByteMask { .. } => assert!(matches!(write.base(), Register::RDI | Register::EDI), "{code:?}"),
            _ => {}
        }
        if !matches!(form, Form::String { .. } | Form::Scatter { .. }) {
            assert_eq!(form.max_size(), Some(size), "{code:?}");
        }
        assert_eq!(also_reads, reads, "{code:?}");
    }
}

#[test]
fn scanner_and_table_agree() {
    for Member { bytes, instruction } in CORPUS.members.values() {
        let class = scan(bytes).expect("a whole instruction").class;
        let expected = match effect(instruction) {
            Effect::Rmw(_) => Class::Locked,
            Effect::Flush(FlushKind::Clflush) => Class::Clflush,
            Effect::Flush(FlushKind::Clflushopt) => Class::Clflushopt,
            Effect::Flush(FlushKind::Clwb) => Class::Clwb,
            Effect::Flush(FlushKind::Cldemote) => Class::Cldemote,
            Effect::Fence(FenceKind::Sfence) => Class::Sfence,
            Effect::Fence(FenceKind::Mfence) => Class::Mfence,
            Effect::Fence(FenceKind::Lfence) => Class::Lfence,
            Effect::Varies(Source::Rdrand) => Class::Rdrand,
            Effect::Varies(Source::Rdseed) => Class::Rdseed,
            Effect::Varies(Source::Rdtsc) => Class::Rdtsc,
            Effect::Varies(Source::Rdtscp) => Class::Rdtscp,
            _ => {
                use Class::*;
                let table_knows = [Locked, Clflush, Clflushopt, Clwb, Cldemote, Sfence, Mfence, Lfence];
                let varies = [Rdrand, Rdseed, Rdtsc, Rdtscp];
                assert!(
                    !table_knows.contains(&class) && !varies.contains(&class),
                    "{:?} is {class:?}",
                    instruction.code()
                );
                continue;
            }
        };
        assert_eq!(class, expected, "{:?} {bytes:02x?}", instruction.code());
    }
}

/// The whole table as it comes out, for a reader and for review of changes.
#[test]
fn table_of_effects() {
    let mut by_effect: BTreeMap<String, Vec<Code>> = BTreeMap::new();
    for Member { instruction, .. } in CORPUS.members.values() {
        let effect = effect(instruction);
        if effect != Effect::None {
            by_effect.entry(format!("{effect:?}")).or_default().push(instruction.code());
        }
    }
    let mut text = String::new();
    for (effect, mut codes) in by_effect {
        codes.dedup();
        writeln!(text, "{effect}").expect("a string");
        for code in codes {
            writeln!(text, "    {code:?}").expect("a string");
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn every_read_is_a_load() {
    use OpAccess::*;
    for Member { instruction, .. } in CORPUS.members.values() {
        let code = instruction.code();
        let reads = used(instruction, &[Read, CondRead, ReadWrite, ReadCondWrite]);
        let loads = loads(instruction);
        let (mut explicit, mut rest) = (0, 0);
        for load in loads.iter() {
            match load.form {
                LoadForm::Explicit { size } | LoadForm::Masked { size, .. } | LoadForm::Expand { size, .. } => {
                    explicit += size
                }
                LoadForm::BitOffset { size, .. } => explicit += size as u32,
                LoadForm::Stack { size } => explicit += size,
                _ => rest += 1,
            }
        }
        assert_eq!(loads.iter().count() == 0, reads.is_empty(), "{code:?}: {loads:?} {reads:?}");
        if rest == 0 && !reads.is_empty() {
            let size: usize = reads.iter().map(|read| read.memory_size().size()).sum();
            assert_eq!(explicit as usize, size, "{code:?}: {loads:?} {reads:?}");
        }
    }
}
