//! The language of the table: `thread: instruction` with `;` between.
//!
//! Variables are aligned quadwords: `x` and `x2` share a line, `y` and `z` have a line and a page each.
//! `pair=1` stores 16 bytes, `x` and `x2` at once. System calls that a recorder notes as others are written as the program makes them
//! ([`as_recorded`]).

use std::collections::BTreeSet;

use persistency::content::Content;
use persistency::domain::Detail;
use persistency::line::{LINE_BYTES, LineId};
use persistency::model::{Fences, ModelKind};
use persistency::tracker::{Applied, Tracker};
use trace::event::{
    CodeAddr, ContextId, Event, EventId, EventKind, FenceKind, FlushKind, FlushTarget, Place, PoolId, PoolOffset,
    StoreKind, ThreadId,
};

const POOL: PoolId = PoolId(0);
const POOL_BYTES: usize = 3 * 4096;

fn place(variable: &str) -> Result<Place, String> {
    let offset = match variable {
        "x" | "pair" => 0,
        "x2" => 8,
        "y" => 4096,
        "z" => 8192,
        other => return Err(format!("`{other}` is no variable")),
    };
    Ok(Place { pool: POOL, offset: PoolOffset(offset) })
}

/// The outcomes (values of the variables in `shows`, as digits) of a crash before and after each instruction.
pub fn run(program: &str, shows: &str, kind: ModelKind, fences: Fences) -> Result<Vec<BTreeSet<String>>, String> {
    let mut tracker = Tracker::new(kind.build(fences), Detail::Bytes);
    let mut base = vec![0u8; POOL_BYTES];
    let mut points = vec![outcomes(&tracker, &base, shows)?];
    let mut at = EventId(0);
    for instruction in program.split("; ") {
        let (thread, text) = instruction.split_once(": ").ok_or("every instruction has a thread")?;
        let thread = ThreadId(u32::from(thread.as_bytes()[0] - b'A'));
        for text in as_recorded(text) {
            let mut bytes = Vec::new();
            let kind = parse(&text, &mut bytes)?;
            let event = Event { thread, context: ContextId(0), pc: CodeAddr::default(), kind };
            follow(&mut base, &tracker.apply(at, &event));
            at.0 += 1;
        }
        points.push(outcomes(&tracker, &base, shows)?);
    }
    Ok(points)
}

/// The events of a system call: duty 4 of `record::recorder`; targets/crash/files/synchronous.c makes them in a program.
fn as_recorded(text: &str) -> Vec<String> {
    let synchronous =
        ["O_SYNC ", "O_DSYNC ", "RWF_SYNC ", "RWF_DSYNC "].iter().find_map(|flag| text.strip_prefix(flag));
    match (synchronous, text) {
        (Some(write), _) => {
            let variable = write.trim_start_matches("write ").split('=').next().unwrap_or_default();
            vec![write.to_owned(), format!("msync {variable}")]
        }
        (None, "sync" | "syncfs") => vec!["fsync".to_owned()],
        // It promises nothing, so it is no event.
        (None, call) if call.starts_with("sync_file_range ") => Vec::new(),
        (None, other) => vec![other.to_owned()],
    }
}

fn parse<'a>(text: &str, bytes: &'a mut Vec<u8>) -> Result<EventKind<'a>, String> {
    let (mnemonic, operand) = text.rsplit_once(' ').unwrap_or(("", text));
    if let Some((variable, value)) = operand.split_once('=') {
        let value: u8 = value.parse().map_err(|_| format!("`{value}` is no value"))?;
        let place = place(variable)?;
        let len = match (mnemonic, variable) {
            ("movdir64b", _) => 64,
            (_, "pair") => 16,
            _ => 8,
        };
        *bytes = vec![value; len];
        let store = |kind| EventKind::Store { place, kind, bytes };
        return Ok(match mnemonic {
            "" => store(StoreKind::Plain),
            "movnt" | "movdiri" => store(StoreKind::NonTemporal),
            "movdir64b" => store(StoreKind::Direct64),
            "xchg" => EventKind::Rmw { place, old: &[], new: bytes },
            "write" => EventKind::FileWrite { place, bytes },
            "read" => EventKind::KernelWrite { place, bytes },
            other => return Err(format!("`{other}` stores nothing")),
        });
    }
    let flush = |kind| Ok(EventKind::Flush { kind, target: FlushTarget::Pool(place(operand)?) });
    match (mnemonic, operand) {
        ("clflush", _) => flush(FlushKind::Clflush),
        ("clflushopt", _) => flush(FlushKind::Clflushopt),
        ("clwb", _) => flush(FlushKind::Clwb),
        ("cldemote", _) => flush(FlushKind::Cldemote),
        ("msync", _) => Ok(EventKind::Msync { place: place(operand)?, len: 8 }),
        ("zero", _) => Ok(EventKind::FileZero { place: place(operand)?, len: 8 }),
        ("unmap", _) => Ok(EventKind::Unmap { place: place(operand)?, len: 4096, address: 0 }),
        ("", "sfence") => Ok(EventKind::Fence { kind: FenceKind::Sfence }),
        ("", "mfence") => Ok(EventKind::Fence { kind: FenceKind::Mfence }),
        ("", "locked") => Ok(EventKind::Fence { kind: FenceKind::Locked }),
        ("", "fsync") => Ok(EventKind::Fsync { pool: POOL, data_only: false }),
        ("", "fdatasync") => Ok(EventKind::Fsync { pool: POOL, data_only: true }),
        ("", "exit") => Ok(EventKind::ThreadEnd),
        _ => Err(format!("`{text}` is no instruction")),
    }
}

fn follow(base: &mut [u8], step: &Applied<'_>) {
    for settled in step.guaranteed() {
        let at = settled.line.start().offset.0 as usize + settled.store.start as usize;
        let bytes = step.bytes(settled).expect("bytes are kept");
        base[at..at + bytes.len()].copy_from_slice(bytes);
    }
}

fn outcomes(tracker: &Tracker, base: &[u8], shows: &str) -> Result<BTreeSet<String>, String> {
    let point = tracker.crash_point();
    let mut images = vec![base.to_vec()];
    for line in point.lines() {
        let contents: Vec<Content> = line.contents().map_err(|error| error.to_string())?.collect();
        let at = line.id().start().offset.0 as usize;
        let mut with_line = Vec::new();
        for (image, content) in images.iter().flat_map(|image| contents.iter().map(move |&content| (image, content))) {
            let mut image = image.clone();
            let mut bytes: [u8; LINE_BYTES] = image[at..at + LINE_BYTES].try_into().expect("a line");
            line.overlay(content, &mut bytes).map_err(|error| error.to_string())?;
            image[at..at + LINE_BYTES].copy_from_slice(&bytes);
            with_line.push(image);
        }
        images = with_line;
    }
    let variables: Vec<Place> = shows.split(' ').map(place).collect::<Result<_, _>>()?;
    debug_assert!(variables.iter().all(|&place| LineId::of(place).pool == POOL));
    let show = |image: &Vec<u8>| -> String {
        variables.iter().map(|place| char::from(b'0' + image[place.offset.0 as usize])).collect()
    };
    Ok(images.iter().map(show).collect())
}
