//! The code that the engine makes of instructions, form by form: golden texts.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::io::{Read, Seek};
use std::path::Path;
use std::process::Command;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter};
use record::request::{Request, Stream};
use record::stop::StopRequest;
use supervise::memory_file;
use trace::event::ExitStatus;

/// As in the program.
const FORMS: [&str; 16] = [
    "mov rax, [rip + forms]",
    "mov [rdi], al",
    "mov dword ptr [rdi + 8], 7",
    "mov [rdi + rcx * 8], rax",
    "movaps [rdi + 32], xmm0",
    "movnti [rdi + 64], rax",
    "add [rdi + 72], rax",
    "xchg [rdi + 80], rax",
    "lock xadd [rdi + 88], rax",
    "lock cmpxchg [rdi + 96], rcx",
    "rep stosb",
    "clflush [rdi]",
    "sfence",
    "mfence",
    "cmp eax, 4; mov [rdi + 104], ax; setb al",
    "cmp eax, 4; ja 1f; nop; 1:",
];
const BEFORE: u64 = 512;
const BYTES: usize = 1536;

/// The probe's own image: what lies there moves with every build of it.
const IMAGE: std::ops::Range<u64> = 0x7000_0000..0x7100_0000;
/// `jmp [rcx*8+...]` through the table of indirect branches: the end of every function here.
const BRANCH_TABLE: u64 = 0x7180_0000;

/// One piece of the engine's memory.
struct Piece<'a> {
    entry: u64,
    bytes: &'a [u8],
}

impl Piece<'_> {
    fn at(&self, address: u64) -> Option<Instruction> {
        let start = usize::try_from(address.checked_sub(self.entry - BEFORE)?).ok()?;
        Some(Decoder::with_ip(64, self.bytes.get(start..)?, address, DecoderOptions::NONE).decode())
    }

    /// The way of a thread that comes through the table and takes no branch: one instruction per line, places relative to the entry.
    fn text(&self) -> String {
        let mut text = String::new();
        let (mut address, mut seen) = (self.entry, HashSet::new());
        while let Some(instruction) = self.at(address).filter(|_| seen.insert(address)) {
            assert!(!instruction.is_invalid(), "{text}");
            // The right target: the landing is passed by this jump.
            let passes = instruction.flow_control() == FlowControl::ConditionalBranch && instruction.is_jcx_short();
            address = match instruction.flow_control() {
                FlowControl::UnconditionalBranch => instruction.near_branch_target(),
                FlowControl::ConditionalBranch if passes => instruction.near_branch_target(),
                _ => instruction.next_ip(),
            };
            if instruction.flow_control() != FlowControl::UnconditionalBranch {
                writeln!(text, "  {}", self.line(&instruction)).expect("text");
            }
            if instruction.flow_control() == FlowControl::IndirectBranch {
                assert_eq!(instruction.memory_displacement64(), BRANCH_TABLE);
                return text;
            }
        }
        panic!("it does not end:\n{text}");
    }

    fn line(&self, instruction: &Instruction) -> String {
        let mut line = String::new();
        IntelFormatter::new().format(instruction, &mut line);
        let of_engine = instruction.memory_displacement64();
        if IMAGE.contains(&of_engine) {
            line = line.replace(&format!("{of_engine:X}h"), "engine");
        }
        if instruction.flow_control() == FlowControl::ConditionalBranch {
            // Where it leads depends on what lies in between.
            let to = instruction.near_branch_target();
            let way = if to > instruction.ip() { "ahead" } else { "back" };
            line = format!("{} {way}", line.split(' ').next().unwrap_or_default());
        }
        line
    }
}

#[test]
fn each_form_becomes_this_code() {
    if !supervise::probe::is_embedded() {
        return targets::skip("there is no probe in this build");
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("translated");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/translated.S");
    let mut cc = Command::new("cc");
    cc.args(["-nostdlib", "-static", "-no-pie", "-Wl,-Ttext=0x500000,-Tdata=0x600000,-Tbss=0x610000", "-o"]);
    assert!(cc.arg(&program).arg(source).status().expect("cc is installed").success());

    let mut output = memory_file::create(c"translated code").unwrap();
    let pool = folder.path().join("pool");
    let mut request = Request::new([&program, &pool], folder.path().join("trace"));
    request.stdout = Stream::File(output.try_clone().unwrap());
    let recording = request.run(&StopRequest::new()).unwrap();
    assert_eq!(recording.target, ExitStatus::Code(0));
    let mut dump = Vec::new();
    output.rewind().and_then(|()| output.read_to_end(&mut dump)).unwrap();
    assert_eq!(dump.len(), FORMS.len() * (8 + BYTES));

    let mut text = String::new();
    for (form, piece) in FORMS.iter().zip(dump.chunks(8 + BYTES)) {
        let (entry, bytes) = piece.split_first_chunk::<8>().expect("an address");
        let piece = Piece { entry: u64::from_le_bytes(*entry), bytes };
        write!(text, "{form}\n{}\n", piece.text()).expect("text");
    }
    insta::assert_snapshot!(text);
}
