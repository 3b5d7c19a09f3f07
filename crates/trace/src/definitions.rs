//! The `META` and `DEFS` chunks: everything that events refer to by number, as a stream of small records.

use crate::bytes::{Input, PutBytes};
use crate::error::Malformed;
use crate::event::{CodeAddr, ContextId, ExitStatus, ModuleId};
use crate::shape::{Code, Shape};
use crate::tables::{CodeModule, ContextNode, Meta, ModuleKind, Note, Outcome, Severity, Tables};

const MODULE: u8 = 1;
const CONTEXT: u8 = 2;
const WATCH: u8 = 3;
const NOTE: u8 = 4;
const INSTRUCTION: u8 = 5;
const SHAPE: u8 = 6;
const PATH: u8 = 7;

pub(crate) fn put_meta(out: &mut Vec<u8>, meta: &Meta) {
    let strings = |out: &mut Vec<u8>, list: &[String]| {
        out.varint(list.len() as u64);
        list.iter().for_each(|text| out.text(text.as_bytes()));
    };
    strings(out, &meta.command);
    out.text(meta.cwd.as_bytes());
    out.text(meta.recorder.as_bytes());
    strings(out, &meta.options);
}

pub(crate) fn read_meta(bytes: &[u8]) -> Result<Meta, Malformed> {
    let mut input = Input(bytes);
    let strings = |input: &mut Input<'_>| (0..input.count()?).map(|_| input.string()).collect::<Result<Vec<_>, _>>();
    Ok(Meta {
        command: strings(&mut input)?,
        cwd: input.string()?,
        recorder: input.string()?,
        options: strings(&mut input)?,
    })
}

pub(crate) fn put_module(out: &mut Vec<u8>, module: &CodeModule) {
    out.push(MODULE);
    out.push(module.kind as u8);
    out.text(module.path.as_bytes());
    match &module.build_id {
        None => out.push(0),
        Some(id) => {
            out.push(1);
            out.text(id);
        }
    }
}

pub(crate) fn put_context(out: &mut Vec<u8>, node: &ContextNode) {
    out.push(CONTEXT);
    out.varint(node.parent.0.into());
    put_addr(out, node.return_to);
    out.push(node.partial.into());
}

pub(crate) fn put_watch(out: &mut Vec<u8>, symbol: &str) {
    out.push(WATCH);
    out.text(symbol.as_bytes());
}

pub(crate) fn put_path(out: &mut Vec<u8>, path: &str) {
    out.push(PATH);
    out.text(path.as_bytes());
}

pub(crate) fn put_note(out: &mut Vec<u8>, severity: Severity, text: &str) {
    out.push(NOTE);
    out.push(severity as u8);
    out.text(text.as_bytes());
}

pub(crate) fn put_instruction(out: &mut Vec<u8>, name: &str) {
    out.push(INSTRUCTION);
    out.text(name.as_bytes());
}

pub(crate) fn put_shape(out: &mut Vec<u8>, shape: &Shape) {
    out.push(SHAPE);
    out.push(shape.code as u8);
    out.varint(shape.subject.into());
    out.varint(shape.len.into());
    out.varint(shape.context.0.into());
    put_addr(out, shape.pc);
}

pub(crate) fn put_outcome(out: &mut Vec<u8>, outcome: Outcome) {
    let (kind, number) = match outcome {
        Outcome::Ended(ExitStatus::Code(code)) => (0, code),
        Outcome::Ended(ExitStatus::Signal(signal)) => (1, signal),
        Outcome::Interrupted => (2, 0),
        Outcome::Failed => (3, 0),
    };
    out.push(kind);
    out.varint(u64::from(number as u32));
}

pub(crate) fn read_outcome(input: &mut Input<'_>) -> Result<Outcome, Malformed> {
    let kind = input.byte()?;
    let number = input.varint32()? as i32;
    match kind {
        0 => Ok(Outcome::Ended(ExitStatus::Code(number))),
        1 => Ok(Outcome::Ended(ExitStatus::Signal(number))),
        2 => Ok(Outcome::Interrupted),
        3 => Ok(Outcome::Failed),
        _ => Err(Malformed("unknown outcome")),
    }
}

fn put_addr(out: &mut Vec<u8>, addr: CodeAddr) {
    out.varint(addr.module.0.into());
    out.varint(addr.addr);
}

/// Adds the records of a `DEFS` chunk to the tables. Every number it refers to is defined before.
pub(crate) fn read_into(bytes: &[u8], tables: &mut Tables, shapes: &mut Vec<Shape>) -> Result<(), Malformed> {
    let mut input = Input(bytes);
    while !input.is_empty() {
        match input.byte()? {
            MODULE => {
                let kind = match input.byte()? {
                    0 => ModuleKind::Elf,
                    1 => ModuleKind::Vdso,
                    2 => ModuleKind::Anonymous,
                    3 => ModuleKind::None,
                    _ => return Err(Malformed("unknown kind of module")),
                };
                let path = input.string()?;
                let build_id = if input.byte()? == 0 { None } else { Some(input.blob()?.to_vec()) };
                tables.modules.push(CodeModule { path, build_id, kind });
            }
            CONTEXT => {
                let parent = ContextId(input.varint32()?);
                let return_to = read_addr(&mut input, tables)?;
                let partial = input.byte()? != 0;
                if parent.0 as usize >= tables.contexts.len() {
                    return Err(Malformed("a call path refers to one that is not there"));
                }
                tables.contexts.push(ContextNode { parent, return_to, partial });
            }
            WATCH => tables.watches.push(input.string()?),
            PATH => tables.paths.push(input.string()?),
            NOTE => {
                let severity = match input.byte()? {
                    0 => Severity::Note,
                    1 => Severity::Warning,
                    2 => Severity::Fatal,
                    _ => return Err(Malformed("unknown severity")),
                };
                tables.notes.push(Note { severity, text: input.string()? });
            }
            INSTRUCTION => tables.instructions_seen.push(input.string()?),
            SHAPE => shapes.push(read_shape(&mut input, tables)?),
            _ => return Err(Malformed("unknown definition")),
        }
    }
    tables.instructions_seen.sort();
    Ok(())
}

fn read_addr(input: &mut Input<'_>, tables: &Tables) -> Result<CodeAddr, Malformed> {
    let module = ModuleId(input.varint32()?);
    if module.0 as usize >= tables.modules.len() {
        return Err(Malformed("a code address lies in a module that is not there"));
    }
    Ok(CodeAddr { module, addr: input.varint()? })
}

fn read_shape(input: &mut Input<'_>, tables: &Tables) -> Result<Shape, Malformed> {
    let code = Code::from_byte(input.byte()?)?;
    let (subject, len) = (input.varint32()?, input.varint32()?);
    let context = ContextId(input.varint32()?);
    let pc = read_addr(input, tables)?;
    let shape = Shape { code, subject, len, context, pc };
    shape.check()?;
    let subjects = match code {
        code if code.has_pool() => tables.pools.len(),
        code if code.has_watch() => tables.watches.len(),
        _ => 1,
    };
    if subject as usize >= subjects || context.0 as usize >= tables.contexts.len() {
        return Err(Malformed("an event refers to something that is not there"));
    }
    Ok(shape)
}
