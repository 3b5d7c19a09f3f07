//! Two images of the same lines, byte by byte.

use finding::evidence::{Comparison, Difference, LineDifference};

use crate::number::counted;
use crate::number::separated;

const PER_ROW: usize = 16;
/// Lines that are shown at once.
const OPEN: usize = 4;
/// Colours of fields; they are used in turn.
const COLOURS: usize = 6;

#[derive(Debug)]
pub struct DiffView {
    pub words: String,
    /// What the other side is.
    pub other: &'static str,
    pub lines: Vec<LineView>,
    /// Those that are folded away.
    pub more: Vec<LineView>,
    pub left_out: String,
}

#[derive(Debug)]
pub struct LineView {
    pub name: String,
    pub fields: Vec<FieldView>,
    pub failing: Vec<Row>,
    pub passing: Vec<Row>,
}

#[derive(Debug)]
pub struct FieldView {
    pub name: String,
    pub colour: usize,
}

#[derive(Debug)]
pub struct Row {
    pub offset: String,
    pub bytes: Vec<ByteView>,
    pub ascii: String,
}

#[derive(Debug)]
pub struct ByteView {
    pub text: String,
    pub class: String,
    pub title: String,
}

/// None if there is nothing to compare.
pub fn view(difference: &Difference) -> Option<DiffView> {
    if difference.lines.is_empty() {
        return None;
    }
    let lines = counted(difference.lines.len() as u64 + difference.left_out, "cache line");
    let verb = if difference.lines.len() as u64 + difference.left_out == 1 { "differs" } else { "differ" };
    let state = match (difference.with, difference.passes) {
        (Comparison::Restored, true) => "the same crash with the missing stores in PM; recovery passes on that",
        (Comparison::Restored, false) => "the same crash with the missing stores in PM",
        (Comparison::Without, true) => "the same crash without the stores that came too early; recovery passes on that",
        (Comparison::Without, false) => "the same crash without the stores that came too early",
        (Comparison::Before, true) => "a crash just before the store that came too early; recovery passes on that",
        (Comparison::Before, false) => "a crash just before that store",
    };
    Some(DiffView {
        words: format!("{lines} {verb} from {state}."),
        other: match difference.with {
            Comparison::Restored => "with the missing stores",
            Comparison::Without => "without the early stores",
            Comparison::Before => "just before",
        },
        lines: difference.lines.iter().take(OPEN).map(line).collect(),
        more: difference.lines.iter().skip(OPEN).map(line).collect(),
        left_out: match difference.left_out {
            0 => String::new(),
            more => format!("{} more lines differ and are not shown.", separated(more)),
        },
    })
}

fn line(line: &LineDifference) -> LineView {
    let (failing, passing) = (bytes(&line.failing), bytes(&line.passing));
    let mut fields: Vec<FieldView> = Vec::new();
    let mut of_byte: Vec<Option<usize>> = vec![None; failing.len().max(passing.len())];
    for field in &line.fields {
        let known = fields.iter().position(|known| known.name == field.name);
        let number = known.unwrap_or_else(|| {
            fields.push(FieldView { name: field.name.clone(), colour: fields.len() % COLOURS });
            fields.len() - 1
        });
        let end = (usize::from(field.start) + usize::from(field.len)).min(of_byte.len());
        of_byte.get_mut(usize::from(field.start)..end).into_iter().flatten().for_each(|byte| *byte = Some(number));
    }
    // A column of dots says nothing.
    let has_text = [&failing, &passing].iter().any(|bytes| bytes.windows(3).any(|three| three.iter().all(is_text)));
    let rows = |own: &[u8], other: &[u8]| -> Vec<Row> {
        let row = |(number, chunk): (usize, &[u8])| {
            let first = number * PER_ROW;
            let byte = |(at, value): (usize, &u8)| {
                let at = first + at;
                let field = of_byte[at].map(|number| &fields[number]);
                let differs = other.get(at) != Some(value);
                let mut class = field.map_or_else(String::new, |field| format!("f{}", field.colour));
                if differs {
                    class.push_str(" d");
                } else if *value == 0 {
                    class.push_str(" z");
                }
                ByteView {
                    text: format!("{value:02x}"),
                    class: class.trim().to_owned(),
                    title: field.map_or_else(String::new, |field| field.name.clone()),
                }
            };
            Row {
                offset: format!("{:#x}", line.offset.0 + first as u64),
                bytes: chunk.iter().enumerate().map(byte).collect(),
                ascii: if has_text { chunk.iter().copied().map(shown).collect() } else { String::new() },
            }
        };
        own.chunks(PER_ROW).enumerate().map(row).collect()
    };
    LineView {
        name: format!("{} + {:#x}", line.pool, line.offset.0),
        failing: rows(&failing, &passing),
        passing: rows(&passing, &failing),
        fields,
    }
}

fn is_text(byte: &u8) -> bool {
    (0x20..0x7f).contains(byte)
}

fn shown(byte: u8) -> char {
    if is_text(&byte) { char::from(byte) } else { '·' }
}

/// Of hexadecimal digits; others end it.
fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().map_while(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
