//! One column: the same word of all rows of one shape in a block.
//!
//! Each column is predicted from one *reference*: the row before, the event's own offset (pointers to oneself), a word
//! further left in the row, or the offset of one of the thread's last eight events. The encoder tries them on a
//! sample and takes the cheapest. What remains is cut into eight planes of bytes; planes that are all
//! zero (most are) take no space.

use crate::bytes::{Input, PutBytes, unzigzag, zigzag};
use crate::error::Malformed;

/// How many offsets of a thread are remembered.
pub(crate) const PAST_OFFSETS: usize = 8;
/// Rows on which references are compared.
const SAMPLE: usize = 192;

/// What a word is predicted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reference {
    /// A constant, combined by exclusive or.
    Constant,
    /// The same word of the row before.
    RowBefore,
    /// The word so many places further left.
    Left(u8),
    /// The offset of the thread's event so many places before (only those with offsets count; 0 is the last).
    Past(u8),
}

impl Reference {
    fn byte(self) -> u8 {
        match self {
            Reference::Constant => 0,
            Reference::RowBefore => 1,
            Reference::Past(back) => 0x40 | back,
            Reference::Left(places) => 0x80 | places,
        }
    }

    /// `word` is the column's place in its row.
    fn from_byte(byte: u8, word: usize) -> Result<Reference, Malformed> {
        let low = byte & 0x3f;
        match byte & 0xc0 {
            0 if low == 0 => Ok(Reference::Constant),
            0 if low == 1 => Ok(Reference::RowBefore),
            0x40 if usize::from(low) < PAST_OFFSETS => Ok(Reference::Past(low)),
            0x80 if low > 0 && usize::from(low) <= word => Ok(Reference::Left(low)),
            _ => Err(Malformed("unknown prediction of a column")),
        }
    }
}

/// The rows of one shape, as the encoder sees them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    pub words: &'a [u64],
    pub width: usize,
    /// For each row, where in `trail` its event stands; the offsets before that are its past.
    pub stands: &'a [u32],
    /// Offsets of all events by thread, each thread's after [`PAST_OFFSETS`] zeros.
    pub trail: &'a [u64],
}

impl Rows<'_> {
    #[inline]
    fn word(&self, row: usize, word: usize) -> u64 {
        self.words[row * self.width + word]
    }

    /// Difference of a word and its reference.
    #[inline]
    fn difference(&self, row: usize, word: usize, reference: Reference) -> u64 {
        let value = self.word(row, word);
        match reference {
            Reference::Constant => value,
            Reference::RowBefore if row == 0 => 0,
            Reference::RowBefore => value.wrapping_sub(self.word(row - 1, word)),
            Reference::Left(places) => value.wrapping_sub(self.word(row, word - usize::from(places))),
            Reference::Past(back) => value.wrapping_sub(self.trail[self.stands[row] as usize - 1 - usize::from(back)]),
        }
    }

    /// About the number of bytes that the sample would need: bytes that differ from the row before.
    fn cost(&self, word: usize, reference: Reference, rows: usize, limit: u32) -> u32 {
        let mut cost = 0;
        let mut last = 0;
        let base = if reference == Reference::RowBefore { 0 } else { self.difference(0, word, reference) };
        for row in 0..rows {
            let difference = self.difference(row, word, reference);
            let code = match reference {
                Reference::Constant => difference ^ base,
                _ => zigzag(difference.wrapping_sub(base)),
            };
            cost += nonzero_bytes(code ^ last);
            if cost >= limit {
                return cost;
            }
            last = code;
        }
        cost
    }

    /// The cheapest reference for a word.
    pub fn choose(&self, word: usize) -> Reference {
        let rows = self.stands.len().min(SAMPLE);
        let mut best = (Reference::Constant, self.cost(word, Reference::Constant, rows, u32::MAX));
        let mut attempt = |reference| {
            if best.1 > 0 {
                // A reference must earn the work of resolving it.
                let cost = self.cost(word, reference, rows, best.1);
                if cost < best.1 {
                    best = (reference, cost);
                }
            }
        };
        attempt(Reference::RowBefore);
        if word > 0 {
            attempt(Reference::Left(word as u8));
            for places in (1..=3u8).filter(|places| usize::from(*places) < word) {
                attempt(Reference::Left(places));
            }
        }
        for back in 0..PAST_OFFSETS as u8 {
            attempt(Reference::Past(back));
        }
        best.0
    }
}

#[inline]
fn nonzero_bytes(word: u64) -> u32 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // The top bit of each byte: is any bit of it set?
    let any = ((word & LOW).wrapping_add(LOW) | word) & !LOW;
    any.count_ones()
}

/// Adds a column to `heads` and `planes`, predicted from `reference`. `codes` is scratch space.
pub(crate) fn encode(
    rows: Rows<'_>,
    word: usize,
    reference: Reference,
    codes: &mut Vec<u64>,
    heads: &mut Vec<u8>,
    planes: &mut Vec<u8>,
) {
    let count = rows.stands.len();
    let base = match reference {
        Reference::RowBefore => rows.word(0, word),
        _ => rows.difference(0, word, reference),
    };
    codes.clear();
    codes.extend((0..count).map(|row| {
        let difference = rows.difference(row, word, reference);
        match reference {
            Reference::Constant => difference ^ base,
            Reference::RowBefore => zigzag(difference),
            _ => zigzag(difference.wrapping_sub(base)),
        }
    }));
    let used = codes.iter().fold(0, |used, code| used | code);
    let mut mask = 0u8;
    for plane in 0..8 {
        if used >> (plane * 8) & 0xff != 0 {
            mask |= 1 << plane;
            planes.extend(codes.iter().map(|code| (code >> (plane * 8)) as u8));
        }
    }
    heads.push(reference.byte());
    heads.push(mask);
    heads.varint(base);
}

/// A column whose reference is only known when the events are walked in order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub word: u8,
    pub reference: Reference,
}

/// Fills the column `word` of `words` (row by row, `width` words each). If it returns a value, the
/// reference must still be added to each word.
pub(crate) fn decode(
    words: &mut [u64],
    width: usize,
    word: usize,
    heads: &mut Input<'_>,
    planes: &mut Input<'_>,
) -> Result<Option<Open>, Malformed> {
    let reference = Reference::from_byte(heads.byte()?, word)?;
    let mask = heads.byte()?;
    let base = heads.varint()?;
    let count = words.len() / width;
    let mut column = [(0u32, &[][..]); 8];
    let mut used = 0;
    for plane in 0..8 {
        if mask & 1 << plane != 0 {
            column[used] = (plane * 8, planes.take(count)?);
            used += 1;
        }
    }
    let column = &column[..used];
    // Constant widths for the usual shapes: the compiler then needs no multiplication and no check per row.
    match width {
        1 => fill_column(words.as_chunks_mut::<1>().0, word, reference, base, column),
        2 => fill_column(words.as_chunks_mut::<2>().0, word, reference, base, column),
        3 => fill_column(words.as_chunks_mut::<3>().0, word, reference, base, column),
        _ => {
            let cells = words.chunks_exact_mut(width).map(|row| &mut row[word]);
            fill(cells, reference, base, column);
        }
    }
    let open = !matches!(reference, Reference::Constant | Reference::RowBefore);
    Ok(open.then_some(Open { word: word as u8, reference }))
}

/// Adds the word so many places further left, which is known, to each `word`: what [`decode`] has left open.
pub(crate) fn add_left(words: &mut [u64], width: usize, word: usize, places: u8) {
    let left = word - usize::from(places);
    for row in words.chunks_exact_mut(width) {
        row[word] = row[word].wrapping_add(row[left]);
    }
}

fn fill_column<const WIDTH: usize>(
    rows: &mut [[u64; WIDTH]],
    word: usize,
    reference: Reference,
    base: u64,
    column: &[(u32, &[u8])],
) {
    assert!(word < WIDTH);
    fill(rows.iter_mut().map(|row| &mut row[word]), reference, base, column);
}

#[inline(always)]
fn fill<'a>(cells: impl Iterator<Item = &'a mut u64>, reference: Reference, base: u64, column: &[(u32, &[u8])]) {
    match reference {
        Reference::Constant => fill_with(cells, column, |code| code ^ base),
        Reference::RowBefore => {
            let mut value = base;
            fill_with(cells, column, |code| {
                value = value.wrapping_add(unzigzag(code));
                value
            });
        }
        _ => fill_with(cells, column, |code| unzigzag(code).wrapping_add(base)),
    }
}

#[inline]
fn fill_with<'a>(cells: impl Iterator<Item = &'a mut u64>, planes: &[(u32, &[u8])], mut value: impl FnMut(u64) -> u64) {
    match *planes {
        [] => cells.for_each(|cell| *cell = value(0)),
        [(shift, bytes)] => cells.zip(bytes).for_each(|(cell, &byte)| *cell = value(u64::from(byte) << shift)),
        [(low, bytes), (high, others)] => cells.zip(bytes.iter().zip(others)).for_each(|(cell, (&byte, &other))| {
            *cell = value(u64::from(byte) << low | u64::from(other) << high);
        }),
        [a, b, c] => fill_from([a, b, c], cells, value),
        [a, b, c, d] => fill_from([a, b, c, d], cells, value),
        [a, b, c, d, e, f, g, h] => fill_from([a, b, c, d, e, f, g, h], cells, value),
        _ => cells.enumerate().for_each(|(row, cell)| {
            *cell = value(planes.iter().fold(0, |code, (shift, bytes)| code | u64::from(bytes[row]) << shift));
        }),
    }
}

#[inline(always)]
fn fill_from<'a, const PLANES: usize>(
    planes: [(u32, &[u8]); PLANES],
    cells: impl Iterator<Item = &'a mut u64>,
    mut value: impl FnMut(u64) -> u64,
) {
    // One length for all, so that one check per row is enough.
    let rows = planes[0].1.len();
    let planes = planes.map(|(shift, bytes)| (shift, &bytes[..rows]));
    cells.zip(0..rows).for_each(|(cell, row)| {
        *cell = value(planes.iter().fold(0, |code, (shift, bytes)| code | u64::from(bytes[row]) << shift));
    });
}
