//! Compares every covered instruction form with the processor: on random operands, the expressions give the processor's results.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use iced_x86::{
    Code, Encoder, EncodingKind, Instruction, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
};
use solve::eval::Evaluator;
use solve::expr::{Arena, Expr, Op};
use solve::flags::{ALL, Flag};
use solve::frame::{Byte, Concrete, InstructionFrame, Known, Registers};
use solve::semantics::{Meaning, execute, meaning};

use crate::machine::{self, Processor, State};

const OPERANDS: usize = 100;

/// Where things are in the input.
const GENERAL: usize = 0;
const VECTORS: usize = GENERAL + 16 * 8;
const MASKS: usize = VECTORS + 32 * 64;
const MEMORY: usize = MASKS + 8 * 8;
const FLAGS: usize = MEMORY + 64;
const END: usize = FLAGS + 6;

/// Bits of the flags register, in the order of [`ALL`].
const FLAG_BITS: [u64; 6] = [1, 1 << 2, 1 << 4, 1 << 6, 1 << 7, 1 << 11];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Often near the edges.
    fn word(&mut self) -> u64 {
        match self.next() % 6 {
            0 => 0,
            1 => u64::MAX,
            2 => self.next() % 80,
            3 => 1 << (self.next() % 64),
            _ => self.next(),
        }
    }
}

/// The input has everything; `only` says what of it is not followed.
struct Values<'a>(&'a [u8]);

impl Known for Values<'_> {
    fn register(&self, register: Register, at: usize) -> Option<u8> {
        let full = register.full_register();
        let from = if full.is_gpr64() {
            GENERAL + full.number() * 8
        } else if full.is_k() {
            MASKS + full.number() * 8
        } else {
            VECTORS + full.number() * 64
        };
        self.0.get(from + at).copied()
    }
    fn content(&self, at: usize) -> Option<u8> {
        self.0.get(MEMORY + at).copied()
    }
    fn condition(&self) -> Option<bool> {
        None
    }
}

/// What is not followed in a second attempt: shift counts, masks, upper halves, as code often has them.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Followed {
    All,
    NoCounts,
}

fn followed(arena: &mut Arena, what: Followed, quotient: bool) -> (Registers, Vec<Byte>) {
    let mut registers = Registers::default();
    for number in 0..16 {
        for at in 0..8 {
            let not = what == Followed::NoCounts && (number == 1 || number == 0 && at >= 4);
            registers.general[number][at] = (!not).then(|| arena.input((GENERAL + number * 8 + at) as u32));
        }
    }
    for number in 0..32 {
        for at in 0..64 {
            registers.vector[number][at] = Some(arena.input((VECTORS + number * 64 + at) as u32));
        }
    }
    for number in 0..8 {
        for at in 0..8 {
            let byte = (what == Followed::All).then(|| arena.input((MASKS + number * 8 + at) as u32));
            registers.mask[number][at] = byte;
        }
    }
    for (at, flag) in ALL.into_iter().enumerate() {
        let byte = arena.input((FLAGS + at) as u32);
        let bit = arena.extract(byte, 0, 1);
        registers.flags.set(flag, Some(bit));
    }
    registers.live = u64::MAX;
    if quotient {
        // The upper half of a dividend is what `cqo` leaves.
        let top = arena.input(7);
        let sign = arena.extract(top, 7, 1);
        let byte = arena.sext(sign, 8);
        registers.general[2] = [Some(byte); 8];
    }
    let memory = (0..64).map(|at| Some(arena.input((MEMORY + at) as u32))).collect();
    (registers, memory)
}

fn state(input: &[u8], memory: u64) -> State {
    let word = |at: usize| u64::from_le_bytes(input[at..at + 8].try_into().unwrap());
    let mut state = State::default();
    for number in 0..16 {
        state.general[number] = word(GENERAL + number * 8);
    }
    state.general[14] = memory;
    for number in 0..32 {
        state.vectors[number].0.copy_from_slice(&input[VECTORS + number * 64..][..64]);
    }
    for number in 0..8 {
        state.masks[number] = word(MASKS + number * 8);
    }
    state.flags = 0x202;
    for (at, bit) in FLAG_BITS.into_iter().enumerate() {
        state.flags |= bit * u64::from(input[FLAGS + at] & 1);
    }
    state
}

/// One form: an instruction with its operands.
fn forms(random: &mut Random) -> Vec<Instruction> {
    let mut forms = Vec::new();
    for code in Code::values() {
        let covered = !matches!(meaning(code.mnemonic()), Meaning::None | Meaning::Nothing);
        if !covered || !code.op_code().mode64() || !code.op_code().is_instruction() || !machine::supports(code) {
            continue;
        }
        for memory in [false, true] {
            if let Some(form) = machine::form(code, memory, random.next()) {
                forms.push(form);
                if code.encoding() == EncodingKind::EVEX {
                    forms.extend(machine::masked(&form));
                }
            }
        }
    }
    forms
}

fn input(random: &mut Random, instruction: &Instruction) -> Vec<u8> {
    let mut input: Vec<u8> = (0..END.div_ceil(8)).flat_map(|_| random.word().to_le_bytes()).collect();
    input.truncate(END);
    if random.next().is_multiple_of(2) {
        // Equal operands, so that comparisons see both outcomes.
        let source: Vec<u8> = input[VECTORS..VECTORS + 64].to_vec();
        for number in 1..32 {
            for at in 0..64 {
                if !random.next().is_multiple_of(4) {
                    input[VECTORS + number * 64 + at] = source[at];
                }
            }
        }
        for at in 0..64 {
            if !random.next().is_multiple_of(4) {
                input[MEMORY + at] = source[at];
            }
        }
    }
    for byte in &mut input[FLAGS..] {
        *byte &= 1;
    }
    if matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv) {
        // A quotient that fits: a small positive dividend with a clear upper half, an odd positive divisor.
        let signed = instruction.mnemonic() == Mnemonic::Idiv;
        input[GENERAL + 16..GENERAL + 24].fill(0);
        let size = if instruction.op0_kind() == OpKind::Memory {
            instruction.memory_size().size()
        } else {
            instruction.op0_register().size()
        };
        if size == 1 {
            input[GENERAL + 1] = 0;
        }
        let top = if signed { 0x7f } else { 0xff };
        input[GENERAL + size - 1] &= top;
        let divisor = match instruction.op0_kind() {
            OpKind::Memory => MEMORY,
            _ => GENERAL + instruction.op0_register().full_register().number() * 8,
        };
        input[divisor] |= 1;
        input[divisor + size - 1] &= top;
    }
    input
}

struct Made {
    arena: Arena,
    registers: Registers,
    memory: Vec<Byte>,
    stored: Option<Vec<Byte>>,
}

fn make(form: &Instruction, known: &Values<'_>, what: Followed) -> Result<Made, Concrete> {
    let mut arena = Arena::default();
    let (mut registers, memory) = followed(&mut arena, what, matches!(form.code(), Code::Idiv_rm64));
    registers.general[14] = [None; 8];
    let mut frame = InstructionFrame {
        arena: &mut arena,
        registers: &mut registers,
        known,
        instruction: form,
        memory: &memory[..machine::memory_len(form)],
        stored: None,
        cut: 0,
    };
    execute(&mut frame)?;
    let stored = frame.stored;
    Ok(Made { arena, registers, memory, stored })
}

/// `Err`: not covered with these operands.
fn check(processor: &mut Processor, form: &Instruction, random: &mut Random, what: Followed) -> Result<(), Concrete> {
    let mut encoder = Encoder::new(64);
    encoder.encode(form, 0).unwrap_or_else(|error| panic!("{:?}: {error}", form.code()));
    processor.load(&encoder.take_buffer());
    let mut factory = InstructionInfoFactory::new();
    let stores = (0..form.op_count()).any(|op| {
        form.op_kind(op) == OpKind::Memory
            && !matches!(factory.info(form).op_access(op), OpAccess::Read | OpAccess::CondRead)
    });
    // Bytes that were said to be the same whatever the operands are.
    let mut fixed: BTreeMap<String, u8> = BTreeMap::new();
    let mut made = None;
    for round in 0..OPERANDS {
        let input = input(random, form);
        // What does not depend on values is made once.
        let Made { arena, registers, memory, stored, .. } = match (&mut made, what) {
            (Some(made), Followed::All) => made,
            (made, _) => made.insert(make(form, &Values(&input), what)?),
        };
        let size = machine::memory_len(form);
        let mut state = state(&input, processor.memory_address());
        processor.memory().copy_from_slice(&input[MEMORY..MEMORY + 64]);
        processor.run(&mut state);
        let mut evaluator = Evaluator::new(arena, &input);
        let mut compare = |place: &dyn Fn() -> String, byte: Byte, at: usize, is: u8| match byte {
            Some(expr) if arena.node(expr).op == Op::Input && arena.node(expr).imm == at as u64 => {
                assert_eq!(input[at], is, "{:?} {form:?}: {} was said to stay", form.code(), place());
            }
            Some(expr) => {
                let place = place();
                let said = evaluator.value(expr) as u8;
                assert_eq!(
                    said,
                    is,
                    "{:?} {form:?} round {round}: {place}: expression {said:#x}, processor {is:#x}",
                    form.code()
                );
            }
            None => {
                let place = place();
                let first = *fixed.entry(place.clone()).or_insert(is);
                let counts = what == Followed::NoCounts;
                assert!(counts || first == is, "{:?}: {place} was said not to depend on operands", form.code());
            }
        };
        for number in (0..16).filter(|&n| n != 4 && n != 15 && n != 14) {
            for (at, &is) in state.general[number].to_le_bytes().iter().enumerate() {
                compare(&|| format!("r{number}[{at}]"), registers.general[number][at], GENERAL + number * 8 + at, is);
            }
        }
        for number in 0..machine::vectors() {
            for (at, &is) in state.vectors[number].0.iter().enumerate().take(machine::vector_bytes()) {
                compare(&|| format!("v{number}[{at}]"), registers.vector[number][at], VECTORS + number * 64 + at, is);
            }
        }
        if machine::has_masks() {
            for number in 0..8 {
                for (at, &is) in state.masks[number].to_le_bytes().iter().enumerate() {
                    compare(&|| format!("k{number}[{at}]"), registers.mask[number][at], MASKS + number * 8 + at, is);
                }
            }
        }
        let after = stored.clone().unwrap_or_else(|| memory[..size].to_vec());
        assert!(stores || after == memory[..size], "{:?} stores nothing", form.code());
        for (at, &is) in processor.memory().iter().enumerate() {
            let byte = after.get(at).copied().unwrap_or(memory[at]);
            compare(&|| format!("m[{at}]"), byte, MEMORY + at, is);
        }
        for (at, flag) in ALL.into_iter().enumerate() {
            let is = state.flags & FLAG_BITS[at] != 0;
            let Some(expr) = registers.flags.get(arena, flag) else {
                continue;
            };
            compare_flag(arena, &input, form, flag, expr, is);
        }
        undefined_is_allowed(form, registers, arena);
    }
    Ok(())
}

fn compare_flag(arena: &Arena, input: &[u8], form: &Instruction, flag: Flag, expr: Expr, is: bool) {
    let said = Evaluator::new(arena, input).holds(expr);
    assert_eq!(said, is, "{:?} {form:?}: {flag:?}", form.code());
}

/// Flags may be left open only where the manual does, or where the result is a number.
fn undefined_is_allowed(form: &Instruction, registers: &mut Registers, arena: &mut Arena) {
    use iced_x86::RflagsBits as R;
    let bits = [R::CF, R::PF, R::AF, R::ZF, R::SF, R::OF];
    let fixed = form.rflags_cleared() | form.rflags_set();
    for (at, flag) in ALL.into_iter().enumerate() {
        let open = registers.flags.get(arena, flag).is_none();
        let shifts = matches!(meaning(form.mnemonic()), Meaning::Shift(_) | Meaning::DoubleShift { .. });
        let same =
            form.op_count() > 1 && form.op0_register() == form.op1_register() && form.op0_kind() == OpKind::Register;
        assert!(
            !open || (form.rflags_undefined() | fixed) & bits[at] != 0 || shifts || same,
            "{:?}: {flag:?} is left open",
            form.code()
        );
    }
}

#[test]
fn expressions_are_what_the_processor_does() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut processor = Processor::new();
    let (mut checked, mut refused, mut failed) = (0, BTreeMap::new(), Vec::new());
    for form in forms(&mut random) {
        // All forms that fail, not the first alone.
        let result = catch_unwind(AssertUnwindSafe(|| {
            let first = check(&mut processor, &form, &mut random, Followed::All);
            first.or_else(|_| check(&mut processor, &form, &mut random, Followed::NoCounts))
        }));
        match result {
            Err(_) => failed.push(form.code()),
            Ok(Ok(())) => checked += 1,
            Ok(Err(why)) => *refused.entry((form.mnemonic(), why)).or_insert(0) += 1,
        }
    }
    println!("{checked} forms with {OPERANDS} operands each; not covered with some operands: {refused:?}");
    assert!(failed.is_empty(), "{failed:?}");
    assert!(checked >= if machine::has_masks() { 1000 } else { 800 }, "only {checked} forms");
}
