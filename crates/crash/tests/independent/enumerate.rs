//! What a power failure can leave, from first principles and without a line of the crate `persistency`.
//!
//! A store is cut into the 8-byte granules that it writes. Each of these writes is in PM or not. A set of writes is possible if it holds all that
//! is certain and, with each write, all that must be there before it. That is all; every line is enumerated on its own and the
//! lines are combined.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use super::program::{FileOp, LINES, Model, Op, What, Writer};

pub type Line = [u8; 64];
pub type Image = [Line; LINES];

/// The bytes behind each name, by its place in the list of names.
pub type Files = BTreeMap<usize, Vec<u8>>;

/// The files after the first `end` operations: every call is durable when it returns, so there is one answer.
pub fn files(ops: &[Op], end: usize) -> Files {
    let mut names: BTreeMap<usize, Rc<RefCell<Vec<u8>>>> = BTreeMap::new();
    for op in &ops[..end] {
        let What::File(change) = op.what else { continue };
        match change {
            FileOp::Create { name } => drop(names.insert(name, Rc::default())),
            FileOp::Write { name, offset, value } => {
                let mut bytes = names[&name].borrow_mut();
                let len = bytes.len().max(offset + 1);
                bytes.resize(len, 0);
                bytes[offset] = value;
            }
            FileOp::Truncate { name, len } => names[&name].borrow_mut().resize(len, 0),
            FileOp::Rename { from, to } => {
                let file = names.remove(&from).expect("programs rename what is there");
                names.insert(to, file);
            }
            FileOp::Link { from, to } => drop(names.insert(to, Rc::clone(&names[&from]))),
            FileOp::Unlink { name } => drop(names.remove(&name)),
        }
    }
    names.into_iter().map(|(name, bytes)| (name, bytes.borrow().clone())).collect()
}

/// More are not enumerated.
pub const MOST: usize = 3000;

/// One granule's part of a store.
#[derive(Clone, Debug)]
struct Write {
    /// The operation.
    at: usize,
    /// First byte in the line, and the bytes.
    start: usize,
    bytes: Vec<u8>,
    is_certain: bool,
}

/// The contents that each line can have after the first `end` operations; none if there are too many.
pub fn lines(ops: &[Op], end: usize, model: Model) -> [Option<BTreeSet<Line>>; LINES] {
    std::array::from_fn(|line| contents(&ops[..end], line, model))
}

/// All images; none if there are too many.
pub fn images(lines: &[Option<BTreeSet<Line>>; LINES]) -> Option<HashSet<Image>> {
    let mut images = vec![[[0; 64]; LINES]];
    for (number, contents) in lines.iter().enumerate() {
        let contents = contents.as_ref()?;
        if images.len() * contents.len() > MOST {
            return None;
        }
        let with = |image: &Image, content: &Line| {
            let mut image = *image;
            image[number] = *content;
            image
        };
        images = images.iter().flat_map(|image| contents.iter().map(move |content| with(image, content))).collect();
    }
    Some(images.into_iter().collect())
}

fn contents(ops: &[Op], line: usize, model: Model) -> Option<BTreeSet<Line>> {
    let writes = writes(ops, line, model);
    let mut found = BTreeSet::new();
    let mut sets = 0;
    choose(ops, &writes, &mut Vec::new(), &mut sets, &mut found).then_some(found)
}

/// Goes through the writes in the order of the trace; with each, there is a set that has it and one that has not.
fn choose(ops: &[Op], writes: &[Write], has: &mut Vec<bool>, sets: &mut usize, found: &mut BTreeSet<Line>) -> bool {
    let Some(write) = writes.get(has.len()) else {
        let mut content = [0; 64];
        for (write, _) in writes.iter().zip(has).filter(|(_, has)| **has) {
            content[write.start..write.start + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        found.insert(content);
        *sets += 1;
        return *sets <= MOST;
    };
    let allowed = writes.iter().zip(&*has).all(|(earlier, has)| *has || !comes_before(ops, earlier, write));
    for has_it in [true, false] {
        if (has_it && allowed) || (!has_it && !write.is_certain) {
            has.push(has_it);
            let goes_on = choose(ops, writes, has, sets, found);
            has.pop();
            if !goes_on {
                return false;
            }
        }
    }
    true
}

/// Must the earlier write be in PM for the later one to be? Both are on one line.
fn comes_before(ops: &[Op], earlier: &Write, later: &Write) -> bool {
    let streams = |write: &Write| matches!(ops[write.at].what, What::Store { by: Writer::NonTemporal, .. });
    let same_granule = earlier.start / 8 == later.start / 8;
    if earlier.at == later.at {
        return false;
    }
    // The line order of cached stores; chunks of one write-combining buffer have no order.
    let same_buffer = streams(earlier) && streams(later) && ops[earlier.at].thread == ops[later.at].thread;
    same_granule || !same_buffer
}

/// The writes to a line, in order.
fn writes(ops: &[Op], line: usize, model: Model) -> Vec<Write> {
    let mut writes: Vec<Write> = Vec::new();
    for (at, op) in ops.iter().enumerate() {
        let What::Store { by, offset, bytes } = &op.what else { continue };
        let on_line: Vec<(usize, u8)> = (*offset..)
            .zip(bytes.iter().copied())
            .filter(|(at, _)| at / 64 == line)
            .map(|(at, b)| (at % 64, b))
            .collect();
        // One that is never cut is one write.
        let is_whole = *by == Writer::Direct64;
        for granule in on_line.chunk_by(|a, b| is_whole || a.0 / 8 == b.0 / 8) {
            let bytes = granule.iter().map(|(_, byte)| *byte).collect();
            writes.push(Write { at, start: granule[0].0, bytes, is_certain: is_certain(ops, at, line, model) });
        }
    }
    // Whatever comes before something certain is certain.
    for at in (0..writes.len()).rev() {
        let before_certain = |later: &Write| later.is_certain && comes_before(ops, &writes[at], later);
        if writes[at + 1..].iter().any(before_certain) {
            writes[at].is_certain = true;
        }
    }
    writes
}

/// Is this store, as far as it is on this line, in PM for sure after all operations?
fn is_certain(ops: &[Op], store: usize, line: usize, model: Model) -> bool {
    let What::Store { by, offset, bytes } = &ops[store].what else { return false };
    let later = |from: usize| (from + 1..ops.len()).map(|at| (at, &ops[at]));
    let fenced = |from: usize, thread: u32| later(from).any(|(_, op)| op.thread == thread && op.is_fence());
    if matches!(by, Writer::NonTemporal | Writer::Direct64) {
        return fenced(store, ops[store].thread) || later(store).any(|(_, op)| op.what == What::Fsync);
    }
    let is_narrow = offset / 8 == (offset + bytes.len() - 1) / 8;
    if model == Model::Eadr && (is_narrow || store + 1 < ops.len()) {
        return true;
    }
    later(store).any(|(at, op)| match op.what {
        What::Clflush { line: flushed } => flushed == line && model == Model::Adr,
        What::Clwb { line: flushed } => flushed == line && model == Model::Adr && fenced(at, op.thread),
        What::Fsync => true,
        _ => false,
    })
}
