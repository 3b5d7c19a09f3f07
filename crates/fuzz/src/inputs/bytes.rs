//! Raw bytes: the usual mutations of AFL's havoc stage, with a dictionary.

use std::ops::Range;

use super::Inputs;
use crate::random::Random;

/// Longest input.
const MOST: usize = 16 << 10;
/// Parts that an input is cut into to make it shorter.
const PARTS: usize = 64;

/// Mutations of one mutant.
const MOST_AT_ONCE: usize = 8;

const INTERESTING: [u64; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];

/// Bytes, and words that are likely to mean something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    pub dictionary: Vec<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "line {line} of the dictionary has no word in quotes; write name=\"word\" or \"word\", with \\xNN for any byte"
)]
pub struct DictionaryError {
    line: usize,
}

impl Bytes {
    /// AFL's format: `name="word"`, or only the word; `#` begins a comment.
    pub fn parse(dictionary: &str) -> Result<Bytes, DictionaryError> {
        let mut words = Vec::new();
        for (number, line) in dictionary.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let error = DictionaryError { line: number + 1 };
            let (Some(open), Some(close)) = (line.find('"'), line.rfind('"')) else { return Err(error) };
            if open == close {
                return Err(error);
            }
            words.push(unescape(&line[open + 1..close]));
        }
        Ok(Bytes { dictionary: words })
    }
}

fn unescape(text: &str) -> Vec<u8> {
    let bytes = text.as_bytes();
    let (mut word, mut at) = (Vec::new(), 0);
    while at < bytes.len() {
        let escaped = match &bytes[at..] {
            [b'\\', b'x', high, low, ..] => {
                let digit = |byte: &u8| (*byte as char).to_digit(16);
                digit(high).zip(digit(low)).map(|(high, low)| ((high * 16 + low) as u8, 4))
            }
            [b'\\', b'n', ..] => Some((b'\n', 2)),
            [b'\\', b't', ..] => Some((b'\t', 2)),
            [b'\\', byte @ (b'\\' | b'"'), ..] => Some((*byte, 2)),
            _ => None,
        };
        let (byte, len) = escaped.unwrap_or((bytes[at], 1));
        word.push(byte);
        at += len;
    }
    word
}

impl Inputs for Bytes {
    fn first(&self, random: &mut Random) -> Vec<u8> {
        match random.pick(&self.dictionary) {
            Some(word) => word.clone(),
            None => (0..1 + random.index(8)).map(|_| random.draw() as u8).collect(),
        }
    }

    fn mutate(&self, input: &[u8], other: &[u8], random: &mut Random) -> Vec<u8> {
        let mut bytes = input.to_vec();
        for _ in 0..random.small(MOST_AT_ONCE) {
            self.once(&mut bytes, other, random);
        }
        bytes.truncate(MOST);
        if bytes.is_empty() {
            bytes = self.first(random);
        }
        bytes
    }

    fn parts(&self, input: &[u8]) -> Vec<Range<usize>> {
        let step = input.len().div_ceil(PARTS).max(1);
        (0..input.len()).step_by(step).map(|at| at..(at + step).min(input.len())).collect()
    }
}

/// A byte range of `len` bytes at most.
fn byte_range(len: usize, random: &mut Random) -> Range<usize> {
    let at = random.index(len);
    at..(at + random.small(len)).min(len)
}

impl Bytes {
    /// A place where words may meet: the end, either side of a word that is there, or anywhere.
    fn seam(&self, bytes: &[u8], random: &mut Random) -> usize {
        let anywhere = random.index(bytes.len() + 1);
        match random.below(3) {
            0 => bytes.len(),
            1 => {
                let Some(word) = random.pick(&self.dictionary).filter(|word| !word.is_empty()) else { return anywhere };
                let places: Vec<usize> = bytes
                    .windows(word.len())
                    .enumerate()
                    .filter(|(_, at)| **at == word[..])
                    .map(|(at, _)| at)
                    .collect();
                let before = random.once_in(2);
                random.pick(&places).map_or(anywhere, |at| if before { *at } else { at + word.len() })
            }
            _ => anywhere,
        }
    }

    fn once(&self, bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
        let at = random.index(bytes.len());
        match random.below(if self.dictionary.is_empty() { 10 } else { 14 }) {
            _ if bytes.is_empty() => *bytes = self.first(random),
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.draw() as u8,
            2 => bytes[at] = bytes[at].wrapping_add(1 + random.below(35) as u8),
            3 => bytes[at] = bytes[at].wrapping_sub(1 + random.below(35) as u8),
            4 => {
                let value = random.pick(&INTERESTING).copied().unwrap_or(0);
                let width = 1 << random.below(4);
                for (byte, new) in bytes[at..].iter_mut().zip(value.to_le_bytes()).take(width) {
                    *byte = new;
                }
            }
            5 => drop(bytes.drain(byte_range(bytes.len(), random))),
            6 => {
                let copy = bytes[byte_range(bytes.len(), random)].to_vec();
                bytes.splice(at..at, copy);
            }
            7 => bytes.insert(at, random.draw() as u8),
            8 if !other.is_empty() => {
                bytes.truncate(at);
                bytes.extend_from_slice(&other[random.index(other.len())..]);
            }
            9 => change_number(bytes, at, random),
            _ => {
                let at = self.seam(bytes, random);
                let mut words = Vec::new();
                for _ in 0..random.small(4) {
                    words.extend_from_slice(random.pick(&self.dictionary).map_or(&[][..], |word| word));
                    if random.once_in(4) {
                        words.extend_from_slice(random.below(10).to_string().as_bytes());
                    }
                }
                let replaced = if random.once_in(2) { words.len() } else { 0 };
                let to = (at + replaced).min(bytes.len());
                bytes.splice(at..to, words);
            }
        }
    }
}

/// Another number in place of the digits at or after `at`.
fn change_number(bytes: &mut Vec<u8>, at: usize, random: &mut Random) {
    let Some(first) = (at..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
    let last = (first..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
    let old: u64 = std::str::from_utf8(&bytes[first..last]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let new = match random.below(4) {
        0 => old.wrapping_add(1),
        1 => old.wrapping_sub(1),
        2 => random.pick(&INTERESTING).copied().unwrap_or(0),
        _ => {
            let bits = random.below(33);
            random.below(1 << bits)
        }
    };
    bytes.splice(first..last, new.to_string().into_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dictionaries_of_afl_are_read() {
        let bytes = Bytes::parse("# comment\nput=\"PUT \\x00\\\"\"\n\n\"GET\"\n").unwrap();
        assert_eq!(bytes.dictionary, [b"PUT \0\"".to_vec(), b"GET".to_vec()]);
        assert_eq!(Bytes::parse("x\nnothing").unwrap_err(), DictionaryError { line: 1 });
    }

    #[test]
    fn mutants_are_never_empty_and_never_long() {
        let bytes = Bytes::parse("\"word\"").unwrap();
        let mut random = Random::new(1);
        let mut input = b"first".to_vec();
        for _ in 0..5000 {
            input = bytes.mutate(&input, b"other", &mut random);
            assert!(!input.is_empty() && input.len() <= MOST);
        }
    }
}
